//! `assign_roles`: on GPUs whose warpgroups multiply out of shared memory, a kernel with such products is divided into
//! roles: one thread loads tiles into channels, warpgroups compute.
//!
//! The division is a [`Partition`]: any map from operations to roles. `split` carries it out: each role is a copy of the
//! kernel without what other roles own; a value that crosses roles goes through a channel; scalars and control flow are
//! repeated wherever they are needed. Channels are first in, first out, and every role takes the same path, so that the n-th
//! `send` of a channel meets the n-th `receive`.

mod partition;
mod prune;
mod split;

use std::collections::BTreeMap;

pub use partition::{Partition, Role, split};

use super::{Changed, PassCx};
use crate::diag::Diagnostics;
use crate::ir::{Elem, Kernel, OpId, RegionId, ValueId};
use crate::layout::SharedLayout;
use crate::ops::{Literal, OpKind};

/// Bytes of shared memory that stay free for exchanges between threads.
const RESERVE: usize = 24 * 1024;
/// The most stages that help.
const STAGES: usize = 4;
/// Tiles of fewer elements are loaded by those who use them.
const SMALLEST: usize = 16;
/// Registers of a thread that only loads.
const LOADER_REGISTERS: usize = 40;

/// Divides a kernel that gains from it.
///
/// # Errors
/// If a value cannot cross roles.
pub fn run(kernel: &mut Kernel, cx: &PassCx<'_>) -> Result<Changed, Diagnostics> {
    if !cx.target.warpgroups || cx.config.allow_tma == Some(false) {
        return Ok(Changed::No);
    }
    let num_warps = kernel.num_warps.unwrap_or(1);
    if !num_warps.is_multiple_of(4) || !has_wide_product(kernel, num_warps) {
        return Ok(Changed::No);
    }
    let loads = bulk_loads(kernel);
    if loads.is_empty() {
        return Ok(Changed::No);
    }
    let stages = stages(kernel, cx, &loads);
    let groups = num_warps / 4;
    let registers = registers(groups, cx.config.occupancy.unwrap_or(1) as usize);
    let compute = Role { warps: num_warps, registers: registers[0], single: false };
    let loader = Role { warps: 1, registers: registers[1], single: true };
    let mut partition = Partition { roles: vec![compute, loader], ..Partition::default() };
    kernel.walk(|id, op| {
        if matches!(op.kind, OpKind::Store(_)) {
            partition.owner.insert(id, 0);
        }
    });
    for load in loads {
        partition.owner.insert(load.op, 1);
        let count = if load.looped { stages } else { 1 };
        partition.stages.insert(load.op, count);
    }
    split(kernel, &partition)?;
    Ok(Changed::Yes)
}

/// Whether some product is one that warpgroups can do.
fn has_wide_product(kernel: &Kernel, num_warps: usize) -> bool {
    let mut found = false;
    kernel.walk(|_, op| {
        if matches!(op.kind, OpKind::Mma(_)) {
            let (a, acc) = (kernel.ty(op.operands[0]).as_tile(), kernel.ty(op.results[0]).as_tile());
            if let (Some(a), Some(acc)) = (a, acc) {
                found |= crate::ops::mma::Mma::wide(a, acc, num_warps);
            }
        }
    });
    found
}

/// A load that bulk tensor copies can do.
struct BulkLoad {
    op: OpId,
    looped: bool,
    bytes: usize,
}

fn bulk_loads(kernel: &Kernel) -> Vec<BulkLoad> {
    let mut found = Vec::new();
    collect(kernel, kernel.body, false, &mut found);
    found
}

fn collect(kernel: &Kernel, region: RegionId, looped: bool, found: &mut Vec<BulkLoad>) {
    for &id in &kernel.regions[region].ops {
        let op = &kernel.ops[id];
        if let Some(layout) = bulk_layout(kernel, id) {
            found.push(BulkLoad { op: id, looped, bytes: layout.bytes as usize });
        }
        let inner = looped || matches!(op.kind, OpKind::For(_) | OpKind::Loop(_));
        for &region in &op.regions {
            collect(kernel, region, inner, found);
        }
    }
}

/// The place in shared memory of a tile that bulk tensor copies can load: `None` if they cannot, because the tensor is
/// written, its unit axis or alignment is unknown, or the padding is not zero.
pub fn bulk_layout(kernel: &Kernel, id: OpId) -> Option<SharedLayout> {
    let op = &kernel.ops[id];
    let OpKind::Load(load) = &op.kind else { return None };
    let tensor = kernel.ty(op.operands[0]).as_tensor()?;
    let zero = match load.pad {
        Literal::Float(bits) => bits == 0,
        Literal::Int(i) => i == 0,
        Literal::Bool(_) => false,
    };
    let numel: usize = load.shape.iter().product();
    let fits = !tensor.mutable && zero && numel >= SMALLEST;
    bulk_place(kernel, op.operands[0], &load.shape).filter(|_| fits)
}

/// The place in shared memory of a tile that bulk tensor copies can move: `None` if the tensor's unit axis or alignment is
/// unknown, or rows are shorter than 16 bytes.
pub fn bulk_place(kernel: &Kernel, tensor: ValueId, shape: &[usize]) -> Option<SharedLayout> {
    let elem = kernel.ty(tensor).as_tensor()?.elem;
    let facts = kernel.facts(tensor)?;
    let unit = facts.unit_axis?;
    let aligned = facts.align >= 16
        && facts.stride_align.iter().enumerate().all(|(axis, &align)| axis == unit || align >= 16);
    let bytes = elem.bytes();
    let numel: usize = shape.iter().product();
    let order: Vec<usize> = bulk_order(unit, shape.len());
    let layout = match numel == shape[unit] {
        true => SharedLayout::linear(shape, &order, bytes),
        false => SharedLayout::swizzled(shape, &order, bytes),
    };
    layout.ok().filter(|_| elem != Elem::Bool && aligned && shape[unit] * bytes >= 16)
}

/// The axes of a tensor from the innermost, as tensor maps list them.
pub fn bulk_order(unit: usize, rank: usize) -> Vec<usize> {
    std::iter::once(unit).chain((0..rank).rev().filter(|&axis| axis != unit)).collect()
}

/// Stages of the channels inside loops: as many as shared memory holds, up to what helps.
fn stages(kernel: &Kernel, cx: &PassCx<'_>, loads: &[BulkLoad]) -> usize {
    if let Some(stages) = cx.config.stages {
        return stages.max(1);
    }
    let sum = |looped: bool| loads.iter().filter(|l| l.looped == looped).map(|l| l.bytes).sum::<usize>();
    let blocks = cx.config.occupancy.unwrap_or(1).max(1) as usize;
    let reserve = RESERVE.max(looped_stores(kernel));
    let room = (cx.target.max_shared_bytes / blocks).saturating_sub(reserve + sum(false));
    (room / sum(true).max(1)).clamp(2, STAGES)
}

/// Bytes of the tiles that are stored inside loops, through shared memory.
fn looped_stores(kernel: &Kernel) -> usize {
    let mut loops: BTreeMap<RegionId, bool> = BTreeMap::new();
    let mut bytes = 0;
    let mut open = vec![(kernel.body, false)];
    while let Some((region, looped)) = open.pop() {
        loops.insert(region, looped);
        for &id in &kernel.regions[region].ops {
            let op = &kernel.ops[id];
            let inner = looped || matches!(op.kind, OpKind::For(_) | OpKind::Loop(_));
            open.extend(op.regions.iter().map(|&r| (r, inner)));
            if looped && matches!(op.kind, OpKind::Store(_)) {
                bytes += tile_bytes(kernel, op.operands[0]);
            }
        }
    }
    bytes
}

fn tile_bytes(kernel: &Kernel, value: ValueId) -> usize {
    kernel.ty(value).as_tile().map_or(0, |t| t.numel() * t.elem.bytes())
}

/// Registers of computing and loading threads, 0 for as many as the kernel starts with.
fn registers(groups: usize, blocks: usize) -> [usize; 2] {
    if groups < 2 {
        return [0, 0];
    }
    // The register file has 512 for each thread of a warpgroup.
    let compute = (512 / blocks - LOADER_REGISTERS) / groups / 8 * 8;
    [compute.min(240), LOADER_REGISTERS]
}
