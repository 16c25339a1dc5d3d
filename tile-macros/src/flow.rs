//! What control does: does an expression ever end, and does a jump in it leave it?

use syn::visit::{self, Visit};
use syn::{Block, Expr, Stmt};

/// Syntactically certain never to end normally.
pub(crate) fn diverges(block: &Block) -> bool {
    block.stmts.iter().any(|stmt| match stmt {
        Stmt::Expr(e, _) => expr_diverges(e),
        Stmt::Macro(m) => panics(&m.mac),
        _ => false,
    })
}

/// See [`diverges`].
pub(crate) fn expr_diverges(expr: &Expr) -> bool {
    match expr {
        Expr::Break(_) | Expr::Continue(_) | Expr::Return(_) => true,
        Expr::Block(b) => b.label.is_none() && diverges(&b.block),
        Expr::Paren(p) => expr_diverges(&p.expr),
        Expr::Group(g) => expr_diverges(&g.expr),
        Expr::If(i) => {
            diverges(&i.then_branch) && i.else_branch.as_ref().is_some_and(|(_, e)| expr_diverges(e))
        }
        Expr::Match(m) => !m.arms.is_empty() && m.arms.iter().all(|a| expr_diverges(&a.body)),
        Expr::Macro(m) => panics(&m.mac),
        _ => false,
    }
}

fn panics(mac: &syn::Macro) -> bool {
    mac.path
        .segments
        .last()
        .is_some_and(|s| ["panic", "unreachable", "todo", "unimplemented"].iter().any(|name| s.ident == name))
}

/// `let` as a condition or inside a chain of `&&`: host code, left to rustc.
pub(crate) fn has_let(cond: &Expr) -> bool {
    match cond {
        Expr::Let(_) => true,
        Expr::Binary(b) => matches!(b.op, syn::BinOp::And(_)) && (has_let(&b.left) || has_let(&b.right)),
        Expr::Paren(p) => has_let(&p.expr),
        Expr::Group(g) => has_let(&g.expr),
        _ => false,
    }
}

/// Which jumps count for [`Exits`].
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    /// Unlabelled `break` and `continue` of the loop around.
    pub(crate) loops: bool,
    /// `return`.
    pub(crate) returns: bool,
}

/// Finds jumps that leave the visited code.
pub(crate) struct Exits {
    counts: Counts,
    found: bool,
}

impl Exits {
    pub(crate) fn in_block(counts: Counts, block: &Block) -> bool {
        let mut exits = Exits { counts, found: false };
        exits.visit_block(block);
        exits.found
    }

    pub(crate) fn in_expr(counts: Counts, expr: &Expr) -> bool {
        let mut exits = Exits { counts, found: false };
        exits.visit_expr(expr);
        exits.found
    }

    fn in_loop(&mut self, body: &Block) {
        let outer = self.counts;
        self.counts.loops = false;
        self.visit_block(body);
        self.counts = outer;
    }
}

impl<'ast> Visit<'ast> for Exits {
    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Return(_) => self.found |= self.counts.returns,
            Expr::Break(b) => self.found |= self.counts.loops && b.label.is_none(),
            Expr::Continue(c) => self.found |= self.counts.loops && c.label.is_none(),
            Expr::ForLoop(f) => {
                self.visit_expr(&f.expr);
                return self.in_loop(&f.body);
            }
            Expr::While(w) => {
                self.visit_expr(&w.cond);
                return self.in_loop(&w.body);
            }
            Expr::Loop(l) => return self.in_loop(&l.body),
            Expr::Closure(_) | Expr::Async(_) | Expr::Const(_) => return,
            _ => {}
        }
        visit::visit_expr(self, expr);
    }

    fn visit_item(&mut self, _: &'ast syn::Item) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
}
