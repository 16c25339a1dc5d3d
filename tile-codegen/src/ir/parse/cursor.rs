//! The parser's tokens: looking ahead, taking, and saying what was expected instead.

use super::{Parser, Result};
use crate::diag::{Code, Diagnostic};
use crate::ir::lex::Token;

impl Parser<'_> {
    pub(super) fn peek(&self) -> &Token {
        &self.tokens[self.at].token
    }

    /// The token after the next one.
    pub(super) fn second(&self) -> &Token {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].token
    }

    pub(super) fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Whether the next token stands on the same line as the one before.
    pub(super) fn same_line(&self) -> bool {
        self.at > 0 && self.tokens[self.at].line == self.tokens[self.at - 1].line
    }

    pub(super) fn eat(&mut self, c: char) -> bool {
        let found = *self.peek() == Token::Punct(c);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn expect(&mut self, c: char) -> Result<()> {
        if self.eat(c) { Ok(()) } else { Err(self.expected(&format!("`{c}`"))) }
    }

    pub(super) fn word(&mut self, what: &str) -> Result<String> {
        match self.peek().clone() {
            Token::Word(word) => {
                self.next();
                Ok(word)
            }
            _ => Err(self.expected(what)),
        }
    }

    pub(super) fn keyword(&mut self, keyword: &str) -> Result<()> {
        if matches!(self.peek(), Token::Word(w) if w == keyword) {
            self.next();
            return Ok(());
        }
        Err(self.expected(&format!("`{keyword}`")))
    }

    pub(super) fn expected(&self, what: &str) -> Diagnostic {
        self.fault(self.at, format!("expected {what}, found {}", self.peek().show()))
    }

    pub(super) fn fault(&self, token: usize, message: impl Into<String>) -> Diagnostic {
        let mut fault = Diagnostic::new(Code::Parse, message);
        fault.loc = Some(self.tokens[token].loc(self.file));
        fault
    }

    /// Items separated by commas, up to a closing character.
    pub(super) fn list<T>(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut out = Vec::new();
        if self.eat(close) {
            return Ok(out);
        }
        loop {
            out.push(item(self)?);
            if self.eat(close) {
                return Ok(out);
            }
            if !self.eat(',') {
                return Err(self.expected(&format!("`,` or `{close}`")));
            }
        }
    }

    /// Items separated by commas, at least one.
    pub(super) fn items<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut out = vec![item(self)?];
        while self.eat(',') {
            out.push(item(self)?);
        }
        Ok(out)
    }
}
