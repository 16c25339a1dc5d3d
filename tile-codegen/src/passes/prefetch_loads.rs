//! `prefetch_loads`: in counted loops around a matrix product, large loads of the next iteration are issued before the
//! work of this one, and held in registers, so that the product hides their latency.
//!
//! The address must follow from the loop index and from values outside the loop by pure operations, and the tensor must
//! be read-only. The load beyond the last iteration is harmless: elements outside the tensor are not read.

use std::collections::BTreeMap;

use super::{Changed, PassCx};
use crate::diag::Diagnostics;
use crate::explain::{Choice, Reason};
use crate::ir::{Kernel, OpId, RegionId, Type, ValueId};
use crate::ops::binary::{Binary, BinaryOp};
use crate::ops::window::Steps;
use crate::ops::{Effects, OpKind, TileOp};

/// Bytes that a thread may hold for all prefetched tiles of a loop.
const BUDGET: usize = 192;
/// Smaller tiles are left alone: their loads overlap anyway, and they may be wanted in several layouts.
const SMALLEST: usize = 1024;

/// Rewrites every loop that qualifies.
///
/// # Errors
/// None.
pub fn run(kernel: &mut Kernel, _: &PassCx<'_>) -> Result<Changed, Diagnostics> {
    let before = kernel.ops.len();
    let num_warps = kernel.num_warps.unwrap_or(1);
    rewrite_region(kernel, kernel.body, num_warps);
    Ok(if kernel.ops.len() == before { Changed::No } else { Changed::Yes })
}

fn rewrite_region(kernel: &mut Kernel, region: RegionId, num_warps: usize) {
    for id in kernel.regions[region].ops.clone() {
        for inner in kernel.ops[id].regions.clone() {
            rewrite_region(kernel, inner, num_warps);
        }
        if matches!(kernel.ops[id].kind, OpKind::For(_)) {
            rewrite_loop(kernel, region, id, num_warps);
        }
    }
}

fn rewrite_loop(kernel: &mut Kernel, parent: RegionId, id: OpId, num_warps: usize) {
    let body = kernel.ops[id].regions[0];
    let ops = kernel.regions[body].ops.clone();
    if !ops.iter().any(|&op| matches!(kernel.ops[op].kind, OpKind::Mma(_))) {
        return;
    }
    let mut left = BUDGET * 32 * num_warps;
    for &load in &ops {
        let op = kernel.ops[load].clone();
        let OpKind::Load(_) = op.kind else { continue };
        let slice = slice(kernel, body, load, left);
        kernel.note(&op, Choice::Ahead(slice.as_ref().map(|_| ()).map_err(|&reason| reason)));
        if let Ok((bytes, slice)) = slice {
            left -= bytes;
            prefetch(kernel, parent, id, load, &slice);
        }
    }
}

/// The bytes of a load that can be issued ahead within `left` bytes, and what its address needs.
fn slice(kernel: &Kernel, body: RegionId, load: OpId, left: usize) -> Result<(usize, Vec<OpId>), Reason> {
    let bytes = qualifies(kernel, load)?;
    let slice = address_slice(kernel, body, load).ok_or(Reason::Address)?;
    if bytes > left { Err(Reason::Budget(bytes)) } else { Ok((bytes, slice)) }
}

/// The bytes of a large load from a read-only tensor.
fn qualifies(kernel: &Kernel, id: OpId) -> Result<usize, Reason> {
    let op = &kernel.ops[id];
    let OpKind::Load(load) = &op.kind else { return Err(Reason::Computed) };
    let tile = kernel.tile(op.results[0]);
    if load.hints.latency == Some(1) {
        return Err(Reason::LatencyOne);
    }
    if kernel.ty(op.operands[0]).as_tensor().is_none_or(|t| t.mutable) {
        return Err(Reason::Written);
    }
    if load.steps == Steps::Elements {
        return Err(Reason::Steps);
    }
    match tile.numel() >= SMALLEST {
        true => Ok(tile.numel() * tile.elem.bytes()),
        false => Err(Reason::Small(tile.numel())),
    }
}

/// The pure operations of the loop body that the load's indices need, in order; `None` if they need anything else that
/// changes in the loop.
fn address_slice(kernel: &Kernel, body: RegionId, load: OpId) -> Option<Vec<OpId>> {
    let region = &kernel.regions[body];
    let carried = &region.args[1..];
    let made_by: BTreeMap<ValueId, OpId> =
        region.ops.iter().flat_map(|&op| kernel.ops[op].results.iter().map(move |&r| (r, op))).collect();
    let mut slice = Vec::new();
    let mut open: Vec<ValueId> = kernel.ops[load].operands[1..].to_vec();
    while let Some(value) = open.pop() {
        if carried.contains(&value) {
            return None;
        }
        if let Some(&op) = made_by.get(&value)
            && !slice.contains(&op)
        {
            if kernel.ops[op].kind.effects() != Effects::Pure {
                return None;
            }
            slice.push(op);
            open.extend(&kernel.ops[op].operands);
        }
    }
    slice.sort_by_key(|op| region.ops.iter().position(|o| o == op));
    Some(slice)
}

fn prefetch(kernel: &mut Kernel, parent: RegionId, id: OpId, load: OpId, slice: &[OpId]) {
    let body = kernel.ops[id].regions[0];
    let (low, step, loc) = (kernel.ops[id].operands[0], kernel.ops[id].operands[2], kernel.ops[id].loc);
    let index = kernel.regions[body].args[0];
    let old = kernel.ops[load].results[0];
    let ty = kernel.ty(old).clone();

    // Before the loop: the load of the first iteration.
    let (before, first) = clone_at(kernel, slice, load, index, low);
    let at = kernel.regions[parent].ops.iter().position(|&o| o == id).expect("the loop is in its region");
    kernel.regions[parent].ops.splice(at..at, before);

    // At the start of the body: the load of the next iteration.
    let index_ty: Type = kernel.ty(index).clone();
    let advance = kernel.new_op(Binary { op: BinaryOp::Add }.into(), vec![index, step], vec![index_ty], loc);
    let next_index = kernel.ops[advance].results[0];
    let (ahead, next) = clone_at(kernel, slice, load, index, next_index);
    let mut start = vec![advance];
    start.extend(ahead);
    kernel.regions[body].ops.splice(0..0, start);
    kernel.regions[body].ops.retain(|&op| op != load);

    // The tile is carried.
    let arg = kernel.new_value(ty.clone());
    let result = kernel.new_value(ty);
    kernel.regions[body].args.push(arg);
    kernel.ops[id].operands.push(first);
    kernel.ops[id].results.push(result);
    replace_uses(kernel, body, old, arg);
    extend_terminators(kernel, body, true, next, arg);
}

/// Copies of the slice and the load with the loop index replaced; the new operations and the loaded value.
fn clone_at(
    kernel: &mut Kernel,
    slice: &[OpId],
    load: OpId,
    index: ValueId,
    by: ValueId,
) -> (Vec<OpId>, ValueId) {
    let mut map: BTreeMap<ValueId, ValueId> = BTreeMap::from([(index, by)]);
    let mut made = Vec::new();
    let mut last = by;
    for &op in slice.iter().chain([&load]) {
        let source = kernel.ops[op].clone();
        let operands = source.operands.iter().map(|v| *map.get(v).unwrap_or(v)).collect();
        let types = source.results.iter().map(|&r| kernel.ty(r).clone()).collect();
        let copy = kernel.new_op(source.kind, operands, types, source.loc);
        for (&from, &to) in source.results.iter().zip(&kernel.ops[copy].results.clone()) {
            map.insert(from, to);
            last = to;
        }
        made.push(copy);
    }
    (made, last)
}

fn replace_uses(kernel: &mut Kernel, region: RegionId, old: ValueId, new: ValueId) {
    for id in kernel.regions[region].ops.clone() {
        for operand in &mut kernel.ops[id].operands {
            if *operand == old {
                *operand = new;
            }
        }
        for inner in kernel.ops[id].regions.clone() {
            replace_uses(kernel, inner, old, new);
        }
    }
}

/// Every way round the loop carries the next tile, every way out the present one. `own` is true for the body itself,
/// whose `yield` goes round; those of nested regions do not.
fn extend_terminators(kernel: &mut Kernel, region: RegionId, own: bool, next: ValueId, now: ValueId) {
    for id in kernel.regions[region].ops.clone() {
        match kernel.ops[id].kind {
            OpKind::Yield(_) if own => kernel.ops[id].operands.push(next),
            OpKind::Continue(_) => kernel.ops[id].operands.push(next),
            OpKind::Break(_) => kernel.ops[id].operands.push(now),
            OpKind::If(_) | OpKind::Scope(_) => {
                for inner in kernel.ops[id].regions.clone() {
                    extend_terminators(kernel, inner, false, next, now);
                }
            }
            // Jumps inside a nested loop are that loop's.
            _ => {}
        }
    }
}
