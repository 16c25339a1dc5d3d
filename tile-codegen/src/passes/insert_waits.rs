//! `insert_waits`: products of warpgroups run on while the program goes on. Before anything that needs one to be complete
//! stands a wait, tiles of channels are received when they are needed, and released once nothing reads them.
//!
//! A forward analysis of the products that may still run, each with the least number of products issued after it on any
//! path: waiting until so many are pending completes it. What needs a product to be complete:
//! * an operation that reads its result, but for the next product that adds to it in its registers,
//! * an operation that writes registers or shared memory that it reads,
//! * the release of a stage that it reads.

mod release;
mod sink;

use std::collections::{BTreeMap, BTreeSet};

use super::accumulators::Accumulators;
use super::allocate_shared::{SharedPlan, allocate_shared};
use super::{Changed, PassCx};
use crate::diag::Diagnostics;
use crate::ir::{Kernel, OpId, RegionId, ValueId};
use crate::lower::wgmma::is_wide;
use crate::ops::lower::Lower;
use crate::ops::mma_wait::MmaWait;
use crate::ops::{Effects, OpKind, TileOp};

/// Inserts waits and releases.
///
/// # Errors
/// If the kernel needs more shared memory than the target has.
pub fn run(kernel: &mut Kernel, cx: &PassCx<'_>) -> Result<Changed, Diagnostics> {
    if !cx.target.warpgroups {
        return Ok(Changed::No);
    }
    let before = kernel.ops.len();
    sink::run(kernel);
    let plan = allocate_shared(kernel, cx.target)?;
    let products = Products::of(kernel);
    if !products.wide.is_empty() {
        let mut analysis = Analysis { kernel, plan: &plan, products: &products, waits: BTreeMap::new() };
        analysis.region(kernel.body, Running::new(), &mut Exits::default());
        let waits = analysis.waits;
        insert(kernel, &waits);
    }
    release::run(kernel);
    Ok(if kernel.ops.len() == before { Changed::No } else { Changed::Yes })
}

/// The products that may still run, with the least number of products issued after each.
type Running = BTreeMap<OpId, usize>;

fn merge(into: &mut Running, other: &Running) {
    for (&id, &distance) in other {
        let known = into.entry(id).or_insert(distance);
        *known = (*known).min(distance);
    }
}

/// What the analysis knows of each product.
struct Products {
    accumulators: Accumulators,
    wide: BTreeSet<OpId>,
    /// The operations that write the registers that a product reads as its left operand.
    writers: BTreeMap<OpId, BTreeSet<OpId>>,
}

impl Products {
    fn of(kernel: &Kernel) -> Products {
        let mut makers: BTreeMap<ValueId, OpId> = BTreeMap::new();
        kernel.walk(|id, op| makers.extend(op.results.iter().map(|&result| (result, id))));
        let mut jumps: BTreeMap<ValueId, Vec<OpId>> = BTreeMap::new();
        kernel.walk(|_, op| {
            if matches!(op.kind, OpKind::For(_) | OpKind::Loop(_)) {
                let ends = ends(kernel, op.regions[0]);
                let args = &kernel.regions[op.regions[0]].args;
                jumps.extend(args.iter().map(|&arg| (arg, ends.clone())));
            }
        });
        let mut found = Products {
            accumulators: Accumulators::of(kernel),
            wide: BTreeSet::new(),
            writers: BTreeMap::new(),
        };
        kernel.walk(|id, op| {
            if !is_wide(kernel, id) {
                return;
            }
            found.wide.insert(id);
            let mut open: Vec<ValueId> =
                op.operands[..2].iter().copied().filter(|&v| kernel.ty(v).as_tile().is_some()).collect();
            let mut writers = BTreeSet::new();
            if !open.is_empty() {
                // Packing pairs writes registers as well.
                writers.insert(id);
            }
            while let Some(value) = open.pop() {
                let Some(&maker) = makers.get(&value) else {
                    // What is carried round a loop is written at its end.
                    writers.extend(jumps.get(&value).into_iter().flatten());
                    continue;
                };
                writers.insert(maker);
                let renames = matches!(
                    kernel.ops[maker].kind,
                    OpKind::Reshape(_) | OpKind::Permute(_) | OpKind::ConvertLayout(_)
                );
                if renames {
                    open.extend(&kernel.ops[maker].operands);
                }
            }
            found.writers.insert(id, writers);
        });
        found
    }
}

/// The operations that may end an iteration of a loop with this body.
fn ends(kernel: &Kernel, body: RegionId) -> Vec<OpId> {
    let mut found = Vec::new();
    let mut open = vec![(body, true)];
    while let Some((region, outermost)) = open.pop() {
        for &id in &kernel.regions[region].ops {
            let op = &kernel.ops[id];
            open.extend(op.regions.iter().map(|&inner| (inner, false)));
            if matches!(op.kind, OpKind::Continue(_)) || (outermost && matches!(op.kind, OpKind::Yield(_))) {
                found.push(id);
            }
        }
    }
    found
}

/// What runs where control leaves a region other than by its end.
#[derive(Default)]
struct Exits {
    broken: Running,
    continued: Running,
    exited: Running,
}

struct Analysis<'a> {
    kernel: &'a Kernel,
    plan: &'a SharedPlan,
    products: &'a Products,
    /// How many products may be pending before each operation that needs a wait.
    waits: BTreeMap<OpId, usize>,
}

impl Analysis<'_> {
    /// Returns what runs at the end of the region; `None` if its end is not reached.
    fn region(&mut self, region: RegionId, mut running: Running, exits: &mut Exits) -> Option<Running> {
        for &id in &self.kernel.regions[region].ops {
            self.wait_before(id, &mut running);
            match self.kernel.ops[id].kind {
                OpKind::Yield(_) => return Some(running),
                OpKind::Break(_) => {
                    merge(&mut exits.broken, &running);
                    return None;
                }
                OpKind::Continue(_) => {
                    merge(&mut exits.continued, &running);
                    return None;
                }
                OpKind::Exit(_) => {
                    merge(&mut exits.exited, &running);
                    return None;
                }
                _ => running = self.op(id, running, exits)?,
            }
        }
        Some(running)
    }

    /// Waits for what an operation needs to be complete.
    fn wait_before(&mut self, id: OpId, running: &mut Running) {
        let needed = running.iter().filter(|&(&product, _)| self.needs(id, product)).map(|(_, &d)| d).min();
        match needed {
            None => {
                self.waits.remove(&id);
            }
            Some(pending) => {
                self.waits.insert(id, pending);
                running.retain(|_, distance| *distance < pending);
            }
        }
    }

    fn needs(&self, id: OpId, product: OpId) -> bool {
        let (op, of) = (&self.kernel.ops[id], &self.kernel.ops[product]);
        let accumulators = &self.products.accumulators;
        let result = accumulators.registers(of.results[0]);
        let read = |v: &ValueId| accumulators.registers(*v) == result;
        let reads = match &op.kind {
            OpKind::Mma(_) if accumulators.in_place.contains(&id) => op.operands[..2].iter().any(read),
            OpKind::For(_) | OpKind::Loop(_) => op.operands.iter().any(read),
            // Both arms would wait.
            OpKind::If(_) => op
                .regions
                .iter()
                .all(|&arm| self.kernel.regions[arm].ops.iter().any(|&inner| self.needs(inner, product))),
            OpKind::Yield(_) | OpKind::Break(_) | OpKind::Continue(_) => self.moves(id, &read),
            _ => op.operands.iter().any(read),
        };
        reads || self.products.writers[&product].contains(&id) || self.overwrites(id, of)
    }

    /// Whether a jump moves a value that `read` picks: values that stay in their registers are not touched.
    fn moves(&self, id: OpId, read: &dyn Fn(&ValueId) -> bool) -> bool {
        // A value of the same registers arrives in them: only the loop's own accumulators are such.
        let op = &self.kernel.ops[id];
        let accumulators = &self.products.accumulators;
        op.operands.iter().enumerate().any(|(i, v)| {
            read(v)
                && self
                    .arrival(id, i)
                    .is_none_or(|to| accumulators.registers(to) != accumulators.registers(*v))
        })
    }

    /// The loop argument that operand `i` of a jump arrives in.
    fn arrival(&self, id: OpId, i: usize) -> Option<ValueId> {
        let mut found = None;
        self.kernel.walk(|_, op| {
            if !matches!(op.kind, OpKind::For(_) | OpKind::Loop(_)) {
                return;
            }
            let body = &self.kernel.regions[op.regions[0]];
            if body.ops.last() == Some(&id) {
                let first = body.args.len() - op.results.len();
                found = body.args.get(first + i).copied();
            }
        });
        found
    }

    /// Whether an operation writes shared memory that a product reads. Stages of channels are guarded by their release.
    fn overwrites(&self, id: OpId, of: &crate::ir::Op) -> bool {
        let op = &self.kernel.ops[id];
        let mut written: Vec<(u32, u32)> = Vec::new();
        if op.kind.effects() == Effects::WritesShared {
            written.extend(op.results.iter().filter_map(|&v| self.plan.range(self.kernel, v)));
        }
        if let OpKind::CopyAsync(copy) = &op.kind {
            let ring = self.plan.channels[&copy.channel];
            written.push((ring.tiles, ring.tiles + ring.bytes()));
        }
        if let Some(&at) = self.plan.scratch.get(&id) {
            written.push((at, at + op.kind.scratch(self.kernel, op)));
        }
        let reads = of.operands[..2].iter().filter_map(|&v| self.plan.range(self.kernel, v));
        reads.into_iter().any(|(first, end)| written.iter().any(|&(a, b)| a < end && first < b))
    }

    fn op(&mut self, id: OpId, mut running: Running, exits: &mut Exits) -> Option<Running> {
        let op = &self.kernel.ops[id];
        match op.kind {
            OpKind::For(_) | OpKind::Loop(_) => self.loops(id, running, exits),
            OpKind::If(_) => {
                let mut after: Option<Running> = None;
                for &region in &op.regions {
                    if let Some(end) = self.region(region, running.clone(), exits) {
                        merge(after.get_or_insert_default(), &end);
                    }
                }
                after
            }
            OpKind::Scope(_) => {
                let mut inner = Exits::default();
                let end = self.region(op.regions[0], running, &mut inner);
                merge(&mut exits.broken, &inner.broken);
                merge(&mut exits.continued, &inner.continued);
                let mut after = inner.exited;
                merge(&mut after, &end.unwrap_or_default());
                Some(after)
            }
            OpKind::Roles(_) => {
                for &region in &op.regions {
                    self.region(region, Running::new(), &mut Exits::default());
                }
                Some(Running::new())
            }
            _ => {
                if self.products.wide.contains(&id) {
                    running.values_mut().for_each(|distance| *distance += 1);
                    running.insert(id, 0);
                }
                Some(running)
            }
        }
    }

    /// A loop, until nothing changes: distances only fall, and there are finitely many products.
    fn loops(&mut self, id: OpId, running: Running, exits: &mut Exits) -> Option<Running> {
        let op = &self.kernel.ops[id];
        let mut head = running;
        loop {
            let mut inner = Exits::default();
            let end = self.region(op.regions[0], head.clone(), &mut inner);
            let mut next = head.clone();
            merge(&mut next, &end.unwrap_or_default());
            merge(&mut next, &inner.continued);
            if next == head {
                merge(&mut exits.exited, &inner.exited);
                let mut after = inner.broken;
                if matches!(op.kind, OpKind::For(_)) {
                    merge(&mut after, &head);
                }
                return Some(after);
            }
            head = next;
        }
    }
}

fn insert(kernel: &mut Kernel, waits: &BTreeMap<OpId, usize>) {
    let regions: Vec<RegionId> = kernel.regions.ids().collect();
    for region in regions {
        let mut ops = Vec::new();
        for id in kernel.regions[region].ops.clone() {
            if let Some(&pending) = waits.get(&id) {
                let loc = kernel.ops[id].loc;
                ops.push(kernel.new_op(MmaWait { pending }.into(), Vec::new(), Vec::new(), loc));
            }
            ops.push(id);
        }
        kernel.regions[region].ops = ops;
    }
}
