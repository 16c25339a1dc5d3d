//! A copy of the kernel's body for one role: what others own is left out, what they make is received.

use std::collections::{BTreeMap, BTreeSet};

use super::bulk_layout;
use super::partition::{Partition, fault_at};
use super::stage_layout::stage_layout;
use crate::diag::Diagnostics;
use crate::ir::{Kernel, LocId, OpId, Region, RegionId, ValueId};
use crate::layout::SharedLayout;
use crate::ops::control::Yield;
use crate::ops::receive::Receive;
use crate::ops::send::Send;
use crate::ops::send_tile::SendTile;
use crate::ops::{Effects, OpKind, TileOp};

struct Copier<'a> {
    kernel: &'a mut Kernel,
    partition: &'a Partition,
    channels: &'a BTreeMap<ValueId, usize>,
    needed: &'a BTreeSet<usize>,
    role: usize,
    values: BTreeMap<ValueId, ValueId>,
}

/// Copies the body for `role`; it sends to the channels `needed` that it owns.
pub(super) fn copy_for_role(
    kernel: &mut Kernel,
    partition: &Partition,
    channels: &BTreeMap<ValueId, usize>,
    needed: &BTreeSet<usize>,
    role: usize,
) -> Result<RegionId, Diagnostics> {
    let body = kernel.body;
    let mut copier = Copier { kernel, partition, channels, needed, role, values: BTreeMap::new() };
    let region = copier.region(body)?;
    let end = copier.kernel.new_op(Yield.into(), Vec::new(), Vec::new(), LocId::default());
    copier.kernel.regions[region].ops.push(end);
    Ok(region)
}

impl Copier<'_> {
    fn region(&mut self, old: RegionId) -> Result<RegionId, Diagnostics> {
        let Region { args, ops } = self.kernel.regions[old].clone();
        let args = args.into_iter().map(|arg| self.fresh(arg)).collect();
        let mut copies = Vec::new();
        for id in ops {
            self.op(id, &mut copies)?;
        }
        Ok(self.kernel.regions.push(Region { args, ops: copies }))
    }

    fn fresh(&mut self, old: ValueId) -> ValueId {
        let ty = self.kernel.ty(old).clone();
        let new = self.kernel.new_value(ty);
        self.values.insert(old, new);
        new
    }

    fn op(&mut self, id: OpId, copies: &mut Vec<OpId>) -> Result<(), Diagnostics> {
        let op = &self.kernel.ops[id];
        if let OpKind::Atomic(atomic) = &op.kind
            && !atomic.unordered(self.kernel, op)
        {
            let message = "an atomic operation that orders others, or whose old values are used, has no role";
            return Err(fault_at(self.kernel, id, message));
        }
        let stores = op.kind.effects() == Effects::WritesGlobal;
        match self.partition.owner.get(&id).copied() {
            None if stores => Err(fault_at(self.kernel, id, "a store has no role")),
            None => self.copy(id, copies),
            Some(owner) if stores => match owner == self.role {
                true => self.copy(id, copies),
                false => Ok(()),
            },
            Some(_) if op.kind.is_terminator() => self.copy(id, copies),
            Some(owner) => match self.bulk(id, owner) {
                Some(layout) => {
                    if owner == self.role && self.needed.contains(&self.channels[&op.results[0]]) {
                        self.send(id, layout.clone(), copies);
                    }
                    self.receive(id, op_result(self.kernel, id), layout, copies);
                    Ok(())
                }
                None => self.computed(id, owner, copies),
            },
        }
    }

    /// The place of a tile that bulk tensor copies load: those of a role of one thread.
    fn bulk(&self, id: OpId, owner: usize) -> Option<SharedLayout> {
        let single = self.partition.roles[owner].single;
        bulk_layout(self.kernel, id).filter(|_| single)
    }

    /// An operation whose results its owner sends, and others receive. Everyone goes through control flow.
    fn computed(&mut self, id: OpId, owner: usize, copies: &mut Vec<OpId>) -> Result<(), Diagnostics> {
        let own = owner == self.role;
        if own || !self.kernel.ops[id].regions.is_empty() {
            self.copy(id, copies)?;
        }
        for result in self.kernel.ops[id].results.clone() {
            let layout = stage_layout(self.kernel, id, result)?;
            if !own {
                self.receive(id, result, layout, copies);
            } else if self.needed.contains(&self.channels[&result]) {
                self.send_tile(id, result, layout, copies);
            }
        }
        Ok(())
    }

    fn copy(&mut self, id: OpId, copies: &mut Vec<OpId>) -> Result<(), Diagnostics> {
        let op = self.kernel.ops[id].clone();
        let mut regions = Vec::new();
        for &region in &op.regions {
            regions.push(self.region(region)?);
        }
        let operands = self.mapped(&op.operands);
        let types = op.results.iter().map(|&r| self.kernel.ty(r).clone()).collect();
        let new = self.kernel.new_op(op.kind, operands, types, op.loc);
        self.kernel.ops[new].regions = regions;
        for (&old, &result) in op.results.iter().zip(&self.kernel.ops[new].results.clone()) {
            self.values.insert(old, result);
        }
        copies.push(new);
        Ok(())
    }

    /// The copies of values; parameters stand for themselves.
    fn mapped(&self, values: &[ValueId]) -> Vec<ValueId> {
        values.iter().map(|v| *self.values.get(v).unwrap_or(v)).collect()
    }

    fn send(&mut self, id: OpId, layout: SharedLayout, copies: &mut Vec<OpId>) {
        let op = self.kernel.ops[id].clone();
        let elem = self.kernel.tile(op.results[0]).elem;
        let send = Send { channel: self.channels[&op.results[0]], elem, layout, stages: self.stages(id) };
        let operands = self.mapped(&op.operands);
        copies.push(self.kernel.new_op(send.into(), operands, Vec::new(), op.loc));
    }

    fn send_tile(&mut self, id: OpId, result: ValueId, layout: SharedLayout, copies: &mut Vec<OpId>) {
        let loc = self.kernel.ops[id].loc;
        let elem = self.kernel.tile(result).elem;
        let send = SendTile { channel: self.channels[&result], elem, layout, stages: self.stages(id) };
        let operands = self.mapped(&[result]);
        copies.push(self.kernel.new_op(send.into(), operands, Vec::new(), loc));
    }

    fn receive(&mut self, id: OpId, result: ValueId, layout: SharedLayout, copies: &mut Vec<OpId>) {
        let loc = self.kernel.ops[id].loc;
        let ty = self.kernel.ty(result).clone();
        let elem = self.kernel.tile(result).elem;
        let (channel, stages) = (self.channels[&result], self.stages(id));
        let kind: OpKind = Receive { channel, elem, layout, stages, placed: false }.into();
        let new = self.kernel.new_op(kind, Vec::new(), vec![ty], loc);
        self.values.insert(result, self.kernel.ops[new].results[0]);
        copies.push(new);
    }

    fn stages(&self, id: OpId) -> usize {
        self.partition.stages.get(&id).copied().unwrap_or(2)
    }
}

fn op_result(kernel: &Kernel, id: OpId) -> ValueId {
    kernel.ops[id].results[0]
}
