//! The forward walk: which layout each value has for free.

use super::{Plan, Targets};
use crate::ir::{OpId, RegionId, ValueId};
use crate::layout::Layout;
use crate::ops::OpKind;
use crate::ops::place::{Natural, Place};

impl Plan<'_> {
    pub(super) fn find_natural(&mut self) {
        self.natural_region(self.kernel.body, &Targets::default());
    }

    fn natural_region(&mut self, region: RegionId, targets: &Targets) {
        for id in self.kernel.regions[region].ops.clone() {
            self.natural_op(id, targets);
        }
    }

    fn natural_op(&mut self, id: OpId, targets: &Targets) {
        let op = &self.kernel.ops[id];
        match &op.kind {
            OpKind::For(_) | OpKind::Loop(_) => self.natural_loop(id, targets),
            OpKind::If(_) | OpKind::Scope(_) => {
                let inner = targets.inside(self.kernel, id);
                for region in op.regions.clone() {
                    self.natural_region(region, &inner);
                }
                for result in op.results.clone() {
                    self.fix(result);
                }
            }
            OpKind::Roles(roles) => {
                let block = self.num_warps.get();
                for (warps, region) in roles.warps.clone().into_iter().zip(op.regions.clone()) {
                    self.num_warps.set(warps);
                    self.natural_region(region, &Targets::default());
                }
                self.num_warps.set(block);
            }
            kind if kind.is_terminator() => {
                if let Some(target) = targets.of(kind) {
                    self.merge_into(target, &op.operands.clone());
                }
            }
            kind => {
                let operands = self.operand_naturals(id);
                if let Some(&result) = op.results.first()
                    && self.placed(result)
                    && !self.shared.contains_key(&result)
                    && let Some(natural) = kind.natural(&self.cx(id), &operands)
                {
                    self.natural.insert(result, natural);
                }
            }
        }
    }

    /// Carried values follow the strongest of what comes in, goes round and goes out.
    fn natural_loop(&mut self, id: OpId, targets: &Targets) {
        let op = self.kernel.ops[id].clone();
        let inner = targets.inside(self.kernel, id);
        let region = op.regions[0];
        let first = usize::from(matches!(op.kind, OpKind::For(_)));
        let args: Vec<ValueId> = self.kernel.regions[region].args[first..].to_vec();
        let inits = &op.operands[op.operands.len() - args.len()..];
        for ((&arg, &init), &result) in args.iter().zip(inits).zip(&op.results) {
            if let Some(natural) = self.natural.get(&init).cloned() {
                self.natural.insert(arg, natural.clone());
                self.natural.insert(result, natural);
            }
        }
        // Weights only rise, and there are four, so this ends.
        loop {
            let before: Vec<_> = args.iter().map(|a| self.natural.get(a).cloned()).collect();
            self.natural_region(region, &inner);
            let after: Vec<_> = args.iter().map(|a| self.natural.get(a).cloned()).collect();
            if before == after {
                break;
            }
        }
        for (&arg, &result) in args.iter().zip(&op.results) {
            self.fix(arg);
            let layout = self.natural.get(&arg).cloned();
            if let Some(natural) = layout {
                self.natural.insert(result, natural);
            }
        }
        self.natural_region(region, &inner);
    }

    /// The operands of a terminator meet the values of the operation that receives them.
    fn merge_into(&mut self, target: OpId, operands: &[ValueId]) {
        let op = &self.kernel.ops[target];
        let args = match op.kind {
            OpKind::For(_) => self.kernel.regions[op.regions[0]].args[1..].to_vec(),
            OpKind::Loop(_) => self.kernel.regions[op.regions[0]].args.clone(),
            _ => Vec::new(),
        };
        for (i, &result) in op.results.clone().iter().enumerate() {
            let Some(incoming) = operands.get(i).and_then(|v| self.natural.get(v)).cloned() else { continue };
            for value in args.get(i).copied().into_iter().chain([result]) {
                let stronger = self.natural.get(&value).is_none_or(|n| n.weight < incoming.weight);
                if self.placed(value) && stronger {
                    self.natural.insert(value, incoming.clone());
                }
            }
        }
    }

    /// Gives a value that must have one layout a default one.
    fn fix(&mut self, value: ValueId) {
        if self.placed(value) && !self.natural.contains_key(&value) {
            let layout: Layout = self.fixed(value);
            self.natural.insert(value, Natural { layout, weight: 0, soft: false });
        }
    }
}
