//! `if` under a condition that may be a run-time value: plain Rust `if`s and labelled blocks around a guard.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Expr, ExprIf, Lifetime};

use crate::expand::{Frame, FrameKind, Rewriter, block_tokens, hand_off};
use crate::flow::{Exits, diverges, expr_diverges, has_let};
use crate::ranges::ends;
use crate::scope::condition_patterns;

/// One arm, rewritten.
struct Arm {
    body: TokenStream,
    /// The label that jumps in the arm break to, where there are any.
    label: Option<Lifetime>,
    diverges: bool,
}

impl Rewriter<'_> {
    /// `None`: a condition with `let`, which is host code and was rewritten in place.
    pub(crate) fn if_else(&mut self, i: &mut ExprIf) -> Option<Expr> {
        if has_let(&i.cond) {
            self.host_if(i);
            return None;
        }
        let at = i.if_token.span;
        let written = ends(i.cond.to_token_stream(), at);
        let other = i.else_branch.as_ref().map(|(_, e)| &**e);
        let changed = self.changed_in(&i.then_branch, other);
        let counts = self.exit_counts();
        let exits =
            Exits::in_block(counts, &i.then_branch) || other.is_some_and(|e| Exits::in_expr(counts, e));
        let join_at = other.map_or(at, Spanned::span);
        if let Some(other) = other {
            self.ranges.note(join_at, other);
        }

        self.visit_expr_mut(&mut i.cond);
        let cond_at = i.cond.span();
        self.ranges.note_between(cond_at, written.0, written.1);
        let guard = self.ident("if", at);
        let then_diverges = diverges(&i.then_branch);
        let then = self.arm(&guard, then_diverges, |s| {
            s.visit_block_mut(&mut i.then_branch);
            block_tokens(&i.then_branch)
        });
        let otherwise = match &mut i.else_branch {
            None => Arm { body: quote_spanned!(at=> {}), label: None, diverges: false },
            Some((_, e)) => {
                let else_diverges = expr_diverges(e);
                self.arm(&guard, else_diverges, |s| s.else_body(e))
            }
        };
        for variable in &changed {
            self.ranges.note(variable.span(), variable);
        }
        let parts = Parts { at, join_at, guard, changed, exits };
        let tokens = self.assemble(&parts, &i.cond, then, otherwise);
        let attrs = &i.attrs;
        Some(Expr::Verbatim(quote!(#(#attrs)* #tokens)))
    }

    fn else_body(&mut self, other: &mut Expr) -> TokenStream {
        match other {
            Expr::Block(b) if b.label.is_none() && b.attrs.is_empty() => {
                self.visit_block_mut(&mut b.block);
                block_tokens(&b.block)
            }
            e => {
                self.visit_expr_mut(e);
                let at = e.span();
                quote_spanned!(at=> { #e })
            }
        }
    }

    fn arm(&mut self, guard: &Ident, diverges: bool, rewrite: impl FnOnce(&mut Self) -> TokenStream) -> Arm {
        let label = self.label(guard.span());
        self.frames.push(Frame::new(FrameKind::Arm, label.clone(), guard.clone()));
        let body = rewrite(self);
        let used = self.frames.pop().is_some_and(|f| f.used);
        Arm { body, label: used.then_some(label), diverges }
    }

    /// The value of an arm or a scope as an `Option`: `None` where a jump left it.
    pub(crate) fn optional(
        &mut self,
        at: Span,
        body: &TokenStream,
        label: Option<&Lifetime>,
        diverges: bool,
    ) -> TokenStream {
        let label = label.map(|l| quote!(#l:));
        if diverges {
            return quote_spanned!(at=> #label #body);
        }
        let value = self.ident("value", at);
        quote_spanned!(at=> #label {
            let #value = #body;
            #[allow(unreachable_code)]
            let #value = ::core::option::Option::Some(#value);
            #value
        })
    }

    fn assemble(&mut self, parts: &Parts, cond: &Expr, then: Arm, otherwise: Arm) -> TokenStream {
        let Parts { at, join_at, guard, changed, exits } = parts;
        let (at, join_at) = (*at, *join_at);
        let (t, e) = (self.ident("then", at), self.ident("else", at));
        let hand = |method: &str| hand_off(guard, method, changed, true);
        let (save, out_then, out_else, result) =
            (hand("save"), hand("out_then"), hand("out_else"), hand("result"));
        let unit = quote_spanned!(at=> : ::core::option::Option<()>);
        let t_type = then.diverges.then_some(&unit);
        let e_type = otherwise.diverges.then_some(&unit);
        let then_arm = self.optional(at, &then.body, then.label.as_ref(), then.diverges);
        let else_arm = self.optional(join_at, &otherwise.body, otherwise.label.as_ref(), otherwise.diverges);
        // One place for the call and its argument, so that a condition of another type is reported once.
        let cond_at = cond.span();
        let (begin, c) = (self.krate.private(cond_at, "if_begin"), self.ident("cond", cond_at));
        let begin = quote_spanned!(cond_at=> match #cond { #c => #begin(#c) });
        let head = quote_spanned!(at=>
            let mut #guard: _ = #begin;
            #save
            let #t #t_type = if #guard.then() { #then_arm } else { ::core::option::Option::None };
            #out_then
            #guard.then_done(#t.is_some());
            let #e #e_type = if #guard.els() { #else_arm } else { ::core::option::Option::None };
            #out_else
        );
        let jump = exits.then(|| self.jump(at));
        let exited = quote_spanned!(at=> #guard.exited(#t.is_none(), #e.is_none()));
        if then.diverges && otherwise.diverges {
            let leave = jump.unwrap_or_else(|| quote_spanned!(at=> ::core::unreachable!()));
            return quote_spanned!(at=> { #head #exited; #leave });
        }
        let exit = jump.map(|jump| quote_spanned!(at=> if #exited { #jump }));
        let value = self.join_call(join_at, guard, (&t, then.diverges), (&e, otherwise.diverges));
        if changed.is_empty() {
            return quote_spanned!(at=> { #head #exit #value });
        }
        let v = self.ident("joined", at);
        quote_spanned!(at=> { #head #exit let #v = #value; #result #v })
    }

    /// The call that joins the arms' values, located at the `else` arm, where rustc shows arms that do not fit.
    fn join_call(
        &self,
        at: Span,
        guard: &Ident,
        then: (&Ident, bool),
        otherwise: (&Ident, bool),
    ) -> TokenStream {
        let moved = |ident: &Ident| {
            let mut ident = ident.clone();
            ident.set_span(at.resolved_at(ident.span()));
            ident
        };
        let (guard, t, e) = (moved(guard), moved(then.0), moved(otherwise.0));
        let one = self.krate.private(at, "join_one");
        if then.1 {
            quote_spanned!(at=> #one(&mut #guard, #e, true))
        } else if otherwise.1 {
            quote_spanned!(at=> #one(&mut #guard, #t, false))
        } else {
            let join = self.krate.private(at, "join");
            quote_spanned!(at=> #join(&mut #guard, #t, #e))
        }
    }

    fn host_if(&mut self, i: &mut ExprIf) {
        self.visit_expr_mut(&mut i.cond);
        self.scopes.enter();
        condition_patterns(&i.cond, &mut |p| self.scopes.declare(p));
        self.visit_block_mut(&mut i.then_branch);
        self.scopes.leave();
        if let Some((_, e)) = &mut i.else_branch {
            self.else_in_place(e);
        }
    }

    /// An `else` of a host `if`: `else` must be followed by a block or an `if`, so a rewritten one gets braces.
    fn else_in_place(&mut self, other: &mut Expr) {
        let at = other.span();
        self.visit_expr_mut(other);
        if let Expr::Verbatim(tokens) = other {
            *other = Expr::Verbatim(quote_spanned!(at=> { #tokens }));
        }
    }
}

struct Parts {
    /// The `if` keyword, which locates the construct.
    at: Span,
    join_at: Span,
    guard: Ident,
    changed: Vec<Ident>,
    /// Does a jump in an arm leave the `if`?
    exits: bool,
}
