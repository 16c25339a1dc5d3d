//! `assign_layouts`: every tile gets a layout, chosen once; every difference becomes an explicit exchange.
//!
//! Three walks:
//! 1. `natural` (forward): which layout each value has for free. Loads are coalesced, products have fragments,
//!    elementwise operations follow their strongest operand, loop-carried values follow what their body yields.
//! 2. `demand` (backward): which layouts the users of each value want. Values without a natural layout (ramps,
//!    broadcasts, small loads and what is computed of them) are made once in each wanted layout; the others are
//!    converted.
//! 3. `rebuild` (forward): the kernel again, with layouts. A conversion is `convert_layout` where threads keep their
//!    elements, else `to_shared` and `from_shared`, placed just before the first user, all writes before all reads, so
//!    that one barrier serves the operands of one operation.

mod demand;
mod natural;
mod rebuild;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::{Changed, PassCx};
use crate::diag::Diagnostics;
use crate::ir::{Kernel, OpId, ValueId};
use crate::layout::{Layout, SharedLayout};
use crate::ops::{Effects, OpKind, TileOp};
use crate::ops::place::{Natural, PlaceCx};
use crate::target::Target;

/// What a user wants of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Demand {
    /// In registers.
    Regs(Layout),
    /// In shared memory, with these axes fastest first.
    Shared(Vec<usize>),
    /// In shared memory, in exactly this layout.
    Placed(SharedLayout),
}

/// What the walks know.
struct Plan<'k> {
    kernel: &'k Kernel,
    /// Warps of the role that is being walked, or of the block.
    num_warps: Cell<usize>,
    /// The GPU architecture.
    target: &'k Target,
    /// Values that are in shared memory when they come to be: what channels carry or copies bring, and views of it.
    shared: BTreeMap<ValueId, SharedLayout>,
    /// Those of them that copies bring.
    copied: BTreeSet<ValueId>,
    chained: Vec<OpId>,
    /// Results of operations that are needed for what they do besides.
    acts: BTreeSet<ValueId>,
    natural: BTreeMap<ValueId, Natural>,
    demands: BTreeMap<ValueId, Vec<Demand>>,
    /// What each operation (and everything inside it) wants, in operand order.
    needs: BTreeMap<OpId, Vec<(ValueId, Demand)>>,
}

/// Lays out a kernel for its number of warps.
///
/// # Errors
/// If the result would break the IR's rules, which is a fault of this pass.
pub fn run(kernel: &mut Kernel, cx: &PassCx<'_>) -> Result<Changed, Diagnostics> {
    let num_warps = kernel.num_warps.unwrap_or(1);
    *kernel = assign_layouts(kernel, num_warps, cx.target)?;
    Ok(Changed::Yes)
}

fn assign_layouts(kernel: &Kernel, num_warps: usize, target: &Target) -> Result<Kernel, Diagnostics> {
    let mut plan = Plan {
        kernel,
        num_warps: Cell::new(num_warps),
        target,
        shared: received(kernel),
        copied: copied(kernel),
        chained: chained_products(kernel),
        acts: acts(kernel),
        natural: BTreeMap::new(),
        demands: BTreeMap::new(),
        needs: BTreeMap::new(),
    };
    plan.find_natural();
    plan.find_demands();
    plan.rebuild()
}

impl<'k> Plan<'k> {
    fn cx(&self, id: OpId) -> PlaceCx<'_> {
        let op = &self.kernel.ops[id];
        PlaceCx {
            kernel: self.kernel,
            id,
            op,
            num_warps: self.num_warps.get(),
            chained: &self.chained,
            target: self.target,
            shared: &self.shared,
            copied: &self.copied,
        }
    }

    fn operand_naturals(&self, id: OpId) -> Vec<Option<Natural>> {
        self.kernel.ops[id].operands.iter().map(|v| self.natural.get(v).cloned()).collect()
    }

    /// The fixed layout of a value that cannot be made in several, such as a carried one.
    fn fixed(&self, value: ValueId) -> Layout {
        match self.natural.get(&value) {
            Some(natural) => natural.layout.clone(),
            None => crate::ops::place::default_layout(self.kernel.tile(value), self.num_warps.get()),
        }
    }

    /// Whether a value is a tile with at least one axis: scalars need no placement.
    fn placed(&self, value: ValueId) -> bool {
        self.kernel.ty(value).as_tile().is_some_and(|t| t.rank() > 0)
    }
}

/// The results of operations that write tensors.
fn acts(kernel: &Kernel) -> BTreeSet<ValueId> {
    let mut acts = BTreeSet::new();
    kernel.walk(|_, op| {
        if op.kind.effects() == Effects::WritesGlobal {
            acts.extend(&op.results);
        }
    });
    acts
}

/// What channels carry and copies bring, and reshaped and permuted views of it, with their places in shared memory.
fn received(kernel: &Kernel) -> BTreeMap<ValueId, SharedLayout> {
    let mut shared: BTreeMap<ValueId, SharedLayout> = BTreeMap::new();
    kernel.walk(|_, op| {
        let layout = match &op.kind {
            OpKind::Receive(receive) => Some(receive.layout.clone()),
            OpKind::Copied(copied) => Some(copied.layout.clone()),
            OpKind::Reshape(reshape) => {
                shared.get(&op.operands[0]).and_then(|l| l.reshape(&reshape.shape).ok())
            }
            OpKind::Permute(permute) => {
                shared.get(&op.operands[0]).and_then(|l| l.permute(&permute.axes).ok())
            }
            _ => None,
        };
        // A scalar is a register of every thread.
        let rank = op.results.first().and_then(|&r| kernel.ty(r).as_tile()).map_or(0, |t| t.rank());
        if let Some(layout) = layout.filter(|_| rank > 0) {
            shared.insert(op.results[0], layout);
        }
    });
    shared
}

/// What asynchronous copies bring, and reshaped and permuted views of it.
fn copied(kernel: &Kernel) -> BTreeSet<ValueId> {
    let mut copied = BTreeSet::new();
    kernel.walk(|_, op| {
        let view = matches!(op.kind, OpKind::Reshape(_) | OpKind::Permute(_));
        if matches!(op.kind, OpKind::Copied(_)) || (view && copied.contains(&op.operands[0])) {
            copied.extend(&op.results);
        }
    });
    copied
}

/// Products whose result, computed on elementwise, is an operand of another product, those other products, and every
/// product with as many rows: accumulators flow between them, and should not change layout on the way.
fn chained_products(kernel: &Kernel) -> Vec<OpId> {
    let mut origin: BTreeMap<ValueId, OpId> = BTreeMap::new();
    let mut chained = Vec::new();
    kernel.walk(|id, op| match &op.kind {
        OpKind::Mma(_) => {
            if let Some(&from) = op.operands[..1].iter().find_map(|v| origin.get(v)) {
                chained.extend([from, id]);
            }
            origin.insert(op.results[0], id);
        }
        OpKind::Unary(_)
        | OpKind::Binary(_)
        | OpKind::Where(_)
        | OpKind::Fma(_)
        | OpKind::Cast(_)
        | OpKind::Reshape(_) => {
            if let Some(&from) = op.operands.iter().find_map(|v| origin.get(v)) {
                origin.insert(op.results[0], from);
            }
        }
        // One arm passes on what the other changes.
        OpKind::If(_) => {
            for &region in &op.regions {
                let end = kernel.regions[region].ops.last().map_or(&[][..], |&end| &kernel.ops[end].operands);
                for (&result, value) in op.results.iter().zip(end) {
                    if let Some(&from) = origin.get(value) {
                        origin.insert(result, from);
                    }
                }
            }
        }
        OpKind::Constant(_)
        | OpKind::Arange(_)
        | OpKind::Bid(_)
        | OpKind::NumBlocks(_)
        | OpKind::Extent(_)
        | OpKind::Load(_)
        | OpKind::Store(_)
        | OpKind::Gather(_)
        | OpKind::Scatter(_)
        | OpKind::Atomic(_)
        | OpKind::Compare(_)
        | OpKind::Permute(_)
        | OpKind::BroadcastTo(_)
        | OpKind::Extract(_)
        | OpKind::Reduce(_)
        | OpKind::Cumsum(_)
        | OpKind::For(_)
        | OpKind::Loop(_)
        | OpKind::Scope(_)
        | OpKind::Yield(_)
        | OpKind::Break(_)
        | OpKind::Continue(_)
        | OpKind::Exit(_)
        | OpKind::ConvertLayout(_)
        | OpKind::ToShared(_)
        | OpKind::FromShared(_)
        | OpKind::Barrier(_)
        | OpKind::ViewShared(_)
        | OpKind::Roles(_)
        | OpKind::Send(_)
        | OpKind::SendTile(_)
        | OpKind::Receive(_)
        | OpKind::Release(_)
        | OpKind::MmaWait(_)
        | OpKind::CopyAsync(_)
        | OpKind::CopyCommit(_)
        | OpKind::CopyWait(_)
        | OpKind::Copied(_) => {}
    });
    let rows = |kernel: &Kernel, id: OpId| {
        let shape = &kernel.tile(kernel.ops[id].results[0]).shape;
        shape[shape.len() - 2]
    };
    let sizes: Vec<usize> = chained.iter().map(|&id| rows(kernel, id)).collect();
    kernel.walk(|id, op| {
        if matches!(op.kind, OpKind::Mma(_)) && !chained.contains(&id) && sizes.contains(&rows(kernel, id)) {
            chained.push(id);
        }
    });
    chained
}

/// The operations that receive the values of terminators, innermost last.
#[derive(Clone, Default)]
struct Targets {
    /// Innermost loop and its results or carried values.
    looped: Option<OpId>,
    /// Innermost scope.
    scope: Option<OpId>,
    /// The operation whose region this is, if any.
    owner: Option<OpId>,
}

impl Targets {
    fn inside(&self, kernel: &Kernel, id: OpId) -> Targets {
        let mut inner = Targets { owner: Some(id), ..self.clone() };
        match kernel.ops[id].kind {
            OpKind::For(_) | OpKind::Loop(_) => inner.looped = Some(id),
            OpKind::Scope(_) => inner.scope = Some(id),
            _ => {}
        }
        inner
    }

    /// The operation that receives this terminator's operands.
    fn of(&self, kind: &OpKind) -> Option<OpId> {
        match kind {
            OpKind::Yield(_) => self.owner,
            OpKind::Break(_) | OpKind::Continue(_) => self.looped,
            OpKind::Exit(_) => self.scope,
            _ => None,
        }
    }
}
