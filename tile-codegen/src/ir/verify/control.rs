//! The rules of control flow: which regions an operation has, and that the values it passes around agree in type.

use super::{Verifier, show_types};
use crate::diag::Code;
use crate::ir::{Elem, Op, Type};
use crate::ops::OpKind;

/// A control-flow operation around the current place.
pub(super) struct Frame<'k> {
    /// The operation.
    pub(super) op: &'k Op,
    /// The types that it carries or joins.
    types: Vec<Type>,
}

impl<'k> Frame<'k> {
    fn is_loop(&self) -> bool {
        matches!(self.op.kind, OpKind::For(_) | OpKind::Loop(_))
    }
}

impl<'k> Verifier<'k> {
    /// Checks an operation of effect `Control` and, inside it, its regions. Types are compared if `known`.
    pub(super) fn control(&mut self, op: &'k Op, known: bool) {
        let expected = match op.kind {
            OpKind::For(_) | OpKind::Loop(_) | OpKind::Scope(_) => 1,
            OpKind::If(_) => 2,
            OpKind::Roles(ref roles) => roles.warps.len(),
            _ => 0,
        };
        if op.regions.len() != expected {
            let found = op.regions.len();
            self.op_fault(op, format!("it has {expected} regions, found {found}"));
        }
        if expected == 0 {
            return self.terminator(op, known);
        }
        let types = self.types_of(&op.results);
        match op.kind {
            OpKind::For(_) => self.for_loop(op, &types, known),
            OpKind::Loop(_) => self.carried(op, 0, 0, &types, known),
            OpKind::If(_) => self.branch(op, known),
            _ => self.no_operands(op),
        }
        self.frames.push(Frame { op, types });
        let block = self.warps;
        for (i, &region) in op.regions.iter().enumerate() {
            if let OpKind::Roles(roles) = &op.kind {
                self.warps = roles.warps.get(i).copied();
            }
            self.region(region);
            self.warps = block;
        }
        self.frames.pop();
    }

    fn types_of(&self, values: &[crate::ir::ValueId]) -> Vec<Type> {
        values.iter().map(|&v| self.kernel.ty(v).clone()).collect()
    }

    fn for_loop(&mut self, op: &Op, results: &[Type], known: bool) {
        let Some(bounds) = op.operands.get(..3) else {
            return self.op_fault(op, "it takes a lower bound, an upper bound and a step");
        };
        let mut counts = self.types_of(bounds);
        let index = op.regions.first().and_then(|&r| self.kernel.regions[r].args.first());
        counts.extend(index.map(|&v| self.kernel.ty(v).clone()));
        let scalar = counts[0].as_tile().is_some_and(|t| t.rank() == 0 && t.elem.is_int());
        if known && (counts.len() != 4 || !scalar || counts.iter().any(|ty| *ty != counts[0])) {
            let found = show_types(&counts);
            self.op_fault(
                op,
                format!(
                    "the bounds, the step and the index are scalars of one integer type, found `{found}`"
                ),
            );
        }
        self.carried(op, 3, 1, results, known);
    }

    /// Initial values (after `skip` operands) and region arguments (after `skip_args`) against results.
    fn carried(&mut self, op: &Op, skip: usize, skip_args: usize, results: &[Type], known: bool) {
        let initial = self.types_of(op.operands.get(skip..).unwrap_or(&[]));
        if known && initial != results {
            self.mismatch(op, "initial values", &initial, "results", results);
        }
        for &region in &op.regions {
            let args = self.kernel.regions[region].args.get(skip_args..).unwrap_or(&[]);
            let args = self.types_of(args);
            if args != results {
                self.mismatch(op, "region arguments", &args, "results", results);
            }
        }
    }

    fn branch(&mut self, op: &Op, known: bool) {
        let operands = self.types_of(&op.operands);
        if known && operands != [Type::scalar(Elem::Bool)] {
            self.op_fault(op, format!("the condition is a `bool` scalar, found `{}`", show_types(&operands)));
        }
        self.no_args(op);
    }

    fn no_operands(&mut self, op: &Op) {
        if !op.operands.is_empty() {
            self.op_fault(op, "it takes no operands");
        }
        self.no_args(op);
    }

    fn no_args(&mut self, op: &Op) {
        if op.regions.iter().any(|&r| !self.kernel.regions[r].args.is_empty()) {
            self.op_fault(op, "its regions have no arguments");
        }
    }

    /// A `yield`, `break`, `continue` or `exit`: where it may stand, and what it passes.
    fn terminator(&mut self, op: &Op, known: bool) {
        if !op.results.is_empty() {
            self.op_fault(op, "it has no results");
        }
        let (target, expected) = match op.kind {
            OpKind::Yield(_) => {
                let joins = |f: &&Frame<'_>| !matches!(f.op.kind, OpKind::Scope(_));
                (self.frames.last().filter(joins), "at the end of a loop body or an arm of an `if`")
            }
            OpKind::Exit(_) => {
                let scope = |f: &&Frame<'_>| matches!(f.op.kind, OpKind::Scope(_));
                (self.frames.iter().rev().find(scope), "inside a `scope`")
            }
            _ => (self.frames.iter().rev().find(|f| f.is_loop()), "inside a `for` or `loop`"),
        };
        let Some(target) = target else {
            return self.op_fault(op, format!("it stands {expected} only"));
        };
        let (types, passed) = (target.types.clone(), self.types_of(&op.operands));
        if known && types != passed {
            let name = crate::ops::TileOp::name(&target.op.kind);
            self.mismatch(op, "operands", &passed, &format!("results of `{name}`"), &types);
        }
    }

    fn mismatch(&mut self, op: &Op, what: &str, found: &[Type], of: &str, expected: &[Type]) {
        let silenced = found.contains(&Type::Error) || expected.contains(&Type::Error);
        if !silenced {
            let (found, expected) = (show_types(found), show_types(expected));
            let message = format!("the {what} are of types `{found}`, the {of} of `{expected}`");
            self.op_fault_coded(op, Code::Carried, message);
        }
    }
}
