//! `assign_roles`: on GPUs whose warpgroups multiply out of shared memory, a kernel with such products is divided into
//! roles: one thread loads tiles into channels, warpgroups compute. Where no tile is loaded in a loop there is nothing to
//! load while others compute: all copies are started before anything else, by a thread that computes like the others.
//!
//! The division is a [`Partition`]: any map from operations to roles. `split` carries it out: each role is a copy of the
//! kernel without what other roles own; a value that crosses roles goes through a channel; scalars and control flow are
//! repeated wherever they are needed. Channels are first in, first out, and every role takes the same path, so that the n-th
//! `send` of a channel meets the n-th `receive`.

mod check;
mod mask;
mod partition;
mod prune;
mod split;
mod stage_layout;

pub(crate) use mask::is_zero;
pub use partition::{Partition, Role, split};

use partition::send_first;

use super::{Changed, PassCx};
use crate::diag::Diagnostics;
use crate::explain::{Choice, Note, Reason};
use crate::ir::{Elem, Kernel, LocId, OpId, RegionId, ValueId};
use crate::layout::SharedLayout;
use crate::ops::window::Steps;
use crate::ops::{Effects, OpKind, TileOp};

/// Bytes of shared memory that stay free for exchanges between threads.
const RESERVE: usize = 24 * 1024;
/// The most stages that help.
pub(crate) const STAGES: usize = 4;
/// The fewest stages with which one is filled while another is read.
pub(crate) const FEWEST: usize = 2;
/// Tiles of fewer elements are loaded by those who use them.
const SMALLEST: usize = 16;
/// Registers of a thread that only loads.
const LOADER_REGISTERS: usize = 40;
/// The role that loads.
const LOADER: usize = 1;

/// Gives channels to the loads of a kernel that gains from it, and a role that fills them where that is better.
///
/// # Errors
/// None.
pub fn run(kernel: &mut Kernel, cx: &PassCx<'_>) -> Result<Changed, Diagnostics> {
    let num_warps = kernel.num_warps.unwrap_or(1);
    let allowed = allowed(kernel, cx, num_warps);
    if let Err(reason) = allowed {
        undivided(kernel, reason);
    }
    let (loads, others) = bulk_loads(kernel, allowed);
    for (id, reason) in others {
        let op = kernel.ops[id].clone();
        kernel.note(&op, Choice::NoChannel(reason));
    }
    if loads.is_empty() {
        return Ok(Changed::No);
    }
    if let Ok(divided) = divide(kernel, cx, &loads, num_warps) {
        *kernel = divided;
        return Ok(Changed::Yes);
    }
    // Where the path or a load depends on the elements of a tile, one thread alone cannot load. The others it can.
    let alone = |load: &BulkLoad| divide(kernel, cx, std::slice::from_ref(load), num_warps);
    let (known, unknown): (Vec<_>, Vec<_>) = loads.into_iter().partition(|load| alone(load).is_ok());
    for load in unknown {
        let op = kernel.ops[load.op].clone();
        kernel.note(&op, Choice::NoChannel(Reason::DataPath));
    }
    if !known.is_empty()
        && let Ok(divided) = divide(kernel, cx, &known, num_warps)
    {
        *kernel = divided;
        return Ok(Changed::Yes);
    }
    undivided(kernel, Reason::DataPath);
    Ok(Changed::No)
}

/// Notes why there are no roles.
fn undivided(kernel: &mut Kernel, reason: Reason) {
    let choice = Choice::NoRoles(reason);
    kernel.notes.push(Note { loc: LocId::default(), title: String::new(), choice });
}

/// The kernel with its loads in channels: without roles where each of them is done once.
fn divide(
    kernel: &Kernel,
    cx: &PassCx<'_>,
    loads: &[BulkLoad],
    num_warps: usize,
) -> Result<Kernel, Diagnostics> {
    let partition = partition(kernel, cx, loads, num_warps);
    let mut divided = kernel.clone();
    if loads.iter().all(|load| !load.looped) && send_first(&mut divided, &partition, LOADER)? {
        undivided(&mut divided, Reason::LoadedOnce);
        return Ok(divided);
    }
    divided = kernel.clone();
    split(&mut divided, &partition)?;
    Ok(divided)
}

/// Warpgroups that compute, and one thread that loads.
fn partition(kernel: &Kernel, cx: &PassCx<'_>, loads: &[BulkLoad], num_warps: usize) -> Partition {
    let stages = stages(kernel, cx, loads);
    let registers = registers(num_warps / 4, cx.config.occupancy.unwrap_or(1) as usize);
    let compute = Role { warps: num_warps, registers: registers[0], single: false };
    let loader = Role { warps: 1, registers: registers[1], single: true };
    let mut partition = Partition { roles: vec![compute, loader], ..Partition::default() };
    kernel.walk(|id, op| {
        if op.kind.effects() == Effects::WritesGlobal {
            partition.owner.insert(id, 0);
        }
    });
    for load in loads {
        partition.owner.insert(load.op, LOADER);
        let count = if load.looped { load.latency.unwrap_or(stages) } else { 1 };
        partition.stages.insert(load.op, count);
    }
    partition
}

/// Whether the kernel may be divided into roles at all.
fn allowed(kernel: &Kernel, cx: &PassCx<'_>, num_warps: usize) -> Result<(), Reason> {
    if !cx.target.warpgroups {
        return Err(Reason::TargetWithoutBulk(cx.target.name));
    }
    if cx.config.allow_tma == Some(false) {
        return Err(Reason::ConfigForbids);
    }
    if let Some(reason) = cx.no_channels {
        return Err(reason);
    }
    if !num_warps.is_multiple_of(4) {
        return Err(Reason::NotWarpgroups(num_warps));
    }
    if has_atomics(kernel) {
        return Err(Reason::Atomics);
    }
    if has_wide_product(kernel, num_warps) { Ok(()) } else { Err(Reason::NoWideProduct) }
}

/// Whether any tile comes through a channel.
pub fn has_channels(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.walk(|_, op| found |= matches!(op.kind, OpKind::Receive(_)));
    found
}

/// Whether some atomic operation has to stand among all accesses of the block, or says to every role what it found.
fn has_atomics(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.walk(|_, op| {
        if let OpKind::Atomic(atomic) = &op.kind {
            found |= !atomic.unordered(kernel, op);
        }
    });
    found
}

/// Whether some product is one that warpgroups can do.
fn has_wide_product(kernel: &Kernel, num_warps: usize) -> bool {
    let mut found = false;
    kernel.walk(|_, op| {
        if matches!(op.kind, OpKind::Mma(_)) {
            let (a, acc) = (kernel.ty(op.operands[0]).as_tile(), kernel.ty(op.results[0]).as_tile());
            if let (Some(a), Some(acc)) = (a, acc) {
                found |= crate::ops::mma::Mma::wide(a, acc, num_warps).is_ok();
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
    /// Stages that its hint asks for.
    latency: Option<usize>,
}

/// The loads that bulk tensor copies do, and why they do not do the others.
fn bulk_loads(kernel: &Kernel, allowed: Result<(), Reason>) -> (Vec<BulkLoad>, Vec<(OpId, Reason)>) {
    let mut found = (Vec::new(), Vec::new());
    collect(kernel, allowed, kernel.body, false, &mut found);
    found
}

fn collect(
    kernel: &Kernel,
    allowed: Result<(), Reason>,
    region: RegionId,
    looped: bool,
    found: &mut (Vec<BulkLoad>, Vec<(OpId, Reason)>),
) {
    for &id in &kernel.regions[region].ops {
        let op = &kernel.ops[id];
        if let OpKind::Load(load) = &op.kind {
            let latency = load.hints.latency;
            match allowed.and_then(|()| bulk_plan(kernel, id)) {
                Ok(layout) => {
                    found.0.push(BulkLoad { op: id, looped, bytes: layout.bytes as usize, latency });
                }
                Err(reason) => found.1.push((id, reason)),
            }
        }
        let inner = looped || matches!(op.kind, OpKind::For(_) | OpKind::Loop(_));
        for &region in &op.regions {
            collect(kernel, allowed, region, inner, found);
        }
    }
}

/// The place in shared memory of a tile that bulk tensor copies can load. They fill what is outside the tensor with zeros;
/// where the padding is another, who receives the tile puts it in by a mask.
///
/// # Errors
/// Why they cannot: as [`bulk_place`], or the tensor is written, the tile is small, ...
pub fn bulk_plan(kernel: &Kernel, id: OpId) -> Result<SharedLayout, Reason> {
    let OpKind::Load(load) = &kernel.ops[id].kind else { return Err(Reason::Computed) };
    match load.hints.allow_tma {
        Some(false) => Err(Reason::HintForbids),
        Some(true) | None => copy_plan(kernel, id),
    }
}

/// The place in shared memory of a tile that copies past the registers can load, whether bulk tensor copies or `cp.async`.
///
/// # Errors
/// As [`bulk_plan`].
pub fn copy_plan(kernel: &Kernel, id: OpId) -> Result<SharedLayout, Reason> {
    let op = &kernel.ops[id];
    let OpKind::Load(load) = &op.kind else { return Err(Reason::Computed) };
    let mutable = kernel.ty(op.operands[0]).as_tensor().is_some_and(|t| t.mutable);
    let numel: usize = load.shape.iter().product();
    if mutable {
        return Err(Reason::Written);
    }
    if load.steps == Steps::Elements {
        return Err(Reason::Steps);
    }
    if numel < SMALLEST {
        return Err(Reason::FewElements(numel));
    }
    bulk_place(kernel, op.operands[0], &load.shape)
}

/// As [`bulk_plan`], without the reason.
pub fn bulk_layout(kernel: &Kernel, id: OpId) -> Option<SharedLayout> {
    bulk_plan(kernel, id).ok()
}

/// The place in shared memory of a tile that bulk tensor copies can move.
///
/// # Errors
/// Why they cannot: the tensor's unit axis or alignment is unknown, or rows are shorter than 16 bytes.
pub fn bulk_place(kernel: &Kernel, tensor: ValueId, shape: &[usize]) -> Result<SharedLayout, Reason> {
    let elem = kernel.ty(tensor).as_tensor().ok_or(Reason::Computed)?.elem;
    let facts = kernel.facts(tensor).ok_or(Reason::Computed)?;
    if elem == Elem::Bool {
        return Err(Reason::Truth);
    }
    let unit = facts.unit_axis.ok_or(Reason::NoUnitAxis)?;
    let (bytes, row) = (elem.bytes(), shape[unit] * elem.bytes());
    if row < 16 {
        return Err(Reason::ShortRow(row));
    }
    if facts.align < 16 {
        return Err(Reason::Pointer(facts.align));
    }
    let odd = |&(axis, &align): &(usize, &u32)| axis != unit && align < 16;
    if let Some((axis, &bytes)) = facts.stride_align.iter().enumerate().find(odd) {
        return Err(Reason::Stride { axis, bytes });
    }
    let order: Vec<usize> = bulk_order(unit, shape.len());
    let layout = match shape.iter().product::<usize>() == shape[unit] {
        true => SharedLayout::linear(shape, &order, bytes),
        false => SharedLayout::swizzled(shape, &order, bytes),
    };
    layout.map_err(|_| Reason::ShortRow(row))
}

/// The axes of a tensor from the innermost, as tensor maps list them.
pub fn bulk_order(unit: usize, rank: usize) -> Vec<usize> {
    std::iter::once(unit).chain((0..rank).rev().filter(|&axis| axis != unit)).collect()
}

/// Stages of the channels inside loops: as many as shared memory holds, up to what helps.
fn stages(kernel: &Kernel, cx: &PassCx<'_>, loads: &[BulkLoad]) -> usize {
    if let Some(stages) = cx.config.stages {
        return stages;
    }
    // Loads with a latency of their own take what they ask for.
    let sum = |looped: bool| -> usize {
        let free = loads.iter().filter(|l| l.looped == looped && !(looped && l.latency.is_some()));
        free.map(|l| l.bytes).sum()
    };
    let hinted: usize =
        loads.iter().filter(|l| l.looped).filter_map(|l| l.latency.map(|n| n * l.bytes)).sum();
    let blocks = cx.config.occupancy.unwrap_or(1).max(1) as usize;
    let reserve = RESERVE.max(looped_stores(kernel));
    let room = (cx.target.max_shared_bytes / blocks).saturating_sub(reserve + sum(false) + hinted);
    (room / sum(true).max(1)).clamp(FEWEST, STAGES)
}

/// Bytes of the tiles that are stored inside loops, through shared memory.
fn looped_stores(kernel: &Kernel) -> usize {
    let mut bytes = 0;
    let mut open = vec![(kernel.body, false)];
    while let Some((region, looped)) = open.pop() {
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

/// Registers of computing and loading threads, 0 for as many as the kernel starts with. Together they are no more than
/// the blocks on a multiprocessor start with.
fn registers(groups: usize, blocks: usize) -> [usize; 2] {
    // The register file has 512 for each thread of a warpgroup; one warpgroup of the block loads.
    let start = 512 / blocks.max(1) / (groups + 1) / 8 * 8;
    if groups < 2 || start <= LOADER_REGISTERS {
        return [0, 0];
    }
    let compute = (start * (groups + 1) - LOADER_REGISTERS) / groups / 8 * 8;
    [compute.min(240), LOADER_REGISTERS]
}
