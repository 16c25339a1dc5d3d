//! The backward walk: which layouts the users of each value want.

use super::{Demand, Plan, Targets};
use crate::ir::{OpId, RegionId, ValueId};
use crate::ops::place::{Place, Want};
use crate::ops::{Effects, OpKind, TileOp};

impl Plan<'_> {
    pub(super) fn find_demands(&mut self) {
        self.demand_region(self.kernel.body, &Targets::default());
    }

    /// Returns everything that the region wants.
    fn demand_region(&mut self, region: RegionId, targets: &Targets) -> Vec<(ValueId, Demand)> {
        let mut all = Vec::new();
        for id in self.kernel.regions[region].ops.clone().into_iter().rev() {
            let needs = self.demand_op(id, targets);
            all.extend(needs.iter().cloned());
            self.needs.insert(id, needs);
        }
        all
    }

    fn demand_op(&mut self, id: OpId, targets: &Targets) -> Vec<(ValueId, Demand)> {
        let op = self.kernel.ops[id].clone();
        let mut needs = Vec::new();
        match &op.kind {
            OpKind::For(_) | OpKind::Loop(_) => {
                let carried = op.results.len();
                let inits = &op.operands[op.operands.len() - carried..];
                for (&init, &result) in inits.iter().zip(&op.results) {
                    self.want_fixed(init, result, &mut needs);
                }
                let inner = targets.inside(self.kernel, id);
                needs.extend(self.demand_region(op.regions[0], &inner));
            }
            OpKind::If(_) | OpKind::Scope(_) => {
                let inner = targets.inside(self.kernel, id);
                for &region in &op.regions {
                    needs.extend(self.demand_region(region, &inner));
                }
            }
            OpKind::Roles(roles) => {
                let block = self.num_warps.get();
                for (&warps, &region) in roles.warps.iter().zip(&op.regions) {
                    self.num_warps.set(warps);
                    self.demand_region(region, &Targets::default());
                }
                self.num_warps.set(block);
            }
            kind if kind.is_terminator() => {
                let results =
                    targets.of(kind).map(|t| self.kernel.ops[t].results.clone()).unwrap_or_default();
                for (&operand, &result) in op.operands.iter().zip(&results) {
                    self.want_fixed(operand, result, &mut needs);
                }
            }
            _ => self.demand_plain(id, &mut needs),
        }
        needs
    }

    /// The value must arrive in the one layout that `target` has.
    fn want_fixed(&mut self, value: ValueId, target: ValueId, needs: &mut Vec<(ValueId, Demand)>) {
        if self.placed(value) {
            let layout = self.fixed(target);
            self.want(value, Demand::Regs(layout), needs);
        }
    }

    fn want(&mut self, value: ValueId, demand: Demand, needs: &mut Vec<(ValueId, Demand)>) {
        let list = self.demands.entry(value).or_default();
        if !list.contains(&demand) {
            list.push(demand.clone());
        }
        needs.push((value, demand));
    }

    fn demand_plain(&mut self, id: OpId, needs: &mut Vec<(ValueId, Demand)>) {
        let op = self.kernel.ops[id].clone();
        let operands = self.operand_naturals(id);
        let result = op.results.first().copied().filter(|&r| self.placed(r));
        if let Some(result) = result
            && self.shared.contains_key(&result)
        {
            // A view of what is in shared memory: its operand must be there as well, and is.
            if self.demands.contains_key(&result) {
                for &operand in &op.operands {
                    let Some(layout) = self.shared.get(&operand).cloned() else { continue };
                    self.want(operand, Demand::Placed(layout), needs);
                }
            }
            return;
        }
        let layouts = match result {
            None => vec![None],
            Some(result) => self.made_in(result).into_iter().map(Some).collect(),
        };
        for layout in layouts {
            let wants = op.kind.wants(&self.cx(id), &operands, layout.as_ref());
            for (&operand, want) in op.operands.iter().zip(wants) {
                match want {
                    Want::Any => {}
                    Want::Regs(layout) => self.want(operand, Demand::Regs(layout), needs),
                    Want::Shared(order) => self.want(operand, Demand::Shared(order), needs),
                    Want::Placed(layout) => self.want(operand, Demand::Placed(layout), needs),
                }
            }
        }
    }

    /// The layouts in which an operation's result is made: its natural one, or all that are wanted.
    pub(super) fn made_in(&self, result: ValueId) -> Vec<crate::layout::Layout> {
        let wanted = self.demands.get(&result).map_or(&[][..], Vec::as_slice);
        if wanted.is_empty() && !self.acts.contains(&result) {
            return Vec::new();
        }
        if let Some(natural) = self.natural.get(&result).filter(|n| !n.soft) {
            return vec![natural.layout.clone()];
        }
        let regs = wanted.iter().filter_map(|d| match d {
            Demand::Regs(layout) => Some(layout.clone()),
            Demand::Shared(_) | Demand::Placed(_) => None,
        });
        let mut made: Vec<_> = regs.collect();
        if made.is_empty() {
            made.push(self.fixed(result));
        }
        made
    }

    /// Whether nobody uses a pure operation's placed result.
    pub(super) fn is_dead(&self, id: OpId) -> bool {
        let op = &self.kernel.ops[id];
        let removable = matches!(op.kind.effects(), Effects::Pure | Effects::ReadsGlobal);
        removable && op.results.iter().all(|&r| self.placed(r) && !self.demands.contains_key(&r))
    }
}
