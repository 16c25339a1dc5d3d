//! Collects an explanation from what passes noted and from the kernel as it is lowered.

use std::collections::BTreeMap;

use super::explanation::{Explanation, Item, Path, RoleLine};
use super::{Choice, Note, Product, Reason, title};
use crate::ir::{Elem, Kernel, LocId, Op, OpId, RegionId, ValueId};
use crate::lower::channels::MapPlan;
use crate::lower::global::access_width;
use crate::ops::OpKind;
use crate::ops::window::Start;
use crate::passes::allocate_shared::SharedPlan;
use crate::ptx;
use crate::target::Target;

/// 32-bit registers of a multiprocessor, on every GPU of the targets.
const REGISTERS: u32 = 64 * 1024;
/// The most registers of a thread.
const MOST: u32 = 255;

/// Everything about one operation of the source, or several alike.
#[derive(Default)]
struct Found {
    paths: Vec<Path>,
    why: Vec<(&'static str, Reason)>,
    ahead: bool,
    masked: bool,
}

impl Found {
    fn path(&mut self, path: Path) {
        if !self.paths.contains(&path) {
            self.paths.push(path);
        }
    }
    fn because(&mut self, slower: &'static str, reason: Reason) {
        if !self.why.contains(&(slower, reason)) {
            self.why.push((slower, reason));
        }
    }
}

type Key = (LocId, String);

/// The explanation of a laid-out kernel and its function.
pub(crate) fn explain(
    kernel: &Kernel,
    target: &Target,
    shared: &SharedPlan,
    function: &ptx::Kernel,
) -> Explanation {
    let mut found: BTreeMap<Key, Found> = BTreeMap::new();
    let mut no_roles = None;
    for Note { loc, title, choice } in &kernel.notes {
        match choice {
            Choice::NoRoles(reason) => no_roles = Some(*reason),
            _ => noted(found.entry((*loc, title.clone())).or_default(), choice),
        }
    }
    let makers = makers(kernel);
    kernel.walk(|_, op| {
        if let OpKind::Load(_) | OpKind::Send(_) | OpKind::CopyAsync(_) | OpKind::Store(_) = op.kind {
            lowered(kernel, &makers, op, found.entry((op.loc, title(kernel, op))).or_default());
        }
    });
    let place = |key: &Key| kernel.locs.get(key.0).cloned();
    // What has no path was removed, because nothing needs it.
    let mut items: Vec<Item> = found
        .into_iter()
        .filter(|(_, found)| !found.paths.is_empty())
        .map(|(key, found)| Item { loc: place(&key), title: key.1, paths: found.paths, why: found.why })
        .collect();
    items.sort_by_key(|item| item.loc.as_ref().map(|l| (l.file.clone(), l.line, l.column)));
    let blocks = function.min_ctas.unwrap_or(1).max(1);
    let registers = REGISTERS / (function.reqntid.next_multiple_of(32) * blocks) / 8 * 8;
    Explanation {
        kernel: kernel.name.clone(),
        target: target.name,
        threads: function.reqntid,
        registers: registers.min(MOST),
        min_blocks: function.min_ctas,
        roles: roles(kernel),
        no_roles,
        shared_bytes: shared.bytes,
        buffers: shared.buffers.clone(),
        items,
    }
}

/// Adds what a pass decided.
fn noted(found: &mut Found, choice: &Choice) {
    match choice {
        Choice::NoRoles(_) => {}
        Choice::NoChannel(reason) => found.because("no channel", *reason),
        Choice::Masked => found.masked = true,
        Choice::NoRing(reason) => found.because("no cp.async", *reason),
        Choice::NoBulkStore(reason) => found.because("no bulk copies", *reason),
        Choice::Ahead(Ok(())) => {
            found.ahead = true;
            found.why.retain(|(slower, _)| *slower != "not ahead");
        }
        Choice::Ahead(Err(reason)) if !found.ahead => found.because("not ahead", *reason),
        Choice::Ahead(Err(_)) => {}
        Choice::Product(product) => {
            found.path(Path::Product(product.clone()));
            match product {
                Product::Warpgroups { .. } => {}
                Product::TensorCores { slower, .. } => found.because("no wgmma", *slower),
                Product::Fma { slower, slow } => {
                    found.because("no wgmma", *slower);
                    found.because("no mma.sync", *slow);
                }
            }
        }
    }
}

/// Adds how a load or store is lowered.
fn lowered(kernel: &Kernel, makers: &BTreeMap<ValueId, OpId>, op: &Op, found: &mut Found) {
    let access = |start: Start<'_>, tile: ValueId| {
        let layout = kernel.values[tile].layout.as_ref();
        let (width, reason) = layout.map_or((1, None), |layout| access_width(kernel, start, layout));
        let elem = kernel.ty(start.tensor).as_tensor().map_or(Elem::F32, |t| t.elem);
        // One element is one access, whatever the tensor.
        let reason = reason.filter(|_| kernel.tile(tile).numel() > 1);
        (width, width * elem.bytes(), reason)
    };
    match &op.kind {
        OpKind::Send(send) => {
            let map = MapPlan::of(kernel, op.operands[0], send.elem, &send.layout);
            found.path(Path::Channel {
                channel: send.channel,
                stages: send.stages,
                bytes: send.layout.bytes,
                box_dims: map.map(|m| m.box_dims).unwrap_or_default(),
                swizzle: send.layout.swizzle,
                masked: found.masked,
            });
        }
        OpKind::CopyAsync(copy) => found.path(Path::Ring {
            ring: copy.channel,
            stages: copy.stages,
            bytes: copy.layout.bytes,
            swizzle: copy.layout.swizzle,
        }),
        OpKind::Load(load) => {
            let start = Start { tensor: op.operands[0], index: &op.operands[1..], steps: load.steps };
            let (width, bytes, reason) = access(start, op.results[0]);
            found.path(Path::Plain { width, bytes, ahead: found.ahead });
            if !found.ahead && !found.why.iter().any(|(slower, _)| *slower == "not ahead") {
                found.because("not ahead", Reason::NoLoop);
            }
            if let Some(reason) = reason {
                found.because("no 16 bytes", reason);
            }
        }
        OpKind::Store(_) if let Some(tile) = kernel.ty(op.operands[0]).as_shared() => {
            let map = MapPlan::of(kernel, op.operands[1], tile.elem, &tile.layout);
            found.path(Path::BulkStore {
                bytes: tile.layout.bytes,
                box_dims: map.map(|m| m.box_dims).unwrap_or_default(),
                swizzle: tile.layout.swizzle,
            });
        }
        OpKind::Store(store) => {
            let start = Start { tensor: op.operands[1], index: &op.operands[2..], steps: store.steps };
            let (width, bytes, reason) = access(start, op.operands[0]);
            let maker = makers.get(&op.operands[0]).map(|&id| &kernel.ops[id].kind);
            let exchanged = matches!(maker, Some(OpKind::FromShared(_)));
            found.path(Path::Store { width, bytes, exchanged });
            if let Some(reason) = reason {
                found.because("no 16 bytes", reason);
            }
        }
        _ => {}
    }
}

fn makers(kernel: &Kernel) -> BTreeMap<ValueId, OpId> {
    let mut makers = BTreeMap::new();
    kernel.walk(|id, op| makers.extend(op.results.iter().map(|&r| (r, id))));
    makers
}

fn roles(kernel: &Kernel) -> Vec<RoleLine> {
    let mut lines = Vec::new();
    kernel.walk(|_, op| {
        let OpKind::Roles(roles) = &op.kind else { return };
        for (i, &region) in op.regions.iter().enumerate() {
            lines.push(RoleLine {
                warps: roles.warps[i],
                single: roles.single[i] == 1,
                registers: roles.registers[i],
                does: does(kernel, region),
            });
        }
    });
    lines
}

/// What the operations of a region do, each once.
fn does(kernel: &Kernel, region: RegionId) -> Vec<&'static str> {
    let mut found = [("loads", false), ("multiplies", false), ("stores", false)];
    let mut open = vec![region];
    while let Some(region) = open.pop() {
        for &id in &kernel.regions[region].ops {
            let op = &kernel.ops[id];
            open.extend(&op.regions);
            match op.kind {
                OpKind::Send(_) => found[0].1 = true,
                OpKind::Mma(_) => found[1].1 = true,
                OpKind::Store(_) => found[2].1 = true,
                _ => {}
            }
        }
    }
    found.into_iter().filter(|(_, does)| *does).map(|(name, _)| name).collect()
}
