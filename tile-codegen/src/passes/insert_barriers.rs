//! `insert_barriers`: a block barrier between any two accesses of the same shared bytes, or of the same tensor, of which
//! one is a write: threads of a block see what the block stored before.
//!
//! A forward analysis of the accesses that are pending since the last barrier. Branches are taken by whole blocks, so
//! that a barrier inside one is met by all threads. Operations with scratch end in reads of it, after a barrier of
//! their own.
//!
//! Stages of a ring: a copy is in flight until the thread has waited for its group; what was waited for is a write like
//! others, which the next `copied` of the ring meets, though that reads nothing itself. Copies go to a stage that the
//! iterations before have read, so that they meet those reads, and never what is read at the same time.

use std::collections::BTreeSet;

use super::allocate_shared::{SharedPlan, allocate_shared};
use super::{Changed, PassCx};
use crate::diag::Diagnostics;
use crate::ir::{Kernel, LocId, OpId, RegionId, ValueId};
use crate::lower::wgmma::is_wide;
use crate::ops::barrier::Barrier;
use crate::ops::atomic::MemoryOrder;
use crate::ops::indexed::Indexed;
use crate::ops::lower::Lower;
use crate::ops::window::Steps;
use crate::ops::{Effects, OpKind, TileOp};

/// Where tensors stand among the byte ranges: beyond all shared memory, one unit each.
const TENSORS: u32 = 1 << 31;

/// An access of a range of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Access {
    first: u32,
    end: u32,
    write: bool,
    /// For tensors the operation, if it never clashes with itself in another iteration: its tiles are the same or disjoint,
    /// and each thread keeps its place in them; or it is atomic, and its order does not show.
    tensor: Option<OpId>,
    /// By what may still run: barriers do not end it, only the wait and then a barrier.
    running: Option<Runner>,
    /// The ring whose stages these are.
    ring: Option<usize>,
}

/// What runs on while the program does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Runner {
    /// A product of a warpgroup.
    Product,
    /// An asynchronous copy into a ring.
    Copy,
}

impl Access {
    fn shared((first, end): (u32, u32), write: bool) -> Access {
        Access { first, end, write, tensor: None, running: None, ring: None }
    }

    /// Whether this, which is pending, and the next access need a barrier in between.
    fn clashes(&self, next: &Access) -> bool {
        let apart = self.end <= next.first || next.end <= self.first;
        let same = self.tensor.is_some() && self.tensor == next.tensor;
        if apart || same {
            return false;
        }
        match (self.ring, next.ring) {
            (Some(ring), Some(other)) if ring == other => match next.write {
                true => !self.write,
                false => self.write && self.running.is_none(),
            },
            _ => self.write || next.write,
        }
    }
}

/// Accesses that no barrier has ordered yet.
type Pending = BTreeSet<Access>;

/// Inserts the barriers that a laid-out kernel needs.
///
/// # Errors
/// If the kernel needs more shared memory than the target has.
pub fn run(kernel: &mut Kernel, cx: &PassCx<'_>) -> Result<Changed, Diagnostics> {
    let plan = allocate_shared(kernel, cx.target)?;
    let before = kernel.ops.len();
    insert_barriers(kernel, &plan);
    Ok(if kernel.ops.len() == before { Changed::No } else { Changed::Yes })
}

fn insert_barriers(kernel: &mut Kernel, plan: &SharedPlan) {
    let mut analysis = Analysis { kernel, plan, before: BTreeSet::new() };
    analysis.region(kernel.body, Pending::new(), &mut Exits::default());
    let before = analysis.before;
    let regions: Vec<RegionId> = kernel.regions.ids().collect();
    for region in regions {
        let mut ops = Vec::new();
        for id in kernel.regions[region].ops.clone() {
            if before.contains(&id) {
                ops.push(kernel.new_op(Barrier.into(), Vec::new(), Vec::new(), LocId::default()));
            }
            ops.push(id);
        }
        kernel.regions[region].ops = ops;
    }
}

/// What is pending where control leaves a region other than by its end.
#[derive(Default, Clone)]
struct Exits {
    broken: Pending,
    continued: Pending,
    exited: Pending,
}

struct Analysis<'a> {
    kernel: &'a Kernel,
    plan: &'a SharedPlan,
    before: BTreeSet<OpId>,
}

impl Analysis<'_> {
    /// The bytes of a shared tile.
    fn range(&self, value: ValueId) -> Option<(u32, u32)> {
        self.plan.range(self.kernel, value)
    }

    /// The access of a tensor that the kernel may write.
    fn tensor_access(&self, id: OpId) -> Option<Access> {
        let op = &self.kernel.ops[id];
        let (tensor, write, apart) = match &op.kind {
            OpKind::Load(load) => (op.operands[0], false, load.steps == Steps::Tiles),
            OpKind::Store(store) => (op.operands[1], true, store.steps == Steps::Tiles),
            OpKind::Gather(_) => (op.operands[0], false, false),
            OpKind::Scatter(_) => (op.operands[1], true, false),
            OpKind::Atomic(atomic) if atomic.order == MemoryOrder::Relaxed => {
                (Indexed::of(self.kernel, op, atomic.op.values()).tensor, true, atomic.unordered(self.kernel, op))
            }
            // Ordered with all that the block accesses.
            OpKind::Atomic(_) => return Some(Access::shared((TENSORS, u32::MAX), true)),
            _ => return None,
        };
        let mutable = self.kernel.ty(tensor).as_tensor().is_some_and(|t| t.mutable);
        let at = TENSORS + self.kernel.params.iter().position(|p| p.value == tensor)? as u32;
        let access = Access { tensor: apart.then_some(id), ..Access::shared((at, at + 1), write) };
        mutable.then_some(access)
    }

    /// Returns what is pending at the end of the region; `None` if its end is not reached.
    fn region(&mut self, region: RegionId, mut pending: Pending, exits: &mut Exits) -> Option<Pending> {
        for &id in &self.kernel.regions[region].ops {
            match self.kernel.ops[id].kind {
                OpKind::Yield(_) => return Some(pending),
                OpKind::Break(_) => {
                    exits.broken.extend(pending);
                    return None;
                }
                OpKind::Continue(_) => {
                    exits.continued.extend(pending);
                    return None;
                }
                OpKind::Exit(_) => {
                    exits.exited.extend(pending);
                    return None;
                }
                _ => pending = self.op(id, pending, exits)?,
            }
        }
        Some(pending)
    }

    fn op(&mut self, id: OpId, pending: Pending, exits: &mut Exits) -> Option<Pending> {
        let op = &self.kernel.ops[id];
        match op.kind {
            OpKind::For(_) | OpKind::Loop(_) => self.looped(id, pending, exits),
            OpKind::If(_) => {
                let mut ends: Option<Pending> = None;
                for &region in &op.regions {
                    if let Some(end) = self.region(region, pending.clone(), exits) {
                        ends.get_or_insert_default().extend(end);
                    }
                }
                ends
            }
            OpKind::Scope(_) => {
                let mut inner = Exits::default();
                let end = self.region(op.regions[0], pending, &mut inner);
                exits.broken.extend(inner.broken);
                exits.continued.extend(inner.continued);
                let mut all = inner.exited;
                all.extend(end.into_iter().flatten());
                Some(all)
            }
            OpKind::Roles(_) => {
                for &region in &op.regions {
                    self.region(region, Pending::new(), &mut Exits::default());
                }
                Some(Pending::new())
            }
            OpKind::ViewShared(_) => Some(pending),
            _ => Some(self.plain(id, pending)),
        }
    }

    /// Runs the body until what is pending at its start no longer grows.
    fn looped(&mut self, id: OpId, pending: Pending, exits: &mut Exits) -> Option<Pending> {
        let op = &self.kernel.ops[id];
        let mut start = pending;
        loop {
            let mut inner = Exits::default();
            let end = self.region(op.regions[0], start.clone(), &mut inner);
            exits.exited.extend(inner.exited.iter().copied());
            let mut next = start.clone();
            next.extend(end.into_iter().flatten());
            next.extend(inner.continued);
            if next == start {
                // A counted loop leaves at its head, any loop by `break`.
                let mut after = inner.broken;
                if matches!(op.kind, OpKind::For(_)) {
                    after.extend(start);
                }
                return Some(after);
            }
            start = next;
        }
    }

    fn plain(&mut self, id: OpId, mut pending: Pending) -> Pending {
        let op = &self.kernel.ops[id];
        match &op.kind {
            OpKind::MmaWait(wait) => return waited(pending, Runner::Product, wait.pending),
            OpKind::CopyWait(wait) => return waited(pending, Runner::Copy, wait.pending),
            _ => {}
        }
        let scratch = self.plan.scratch.get(&id).map(|&at| (at, at + op.kind.scratch(self.kernel, op)));
        let accesses = self.accesses(id, scratch);
        if accesses.iter().any(|x| pending.iter().any(|p| p.clashes(x))) {
            self.before.insert(id);
            pending.retain(|p| p.running.is_some());
        }
        if let Some(range) = scratch {
            pending.retain(|p| p.running.is_some());
            pending.insert(Access::shared(range, false));
        } else if !matches!(op.kind, OpKind::Copied(_)) {
            pending.extend(accesses);
        }
        pending
    }

    fn accesses(&self, id: OpId, scratch: Option<(u32, u32)>) -> Vec<Access> {
        let op = &self.kernel.ops[id];
        let running = is_wide(self.kernel, id).then_some(Runner::Product);
        let stages = matches!(op.kind, OpKind::Copied(_)).then_some(&op.results);
        let reads = op.operands.iter().chain(stages.into_iter().flatten());
        let read = |&v: &ValueId| {
            let access = Access::shared(self.plan.range(self.kernel, v)?, false);
            Some(Access { running, ring: self.plan.ring(v), ..access })
        };
        let mut accesses: Vec<Access> = reads.filter_map(read).collect();
        if let OpKind::CopyAsync(copy) = &op.kind {
            let plan = self.plan.channels[&copy.channel];
            let access = Access::shared((plan.tiles, plan.tiles + plan.bytes()), true);
            accesses.push(Access { running: Some(Runner::Copy), ring: Some(copy.channel), ..access });
        }
        if op.kind.effects() == Effects::WritesShared {
            let written = op.results.iter().filter_map(|&v| self.range(v));
            accesses.extend(written.map(|range| Access::shared(range, true)));
        }
        accesses.extend(scratch.map(|range| Access::shared(range, true)));
        accesses.extend(self.tensor_access(id));
        accesses
    }
}

/// After a wait what products read has been read by this thread's warpgroup, or what copies write has landed, and waits for
/// a barrier like other accesses; if some may run on, it is not known which.
fn waited(pending: Pending, runner: Runner, running: usize) -> Pending {
    let done = |p: &Access| Access { running: p.running.filter(|&r| r != runner), ..*p };
    let mut after: Pending = pending.iter().map(done).collect();
    if running > 0 {
        after.extend(pending);
    }
    after
}
