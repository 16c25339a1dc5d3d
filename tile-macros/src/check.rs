//! What a body may not contain, as far as one expression shows it. Reads only; the rewrite that follows copes with
//! everything reported here. What depends on the constructs around (loops, jumps) is reported by the rewrite itself.

use proc_macro2::Ident;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Pat, Stmt};

use crate::flow::{Counts, Exits, has_let};
use crate::messages::{self, Errors};
use crate::scope::{Assigned, assigned_in_flow};

/// Reports every mistake of a kernel's or helper's body, once each.
pub(crate) fn check(body: &Block, errors: &mut Errors) {
    Check { errors }.visit_block(body);
}

struct Check<'a> {
    errors: &'a mut Errors,
}

impl Check<'_> {
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
        self.visit_expr(&c.body);
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
