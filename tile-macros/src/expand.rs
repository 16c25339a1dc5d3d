//! The rewrite of a body, and the contract with the runtime crate.
//!
//! Everything below is `crate::__private`, where `crate` is `::tile_runtime` unless the attribute says otherwise.
//! Every generated token carries the span of a token of the user's; calls that can fail or that record an operation
//! are `#[track_caller]`, and their location is the place named in brackets, which the source table
//! (`KernelSource::ranges`) maps to the extent of the whole construct. No user code is put into a closure and none is
//! written twice.
//!
//! # Values
//!
//! | source | expansion |
//! |---|---|
//! | `a == b`, `!=` | `CmpEq::eq(&(a), &(b))`, `ne` \[operator\] |
//! | `a < b`, `<=`, `>`, `>=` | `CmpOrd::lt(&(a), &(b))`, `le`, `gt`, `ge` \[operator\] |
//! | `2 < b` | `CmpOrd::gt(&(b), &(2))`: a literal goes to the right; two literals stay as they are |
//! | `a && b` | `{ let l = a; let r = if and_needs_right(&l) { Some(b) } else { None }; Logic::and(l, r) }` \[operator\] |
//! | `a \|\| b` | the same with `or_needs_right`, `Logic::or` |
//! | `a as T` | `{ let v = a; CastAs::<T>::cast_as(v) }` \[`as`\]; literals and types that are no path stay as they are |
//! | `2 + b` | `Lit(2) + b`: an unsuffixed integer on the left of `+ - * / %`; floats stay (`f32: Mul<Tile<T>>`) |
//! | `x + y + z` | `(x + y) + z`, the parentheses located at the second operator, which so becomes the key of its location |
//! | `let mut n = 0`, assigned by a later runtime loop or `if` | `let mut n = lift::<i32>(0)`; also `f32`, `bool`, and `n = 1` later |
//!
//! ```text
//! trait CmpEq<R: ?Sized> { type Out; fn eq(&self, r: &R) -> Self::Out; fn ne(&self, r: &R) -> Self::Out; }
//! trait CmpOrd<R: ?Sized> { type Out; fn lt(&self, r: &R) -> Self::Out; /* le, gt, ge */ }
//!     // blanket for host values: impl<A: PartialEq + ?Sized> CmpEq<A> for A, Out = bool; CmpOrd with PartialOrd
//! trait Logic<R> { type Out; fn and(self, r: Option<R>) -> Self::Out; fn or(self, r: Option<R>) -> Self::Out; }
//!     // r is None only where a host left side decided
//! fn and_needs_right<L>(l: &L) -> bool;   // bool: the value; run-time values: true
//! fn or_needs_right<L>(l: &L) -> bool;    // bool: its negation; run-time values: true
//! trait CastAs<T> { type Out; fn cast_as(self) -> Self::Out; }
//! struct Lit<L>(pub L);
//! fn lift<H>(h: H) -> Scalar<H>;
//! ```
//!
//! # Loops
//!
//! ```text
//! { let mut l = match (a, b) { (a, z) => for_begin(a, z, 1) };  // [start of `a`]; `while`, `loop`: loop_begin()
//!   l.carry(&mut acc);                           // one a carried variable, [its first assignment in the body]
//!   let mut live = false;
//!   'body: { let i = l.enter();                  // `while`: l.enter(); l.test(cond);  `loop`: l.enter();
//!            { /* body */ }
//!            live = true; }
//!   if live { l.out(&acc); }
//!   l.end(live);
//!   l.result(&mut acc); }
//! ```
//! Carried: declared `mut` outside, and assigned (or borrowed as `&mut`) inside. Without a jump in the body there is
//! no `live`: `l.out(&acc); l.end(true);`. `break` is `{ l.out(&acc); l.brk(); break 'innermost }` and `continue`
//! the same with `cont`; `'innermost` is the arm or body around, and the arms further out are left one by one.
//!
//! ```text
//! fn for_begin<A: Bounds<Z>, Z>(start: A, end: Z, step: impl Step) -> For<..>;
//!     // a literal start is Lit(0); a literal end too, if the start is one
//! fn loop_begin() -> Loop;
//! // both: fn carry<C>(&mut self, &mut C); fn enter(&mut self) -> Scalar<..> (Loop: ()); fn test(&mut self, cond) (Loop);
//! //       fn out<C>(&mut self, &C); fn brk(&mut self); fn cont(&mut self); fn end(&mut self, live: bool);
//! //       fn result<C>(&mut self, &mut C)
//! ```
//!
//! # `if`
//!
//! ```text
//! { let mut g = match cond { c => if_begin(c) };                    // [start of `cond`, or its operator]
//!   g.save(&mut q);                                                 // one a variable that an arm assigns
//!   let t = if g.then() { 'then: { Some({ /* arm */ }) } } else { None };
//!   g.out_then(&mut q);
//!   g.then_done(t.is_some());
//!   let e = if g.els() { 'else: { Some({ /* arm */ }) } } else { None };
//!   g.out_else(&mut q);
//!   if g.exited(t.is_none(), e.is_none()) { break 'outer None } // only where an arm has a jump
//!   let v = join(&mut g, t, e);                                     // [the `else` arm; `if` without one]
//!   g.result(&mut q);
//!   v }
//! ```
//! An arm that certainly never ends (a jump, a panic) is an `Option<()>` that is `None`, and the value comes from
//! `join_one(&mut g, value_of_the_other_arm, live_is_else)`; if both never end there is only `g.exited(..);` and the
//! jump. `exited(then, else)` says whether staging stops here: the taken arm's flag for a host condition; both flags for a
//! run-time one, where it then closes the operation, because neither `join` nor `result` follows.
//! `save`, `out_then`, `out_else` and `result` have no bounds on the host guard. `if let` and let-chains stay Rust.
//! `?` in an arm or a loop may leave without another call: a guard that is dropped unfinished is a staging error.
//!
//! ```text
//! fn if_begin<C: Cond>(cond: C) -> C::Guard;    // HostIf for bool, RtIf for Scalar<bool>
//! // guards: save, then() -> bool, out_then, then_done(bool), els() -> bool, out_else, exited(bool, bool) -> bool, result
//! fn join<G: Join<A, Z>, A, Z>(g: &mut G, then: Option<A>, other: Option<Z>) -> G::Out;
//! fn join_one<G: JoinOne<A>, A>(g: &mut G, value: Option<A>, live_is_else: bool) -> G::Out;
//! fn host_jump_under_runtime_if<G>(g: &G);      // [jump]; before `break` of an `unroll` loop, for each arm left
//! ```
//!
//! # `return`
//!
//! A body with a `return` outside of closures becomes a scope; others stay as they are.
//! ```text
//! let s = fn_begin::<Ty>();                          // [the body's `{`]
//! let r: Option<Ty> = 'scope: { Some({ /* body */ }) };
//! s.end(r)                                           // returns Ty
//! // `return v` is { s.ret(v); break 'innermost None }  [`return`]
//! // fn fn_begin<C: Ret>() -> Scope<C>; Scope<C>: fn ret(&self, C); fn end(&self, Option<C>) -> C
//! ```
//!
//! # Functions
//!
//! `#[tile_fn]` puts `static __TILE_SOURCE: KernelSource` and `let guard = source(&__TILE_SOURCE);` first; the guard lives
//! until the function ends. `#[tile_kernel]` is in `launch`.
//! ```text
//! struct KernelSource { file: &'static str, first_line: u32, text: &'static str, ranges: &'static [[u32; 6]] }
//!     // text: whole lines from column 1 of first_line on, or ""; ranges: key line and column, start, end (exclusive),
//!     // 1-based as in core::panic::Location, sorted by key
//! fn source(source: &'static KernelSource) -> SourceGuard;
//! ```

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::visit_mut::{self, VisitMut};
use syn::{AttrStyle, Block, Expr, FnArg, ItemFn, Lifetime, Stmt};

use crate::args::Krate;
use crate::fallback;
use crate::messages::{self, Errors};
use crate::parse::{Parsed, parse};
use crate::ranges::Ranges;
use crate::scope::Scopes;
use crate::{check, launch, params};

/// Which attribute it is.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Role {
    Kernel,
    Helper,
}

/// The attribute as a function of tokens.
pub(crate) fn attribute(role: Role, args: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let krate = syn::parse2::<Krate>(args).unwrap_or_else(|error| {
        errors.push(error);
        Krate::default()
    });
    match parse(&item) {
        Parsed::Broken => item,
        Parsed::Other(other) => {
            let (first, _) = crate::ranges::ends(other.to_token_stream(), Span::call_site());
            errors.at(first, messages::NOT_A_FUNCTION);
            fallback::with_errors(other, &errors)
        }
        Parsed::Function(function) => expand(role, &krate, *function, item, errors),
    }
}

fn expand(
    role: Role,
    krate: &Krate,
    mut function: ItemFn,
    item: TokenStream,
    mut errors: Errors,
) -> TokenStream {
    params::check(role, &function.sig, &mut errors);
    if !errors.is_empty() {
        return fallback::signature_only(function, &errors);
    }
    check::check(&function.block, &mut errors);
    let mut rewriter = Rewriter::new(krate, function.sig.fn_token.span, &mut errors);
    rewriter.scopes.enter();
    for input in &function.sig.inputs {
        if let FnArg::Typed(p) = input {
            rewriter.scopes.declare(&p.pat);
        }
    }
    let body = rewriter.body(&mut function.block, &function.sig.output);
    let (ranges, faults, faulty) =
        (rewriter.ranges, rewriter.errors.to_tokens(), rewriter.faulty || !rewriter.errors.is_empty());
    // In the body: rustc then knows that it is faulty, and does not report what follows from that.
    let body = quote!(#faults #body);
    let at = function.sig.fn_token.span;
    let source = ranges.to_static(krate, at, item);
    let mut allowed = allowed(at);
    if faulty {
        allowed.extend(quote_spanned!(at=> #[allow(unused, clippy::all)])); // of what replaced the mistakes
    }
    match role {
        Role::Kernel => launch::kernel(krate, &function, &source, &allowed, &body),
        Role::Helper => helper(krate, &function, &source, &allowed, &body),
    }
}

/// The lints that generated code of this shape would raise.
fn allowed(at: Span) -> TokenStream {
    quote_spanned!(at=> #[allow(
        clippy::assign_op_pattern,
        clippy::blocks_in_conditions,
        clippy::diverging_sub_expression,
        clippy::let_and_return,
        clippy::let_unit_value,
        clippy::let_with_type_underscore,
        clippy::match_single_binding,
        clippy::needless_borrow,
        clippy::op_ref,
        clippy::semicolon_if_nothing_returned,
        clippy::unit_arg
    )])
}

fn helper(
    krate: &Krate,
    function: &ItemFn,
    source: &TokenStream,
    allowed: &TokenStream,
    body: &TokenStream,
) -> TokenStream {
    let at = function.sig.fn_token.span;
    let (outer, inner) = split_attributes(function);
    let (vis, sig) = (&function.vis, &function.sig);
    let enter = krate.private(at, "source");
    quote_spanned!(at=> #(#outer)* #allowed #vis #sig {
        #(#inner)*
        #source
        let __tile_source = #enter(&__TILE_SOURCE);
        #body
    })
}

/// The attributes before the function and those at the start of its body.
pub(crate) fn split_attributes(function: &ItemFn) -> (Vec<&syn::Attribute>, Vec<&syn::Attribute>) {
    function.attrs.iter().partition(|a| matches!(a.style, AttrStyle::Outer))
}

/// A block whose braces count as generated, so that no lint about braces sees them, but which stands where it stood.
pub(crate) fn block_tokens(block: &Block) -> TokenStream {
    let (stmts, at) = (&block.stmts, Span::mixed_site().located_at(block.brace_token.span.join()));
    let mut group = proc_macro2::Group::new(proc_macro2::Delimiter::Brace, quote!(#(#stmts)*));
    group.set_span(at);
    group.into_token_stream()
}

/// `guard.method(&mut v);` for each variable, located at the variable: its type is what can be wrong.
pub(crate) fn hand_off(guard: &Ident, method: &str, variables: &[Ident], mutable: bool) -> TokenStream {
    let each = variables.iter().map(|v| {
        let (at, method) = (v.span(), Ident::new(method, v.span()));
        let mutable = mutable.then(|| quote_spanned!(at=> mut));
        quote_spanned!(at=> #guard.#method(&#mutable #v);)
    });
    each.collect()
}

/// A construct around the place that is being rewritten.
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    /// The Rust label of the construct.
    pub(crate) label: Lifetime,
    /// The label that the user gave it.
    pub(crate) source_label: Option<Ident>,
    /// A mistake that makes the construct's value meaningless.
    pub(crate) fault: Option<syn::Error>,
    /// Did a jump use the label?
    pub(crate) used: bool,
    /// The variable that holds the construct's guard.
    pub(crate) guard: Ident,
    pub(crate) carried: Vec<Ident>,
    /// How many scopes were open at the construct.
    pub(crate) depth: usize,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum FrameKind {
    /// The scope of a body with `return`.
    Scope,
    /// An arm of an `if`.
    Arm,
    /// A runtime loop.
    Runtime,
    /// A loop or a labelled block of host code.
    Host,
    /// As `Host`, but only a label reaches it.
    Labelled,
    /// A closure's body, which no jump leaves.
    Closure,
}

impl Frame {
    pub(crate) fn new(kind: FrameKind, label: Lifetime, guard: Ident) -> Self {
        Frame {
            kind,
            label,
            source_label: None,
            fault: None,
            used: false,
            guard,
            carried: Vec::new(),
            depth: 0,
        }
    }
}

/// Rewrites expressions in place, knowing what is around them.
pub(crate) struct Rewriter<'a> {
    pub(crate) krate: &'a Krate,
    pub(crate) scopes: Scopes,
    pub(crate) frames: Vec<Frame>,
    pub(crate) ranges: Ranges,
    pub(crate) errors: &'a mut Errors,
    /// Is there an error in the place of an expression?
    pub(crate) faulty: bool,
    /// Generated names resolve as if written here, wherever they are located.
    hygiene: Span,
    names: usize,
}

impl<'a> Rewriter<'a> {
    fn new(krate: &'a Krate, hygiene: Span, errors: &'a mut Errors) -> Self {
        Rewriter {
            krate,
            scopes: Scopes::default(),
            frames: Vec::new(),
            ranges: Ranges::default(),
            errors,
            faulty: false,
            hygiene,
            names: 0,
        }
    }

    /// A new variable, located at `at`.
    pub(crate) fn ident(&mut self, role: &str, at: Span) -> Ident {
        self.names += 1;
        format_ident!("__tile_{role}{}", self.names, span = at.resolved_at(self.hygiene))
    }

    /// An expression that is the error. Its type is rustc's error type, so that nothing that follows from the mistake
    /// is reported as well.
    pub(crate) fn in_place(&mut self, error: &syn::Error) -> Expr {
        self.faulty = true;
        Expr::Verbatim(error.to_compile_error())
    }

    /// As [`in_place`](Self::in_place), where the mistake was a jump: what stood there did not end either.
    pub(crate) fn instead_of_jump(&mut self, error: &syn::Error) -> Expr {
        self.faulty = true;
        let error = error.to_compile_error();
        Expr::Verbatim(quote!({ #error ::core::unreachable!() }))
    }

    pub(crate) fn label(&mut self, at: Span) -> Lifetime {
        self.names += 1;
        Lifetime::new(&format!("'__tile_{}", self.names), at.resolved_at(self.hygiene))
    }

    fn local(&mut self, local: &mut syn::Local, rest: &[Stmt]) {
        let mut lifted = Vec::new();
        if let Some(init) = &mut local.init {
            if init.diverge.is_none() {
                self.lift_init(&local.pat, &mut init.expr, rest, &mut lifted);
            }
            self.visit_expr_mut(&mut init.expr);
            if let Some((_, diverge)) = &mut init.diverge {
                self.visit_expr_mut(diverge);
                if let Expr::Verbatim(tokens) = &**diverge {
                    **diverge = Expr::Verbatim(quote!({ #tokens }));
                }
            }
        }
        self.scopes.declare(&local.pat);
        for (name, literal) in lifted {
            self.scopes.set_lifted(&name, literal);
        }
    }

    fn closure(&mut self, c: &mut syn::ExprClosure) {
        let (label, guard) = (self.label(c.or1_token.span), self.ident("closure", c.or1_token.span));
        self.frames.push(Frame::new(FrameKind::Closure, label, guard));
        self.scopes.enter();
        c.inputs.iter().for_each(|p| self.scopes.declare(p));
        self.visit_expr_mut(&mut c.body);
        self.scopes.leave();
        self.frames.pop();
    }

    fn labelled_block(&mut self, b: &mut syn::ExprBlock) {
        let Some(label) = &b.label else { return self.visit_block_mut(&mut b.block) };
        let mut frame = Frame::new(FrameKind::Labelled, label.name.clone(), format_ident!("__tile_block"));
        frame.source_label = Some(label.name.ident.clone());
        self.frames.push(frame);
        self.visit_block_mut(&mut b.block);
        self.frames.pop();
    }

    fn match_(&mut self, m: &mut syn::ExprMatch) {
        self.visit_expr_mut(&mut m.expr);
        for arm in &mut m.arms {
            self.scopes.enter();
            self.scopes.declare(&arm.pat);
            if let Some((_, guard)) = &mut arm.guard {
                self.visit_expr_mut(guard);
            }
            self.visit_expr_mut(&mut arm.body);
            self.scopes.leave();
        }
    }

    /// What replaces the expression; `None` when it was rewritten in place.
    fn replacement(&mut self, expr: &mut Expr) -> Option<Expr> {
        match expr {
            Expr::If(i) => self.if_else(i),
            Expr::ForLoop(f) => self.for_loop(f),
            Expr::While(w) => self.while_loop(w),
            Expr::Loop(l) => Some(self.loop_loop(l)),
            Expr::Break(b) => {
                Some(self.loop_jump(b.break_token.span, "break", b.label.clone().as_ref(), b.expr.as_mut()))
            }
            Expr::Continue(c) => {
                Some(self.loop_jump(c.continue_token.span, "continue", c.label.clone().as_ref(), None))
            }
            Expr::Return(r) => Some(self.return_(r)),
            Expr::Binary(b) => self.binary(b),
            Expr::Cast(c) => self.cast(c),
            Expr::Match(m) => {
                self.match_(m);
                None
            }
            Expr::Block(b) => {
                self.labelled_block(b);
                None
            }
            Expr::Closure(c) => {
                self.closure(c);
                None
            }
            Expr::Assign(a) => {
                self.lift_assigned(&a.left, &mut a.right);
                self.visit_expr_mut(&mut a.left);
                self.visit_expr_mut(&mut a.right);
                None
            }
            // The length is a constant of its own.
            Expr::Repeat(r) => {
                self.visit_expr_mut(&mut r.expr);
                None
            }
            Expr::Const(_) | Expr::Macro(_) | Expr::Verbatim(_) | Expr::Unsafe(_) => None,
            // Reported by `check`.
            Expr::Async(_) | Expr::Await(_) | Expr::TryBlock(_) | Expr::Yield(_) => {
                let at = syn::spanned::Spanned::span(expr);
                Some(Expr::Verbatim(quote_spanned!(at=> ::core::unreachable!())))
            }
            _ => {
                visit_mut::visit_expr_mut(self, expr);
                None
            }
        }
    }
}

impl VisitMut for Rewriter<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        self.note_call(expr);
        if let Some(replacement) = self.replacement(expr) {
            *expr = replacement;
        }
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        self.scopes.enter();
        for i in 0..block.stmts.len() {
            let (head, rest) = block.stmts.split_at_mut(i + 1);
            match &mut head[i] {
                Stmt::Local(local) => self.local(local, rest),
                Stmt::Expr(expr, _) => self.visit_expr_mut(expr),
                Stmt::Item(_) | Stmt::Macro(_) => {}
            }
        }
        self.scopes.leave();
    }

    fn visit_pat_mut(&mut self, _: &mut syn::Pat) {}
    fn visit_type_mut(&mut self, _: &mut syn::Type) {}
    fn visit_path_mut(&mut self, _: &mut syn::Path) {}
    fn visit_angle_bracketed_generic_arguments_mut(&mut self, _: &mut syn::AngleBracketedGenericArguments) {}
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}
