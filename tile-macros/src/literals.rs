//! Literals: which expressions are one, and which become run-time values.

use proc_macro2::{Ident, TokenStream};
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{BinOp, Block, Expr, Lit, Pat, Stmt, UnOp};

use crate::expand::Rewriter;
use crate::scope::assigned_in_flow;

/// The kind of an unsuffixed literal, which gives the element type of its run-time value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Literal {
    /// `i32`
    Int,
    /// `f32`
    Float,
    /// `bool`
    Bool,
}

/// A number, perhaps negated or in parentheses.
pub(crate) fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(l) => matches!(l.lit, Lit::Int(_) | Lit::Float(_)),
        Expr::Unary(u) => matches!(u.op, UnOp::Neg(_)) && is_number(&u.expr),
        Expr::Paren(p) => is_number(&p.expr),
        Expr::Group(g) => is_number(&g.expr),
        _ => false,
    }
}

/// A literal without suffix, perhaps negated, in parentheses or an arithmetic of such.
pub(crate) fn unsuffixed(expr: &Expr) -> Option<Literal> {
    match expr {
        Expr::Lit(l) => match &l.lit {
            Lit::Int(i) if i.suffix().is_empty() => Some(Literal::Int),
            Lit::Float(f) if f.suffix().is_empty() => Some(Literal::Float),
            Lit::Bool(_) => Some(Literal::Bool),
            _ => None,
        },
        Expr::Unary(u) if matches!(u.op, UnOp::Neg(_)) => unsuffixed(&u.expr).filter(|l| *l != Literal::Bool),
        Expr::Paren(p) => unsuffixed(&p.expr),
        Expr::Group(g) => unsuffixed(&g.expr),
        Expr::Binary(b) if matches!(b.op, BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_)) => {
            let (left, right) = (unsuffixed(&b.left)?, unsuffixed(&b.right)?);
            (left == right && left != Literal::Bool).then_some(left)
        }
        _ => None,
    }
}

impl Rewriter<'_> {
    /// Lifts the literals of `let mut x = 0` (also inside tuples) that control flow in `rest` assigns.
    pub(crate) fn lift_init(
        &mut self,
        pat: &Pat,
        init: &mut Expr,
        rest: &[Stmt],
        lifted: &mut Vec<(String, Literal)>,
    ) {
        match (pat, init) {
            (Pat::Ident(p), init) if p.mutability.is_some() && p.subpat.is_none() => {
                if let Some(literal) = unsuffixed(init)
                    && assigned_in_flow(rest, &p.ident)
                {
                    *init = self.lift(init, literal);
                    lifted.push((p.ident.to_string(), literal));
                }
            }
            (Pat::Tuple(p), Expr::Tuple(t))
                if p.elems.len() == t.elems.len() && !p.elems.iter().any(|p| matches!(p, Pat::Rest(_))) =>
            {
                p.elems.iter().zip(&mut t.elems).for_each(|(p, e)| self.lift_init(p, e, rest, lifted));
            }
            _ => {}
        }
    }

    /// Lifts the literals that an assignment gives to a lifted variable: the value itself, or the last expression of
    /// every arm of an `if` or a `match`.
    pub(crate) fn lift_assigned(&mut self, target: &Expr, value: &mut Expr) {
        match (target, value) {
            (Expr::Path(p), value) => {
                if let Some(literal) = p.path.get_ident().and_then(|ident| self.scopes.get(ident).lifted) {
                    self.lift_value(value, literal);
                }
            }
            (Expr::Tuple(t), Expr::Tuple(v)) if t.elems.len() == v.elems.len() => {
                t.elems.iter().zip(&mut v.elems).for_each(|(t, v)| self.lift_assigned(t, v));
            }
            _ => {}
        }
    }

    fn lift_value(&mut self, value: &mut Expr, literal: Literal) {
        if unsuffixed(value) == Some(literal) {
            *value = self.lift(value, literal);
            return;
        }
        match value {
            Expr::Paren(p) => self.lift_value(&mut p.expr, literal),
            Expr::Group(g) => self.lift_value(&mut g.expr, literal),
            Expr::Block(b) => self.lift_tail(&mut b.block, literal),
            Expr::If(i) => {
                self.lift_tail(&mut i.then_branch, literal);
                if let Some((_, e)) = &mut i.else_branch {
                    self.lift_value(e, literal);
                }
            }
            Expr::Match(m) => m.arms.iter_mut().for_each(|a| self.lift_value(&mut a.body, literal)),
            _ => {}
        }
    }

    fn lift_tail(&mut self, block: &mut Block, literal: Literal) {
        if let Some(Stmt::Expr(e, None)) = block.stmts.last_mut() {
            self.lift_value(e, literal);
        }
    }

    /// `lift::<i32>(0)`
    fn lift(&mut self, value: &Expr, literal: Literal) -> Expr {
        let at = value.span();
        self.ranges.note(at, value);
        let name = match literal {
            Literal::Int => "i32",
            Literal::Float => "f32",
            Literal::Bool => "bool",
        };
        let (lift, ty) = (self.krate.private(at, "lift"), Ident::new(name, at));
        Expr::Verbatim(quote_spanned!(at=> #lift::<::core::primitive::#ty>(#value)))
    }

    /// `Lit(2)`: an integer literal on the left of an operator, whose type the other side decides.
    pub(crate) fn left_literal(&self, value: &Expr) -> TokenStream {
        let at = value.span();
        let lit = self.krate.private(at, "Lit");
        quote_spanned!(at=> #lit(#value))
    }
}
