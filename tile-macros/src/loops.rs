//! Loops: which are runtime loops, and what those become.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Block, Expr, ExprForLoop, ExprLoop, ExprRange, ExprWhile, Pat, RangeLimits};

use crate::expand::{Frame, FrameKind, Rewriter, block_tokens, hand_off};
use crate::flow::has_let;
use crate::literals::is_number;
use crate::messages;
use crate::ranges::ends;
use crate::scope::{Assigned, condition_patterns};

/// What stands under a `for`.
pub(crate) enum ForKind<'a> {
    /// `a..b` and `(a..b).step_by(n)`: a runtime loop.
    Range { start: &'a Expr, end: &'a Expr, step: Option<&'a Expr> },
    /// A range that a runtime loop cannot count over.
    BadRange(&'a ExprRange),
    /// A range behind `.rev()`.
    Reversed,
    /// `unroll(..)`: host code.
    Unroll,
    /// Anything else.
    Other,
}

pub(crate) fn classify(f: &ExprForLoop) -> ForKind<'_> {
    match bare(&f.expr) {
        Expr::Range(r) => range(r, None),
        Expr::MethodCall(m) => match bare(&m.receiver) {
            Expr::Range(r) if m.method == "step_by" && m.args.len() == 1 => range(r, m.args.first()),
            Expr::Range(_) if m.method == "rev" => ForKind::Reversed,
            _ => ForKind::Other,
        },
        Expr::Call(c) => match &*c.func {
            Expr::Path(p) if p.path.segments.last().is_some_and(|s| s.ident == "unroll") => ForKind::Unroll,
            _ => ForKind::Other,
        },
        _ => ForKind::Other,
    }
}

/// Why there is no such loop, and what to write instead.
fn fault(kind: &ForKind, expr: &Expr) -> syn::Error {
    match kind {
        ForKind::BadRange(r) if r.start.is_some() && r.end.is_some() => {
            syn::Error::new_spanned(r, messages::INCLUSIVE_RANGE)
        }
        ForKind::BadRange(r) => syn::Error::new_spanned(r, messages::OPEN_RANGE),
        ForKind::Reversed => syn::Error::new_spanned(expr, messages::REVERSED_RANGE),
        _ => syn::Error::new_spanned(expr, messages::NOT_A_RANGE),
    }
}

fn range<'a>(r: &'a ExprRange, step: Option<&'a Expr>) -> ForKind<'a> {
    match (&r.start, &r.end, &r.limits) {
        (Some(start), Some(end), RangeLimits::HalfOpen(_)) => ForKind::Range { start, end, step },
        _ => ForKind::BadRange(r),
    }
}

fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(p) => bare(&p.expr),
        Expr::Group(g) => bare(&g.expr),
        e => e,
    }
}

/// The parts of a runtime loop that its kinds differ in.
struct RuntimeLoop {
    /// The loop's keyword, which locates it.
    at: Span,
    /// The call that opens the loop.
    begin: TokenStream,
    /// The loop variable.
    pattern: Option<Pat>,
    /// The condition, evaluated in every round.
    test: Option<TokenStream>,
    carried: Vec<Ident>,
    label: Option<syn::Label>,
    attrs: Vec<syn::Attribute>,
}

impl Rewriter<'_> {
    pub(crate) fn for_loop(&mut self, f: &mut ExprForLoop) -> Option<Expr> {
        let at = f.for_token.span;
        let (start, end, step) = match classify(f) {
            ForKind::Range { start, end, step } => (start.clone(), end.clone(), step.cloned()),
            ForKind::Unroll => {
                self.visit_expr_mut(&mut f.expr);
                self.host_for(f);
                return None;
            }
            faulty => {
                let error = fault(&faulty, &f.expr);
                *f.expr = self.in_place(&error);
                self.host_for(f);
                return None;
            }
        };
        let whole = ends(quote::ToTokens::to_token_stream(&f.expr), at);
        self.ranges.note_between(at, at, whole.1);
        let begin = self.for_begin(at, start, end, step);
        self.ranges.note_between(ends(begin.clone(), at).0, at, whole.1);
        let carried = self.scopes.carried(|a| {
            a.declare(&f.pat);
            syn::visit::Visit::visit_block(a, &f.body);
        });
        let parts = RuntimeLoop {
            at,
            begin,
            pattern: Some((*f.pat).clone()),
            test: None,
            carried,
            label: f.label.take(),
            attrs: std::mem::take(&mut f.attrs),
        };
        Some(self.runtime_loop(parts, &mut f.body))
    }

    fn for_begin(&mut self, at: Span, mut start: Expr, mut end: Expr, step: Option<Expr>) -> TokenStream {
        let (left, right) = (is_number(&start), is_number(&end));
        self.visit_expr_mut(&mut start);
        self.visit_expr_mut(&mut end);
        let start = if left { self.left_literal(&start) } else { quote!(#start) };
        let end = if left && right { self.left_literal(&end) } else { quote!(#end) };
        let step = match step {
            Some(mut step) => {
                self.visit_expr_mut(&mut step);
                quote!(#step)
            }
            None => quote_spanned!(at=> 1),
        };
        // One place for the call and its arguments, so that a bound that fails is reported once.
        let at = ends(quote!(#start), at).0;
        let (for_begin, a, z) =
            (self.krate.private(at, "for_begin"), self.ident("start", at), self.ident("end", at));
        quote_spanned!(at=> match (#start, #end) { (#a, #z) => #for_begin(#a, #z, #step) })
    }

    pub(crate) fn while_loop(&mut self, w: &mut ExprWhile) -> Option<Expr> {
        let at = w.while_token.span;
        if has_let(&w.cond) {
            self.host_while(w);
            return None;
        }
        let carried = self.scopes.carried(|a| {
            syn::visit::Visit::visit_expr(a, &w.cond);
            syn::visit::Visit::visit_block(a, &w.body);
        });
        self.ranges.note_between(at, at, ends(quote::ToTokens::to_token_stream(&w.cond), at).1);
        let written = w.cond.clone();
        self.visit_expr_mut(&mut w.cond);
        self.ranges.note(w.cond.span(), &written);
        let (cond, begin) = (&w.cond, self.krate.private(at, "loop_begin"));
        let parts = RuntimeLoop {
            at,
            begin: quote_spanned!(at=> #begin()),
            pattern: None,
            test: Some(quote!(#cond)),
            carried,
            label: w.label.take(),
            attrs: std::mem::take(&mut w.attrs),
        };
        Some(self.runtime_loop(parts, &mut w.body))
    }

    pub(crate) fn loop_loop(&mut self, l: &mut ExprLoop) -> Expr {
        let at = l.loop_token.span;
        self.ranges.note(at, &l.loop_token);
        let carried = self.scopes.carried(|a| syn::visit::Visit::visit_block(a, &l.body));
        let begin = self.krate.private(at, "loop_begin");
        let parts = RuntimeLoop {
            at,
            begin: quote_spanned!(at=> #begin()),
            pattern: None,
            test: None,
            carried,
            label: l.label.take(),
            attrs: std::mem::take(&mut l.attrs),
        };
        self.runtime_loop(parts, &mut l.body)
    }

    fn runtime_loop(&mut self, parts: RuntimeLoop, body: &mut Block) -> Expr {
        let RuntimeLoop { at, begin, pattern, test, carried, label: source_label, attrs } = parts;
        let guard = self.ident("loop", at);
        let label = self.label(at);
        let mut frame = Frame::new(FrameKind::Runtime, label.clone(), guard.clone());
        frame.carried.clone_from(&carried);
        frame.depth = self.scopes.depth();
        frame.source_label = source_label.map(|l| l.name.ident);
        self.frames.push(frame);
        self.scopes.enter();
        if let Some(pattern) = &pattern {
            self.scopes.declare(pattern);
        }
        self.visit_block_mut(body);
        self.scopes.leave();
        let (jumped, fault) = self.frames.pop().map_or((false, None), |f| (f.used, f.fault));
        let fault = fault.map(|error| error.to_compile_error());
        // After the body: an assignment's own extent is the better one.
        for variable in &carried {
            self.ranges.note(variable.span(), variable);
        }

        let body = block_tokens(body);
        let enter = match pattern {
            Some(pattern) => quote_spanned!(at=> let #pattern = #guard.enter();),
            None => quote_spanned!(at=> #guard.enter();),
        };
        let test = test.map(|test| {
            let at = ends(test.clone(), at).0;
            quote_spanned!(at=> #guard.test(#test);)
        });
        let carry = hand_off(&guard, "carry", &carried, true);
        let out = hand_off(&guard, "out", &carried, false);
        let result = hand_off(&guard, "result", &carried, true);
        // Without a jump the body always ends, so nothing needs to be remembered.
        let staged = if jumped {
            let live = self.ident("live", at);
            quote_spanned!(at=>
                let mut #live = false;
                #label: { #enter #test #body #[allow(unreachable_code)] { #live = true; } }
                if #live { #out }
                #guard.end(#live);
            )
        } else {
            quote_spanned!(at=> { #enter #test #body } #out #guard.end(true);)
        };
        Expr::Verbatim(
            quote_spanned!(at=> #(#attrs)* { let mut #guard = #begin; #carry #staged #result #fault }),
        )
    }

    fn host_for(&mut self, f: &mut ExprForLoop) {
        let pattern = f.pat.clone();
        self.host_loop(&mut f.label, f.for_token.span, |s| s.scopes.declare(&pattern), &mut f.body);
    }

    fn host_while(&mut self, w: &mut ExprWhile) {
        self.visit_expr_mut(&mut w.cond);
        let cond = w.cond.clone();
        let declare = |s: &mut Self| condition_patterns(&cond, &mut |p| s.scopes.declare(p));
        self.host_loop(&mut w.label, w.while_token.span, declare, &mut w.body);
    }

    fn host_loop(
        &mut self,
        label: &mut Option<syn::Label>,
        at: Span,
        declare: impl FnOnce(&mut Self),
        body: &mut Block,
    ) {
        let name = label.as_ref().map_or_else(|| self.label(at), |l| l.name.clone());
        let mut frame = Frame::new(FrameKind::Host, name.clone(), self.ident("host", at));
        frame.source_label = label.as_ref().map(|l| l.name.ident.clone());
        self.frames.push(frame);
        self.scopes.enter();
        declare(self);
        self.visit_block_mut(body);
        self.scopes.leave();
        let jumped = self.frames.pop().is_some_and(|f| f.used);
        if jumped && label.is_none() {
            *label = Some(syn::Label { name, colon_token: syn::Token![:](at) });
        }
    }

    /// Variables that an arm or a loop body changes; used by `if`.
    pub(crate) fn changed_in(&self, then: &Block, other: Option<&Expr>) -> Vec<Ident> {
        self.scopes.carried(|a: &mut Assigned| {
            syn::visit::Visit::visit_block(a, then);
            if let Some(other) = other {
                syn::visit::Visit::visit_expr(a, other);
            }
        })
    }
}
