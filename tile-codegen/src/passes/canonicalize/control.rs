//! Control flow that constants decide.

use super::fold::Const;
use super::{Flow, Rewriter};
use crate::ir::{OpId, RegionId, ValueId};
use crate::ops::OpKind;

impl Rewriter<'_> {
    /// Processes the part of a control-flow operation that runs in its place; `None` if it stays.
    pub(super) fn take_apart(&mut self, id: OpId) -> Option<Flow> {
        match self.kernel.ops[id].kind {
            OpKind::If(_) => self.decided_branch(id),
            OpKind::For(_) => self.empty_loop(id),
            OpKind::Scope(_) => self.plain_scope(id),
            _ => None,
        }
    }

    fn decided_branch(&mut self, id: OpId) -> Option<Flow> {
        let op = &self.kernel.ops[id];
        let taken = match self.splat(op.operands[0])? {
            Const::Bool(true) => op.regions[0],
            Const::Bool(false) => op.regions[1],
            Const::Int(..) | Const::Float(..) => return None,
        };
        Some(self.inline(id, taken, |kind| matches!(kind, OpKind::Yield(_))))
    }

    /// A loop of no iterations. Its step must be known to be positive, as others are faults when the loop is run.
    fn empty_loop(&mut self, id: OpId) -> Option<Flow> {
        let op = &self.kernel.ops[id];
        let [Const::Int(low, _), Const::Int(high, _), Const::Int(step, _)] =
            [self.splat(op.operands[0])?, self.splat(op.operands[1])?, self.splat(op.operands[2])?]
        else {
            return None;
        };
        if low < high || step <= 0 {
            return None;
        }
        let initial = op.operands[3..].to_vec();
        self.replace(id, &initial);
        Some(Flow::Next)
    }

    /// A scope that only its own end leaves.
    fn plain_scope(&mut self, id: OpId) -> Option<Flow> {
        let body = self.kernel.ops[id].regions[0];
        let exit = |kind: &OpKind| matches!(kind, OpKind::Exit(_));
        let ends_in_exit =
            self.kernel.regions[body].ops.last().is_some_and(|&op| exit(&self.kernel.ops[op].kind));
        if !ends_in_exit || self.count_exits(body) != 1 {
            return None;
        }
        Some(self.inline(id, body, exit))
    }

    /// The `exit`s that leave the scope of a region.
    fn count_exits(&self, region: RegionId) -> usize {
        let count = |&op: &OpId| {
            let op = &self.kernel.ops[op];
            match op.kind {
                OpKind::Exit(_) => 1,
                OpKind::Scope(_) => 0,
                _ => op.regions.iter().map(|&r| self.count_exits(r)).sum(),
            }
        };
        self.kernel.regions[region].ops.iter().map(count).sum()
    }

    /// Processes a region in the place of the operation that holds it. A terminator that `joins` passes its operands to
    /// the results; any other jumps away from here.
    fn inline(&mut self, id: OpId, region: RegionId, joins: impl Fn(&OpKind) -> bool) -> Flow {
        let ops = std::mem::take(&mut self.kernel.regions[region].ops);
        let (&last, body) =
            ops.split_last().expect("the verifier has checked that regions end in a terminator");
        if self.ops(body) == Flow::Jumped {
            return Flow::Jumped;
        }
        if !joins(&self.kernel.ops[last].kind) {
            return self.op(last);
        }
        let values: Vec<ValueId> = self.kernel.ops[last].operands.iter().map(|&v| self.resolve(v)).collect();
        self.replace(id, &values);
        Flow::Next
    }
}
