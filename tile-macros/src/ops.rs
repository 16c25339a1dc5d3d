//! Operators that traits cannot overload as needed: comparisons, `&&`, `||`, `as`, and literals on the left.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{BinOp, Expr, ExprBinary, ExprCast, Type};

use crate::expand::{Rewriter, block_tokens};
use crate::flow::has_let;
use crate::literals::is_number;

/// The comparison's trait and method, and the method with its sides exchanged.
fn comparison(op: &BinOp) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match op {
        BinOp::Eq(_) => ("CmpEq", "eq", "eq"),
        BinOp::Ne(_) => ("CmpEq", "ne", "ne"),
        BinOp::Lt(_) => ("CmpOrd", "lt", "gt"),
        BinOp::Le(_) => ("CmpOrd", "le", "ge"),
        BinOp::Gt(_) => ("CmpOrd", "gt", "lt"),
        BinOp::Ge(_) => ("CmpOrd", "ge", "le"),
        _ => return None,
    })
}

fn arithmetic(op: &BinOp) -> bool {
    matches!(op, BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) | BinOp::Rem(_))
}

fn integer(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(l) => matches!(&l.lit, syn::Lit::Int(i) if i.suffix().is_empty()),
        Expr::Unary(u) => is_number(expr) && integer(&u.expr),
        Expr::Paren(p) => integer(&p.expr),
        Expr::Group(g) => integer(&g.expr),
        _ => false,
    }
}

/// Does a generated or user's call, whose location is a key, start where the expression starts? An operation whose
/// left side it is would then have the same key.
fn starts_with_key(expr: &Expr) -> bool {
    match expr {
        Expr::Call(_) | Expr::Binary(_) | Expr::Cast(_) | Expr::Unary(_) => true,
        Expr::MethodCall(m) => starts_with_key(&m.receiver),
        Expr::Field(f) => starts_with_key(&f.base),
        Expr::Index(i) => starts_with_key(&i.expr),
        Expr::Try(t) => starts_with_key(&t.expr),
        _ => false,
    }
}

fn is_block_like(expr: &Expr) -> bool {
    matches!(expr, Expr::Verbatim(_))
}

impl Rewriter<'_> {
    /// `None`: rewritten in place.
    pub(crate) fn binary(&mut self, b: &mut ExprBinary) -> Option<Expr> {
        let at = first_span(&b.op);
        if let Some((trait_, method, exchanged)) = comparison(&b.op) {
            self.ranges.note(at, b);
            return self.compare(at, b, trait_, method, exchanged);
        }
        match &b.op {
            BinOp::And(_) | BinOp::Or(_) if has_let(&Expr::Binary(b.clone())) => {
                self.visit_expr_mut(&mut b.left);
                self.visit_expr_mut(&mut b.right);
                return None;
            }
            BinOp::And(_) => return Some(self.logic(at, b, "and")),
            BinOp::Or(_) => return Some(self.logic(at, b, "or")),
            _ => {}
        }
        let shared_start = starts_with_key(&b.left) && !crate::scope::is_compound(&b.op);
        self.ranges.note(if shared_start { at } else { b.left.span() }, b);
        let literal = arithmetic(&b.op) && integer(&b.left) && !is_number(&b.right);
        self.visit_expr_mut(&mut b.left);
        self.visit_expr_mut(&mut b.right);
        let left = &b.left;
        if literal {
            *b.left = Expr::Verbatim(self.left_literal(left));
        } else if shared_start || is_block_like(left) {
            *b.left = Expr::Verbatim(quote_spanned!(at=> (#left)));
        }
        None
    }

    /// A literal on the left goes to the right: the other side decides its type, host or not.
    fn compare(
        &mut self,
        at: Span,
        b: &mut ExprBinary,
        trait_: &str,
        method: &str,
        exchanged: &str,
    ) -> Option<Expr> {
        let (left, right) = (is_number(&b.left), is_number(&b.right));
        self.visit_expr_mut(&mut b.left);
        self.visit_expr_mut(&mut b.right);
        if left && right {
            return None;
        }
        let (method, a, z) = if left { (exchanged, &b.right, &b.left) } else { (method, &b.left, &b.right) };
        let (trait_, method) = (self.krate.private(at, trait_), syn::Ident::new(method, at));
        Some(Expr::Verbatim(quote_spanned!(at=> #trait_::#method(&(#a), &(#z)))))
    }

    /// The right side is evaluated unless a host value on the left decides.
    fn logic(&mut self, at: Span, b: &mut ExprBinary, method: &str) -> Expr {
        self.ranges.note(at, b);
        self.visit_expr_mut(&mut b.left);
        self.visit_expr_mut(&mut b.right);
        let (left, right) = (without_parens(&b.left), without_parens(&b.right));
        let (l, r) = (self.ident("left", at), self.ident("right", at));
        let needs = self.krate.private(at, &format!("{method}_needs_right"));
        let (logic, method) = (self.krate.private(at, "Logic"), syn::Ident::new(method, at));
        Expr::Verbatim(quote_spanned!(at=> {
            let #l: _ = #left;
            let #r = if #needs(&#l) { ::core::option::Option::Some(#right) } else { ::core::option::Option::None };
            #logic::#method(#l, #r)
        }))
    }

    /// `None`: left to rustc, because no run-time value can be meant.
    pub(crate) fn cast(&mut self, c: &mut ExprCast) -> Option<Expr> {
        let literal = is_number(&c.expr);
        let named = matches!(&*c.ty, Type::Path(_));
        if literal || !named {
            self.visit_expr_mut(&mut c.expr);
            return None;
        }
        let at = c.as_token.span;
        self.ranges.note(at, c);
        self.visit_expr_mut(&mut c.expr);
        // One place for the call and its argument, so that a cast that does not exist is reported once.
        let (value, ty, cast, v) =
            (&c.expr, &c.ty, self.krate.private(at, "CastAs"), self.ident("value", at));
        Some(Expr::Verbatim(quote_spanned!(at=> { let #v: _ = #value; #cast::<#ty>::cast_as(#v) })))
    }

    /// The keys of what is not rewritten but located at run time all the same.
    pub(crate) fn note_call(&mut self, expr: &Expr) {
        match expr {
            Expr::Call(c) => self.ranges.note(expr.span(), c),
            Expr::MethodCall(m) => {
                self.ranges.note_between(m.method.span(), m.method.span(), m.paren_token.span.close());
            }
            Expr::Unary(u) => self.ranges.note(expr.span(), u),
            Expr::Assign(a) => self.ranges.note(a.left.span(), a),
            _ => {}
        }
    }
}

/// The expression for a place where rustc would call its parentheses or braces unnecessary.
pub(crate) fn without_parens(expr: &Expr) -> TokenStream {
    match expr {
        Expr::Paren(p) => without_parens(&p.expr),
        Expr::Block(b) if b.label.is_none() && b.attrs.is_empty() => block_tokens(&b.block),
        e => quote!(#e),
    }
}

/// The first token of an operator such as `<=`.
fn first_span(op: &BinOp) -> Span {
    let tokens: TokenStream = quote!(#op);
    crate::ranges::ends(tokens, Span::call_site()).0
}
