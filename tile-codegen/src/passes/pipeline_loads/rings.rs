//! Loads through rings: asynchronous copies fill shared stages some iterations ahead.
//!
//! Before a loop the copies of as many iterations start as there are stages, but for one. Each iteration then waits for its own
//! tiles and starts the copies of the first iteration that has none yet, into the stage that the iteration before has read: the
//! barrier that makes the tiles known to all threads says as well that all have read it. All copies of an iteration are one
//! group, also if there is no such iteration any more, so that it is known how many groups may be on their way. After the
//! loop, and before a jump out of it, the rest is waited for.

use std::collections::{BTreeMap, BTreeSet};

use super::Stages;
use super::slice::{address_slice, carry, carry_on, copy_op, position, replace_uses};
use crate::explain::Reason;
use crate::ir::{Elem, Kernel, LocId, OpId, Region, RegionId, Type, ValueId};
use crate::layout::SharedLayout;
use crate::ops::binary::{Binary, BinaryOp};
use crate::ops::compare::{Compare, CompareOp};
use crate::ops::constant::Constant;
use crate::ops::control::{If, Yield};
use crate::ops::copied::Copied;
use crate::ops::copy_async::CopyAsync;
use crate::ops::copy_commit::CopyCommit;
use crate::ops::copy_wait::CopyWait;
use crate::ops::mma::Mma;
use crate::ops::where_::Where;
use crate::ops::{Literal, OpKind, TileOp};
use crate::passes::assign_roles::{bulk_order, copy_plan, is_zero};

/// The most stages of a ring.
const MOST: usize = 10;

/// A load that asynchronous copies do.
pub(super) struct RingLoad {
    op: OpId,
    layout: SharedLayout,
    /// What its address needs of the loop.
    slice: Vec<OpId>,
    stages: usize,
}

/// How a load of a loop goes through a ring.
///
/// # Errors
/// Why it cannot.
pub(super) fn plan(
    kernel: &Kernel,
    body: RegionId,
    id: OpId,
    stages: Stages,
) -> Result<RingLoad, Reason> {
    let OpKind::Load(load) = &kernel.ops[id].kind else { return Err(Reason::Computed) };
    let stages = stages.of(load.hints.latency)?;
    if !is_zero(load.pad) {
        return Err(Reason::Padding);
    }
    let swizzled = copy_plan(kernel, id)?;
    let layout = multiplied_in_place(kernel, id)?.unwrap_or(swizzled);
    let slice = address_slice(kernel, body, id).ok_or(Reason::Address)?;
    Ok(RingLoad { op: id, layout, slice, stages: stages.min(MOST) })
}

/// The place from which products by FMAs read a load, if there are any that read it as it is.
fn multiplied_in_place(kernel: &Kernel, id: OpId) -> Result<Option<SharedLayout>, Reason> {
    let op = &kernel.ops[id];
    let tile = kernel.tile(op.results[0]);
    let unit = kernel.facts(op.operands[0]).and_then(|facts| facts.unit_axis).ok_or(Reason::NoUnitAxis)?;
    let layout = SharedLayout::linear(&tile.shape, &bulk_order(unit, tile.rank()), tile.elem.bytes());
    let layout = layout.map_err(|_| Reason::FmaOrder)?;
    Ok(fma_reads(kernel, op.results[0], &layout)?.then_some(layout))
}

/// Whether products by FMAs read a value that lies so, or a view of it.
///
/// # Errors
/// If one of them would read neighbours that are no neighbours in memory.
fn fma_reads(kernel: &Kernel, value: ValueId, layout: &SharedLayout) -> Result<bool, Reason> {
    let num_warps = kernel.num_warps.unwrap_or(1);
    let mut found = Ok(false);
    kernel.walk(|_, op| {
        for (at, _) in op.operands.iter().enumerate().filter(|&(_, &v)| v == value) {
            let read = match &op.kind {
                OpKind::Mma(_) if at < 2 => {
                    let (a, acc) = (kernel.tile(op.operands[0]), kernel.tile(op.results[0]));
                    let fma = Mma::tensor_cores(a, acc, num_warps, false).is_err();
                    let rank = layout.shape.len();
                    match !fma || is_fastest(layout, if at == 0 { rank - 2 } else { rank - 1 }) {
                        true => Ok(fma),
                        false => Err(Reason::FmaOrder),
                    }
                }
                OpKind::Reshape(reshape) => match layout.reshape(&reshape.shape) {
                    Ok(view) => fma_reads(kernel, op.results[0], &view),
                    Err(_) => Ok(false),
                },
                OpKind::Permute(permute) => match layout.permute(&permute.axes) {
                    Ok(view) => fma_reads(kernel, op.results[0], &view),
                    Err(_) => Ok(false),
                },
                _ => Ok(false),
            };
            found = found.and_then(|found| read.map(|read| found || read));
        }
    });
    found
}

/// Whether neighbours along an axis are neighbours in memory.
fn is_fastest(layout: &SharedLayout, axis: usize) -> bool {
    let inner: usize = layout.shape[axis + 1..].iter().product();
    layout.shape[axis] == 1 || layout.offset(inner as u32) == layout.elem_bytes as u32
}

/// Pipelines the loads of a loop. The rings are numbered from `first`.
pub(super) fn pipeline(kernel: &mut Kernel, parent: RegionId, looped: OpId, loads: &[RingLoad], first: usize) {
    // Copies land in the order of their groups, so that the load with the fewest stages decides for all.
    let stages = loads.iter().map(|load| load.stages).min().expect("a loop with rings has loads");
    let op = &kernel.ops[looped];
    let (body, low, high, step) = (op.regions[0], op.operands[0], op.operands[1], op.operands[2]);
    let index = kernel.regions[body].args[0];
    let mut rings = Rings { kernel, loads, first, stages, index, high, step, ops: Vec::new(), loc: LocId::default() };
    rings.loc = rings.kernel.ops[looped].loc;

    let zero = rings.number(0);
    let mut ahead = low;
    for stage in 0..stages - 1 {
        let stage = rings.number(stage);
        rings.send(ahead, stage);
        ahead = rings.advance(ahead);
    }
    let before = std::mem::take(&mut rings.ops);

    let stage = carry(rings.kernel, looped, zero);
    let ahead = carry(rings.kernel, looped, ahead);
    rings.emit(CopyWait { pending: stages - 2 }, vec![]);
    rings.receive(body, stage);
    let (free, next_stage) = rings.neighbours(stage);
    rings.send(ahead, free);
    let next_ahead = rings.advance(ahead);
    let start = std::mem::take(&mut rings.ops);

    rings.drain_exits(body);
    rings.emit(CopyWait { pending: 0 }, vec![]);
    let after = std::mem::take(&mut rings.ops);

    kernel.regions[body].ops.splice(0..0, start);
    kernel.regions[body].ops.retain(|op| loads.iter().all(|load| load.op != *op));
    carry_on(kernel, looped, next_stage, stage);
    carry_on(kernel, looped, next_ahead, ahead);
    let at = position(kernel, parent, looped);
    kernel.regions[parent].ops.splice(at + 1..at + 1, after);
    kernel.regions[parent].ops.splice(at..at, before);
}

/// The rings of a loop.
struct Rings<'k> {
    kernel: &'k mut Kernel,
    loads: &'k [RingLoad],
    /// The number of the first.
    first: usize,
    stages: usize,
    index: ValueId,
    high: ValueId,
    step: ValueId,
    /// The operations that are being made, in order.
    ops: Vec<OpId>,
    loc: LocId,
}

impl Rings<'_> {
    /// Makes an operation; its result, if it has one.
    fn emit(&mut self, kind: impl Into<OpKind>, operands: Vec<ValueId>) -> Option<ValueId> {
        let kind: OpKind = kind.into();
        let types: Vec<Type> = operands.iter().map(|&v| self.kernel.ty(v).clone()).collect();
        let results = kind.infer(&types).expect("the operands are of the right types");
        let op = self.kernel.new_op(kind, operands, results, self.loc);
        self.ops.push(op);
        self.kernel.ops[op].results.first().copied()
    }

    fn value(&mut self, kind: impl Into<OpKind>, operands: Vec<ValueId>) -> ValueId {
        self.emit(kind, operands).expect("it has a result")
    }

    fn binary(&mut self, op: BinaryOp, a: ValueId, b: ValueId) -> ValueId {
        self.value(Binary { op }, vec![a, b])
    }

    fn compare(&mut self, op: CompareOp, a: ValueId, b: ValueId) -> ValueId {
        self.value(Compare { op }, vec![a, b])
    }

    /// A constant, which stands in the entry region.
    fn number(&mut self, value: usize) -> ValueId {
        let constant: OpKind = Constant { value: Literal::Int(value as i64), elem: Elem::I32 }.into();
        let entry = self.kernel.body;
        let first = self.kernel.regions[entry].ops.iter().map(|&op| &self.kernel.ops[op]);
        let mut known = first.take_while(|op| matches!(op.kind, OpKind::Constant(_)));
        if let Some(op) = known.find(|op| op.kind == constant) {
            return op.results[0];
        }
        let number = self.value(constant, vec![]);
        let op = self.ops.pop().expect("it was made");
        self.kernel.regions[entry].ops.insert(0, op);
        number
    }

    /// Starts the copies of an iteration into a stage, if there is such an iteration, and makes a group of them.
    fn send(&mut self, ahead: ValueId, stage: ValueId) {
        let exists = self.compare(CompareOp::Lt, ahead, self.high);
        let outer = std::mem::take(&mut self.ops);
        let mut map: BTreeMap<ValueId, ValueId> = BTreeMap::from([(self.index, ahead)]);
        let mut made: BTreeSet<OpId> = BTreeSet::new();
        for (at, load) in self.loads.iter().enumerate() {
            for &op in &load.slice {
                if made.insert(op) {
                    let copy = copy_op(self.kernel, op, &mut map);
                    self.ops.push(copy);
                }
            }
            let source = self.kernel.ops[load.op].clone();
            let mut operands: Vec<ValueId> =
                source.operands.iter().map(|v| *map.get(v).unwrap_or(v)).collect();
            operands.push(stage);
            let (channel, layout, stages) = (self.first + at, load.layout.clone(), self.stages);
            let elem = self.kernel.tile(source.results[0]).elem;
            let loc = std::mem::replace(&mut self.loc, source.loc);
            self.emit(CopyAsync { channel, elem, layout, stages }, operands);
            self.loc = loc;
        }
        self.emit(Yield, vec![]);
        let copies = std::mem::take(&mut self.ops);
        self.emit(Yield, vec![]);
        let nothing = std::mem::replace(&mut self.ops, outer);
        let arms = [copies, nothing]
            .map(|ops| self.kernel.regions.push(Region { args: Vec::new(), ops }))
            .to_vec();
        let branch = self.kernel.new_op(If.into(), vec![exists], Vec::new(), self.loc);
        self.kernel.ops[branch].regions = arms;
        self.ops.push(branch);
        self.emit(CopyCommit, vec![]);
    }

    /// The index after this one, or the end of the range if there is none. No index is computed beyond the end.
    fn advance(&mut self, index: ValueId) -> ValueId {
        let next = self.binary(BinaryOp::Add, index, self.step);
        // It wraps where it is beyond all numbers.
        let grows = self.compare(CompareOp::Gt, next, index);
        let inside = self.compare(CompareOp::Lt, next, self.high);
        let exists = self.binary(BinaryOp::And, grows, inside);
        self.value(Where, vec![exists, next, self.high])
    }

    /// The stage before a stage, and the one after it.
    fn neighbours(&mut self, stage: ValueId) -> (ValueId, ValueId) {
        let [zero, one, last] = [0, 1, self.stages - 1].map(|n| self.number(n));
        let is_first = self.compare(CompareOp::Eq, stage, zero);
        let before = self.binary(BinaryOp::Sub, stage, one);
        let before = self.value(Where, vec![is_first, last, before]);
        let is_last = self.compare(CompareOp::Eq, stage, last);
        let after = self.binary(BinaryOp::Add, stage, one);
        (before, self.value(Where, vec![is_last, zero, after]))
    }

    /// What the loads gave comes out of a stage.
    fn receive(&mut self, body: RegionId, stage: ValueId) {
        for (at, load) in self.loads.iter().enumerate() {
            let source = self.kernel.ops[load.op].clone();
            let (channel, layout, stages) = (self.first + at, load.layout.clone(), self.stages);
            let elem = self.kernel.tile(source.results[0]).elem;
            let loc = std::mem::replace(&mut self.loc, source.loc);
            let tile = self.value(Copied { channel, elem, layout, stages, placed: false }, vec![stage]);
            self.loc = loc;
            replace_uses(self.kernel, body, source.results[0], tile);
        }
    }

    /// Waits for all copies before every jump to the end of a scope around the loop.
    fn drain_exits(&mut self, region: RegionId) {
        for id in self.kernel.regions[region].ops.clone() {
            match self.kernel.ops[id].kind {
                OpKind::Exit(_) => {
                    self.emit(CopyWait { pending: 0 }, vec![]);
                    let wait = self.ops.pop().expect("it was made");
                    let at = position(self.kernel, region, id);
                    self.kernel.regions[region].ops.insert(at, wait);
                }
                // An `exit` in a scope ends that one.
                OpKind::Scope(_) => {}
                _ => {
                    for inner in self.kernel.ops[id].regions.clone() {
                        self.drain_exits(inner);
                    }
                }
            }
        }
    }
}
