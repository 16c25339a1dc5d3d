//! Tokens of IR text. `//` starts a comment that runs to the end of the line.

use super::loc::Loc;
use crate::diag::{Code, Diagnostic};

/// What a token is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    /// A name, number, type or literal: letters, digits, `_`, `.`, and signs within numbers.
    Word(String),
    /// `%name`.
    Value(String),
    /// `@name`.
    Symbol(String),
    /// `#name`.
    Layout(String),
    /// `@ file:line:column-line:column`, without the `@ `.
    Place(String),
    /// One of `( ) { } [ ] < > , : =`.
    Punct(char),
    /// The end of the text.
    End,
}

impl Token {
    /// The token as messages show it.
    pub(super) fn show(&self) -> String {
        match self {
            Token::Word(w) => format!("`{w}`"),
            Token::Value(v) => format!("`%{v}`"),
            Token::Symbol(s) => format!("`@{s}`"),
            Token::Layout(l) => format!("`#{l}`"),
            Token::Place(p) => format!("`@ {p}`"),
            Token::Punct(c) => format!("`{c}`"),
            Token::End => "the end of the text".to_string(),
        }
    }
}

/// A token and where it is.
#[derive(Clone, Debug)]
pub(super) struct Spanned {
    pub(super) token: Token,
    /// First line, from 1.
    pub(super) line: u32,
    /// First column in characters, from 1.
    pub(super) column: u32,
    /// Column after the last character.
    pub(super) end_column: u32,
}

impl Spanned {
    /// The place in the given file.
    pub(super) fn loc(&self, file: &str) -> Loc {
        let end_line = self.line;
        Loc {
            file: file.to_string(),
            line: self.line,
            column: self.column,
            end_line,
            end_column: self.end_column,
        }
    }
}

/// Cuts a text into tokens; the last is [`Token::End`].
pub(super) fn tokens(file: &str, text: &str) -> Result<Vec<Spanned>, Diagnostic> {
    let mut out = Vec::new();
    let mut line_number = 0;
    for line in text.split('\n') {
        line_number += 1;
        let chars: Vec<char> = line.trim_end_matches('\r').chars().collect();
        let mut at = 0;
        while let Some(start) = (at..chars.len()).find(|&i| !chars[i].is_whitespace()) {
            if chars[start..].starts_with(&['/', '/']) {
                break;
            }
            let (token, end) = token(&chars, start);
            let (column, end_column) = (start as u32 + 1, end as u32 + 1);
            let spanned = Spanned { token: Token::End, line: line_number, column, end_column };
            let Some(token) = token else {
                let mut fault = Diagnostic::new(Code::Parse, format!("`{}` begins no token", chars[start]));
                fault.loc = Some(spanned.loc(file));
                return Err(fault);
            };
            out.push(Spanned { token, ..spanned });
            at = end;
        }
    }
    let column = text.rsplit('\n').next().map_or(0, |l| l.chars().count()) as u32 + 1;
    out.push(Spanned { token: Token::End, line: line_number, column, end_column: column });
    Ok(out)
}

/// The token that starts at `start`, and where it ends.
fn token(chars: &[char], start: usize) -> (Option<Token>, usize) {
    let next = chars.get(start + 1).copied();
    match chars[start] {
        c @ ('(' | ')' | '{' | '}' | '[' | ']' | '<' | '>' | ',' | ':' | '=') => {
            (Some(Token::Punct(c)), start + 1)
        }
        '@' if next == Some(' ') => place(chars, start + 2),
        sigil @ ('%' | '@' | '#') => {
            let (name, end) = name(chars, start + 1);
            let token = name.map(|name| match sigil {
                '%' => Token::Value(name),
                '@' => Token::Symbol(name),
                _ => Token::Layout(name),
            });
            (token, end)
        }
        c if is_word(c) || c == '-' => word(chars, start),
        _ => (None, start + 1),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

/// A bare or quoted name.
fn name(chars: &[char], start: usize) -> (Option<String>, usize) {
    if chars.get(start) == Some(&'"') {
        return quoted(chars, start + 1);
    }
    let end = (start..chars.len()).find(|&i| !is_word(chars[i])).unwrap_or(chars.len());
    ((end > start).then(|| chars[start..end].iter().collect()), end)
}

fn quoted(chars: &[char], start: usize) -> (Option<String>, usize) {
    let mut text = String::new();
    let mut at = start;
    while let Some(&c) = chars.get(at) {
        at += 1;
        match c {
            '"' => return (Some(text), at),
            '\\' => {
                let Some(&escaped) = chars.get(at) else { break };
                at += 1;
                text.push(match escaped {
                    'n' => '\n',
                    'r' => '\r',
                    other => other,
                });
            }
            c => text.push(c),
        }
    }
    (None, chars.len())
}

/// A word; in a number, a sign may follow the `e` of the exponent.
fn word(chars: &[char], start: usize) -> (Option<Token>, usize) {
    let digits = usize::from(chars[start] == '-') + start;
    let number = chars.get(digits).is_some_and(char::is_ascii_digit);
    let mut end = digits;
    while let Some(&c) = chars.get(end) {
        let sign = number && matches!(c, '+' | '-') && end > digits && matches!(chars[end - 1], 'e' | 'E');
        if !is_word(c) && !sign {
            break;
        }
        end += 1;
    }
    ((end > digits).then(|| Token::Word(chars[start..end].iter().collect())), end.max(start + 1))
}

/// A place: the rest of the line, up to a comment.
fn place(chars: &[char], start: usize) -> (Option<Token>, usize) {
    let end = (start..chars.len()).find(|&i| chars[i..].starts_with(&[' ', '/', '/'])).unwrap_or(chars.len());
    let text: String = chars[start..end].iter().collect();
    (Some(Token::Place(text.trim().to_string())), end)
}
