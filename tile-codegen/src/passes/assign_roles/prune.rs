//! Removes what a role does not need: operations without effects whose results nobody uses, carried and joined values
//! among them.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{Kernel, OpId, RegionId, ValueId};
use crate::ops::{Effects, OpKind, TileOp};

/// What makes a value.
#[derive(Clone, Copy)]
enum Maker {
    /// A result of an operation, by its number.
    Result(OpId, usize),
    /// An argument of a loop's region.
    Arg(OpId, usize),
}

struct Pruner<'k> {
    kernel: &'k Kernel,
    makers: BTreeMap<ValueId, Maker>,
    /// The operation around each operation.
    around: BTreeMap<OpId, OpId>,
    /// The jumps that arrive at each control operation, `yield` among them.
    arrivals: BTreeMap<OpId, Vec<OpId>>,
    live: BTreeSet<OpId>,
    /// Which carried or joined values of a control operation are needed.
    slots: BTreeMap<OpId, BTreeSet<usize>>,
    open: Vec<Item>,
}

enum Item {
    Op(OpId),
    Value(ValueId),
    Slot(OpId, usize),
}

/// Prunes a region that nothing outside depends on.
pub(super) fn prune(kernel: &mut Kernel, region: RegionId) {
    let mut pruner = Pruner {
        kernel,
        makers: BTreeMap::new(),
        around: BTreeMap::new(),
        arrivals: BTreeMap::new(),
        live: BTreeSet::new(),
        slots: BTreeMap::new(),
        open: Vec::new(),
    };
    pruner.enter(region, &[]);
    pruner.run();
    let Pruner { live, slots, arrivals, .. } = pruner;
    sweep(kernel, region, &live);
    for (&id, arrivals) in &arrivals {
        if live.contains(&id) {
            let empty = BTreeSet::new();
            drop_slots(kernel, id, arrivals, slots.get(&id).unwrap_or(&empty));
        }
    }
}

fn is_loop(kind: &OpKind) -> bool {
    matches!(kind, OpKind::For(_) | OpKind::Loop(_))
}

impl Pruner<'_> {
    /// Records what a region holds; `outer` are the operations around it, outermost first.
    fn enter(&mut self, region: RegionId, outer: &[OpId]) {
        if let Some(&owner) = outer.last() {
            for (i, &arg) in self.kernel.regions[region].args.iter().enumerate() {
                self.makers.insert(arg, Maker::Arg(owner, i));
            }
        }
        for &id in &self.kernel.regions[region].ops {
            let op = &self.kernel.ops[id];
            if let Some(&owner) = outer.last() {
                self.around.insert(id, owner);
            }
            for (i, &result) in op.results.iter().enumerate() {
                self.makers.insert(result, Maker::Result(id, i));
            }
            if op.kind.is_terminator()
                && let Some(target) = self.target(&op.kind, outer)
            {
                self.arrivals.entry(target).or_default().push(id);
            }
            let effects = op.kind.effects();
            let needed = matches!(effects, Effects::WritesGlobal | Effects::Channel)
                && !matches!(op.kind, OpKind::Receive(_));
            if needed {
                self.open.push(Item::Op(id));
            }
            if !op.regions.is_empty() {
                self.arrivals.entry(id).or_default();
                let mut inner = outer.to_vec();
                inner.push(id);
                for &region in &op.regions {
                    self.enter(region, &inner);
                }
            }
        }
    }

    /// The control operation that a terminator jumps to or arrives at.
    fn target(&self, kind: &OpKind, outer: &[OpId]) -> Option<OpId> {
        let innermost = |fits: &dyn Fn(&OpKind) -> bool| {
            outer.iter().rev().copied().find(|&id| fits(&self.kernel.ops[id].kind))
        };
        match kind {
            OpKind::Break(_) | OpKind::Continue(_) => innermost(&is_loop),
            OpKind::Exit(_) => innermost(&|kind| matches!(kind, OpKind::Scope(_))),
            _ => outer.last().copied(),
        }
    }

    fn run(&mut self) {
        while let Some(item) = self.open.pop() {
            match item {
                Item::Op(id) => self.op(id),
                Item::Value(value) => match self.makers.get(&value).copied() {
                    Some(Maker::Result(id, i)) if !self.kernel.ops[id].regions.is_empty() => {
                        self.open.extend([Item::Op(id), Item::Slot(id, i)]);
                    }
                    Some(Maker::Result(id, _)) => self.open.push(Item::Op(id)),
                    Some(Maker::Arg(id, i)) => {
                        self.open.push(Item::Op(id));
                        let first = usize::from(matches!(self.kernel.ops[id].kind, OpKind::For(_)));
                        if i >= first {
                            self.open.push(Item::Slot(id, i - first));
                        }
                    }
                    None => {}
                },
                Item::Slot(id, i) => self.slot(id, i),
            }
        }
    }

    fn op(&mut self, id: OpId) {
        if !self.live.insert(id) {
            return;
        }
        let op = &self.kernel.ops[id];
        self.open.extend(self.around.get(&id).map(|&outer| Item::Op(outer)));
        let operands = match op.kind {
            // Carried values are needed one by one.
            OpKind::For(_) => &op.operands[..3],
            OpKind::Loop(_) => &[],
            _ if op.kind.is_terminator() => &[],
            _ => &op.operands[..],
        };
        self.open.extend(operands.iter().map(|&v| Item::Value(v)));
        // Every jump to a live operation stays, and so does all control that leads to it.
        let arrivals = self.arrivals.get(&id).into_iter().flatten();
        self.open.extend(arrivals.map(|&jump| Item::Op(jump)));
        for &region in &op.regions {
            let last = self.kernel.regions[region].ops.last();
            self.open.extend(last.map(|&end| Item::Op(end)));
        }
    }

    fn slot(&mut self, id: OpId, i: usize) {
        if !self.slots.entry(id).or_default().insert(i) {
            return;
        }
        let op = &self.kernel.ops[id];
        if is_loop(&op.kind) {
            let first = op.operands.len() - op.results.len();
            self.open.push(Item::Value(op.operands[first + i]));
        }
        for &jump in self.arrivals.get(&id).into_iter().flatten() {
            self.open.push(Item::Value(self.kernel.ops[jump].operands[i]));
        }
    }
}

fn sweep(kernel: &mut Kernel, region: RegionId, live: &BTreeSet<OpId>) {
    let ops: Vec<OpId> = kernel.regions[region].ops.clone();
    let last = ops.last().copied();
    let kept: Vec<OpId> = ops.into_iter().filter(|id| live.contains(id) || Some(*id) == last).collect();
    for &id in &kept {
        for inner in kernel.ops[id].regions.clone() {
            sweep(kernel, inner, live);
        }
    }
    kernel.regions[region].ops = kept;
}

/// Removes the carried or joined values of an operation that are not in `kept`.
fn drop_slots(kernel: &mut Kernel, id: OpId, arrivals: &[OpId], kept: &BTreeSet<usize>) {
    let op = kernel.ops[id].clone();
    let filter = |list: &[ValueId], first: usize| -> Vec<ValueId> {
        let keep = |&(i, _): &(usize, &ValueId)| i < first || kept.contains(&(i - first));
        list.iter().enumerate().filter(keep).map(|(_, &v)| v).collect()
    };
    if is_loop(&op.kind) {
        kernel.ops[id].operands = filter(&op.operands, op.operands.len() - op.results.len());
        let region = op.regions[0];
        let args = kernel.regions[region].args.clone();
        kernel.regions[region].args = filter(&args, args.len() - op.results.len());
    }
    kernel.ops[id].results = filter(&op.results, 0);
    for &jump in arrivals {
        kernel.ops[jump].operands = filter(&kernel.ops[jump].operands.clone(), 0);
    }
}
