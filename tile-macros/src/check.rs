//! What a body may not contain. Reads only; the rewrite that follows copes with everything reported here.

use proc_macro2::{Ident, Span};
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, ExprForLoop, Lifetime, Pat, RangeLimits, Stmt};

use crate::flow::{Counts, Exits, has_let};
use crate::loops::{ForKind, classify};
use crate::messages::{self, Errors};
use crate::scope::{Assigned, assigned_in_flow};

/// Reports every mistake of a kernel's or helper's body, once each.
pub(crate) fn check(body: &Block, errors: &mut Errors) {
    Check { errors, around: Vec::new() }.visit_block(body);
}

/// A construct around the visited place.
enum Around {
    Runtime(Option<Ident>),
    Host(Option<Ident>),
    Labelled(Ident),
    Closure,
}

struct Check<'a> {
    errors: &'a mut Errors,
    around: Vec<Around>,
}

fn label(label: &Option<syn::Label>) -> Option<Ident> {
    label.as_ref().map(|l| l.name.ident.clone())
}

impl Check<'_> {
    fn inside(&mut self, around: Around, visit: impl FnOnce(&mut Self)) {
        self.around.push(around);
        visit(self);
        self.around.pop();
    }

    fn for_loop(&mut self, f: &ExprForLoop) {
        let around = match classify(f) {
            ForKind::Range { .. } => Around::Runtime(label(&f.label)),
            ForKind::BadRange(r) => {
                match (&r.limits, &r.start, &r.end) {
                    (RangeLimits::Closed(_), Some(_), Some(_)) => {
                        self.errors.on(r, messages::INCLUSIVE_RANGE)
                    }
                    _ => self.errors.on(r, messages::OPEN_RANGE),
                }
                Around::Runtime(label(&f.label))
            }
            ForKind::Reversed(_) => {
                self.errors.on(&f.expr, messages::REVERSED_RANGE);
                Around::Runtime(label(&f.label))
            }
            ForKind::Unroll => Around::Host(label(&f.label)),
            ForKind::Other => {
                self.errors.on(&f.expr, messages::NOT_A_RANGE);
                Around::Host(label(&f.label))
            }
        };
        self.visit_expr(&f.expr);
        self.inside(around, |s| s.visit_block(&f.body));
    }

    /// `break` and `continue`: one error at most.
    fn jump(&mut self, at: Span, word: &str, label: Option<&Lifetime>, value: bool) {
        let mut crossed = false;
        for around in self.around.iter().rev() {
            match (around, label) {
                (Around::Closure, _) => break,
                (Around::Runtime(name), Some(label)) => {
                    if name.as_ref() == Some(&label.ident) {
                        return self.errors.at(label.apostrophe, messages::LABELLED_JUMP);
                    }
                    crossed = true;
                }
                (Around::Host(Some(name)) | Around::Labelled(name), Some(label)) if *name == label.ident => {
                    if crossed {
                        self.errors.at(label.apostrophe, messages::LABELLED_JUMP);
                    }
                    return;
                }
                (Around::Runtime(_), None) if value => return self.errors.at(at, messages::BREAK_VALUE),
                (Around::Runtime(_) | Around::Host(_), None) => return,
                _ => {}
            }
        }
        if label.is_none() {
            self.errors.at(at, messages::outside_loop(word));
        }
    }

    fn return_(&mut self, at: Span) {
        let inside = self.around.iter().rev().take_while(|a| !matches!(a, Around::Closure));
        if inside.into_iter().any(|a| matches!(a, Around::Runtime(_))) {
            self.errors.at(at, messages::RETURN_IN_LOOP);
        }
    }

    fn operand(&mut self, right: &Expr) {
        if let Some(variable) = Assigned::in_expr(right).first() {
            self.errors.at(variable.span(), messages::operand_assigns(&variable.to_string()));
        } else if Exits::in_expr(Counts { loops: true, returns: true }, right) {
            self.errors.on(right, messages::JUMP_IN_OPERAND);
        }
    }

    fn closure(&mut self, c: &syn::ExprClosure) {
        if let Some(word) = &c.asyncness {
            self.errors.at(word.span, messages::ASYNC);
        }
        let mut assigned = Assigned::default();
        c.inputs.iter().for_each(|p| assigned.declare(p));
        assigned.visit_expr(&c.body);
        if let Some(variable) = assigned.outer.first() {
            self.errors.at(variable.span(), messages::closure_assigns(&variable.to_string()));
        }
        self.inside(Around::Closure, |s| s.visit_expr(&c.body));
    }

    /// `let x;` that control flow gives its first value.
    fn deferred(&mut self, stmt: &Stmt, rest: &[Stmt]) {
        let Stmt::Local(local) = stmt else { return };
        let pattern = match &local.pat {
            Pat::Type(t) => &*t.pat,
            p => p,
        };
        if let (Pat::Ident(p), None) = (pattern, &local.init)
            && !assigned_first(rest, &p.ident)
            && assigned_in_flow(rest, &p.ident)
        {
            self.errors.at(p.ident.span(), messages::deferred_let(&p.ident.to_string()));
        }
    }
}

/// Is the variable assigned by a plain statement before any other one assigns it?
fn assigned_first(stmts: &[Stmt], variable: &Ident) -> bool {
    for stmt in stmts {
        match stmt {
            Stmt::Expr(Expr::Assign(a), _) if matches!(&*a.left, Expr::Path(p) if p.path.is_ident(variable)) =>
            {
                return true;
            }
            Stmt::Expr(e, _) if Assigned::in_expr(e).contains(variable) => return false,
            _ => {}
        }
    }
    false
}

impl<'ast> Visit<'ast> for Check<'_> {
    fn visit_block(&mut self, block: &'ast Block) {
        for (i, stmt) in block.stmts.iter().enumerate() {
            self.deferred(stmt, &block.stmts[i + 1..]);
            self.visit_stmt(stmt);
        }
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::ForLoop(f) => return self.for_loop(f),
            Expr::While(w) => {
                let name = label(&w.label);
                let around = if has_let(&w.cond) { Around::Host(name) } else { Around::Runtime(name) };
                self.visit_expr(&w.cond);
                return self.inside(around, |s| s.visit_block(&w.body));
            }
            Expr::Loop(l) => {
                return self.inside(Around::Runtime(label(&l.label)), |s| s.visit_block(&l.body));
            }
            Expr::Block(b) => {
                if let Some(l) = &b.label {
                    return self.inside(Around::Labelled(l.name.ident.clone()), |s| s.visit_block(&b.block));
                }
            }
            Expr::Break(b) => self.jump(b.break_token.span, "break", b.label.as_ref(), b.expr.is_some()),
            Expr::Continue(c) => self.jump(c.continue_token.span, "continue", c.label.as_ref(), false),
            Expr::Return(r) => self.return_(r.return_token.span),
            Expr::Closure(c) => return self.closure(c),
            Expr::Binary(b) if matches!(b.op, BinOp::And(_) | BinOp::Or(_)) && !has_let(expr) => {
                self.operand(&b.right);
            }
            Expr::Async(a) => return self.errors.at(a.async_token.span, messages::ASYNC),
            Expr::Await(a) => return self.errors.at(a.await_token.span, messages::AWAIT),
            Expr::TryBlock(t) => return self.errors.at(t.try_token.span, messages::TRY_BLOCK),
            Expr::Unsafe(u) => return self.errors.at(u.unsafe_token.span, messages::UNSAFE),
            Expr::Yield(y) => return self.errors.at(y.yield_token.span, messages::YIELD),
            Expr::Const(_) => return,
            Expr::Repeat(r) => return self.visit_expr(&r.expr),
            _ => {}
        }
        visit::visit_expr(self, expr);
    }

    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_path(&mut self, _: &'ast syn::Path) {}
    fn visit_item(&mut self, _: &'ast syn::Item) {}
}
