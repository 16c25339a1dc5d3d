//! Names: what is declared where, what code assigns, and so what a loop or an `if` must hand on.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Ident;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Pat, Stmt};

use crate::flow;
use crate::literals::Literal;
use crate::loops::{ForKind, classify};

/// What is known of a variable.
#[derive(Clone, Copy, Default)]
pub(crate) struct Variable {
    pub(crate) mutable: bool,
    /// Declared with a literal that became a run-time value.
    pub(crate) lifted: Option<Literal>,
}

/// The variables in scope, innermost last.
#[derive(Default)]
pub(crate) struct Scopes(Vec<BTreeMap<String, Variable>>);

impl Scopes {
    pub(crate) fn enter(&mut self) {
        self.0.push(BTreeMap::new());
    }

    pub(crate) fn leave(&mut self) {
        self.0.pop();
    }

    pub(crate) fn depth(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn declare(&mut self, pattern: &Pat) {
        let Some(scope) = self.0.last_mut() else { return };
        for (ident, mutable) in bindings(pattern) {
            scope.insert(ident.to_string(), Variable { mutable, lifted: None });
        }
    }

    pub(crate) fn set_lifted(&mut self, name: &str, literal: Literal) {
        if let Some(variable) = self.0.last_mut().and_then(|scope| scope.get_mut(name)) {
            variable.lifted = Some(literal);
        }
    }

    pub(crate) fn get(&self, ident: &Ident) -> Variable {
        let name = ident.to_string();
        self.0.iter().rev().find_map(|scope| scope.get(&name)).copied().unwrap_or_default()
    }

    /// Is the name declared again in a scope at or inside of `depth`?
    pub(crate) fn hidden_since(&self, depth: usize, ident: &Ident) -> bool {
        let name = ident.to_string();
        self.0[depth.min(self.0.len())..].iter().any(|scope| scope.contains_key(&name))
    }

    /// The variables that `visit` finds assigned and that are declared `mut` outside, in order of first assignment.
    /// Those declared without `mut` are left out: rustc then gives its own error for the assignment.
    pub(crate) fn carried(&self, visit: impl FnOnce(&mut Assigned)) -> Vec<Ident> {
        let mut assigned = Assigned::default();
        visit(&mut assigned);
        assigned.outer.retain(|ident| self.get(ident).mutable);
        assigned.outer
    }
}

/// The names that a pattern binds, and whether as `mut`.
pub(crate) fn bindings(pattern: &Pat) -> Vec<(Ident, bool)> {
    struct Names(Vec<(Ident, bool)>);
    impl<'ast> Visit<'ast> for Names {
        fn visit_pat_ident(&mut self, p: &'ast syn::PatIdent) {
            self.0.push((p.ident.clone(), p.mutability.is_some()));
            visit::visit_pat_ident(self, p);
        }
        fn visit_expr(&mut self, _: &'ast Expr) {}
        fn visit_type(&mut self, _: &'ast syn::Type) {}
    }
    let mut names = Names(Vec::new());
    names.visit_pat(pattern);
    names.0
}

/// The patterns of the `let`s of a condition.
pub(crate) fn condition_patterns<'a>(cond: &'a Expr, each: &mut dyn FnMut(&'a Pat)) {
    match cond {
        Expr::Let(l) => each(&l.pat),
        Expr::Binary(b) => {
            condition_patterns(&b.left, each);
            condition_patterns(&b.right, each);
        }
        Expr::Paren(p) => condition_patterns(&p.expr, each),
        Expr::Group(g) => condition_patterns(&g.expr, each),
        _ => {}
    }
}

/// Collects the variables that code assigns (or borrows as `&mut`) and does not declare itself.
#[derive(Default)]
pub(crate) struct Assigned {
    scopes: Vec<BTreeSet<String>>,
    pub(crate) outer: Vec<Ident>,
}

impl Assigned {
    pub(crate) fn in_expr(expr: &Expr) -> Vec<Ident> {
        let mut assigned = Assigned::default();
        assigned.visit_expr(expr);
        assigned.outer
    }

    pub(crate) fn declare(&mut self, pattern: &Pat) {
        if self.scopes.is_empty() {
            self.scopes.push(BTreeSet::new());
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.extend(bindings(pattern).into_iter().map(|(ident, _)| ident.to_string()));
        }
    }

    fn hit(&mut self, ident: &Ident) {
        let name = ident.to_string();
        if !self.scopes.iter().any(|scope| scope.contains(&name)) && !self.outer.iter().any(|o| o == ident) {
            self.outer.push(ident.clone());
        }
    }

    fn place(&mut self, expr: &Expr) {
        match expr {
            Expr::Path(p) if p.qself.is_none() => {
                if let Some(ident) = p.path.get_ident() {
                    self.hit(ident);
                }
            }
            Expr::Field(f) => self.place(&f.base),
            Expr::Index(i) => self.place(&i.expr),
            Expr::Paren(p) => self.place(&p.expr),
            Expr::Group(g) => self.place(&g.expr),
            Expr::Tuple(t) => t.elems.iter().for_each(|e| self.place(e)),
            Expr::Array(a) => a.elems.iter().for_each(|e| self.place(e)),
            Expr::Struct(s) => s.fields.iter().for_each(|f| self.place(&f.expr)),
            Expr::Call(c) => c.args.iter().for_each(|e| self.place(e)),
            _ => {}
        }
    }

    fn scoped(&mut self, visit: impl FnOnce(&mut Self)) {
        self.scopes.push(BTreeSet::new());
        visit(self);
        self.scopes.pop();
    }
}

impl<'ast> Visit<'ast> for Assigned {
    fn visit_block(&mut self, b: &'ast Block) {
        self.scoped(|s| visit::visit_block(s, b));
    }

    fn visit_local(&mut self, l: &'ast syn::Local) {
        if let Some(init) = &l.init {
            self.visit_expr(&init.expr);
            if let Some((_, diverge)) = &init.diverge {
                self.visit_expr(diverge);
            }
        }
        self.declare(&l.pat);
    }

    fn visit_expr_for_loop(&mut self, f: &'ast syn::ExprForLoop) {
        self.visit_expr(&f.expr);
        self.scoped(|s| {
            s.declare(&f.pat);
            s.visit_block(&f.body);
        });
    }

    fn visit_expr_while(&mut self, w: &'ast syn::ExprWhile) {
        self.visit_expr(&w.cond);
        self.scoped(|s| {
            condition_patterns(&w.cond, &mut |p| s.declare(p));
            s.visit_block(&w.body);
        });
    }

    fn visit_expr_if(&mut self, i: &'ast syn::ExprIf) {
        self.visit_expr(&i.cond);
        self.scoped(|s| {
            condition_patterns(&i.cond, &mut |p| s.declare(p));
            s.visit_block(&i.then_branch);
        });
        if let Some((_, e)) = &i.else_branch {
            self.visit_expr(e);
        }
    }

    fn visit_arm(&mut self, a: &'ast syn::Arm) {
        self.scoped(|s| {
            s.declare(&a.pat);
            visit::visit_arm(s, a);
        });
    }

    fn visit_expr_closure(&mut self, c: &'ast syn::ExprClosure) {
        self.scoped(|s| {
            c.inputs.iter().for_each(|p| s.declare(p));
            s.visit_expr(&c.body);
        });
    }

    fn visit_expr_assign(&mut self, a: &'ast syn::ExprAssign) {
        self.place(&a.left);
        visit::visit_expr_assign(self, a);
    }

    fn visit_expr_binary(&mut self, b: &'ast syn::ExprBinary) {
        if is_compound(&b.op) {
            self.place(&b.left);
        }
        visit::visit_expr_binary(self, b);
    }

    fn visit_expr_reference(&mut self, r: &'ast syn::ExprReference) {
        if r.mutability.is_some() {
            self.place(&r.expr);
        }
        visit::visit_expr_reference(self, r);
    }

    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_item(&mut self, _: &'ast syn::Item) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
}

/// `+=` and its kin.
pub(crate) fn is_compound(op: &BinOp) -> bool {
    use BinOp::*;
    matches!(
        op,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | BitXorAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

/// Does a runtime loop or an `if` among the statements assign the variable?
pub(crate) fn assigned_in_flow(stmts: &[Stmt], variable: &Ident) -> bool {
    struct Flow<'a> {
        variable: &'a Ident,
        found: bool,
    }
    impl<'ast> Visit<'ast> for Flow<'_> {
        fn visit_expr(&mut self, expr: &'ast Expr) {
            let flow = match expr {
                Expr::ForLoop(f) => !matches!(classify(f), ForKind::Unroll | ForKind::Other),
                Expr::While(w) => !flow::has_let(&w.cond),
                // A closure that assigns is an error; a lifted literal keeps it the only one.
                Expr::Loop(_) | Expr::Closure(_) => true,
                Expr::If(i) => !flow::has_let(&i.cond),
                _ => false,
            };
            if flow && Assigned::in_expr(expr).contains(self.variable) {
                self.found = true;
            } else {
                visit::visit_expr(self, expr);
            }
        }
        fn visit_item(&mut self, _: &'ast syn::Item) {}
        fn visit_type(&mut self, _: &'ast syn::Type) {}
    }
    let mut flow = Flow { variable, found: false };
    for stmt in stmts {
        flow.visit_stmt(stmt);
        if let Stmt::Local(local) = stmt
            && bindings(&local.pat).iter().any(|(ident, _)| ident == variable)
        {
            break;
        }
    }
    flow.found
}
