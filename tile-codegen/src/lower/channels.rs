//! Channels: rings of shared stages that bulk tensor copies or stores fill, with "full" and "empty" mbarriers.
//!
//! Every role has a cursor for each channel that it uses: the next stage, and the parity of its phase. A sender starts as if
//! the stages had just been emptied.

use std::collections::{BTreeMap, BTreeSet};

use super::wgmma::is_wide;
use super::{LowerCx, Slot};
use crate::ir::{Elem, Kernel, OpId, ValueId};
use crate::layout::SharedLayout;
use crate::ops::OpKind;
use crate::ops::receive::Receive;
use crate::ops::release::Release;
use crate::ops::send::Send;
use crate::ops::send_tile::SendTile;
use crate::passes::allocate_shared::ChannelPlan;
use crate::ptx::{Addr, Cmp, Hopper, IntOp, Operand, Reg, RegClass, Space, Ty};

/// How the host describes a tensor to bulk tensor copies, but for its address, extents and strides.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MapPlan {
    /// The tensor parameter's index.
    pub param: usize,
    /// Bytes of an element.
    pub elem_bytes: u32,
    /// The tensor's axes, the innermost first.
    pub axes: Vec<usize>,
    /// The extents of a box, in the same order.
    pub box_dims: Vec<u32>,
    /// Bytes of a row of the swizzle: 128, 64, 32, or 0 for none.
    pub swizzle: u32,
}

/// Why a channel has mbarriers.
const MBARRIERS: &str = "channels that bulk copies or roles fill have mbarriers";
/// The largest side of a box.
const SIDE: usize = 256;

impl MapPlan {
    /// The map of a tile of this shape and place; `None` if its tensor's unit axis is unknown.
    pub fn of(kernel: &Kernel, tensor: ValueId, elem: Elem, layout: &SharedLayout) -> Option<MapPlan> {
        let param = kernel.params.iter().position(|p| p.value == tensor)?;
        let unit = kernel.facts(tensor)?.unit_axis?;
        let axes = crate::passes::assign_roles::bulk_order(unit, layout.shape.len());
        let row = if layout.swizzle > 0 { layout.swizzle as usize / elem.bytes() } else { SIDE };
        let side = |&axis: &usize| layout.shape[axis].min(if axis == unit { row } else { SIDE }) as u32;
        let box_dims = axes.iter().map(side).collect();
        Some(MapPlan { param, elem_bytes: elem.bytes() as u32, axes, box_dims, swizzle: layout.swizzle })
    }
}

/// The tensor maps of a kernel, in the order of its parameters.
pub fn maps(kernel: &Kernel) -> Vec<MapPlan> {
    let mut found = Vec::new();
    kernel.walk(|_, op| {
        let map = match &op.kind {
            OpKind::Send(send) => MapPlan::of(kernel, op.operands[0], send.elem, &send.layout),
            OpKind::Store(_) => kernel
                .ty(op.operands[0])
                .as_shared()
                .and_then(|tile| MapPlan::of(kernel, op.operands[1], tile.elem, &tile.layout)),
            _ => None,
        };
        if let Some(map) = map.filter(|map| !found.contains(map)) {
            found.push(map);
        }
    });
    found
}

/// A role's place in a channel.
#[derive(Clone, Copy)]
struct Cursor {
    stage: Reg,
    parity: Reg,
}

/// The cursors of a role, and where received tiles are.
#[derive(Default)]
pub(super) struct Channels {
    send: BTreeMap<usize, Cursor>,
    receive: BTreeMap<usize, Cursor>,
    /// The next stage to be released, and whether one is held back.
    release: BTreeMap<usize, (Cursor, Reg)>,
    pub(super) maps: BTreeMap<usize, Reg>,
}

/// Readers of a channel that are no threads.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Asynchronous {
    /// Products of warpgroups.
    multiplied: bool,
    /// Bulk tensor copies that store tiles.
    stored: bool,
}

impl LowerCx<'_> {
    fn cursor(&mut self, parity: i64) -> Cursor {
        self.hoist_state(|f| Cursor { stage: f.mov_imm(Ty::B32, 0), parity: f.mov_imm(Ty::B32, parity) })
    }

    /// The address of the "full" or "empty" mbarrier of the stage that a cursor is at.
    fn mbarrier(&mut self, channel: usize, stage: Reg, empty: bool) -> Addr {
        let plan = self.shared.channels[&channel];
        let base = self.shared_base();
        let at = self.f.mad_lo_s32(stage, 8, base);
        let at = self.f.materialize(Ty::B32, at);
        let barriers = plan.barriers.expect(MBARRIERS);
        Addr::reg(at, i64::from(barriers + if empty { 8 * plan.stages } else { 0 }))
    }

    /// The address of the stage that a cursor is at.
    pub(super) fn stage_address(&mut self, channel: usize, stage: impl Into<Operand>) -> Reg {
        let plan = self.shared.channels[&channel];
        let base = self.shared_base();
        let first = self.hoist(|f| {
            let first = f.add_s32(base, i64::from(plan.tiles));
            f.materialize(Ty::B32, first)
        });
        let at = self.f.mad_lo_s32(stage, i64::from(plan.stage), first);
        self.f.materialize(Ty::B32, at)
    }

    /// Moves a cursor to the next stage; after the last the phase changes.
    fn advance(&mut self, cursor: Cursor, stages: u32) {
        let next = self.f.add_s32(cursor.stage, 1);
        let last = self.f.setp(Cmp::Eq, Ty::S32, next, i64::from(stages));
        let wrapped = self.f.selp(Ty::B32, 0, next, last);
        self.f.mov_to(Ty::B32, cursor.stage, wrapped);
        let turned = self.f.int(IntOp::Xor, Ty::B32, cursor.parity, 1);
        let parity = self.f.selp(Ty::B32, turned, cursor.parity, last);
        self.f.mov_to(Ty::B32, cursor.parity, parity);
    }

    /// The "full" mbarrier of a channel that is filled once.
    fn only_mbarrier(&mut self, channel: usize) -> Addr {
        let (plan, base) = (self.shared.channels[&channel], self.shared_base());
        Addr::reg(base, i64::from(plan.barriers.expect(MBARRIERS)))
    }

    /// The address of the stage that a cursor is at, or of the only one of a channel that is filled once.
    fn stage_of(&mut self, channel: usize, cursor: Option<Cursor>) -> Reg {
        if let Some(cursor) = cursor {
            return self.stage_address(channel, cursor.stage);
        }
        let (plan, base) = (self.shared.channels[&channel], self.shared_base());
        self.hoist(|f| {
            let stage = f.add_s32(base, i64::from(plan.tiles));
            f.materialize(Ty::B32, stage)
        })
    }

    fn send_cursor(&mut self, channel: usize) -> Cursor {
        if let Some(&known) = self.channels.send.get(&channel) {
            return known;
        }
        let new = self.cursor(1);
        self.channels.send.insert(channel, new);
        new
    }

    /// `send`: waits for an empty stage and starts the copies into it. One thread does this: that of its role, or the first
    /// of the block.
    pub(crate) fn send(&mut self, id: OpId, send: &Send) {
        let plan = self.shared.channels[&send.channel];
        if plan.once() {
            let (first, skip) = (self.first_thread(), self.f.label());
            self.f.bra_unless(first, skip, false);
            let full = self.only_mbarrier(send.channel);
            self.start_copies(id, send, full, None);
            return self.f.place(skip);
        }
        let cursor = self.send_cursor(send.channel);
        let (full, empty) = (
            self.mbarrier(send.channel, cursor.stage, false),
            self.mbarrier(send.channel, cursor.stage, true),
        );
        self.f.mbarrier_wait(empty, cursor.parity);
        self.start_copies(id, send, full, Some(cursor));
        self.advance(cursor, plan.stages);
    }

    /// Starts the copies of a tile into the stage that a cursor is at, or the only one; they complete at its "full"
    /// mbarrier.
    fn start_copies(&mut self, id: OpId, send: &Send, full: Addr, cursor: Option<Cursor>) {
        let op = self.kernel.ops[id].clone();
        self.f.mbarrier_arrive_expect_tx(full, i64::from(send.layout.bytes));
        let map = MapPlan::of(self.kernel, op.operands[0], send.elem, &send.layout)
            .expect("a sent tile has a tensor map");
        let address = self.map(&map);
        let starts: Vec<Operand> =
            op.operands[1..].iter().zip(&send.layout.shape).map(|(&i, &n)| self.coordinate(i, n)).collect();
        let stage = self.stage_of(send.channel, cursor);
        for corner in corners(&map, &send.layout.shape) {
            let coords: Vec<Operand> =
                map.axes.iter().map(|&axis| self.f.add_s32(starts[axis], corner[axis] as i64)).collect();
            let flat = corner.iter().zip(&send.layout.shape).fold(0, |flat, (c, n)| flat * n + c);
            let dst = Addr::reg(stage, i64::from(send.layout.offset(flat as u32)));
            self.f.tensor_load(dst, address, &coords, full);
        }
    }

    /// The first element of tile `index` along an axis, as a copy's coordinate: what is out of reach stays out of bounds.
    pub(super) fn coordinate(&mut self, index: ValueId, size: usize) -> Operand {
        if super::int_ty(self.elem(index)) == Ty::S32 && size == 1 {
            return self.scalar(index);
        }
        let start = self.window_start(index, size);
        let low = self.f.int(IntOp::Max, Ty::S64, start, -(1i64 << 30));
        let low = self.f.int(IntOp::Min, Ty::S64, low, (1i64 << 31) - 1024);
        self.f.cvt(Ty::S32, Ty::S64, low)
    }

    /// The generic address of a tensor map.
    pub(super) fn map(&mut self, plan: &MapPlan) -> Reg {
        let map = self.maps.iter().position(|m| m == plan).expect("every map is a parameter");
        if let Some(&known) = self.channels.maps.get(&map) {
            return known;
        }
        let param = self.params[&Slot::Map { map }];
        let address = self.hoist(|f| {
            let address = f.param_generic_addr(param);
            f.hopper(Hopper::PrefetchTensorMap { map: address });
            address
        });
        self.channels.maps.insert(map, address);
        address
    }

    /// `receive`: waits until the next stage is full.
    pub(crate) fn receive(&mut self, id: OpId, receive: &Receive) {
        let result = self.kernel.ops[id].results[0];
        let plan = self.shared.channels[&receive.channel];
        let cursor = (!plan.once()).then(|| self.receive_cursor(receive.channel));
        match cursor {
            Some(cursor) => {
                let full = self.mbarrier(receive.channel, cursor.stage, false);
                self.f.mbarrier_wait(full, cursor.parity);
            }
            None => {
                let full = self.only_mbarrier(receive.channel);
                self.f.mbarrier_wait(full, 0);
            }
        }
        let stage = self.stage_of(receive.channel, cursor);
        if receive.placed {
            self.stages.insert(result, stage);
        } else {
            let at = Addr::reg(stage, 0);
            let value = self.load_vector(receive.elem, 1, Space::Shared, at, None, Operand::Imm(0), false);
            self.bind(result, value);
        }
        if let Some(cursor) = cursor {
            self.advance(cursor, plan.stages);
        }
    }

    fn receive_cursor(&mut self, channel: usize) -> Cursor {
        if let Some(&known) = self.channels.receive.get(&channel) {
            return known;
        }
        let new = self.cursor(0);
        self.channels.receive.insert(channel, new);
        new
    }

    /// `send_tile`: waits for an empty stage and stores to it; each warp arrives once its lanes have stored.
    pub(crate) fn send_tile(&mut self, id: OpId, send: &SendTile) {
        let plan = self.shared.channels[&send.channel];
        let x = self.kernel.ops[id].operands[0];
        let (layout, values) = (self.layout(x).clone(), self.values(x));
        let cursor = self.send_cursor(send.channel);
        let empty = self.mbarrier(send.channel, cursor.stage, true);
        self.f.mbarrier_wait(empty, cursor.parity);
        let stage = self.stage_address(send.channel, cursor.stage);
        if layout.shape().is_empty() && self.crew.single {
            self.store_vector(send.elem, &values, Space::Shared, Addr::reg(stage, 0), None);
        } else {
            self.write_shared(send.elem, &values, &layout, &send.layout, (stage, 0));
        }
        if self.readers(send.channel) != Asynchronous::default() {
            self.f.fence_proxy_async_shared();
        }
        let full = self.mbarrier(send.channel, cursor.stage, false);
        self.arrive(full);
        self.advance(cursor, plan.stages);
    }

    /// Who reads what a channel carries out of shared memory, while the program goes on.
    fn readers(&self, channel: usize) -> Asynchronous {
        let mut carried: BTreeSet<ValueId> = BTreeSet::new();
        let mut found = Asynchronous::default();
        self.kernel.walk(|id, op| {
            match &op.kind {
                OpKind::Receive(receive) if receive.channel == channel => carried.extend(&op.results),
                OpKind::ViewShared(_) if carried.contains(&op.operands[0]) => carried.extend(&op.results),
                _ => {}
            }
            let reads = op.operands.iter().any(|v| carried.contains(v));
            found.multiplied |= reads && is_wide(self.kernel, id);
            let placed = |v: &ValueId| self.kernel.ty(*v).as_shared().is_some();
            found.stored |= reads && matches!(op.kind, OpKind::Store(_)) && placed(&op.operands[0]);
        });
        found
    }

    /// Each warp of the role arrives once all its lanes are here.
    fn arrive(&mut self, mbarrier: Addr) {
        if self.crew.single {
            return self.f.mbarrier_arrive(mbarrier);
        }
        self.f.emit(crate::ptx::Inst::BarWarpSync { mask: Operand::Imm(0xffff_ffff) });
        let lane = self.lane();
        let leader = self.f.setp(Cmp::Eq, Ty::S32, lane, 0);
        self.f.emit_if(leader, Hopper::MbarrierArrive { addr: mbarrier, count: None }.into());
    }

    /// `release`: each warp arrives at the "empty" mbarrier once its lanes have read.
    pub(crate) fn release(&mut self, release: &Release) {
        let plan = self.shared.channels[&release.channel];
        let (cursor, held) = match self.channels.release.get(&release.channel) {
            Some(&known) => known,
            None => {
                let cursor = self.cursor(0);
                let held = self.hoist_state(|f| f.mov_imm(Ty::B32, 0));
                self.channels.release.insert(release.channel, (cursor, held));
                (cursor, held)
            }
        };
        let skip = self.f.label();
        if release.lagging {
            let first = self.f.setp(Cmp::Eq, Ty::S32, held, 0);
            self.f.mov_to(Ty::B32, held, 1);
            self.f.bra_if(first, skip, true);
        }
        let empty = self.mbarrier(release.channel, cursor.stage, true);
        if self.readers(release.channel).stored {
            self.wait_for_bulk_stores();
        }
        self.arrive(empty);
        self.advance(cursor, plan.stages);
        if release.lagging {
            self.f.place(skip);
        }
    }

    /// Initialises the mbarriers of all channels, once for the block.
    pub(super) fn init_channels(&mut self) {
        let channels: Vec<ChannelPlan> =
            self.shared.channels.values().copied().filter(|plan| plan.barriers.is_some()).collect();
        if channels.is_empty() {
            return;
        }
        let tid = self.tid();
        let base = self.shared_base();
        let skip = self.f.label();
        let others = self.f.setp(Cmp::Ne, Ty::S32, tid, 0);
        self.f.bra_if(others, skip, false);
        for plan in channels {
            for stage in 0..plan.stages {
                let barriers = plan.barriers.expect(MBARRIERS);
                let at = |index: u32| Addr::reg(base, i64::from(barriers + 8 * index));
                self.f.mbarrier_init(at(stage), i64::from(plan.senders));
                if !plan.once() {
                    self.f.mbarrier_init(at(plan.stages + stage), i64::from(plan.receivers));
                }
            }
        }
        self.f.hopper(Hopper::FenceMbarrierInit);
        self.f.place(skip);
        self.f.bar_sync();
    }

    /// Where a shared tile lies: a register, and a constant to add.
    pub(crate) fn shared_at(&mut self, value: ValueId) -> (Reg, u32) {
        match self.stages.get(&value) {
            Some(&stage) => (stage, 0),
            None => (self.shared_base(), self.shared.tiles[&value]),
        }
    }

    /// A view of a shared tile.
    pub(crate) fn alias_shared(&mut self, view: ValueId, of: ValueId) {
        if let Some(&stage) = self.stages.get(&of) {
            self.stages.insert(view, stage);
        }
    }
}

/// The first elements of the boxes of a tile.
pub(super) fn corners(map: &MapPlan, shape: &[usize]) -> Vec<Vec<usize>> {
    let mut corners = vec![vec![0; shape.len()]];
    for (&axis, &side) in map.axes.iter().zip(&map.box_dims) {
        let steps: Vec<usize> = (0..shape[axis]).step_by(side as usize).collect();
        corners = steps
            .iter()
            .flat_map(|&at| {
                corners.iter().map(move |corner| {
                    let mut corner = corner.clone();
                    corner[axis] = at;
                    corner
                })
            })
            .collect();
    }
    corners
}

/// A fresh register of a truth value that changes as the program runs.
pub(super) fn flag(f: &mut crate::ptx::FuncBuilder) -> Reg {
    let flag = f.reg(RegClass::B32);
    f.mov_to(Ty::B32, flag, 0);
    flag
}
