//! `break`, `continue` and `return`: every jump leaves through the labelled blocks of the constructs around it.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::visit_mut::VisitMut;
use syn::{Block, Expr, ExprReturn, Lifetime, ReturnType, Type};

use crate::expand::{Frame, FrameKind, Rewriter, block_tokens};
use crate::flow::{Counts, Exits, diverges};
use crate::messages;
use crate::ops::without_parens;

impl Rewriter<'_> {
    /// Which jumps written here are recorded in the kernel and then leave the constructs around one by one.
    pub(crate) fn exit_counts(&self) -> Counts {
        let inside = self.frames.iter().rev().take_while(|f| f.kind != FrameKind::Closure);
        let mut loops = inside.clone().filter(|f| matches!(f.kind, FrameKind::Runtime | FrameKind::Host));
        Counts {
            loops: loops.next().is_some_and(|f| f.kind == FrameKind::Runtime),
            returns: inside.into_iter().any(|f| f.kind == FrameKind::Scope),
        }
    }

    /// The Rust jump out of the innermost construct; empty at the top, where there is nothing to leave.
    pub(crate) fn jump(&mut self, at: Span) -> TokenStream {
        let frame = self
            .frames
            .iter_mut()
            .rev()
            .take_while(|f| f.kind != FrameKind::Closure)
            .find(|f| matches!(f.kind, FrameKind::Arm | FrameKind::Runtime | FrameKind::Scope));
        let Some(frame) = frame else { return quote_spanned!(at=> ::core::unreachable!()) };
        frame.used = true;
        let label = located(&frame.label, at);
        match frame.kind {
            FrameKind::Runtime => quote_spanned!(at=> break #label),
            _ => quote_spanned!(at=> break #label <::core::option::Option<_>>::None),
        }
    }

    /// `break` (`word` is its name) and `continue`.
    pub(crate) fn loop_jump(
        &mut self,
        at: Span,
        word: &str,
        label: Option<&Lifetime>,
        value: Option<&mut Box<Expr>>,
    ) -> Expr {
        let target = match self.target(at, word, label) {
            Ok(target) => target,
            Err(error) => return self.instead_of_jump(&error),
        };
        let value = value.map(|value| {
            self.visit_expr_mut(value);
            value.clone()
        });
        if value.is_some() && self.frames[target].kind == FrameKind::Host {
            return self.instead_of_jump(&syn::Error::new(at, messages::BREAK_VALUE));
        }
        if self.frames[target].kind != FrameKind::Runtime {
            if label.is_none() && target + 1 == self.frames.len() {
                let word = syn::Ident::new(word, at); // nothing of ours in between
                return Expr::Verbatim(quote_spanned!(at=> #word));
            }
            self.frames[target].used = true;
            let checks = self.host_checks(at, target);
            let (word, label) = (syn::Ident::new(word, at), located(&self.frames[target].label, at));
            let Some(value) = value else {
                return Expr::Verbatim(quote_spanned!(at=> { #checks #word #label }));
            };
            let (v, value) = (self.ident("value", at), without_parens(&value));
            return Expr::Verbatim(quote_spanned!(at=> { let #v: _ = #value; #checks #word #label #v }));
        }
        if value.is_some() {
            self.faulty = true;
            self.frames[target].fault = Some(syn::Error::new(at, messages::BREAK_VALUE));
        }
        let frame = &self.frames[target];
        if let Some(hidden) = frame.carried.iter().find(|v| self.scopes.hidden_since(frame.depth, v)) {
            self.errors.at(at, messages::hidden_carried(word, &hidden.to_string()));
        }
        let guard = frame.guard.clone();
        let out: TokenStream = frame.carried.iter().map(|v| quote_spanned!(at=> #guard.out(&#v);)).collect();
        self.ranges.note_between(at, at, at);
        let method = syn::Ident::new(if word == "break" { "brk" } else { "cont" }, at);
        let jump = self.jump(at);
        Expr::Verbatim(quote_spanned!(at=> { #out #guard.#method(); #jump }))
    }

    /// The frame that a `break` or `continue` leaves.
    fn target(&self, at: Span, word: &str, label: Option<&Lifetime>) -> syn::Result<usize> {
        let mut crossed = false;
        for (i, frame) in self.frames.iter().enumerate().rev() {
            let runtime = frame.kind == FrameKind::Runtime;
            match label {
                _ if frame.kind == FrameKind::Closure => break,
                Some(label) if frame.source_label.as_ref() == Some(&label.ident) => {
                    let fault = crossed || runtime;
                    let error = || syn::Error::new(label.span(), messages::LABELLED_JUMP);
                    return if fault { Err(error()) } else { Ok(i) };
                }
                None if runtime || frame.kind == FrameKind::Host => return Ok(i),
                _ => crossed |= runtime,
            }
        }
        Err(match label {
            Some(label) => syn::Error::new(label.span(), messages::unknown_label(&label.ident.to_string())),
            None => syn::Error::new(at, messages::outside_loop(word)),
        })
    }

    /// A host jump out of frame `target` crosses these arms; under a run-time condition that is an error of the
    /// kernel.
    fn host_checks(&self, at: Span, target: usize) -> TokenStream {
        let check = self.krate.private(at, "host_jump_under_runtime_if");
        let arms = self.frames[target + 1..].iter().filter(|f| f.kind == FrameKind::Arm);
        arms.map(|f| {
            let guard = &f.guard;
            quote_spanned!(at=> #check(&#guard);)
        })
        .collect()
    }

    pub(crate) fn return_(&mut self, r: &mut ExprReturn) -> Expr {
        let at = r.return_token.span;
        let around =
            self.frames.iter().rposition(|f| matches!(f.kind, FrameKind::Closure | FrameKind::Scope));
        let inside = &self.frames[around.map_or(0, |i| i + 1)..];
        if inside.iter().any(|f| f.kind == FrameKind::Runtime) {
            return self.instead_of_jump(&syn::Error::new(at, messages::RETURN_IN_LOOP));
        }
        if let Some(value) = &mut r.expr {
            self.visit_expr_mut(value);
        }
        let value = r.expr.take();
        let Some(around) = around else { return Expr::Verbatim(quote_spanned!(at=> return #value)) };
        if self.frames[around].kind == FrameKind::Closure {
            let checks = self.host_checks(at, around);
            return Expr::Verbatim(quote_spanned!(at=> { #checks return #value }));
        }
        self.ranges.note(at, &r.return_token);
        let scope = self.frames[around].guard.clone();
        let value = value.map_or_else(|| quote_spanned!(at=> ()), |value| quote_spanned!(at=> #value));
        let jump = self.jump(at);
        Expr::Verbatim(quote_spanned!(at=> { #scope.ret(#value); #jump }))
    }

    /// A function's body: in a scope, if there is a `return` in it.
    pub(crate) fn body(&mut self, block: &mut Block, output: &ReturnType) -> TokenStream {
        let at = block.brace_token.span.open();
        if !Exits::in_block(Counts { loops: false, returns: true }, block) {
            self.visit_block_mut(block);
            let stmts = &block.stmts;
            return quote_spanned!(at=> #(#stmts)*);
        }
        let (scope, result, label) = (self.ident("scope", at), self.ident("result", at), self.label(at));
        let ends_early = diverges(block);
        self.frames.push(Frame::new(FrameKind::Scope, label.clone(), scope.clone()));
        self.visit_block_mut(block);
        let used = self.frames.pop().is_some_and(|f| f.used);
        let body = block_tokens(block);
        let value = self.optional(at, &body, used.then_some(&label), ends_early);
        let ty = match output {
            ReturnType::Default => quote_spanned!(at=> ()),
            ReturnType::Type(_, ty) if names_impl(ty) => quote_spanned!(at=> _),
            ReturnType::Type(_, ty) => quote_spanned!(at=> #ty),
        };
        let begin = self.krate.private(at, "fn_begin");
        quote_spanned!(at=>
            let #scope = #begin::<#ty>();
            let #result: ::core::option::Option<#ty> = #value;
            #scope.end(#result)
        )
    }
}

/// Does the type contain `impl Trait`?
pub(crate) fn names_impl(ty: &Type) -> bool {
    struct Impl(bool);
    impl<'ast> syn::visit::Visit<'ast> for Impl {
        fn visit_type_impl_trait(&mut self, _: &'ast syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut found = Impl(false);
    syn::visit::Visit::visit_type(&mut found, ty);
    found.0
}

fn located(label: &Lifetime, at: Span) -> Lifetime {
    let mut label = label.clone();
    label.set_span(at.resolved_at(label.ident.span()));
    label
}
