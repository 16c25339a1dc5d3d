//! What the address of a load needs of its loop, and copies of it for another iteration.

use std::collections::BTreeMap;

use crate::ir::{Kernel, OpId, RegionId, ValueId};
use crate::ops::{Effects, OpKind, TileOp};

/// The pure operations of the loop body that the load's indices need, in order; `None` if they need anything else that
/// changes in the loop.
pub(super) fn address_slice(kernel: &Kernel, body: RegionId, load: OpId) -> Option<Vec<OpId>> {
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

/// Copies an operation with the values of `map` in place of its operands, and adds its results to them.
pub(super) fn copy_op(kernel: &mut Kernel, op: OpId, map: &mut BTreeMap<ValueId, ValueId>) -> OpId {
    let source = kernel.ops[op].clone();
    let operands = source.operands.iter().map(|v| *map.get(v).unwrap_or(v)).collect();
    let types = source.results.iter().map(|&r| kernel.ty(r).clone()).collect();
    let copy = kernel.new_op(source.kind, operands, types, source.loc);
    let results = kernel.ops[copy].results.clone();
    map.extend(source.results.into_iter().zip(results));
    copy
}

/// Where an operation stands in its region.
pub(super) fn position(kernel: &Kernel, region: RegionId, op: OpId) -> usize {
    kernel.regions[region].ops.iter().position(|&o| o == op).expect("the operation is in its region")
}

pub(super) fn replace_uses(kernel: &mut Kernel, region: RegionId, old: ValueId, new: ValueId) {
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

/// Carries one more value round a loop: `first` into it, `next(carried)` round it, what is carried out of it by `break`.
/// Returns the carried value; its successor is given to [`carry_on`].
pub(super) fn carry(kernel: &mut Kernel, looped: OpId, first: ValueId) -> ValueId {
    let (body, ty) = (kernel.ops[looped].regions[0], kernel.ty(first).clone());
    let arg = kernel.new_value(ty.clone());
    let result = kernel.new_value(ty);
    kernel.regions[body].args.push(arg);
    kernel.ops[looped].operands.push(first);
    kernel.ops[looped].results.push(result);
    arg
}

/// Every way round the loop carries `next`, every way out `now`.
pub(super) fn carry_on(kernel: &mut Kernel, looped: OpId, next: ValueId, now: ValueId) {
    extend_terminators(kernel, kernel.ops[looped].regions[0], true, next, now);
}

/// `own` is true for the body itself, whose `yield` goes round; those of nested regions do not.
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
