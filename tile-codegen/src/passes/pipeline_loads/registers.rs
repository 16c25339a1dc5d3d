//! Loads one iteration ahead through registers: the tile of the next iteration is loaded before the work of this one, and
//! carried round the loop.
//!
//! The load beyond the last iteration is harmless: elements outside the tensor are not read.

use std::collections::BTreeMap;

use super::slice::{address_slice, carry, carry_on, copy_op, position, replace_uses};
use crate::explain::{Choice, Reason};
use crate::ir::{Kernel, OpId, RegionId, Type, ValueId};
use crate::ops::OpKind;
use crate::ops::binary::{Binary, BinaryOp};
use crate::ops::window::Steps;

/// Bytes that a thread may hold for all prefetched tiles of a loop.
const BUDGET: usize = 192;
/// Smaller tiles are left alone: their loads overlap anyway, and they may be wanted in several layouts.
const SMALLEST: usize = 1024;

/// Issues those of a loop's loads ahead that are large, within what registers hold.
pub(super) fn prefetch(kernel: &mut Kernel, parent: RegionId, looped: OpId, loads: &[OpId]) {
    let body = kernel.ops[looped].regions[0];
    let mut left = BUDGET * 32 * kernel.num_warps.unwrap_or(1);
    for &load in loads {
        let op = kernel.ops[load].clone();
        let slice = slice(kernel, body, load, left);
        kernel.note(&op, Choice::Ahead(slice.as_ref().map(|_| ()).map_err(|&reason| reason)));
        if let Ok((bytes, slice)) = slice {
            left -= bytes;
            issue_ahead(kernel, parent, looped, load, &slice);
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

fn issue_ahead(kernel: &mut Kernel, parent: RegionId, looped: OpId, load: OpId, slice: &[OpId]) {
    let op = &kernel.ops[looped];
    let (body, low, step, loc) = (op.regions[0], op.operands[0], op.operands[2], op.loc);
    let index = kernel.regions[body].args[0];
    let old = kernel.ops[load].results[0];

    // Before the loop: the load of the first iteration.
    let (before, first) = copy_at(kernel, slice, load, index, low);
    let at = position(kernel, parent, looped);
    kernel.regions[parent].ops.splice(at..at, before);

    // At the start of the body: the load of the next iteration.
    let index_ty: Type = kernel.ty(index).clone();
    let advance = kernel.new_op(Binary { op: BinaryOp::Add }.into(), vec![index, step], vec![index_ty], loc);
    let next_index = kernel.ops[advance].results[0];
    let (ahead, next) = copy_at(kernel, slice, load, index, next_index);
    let mut start = vec![advance];
    start.extend(ahead);
    kernel.regions[body].ops.splice(0..0, start);
    kernel.regions[body].ops.retain(|&op| op != load);

    let tile = carry(kernel, looped, first);
    replace_uses(kernel, body, old, tile);
    carry_on(kernel, looped, next, tile);
}

/// Copies of the slice and the load with the loop index replaced; the new operations and the loaded value.
fn copy_at(
    kernel: &mut Kernel,
    slice: &[OpId],
    load: OpId,
    index: ValueId,
    by: ValueId,
) -> (Vec<OpId>, ValueId) {
    let mut map: BTreeMap<ValueId, ValueId> = BTreeMap::from([(index, by)]);
    let made: Vec<OpId> = slice.iter().chain([&load]).map(|&op| copy_op(kernel, op, &mut map)).collect();
    (made, map[&kernel.ops[load].results[0]])
}
