//! Global memory: coalesced layouts, addresses, and the masks of ragged edges.

use std::collections::BTreeMap;

use super::{LowerCx, Slot};
use crate::explain::Reason;
use crate::ir::{Elem, Kernel, TensorFacts, TileType, ValueId};
use crate::layout::{Layout, SharedLayout, ThreadOffset, blocked};
use crate::ops::window::{Start, Steps};
use crate::ptx::{Cmp, CpCache, Inst, IntOp, Operand, PredOp, Reg, Ty};

/// Prologue values of global accesses.
#[derive(Clone, Default)]
pub(super) struct Cache {
    /// Byte offset of a thread inside a tile of a tensor.
    thread: BTreeMap<(usize, Vec<ThreadKey>), Operand>,
    /// Byte stride of an axis.
    stride: BTreeMap<Slot, Reg>,
    /// Byte offset of a coordinate along an axis.
    step: BTreeMap<(Slot, u32), Operand>,
}

/// Bytes of an asynchronous copy.
const PIECE: usize = 16;

type ThreadKey = ([u32; 5], Vec<u32>);

/// The widest access, in elements of up to 16 bytes together, that the facts of a tensor and the start of a window allow
/// along the tensor's unit-stride axis, and what keeps it from 16 bytes.
fn max_vector(kernel: &Kernel, start: Start<'_>) -> (usize, Option<Reason>) {
    let (Some(facts), Some(ty)) = (kernel.facts(start.tensor), kernel.ty(start.tensor).as_tensor()) else {
        return (1, None);
    };
    let (facts, elem): (&TensorFacts, Elem) = (facts, ty.elem);
    let Some(unit) = facts.unit_axis else { return (1, Some(Reason::NoUnitAxis)) };
    if elem == Elem::Bool {
        return (1, Some(Reason::Truth));
    }
    let size = elem.bytes() as u32;
    let strides = facts.stride_align.iter().enumerate().filter(|(axis, _)| *axis != unit);
    let strides = strides.map(|(axis, &bytes)| (bytes / size, Reason::Stride { axis, bytes }));
    let extent = facts.extent_align.get(unit).copied().unwrap_or(1);
    let limits = [(facts.align / size, Reason::Pointer(facts.align))];
    let begins = match start.divisor(kernel, unit) {
        0 => None,
        divisor => Some((divisor, Reason::Start(divisor))),
    };
    let limits = limits.into_iter().chain(strides).chain([(extent, Reason::Extent(extent))]).chain(begins);
    let (width, reason) = limits.min_by_key(|&(width, _)| width).expect("there are limits");
    match 16 / size {
        full if width >= full => (full as usize, None),
        _ => (width.max(1) as usize, Some(reason)),
    }
}

/// The elements of one access of a tile of a tensor, and why they are no 16 bytes.
pub fn access_width(kernel: &Kernel, start: Start<'_>, layout: &Layout) -> (usize, Option<Reason>) {
    let (widest, reason) = max_vector(kernel, start);
    let unit = kernel.facts(start.tensor).and_then(|facts| facts.unit_axis);
    let width = accesses(layout, unit, widest)[0].regs.len();
    (width, if width < widest { Some(Reason::FewPerThread(width)) } else { reason })
}

/// The layout in which a tile of a tensor is loaded or stored: consecutive lanes at consecutive addresses.
pub fn coalesced(kernel: &Kernel, start: Start<'_>, tile: &TileType, num_warps: usize) -> Layout {
    let rank = tile.rank();
    let unit = kernel.facts(start.tensor).and_then(|f| f.unit_axis).filter(|&axis| axis < rank);
    let order: Vec<usize> = unit.into_iter().chain((0..rank).rev().filter(|&a| Some(a) != unit)).collect();
    let widest = max_vector(kernel, start).0;
    let per_thread = (tile.numel() / (32 * num_warps)).max(1);
    let vector = if unit.is_some() { widest.min(per_thread) } else { 1 };
    blocked(&tile.shape, &order, vector, num_warps).expect("tile dimensions and warps are powers of two")
}

/// Which threads copy which pieces of 16 bytes of a tile: consecutive lanes consecutive pieces.
pub(super) fn pieces(kernel: &Kernel, tensor: ValueId, place: &SharedLayout, num_warps: usize) -> Layout {
    let unit =
        kernel.facts(tensor).and_then(|facts| facts.unit_axis).expect("pieces lie along the unit axis");
    let order = crate::passes::assign_roles::bulk_order(unit, place.shape.len());
    blocked(&place.shape, &order, PIECE / place.elem_bytes, num_warps)
        .expect("tile dimensions and warps are powers of two")
}

/// One access of a thread: consecutive elements along the unit axis.
struct Access {
    /// Registers, in ascending address.
    regs: Vec<usize>,
    /// The first element's constant coordinate along each axis.
    coords: Vec<u32>,
}

/// Where a thread is inside along an axis, counted from its own coordinate on.
#[derive(Clone, Copy)]
enum Room {
    /// An axis of one element: a condition of its own says whether it is inside.
    One,
    /// The window does not begin before the tensor: so many elements are inside.
    From(Operand),
    /// The window may begin before the tensor: elements are inside from the coordinate `-first` on, `count` of them.
    Between { first: Operand, count: Operand },
}

/// A window of a tensor, as a thread sees it.
pub struct Window {
    param: usize,
    elem: Elem,
    unit: Option<usize>,
    accesses: Vec<Access>,
    /// Address of the thread's first element, if coordinates were all zero constants.
    base: Operand,
    /// What is inside along each axis.
    room: Vec<Room>,
    /// Whether the indices of axes of one element are inside; `None` if there are none.
    inside: Option<Reg>,
}

impl LowerCx<'_> {
    /// Prepares the accesses of a window whose tile is in `layout`.
    pub fn window(&mut self, start: Start<'_>, layout: &Layout) -> Window {
        let widest = max_vector(self.kernel, start).0;
        self.window_of(start, layout, widest)
    }

    /// As [`LowerCx::window`], in pieces of 16 bytes, of which the tensor may end inside.
    pub(super) fn piece_window(&mut self, start: Start<'_>, layout: &Layout) -> Window {
        let (_, _, elem) = self.tensor(start.tensor);
        self.window_of(start, layout, PIECE / elem.bytes())
    }

    fn window_of(&mut self, start: Start<'_>, layout: &Layout, widest: usize) -> Window {
        let (param, unit, elem) = self.tensor(start.tensor);
        let shape = layout.shape().to_vec();
        let starts = start.index.iter().zip(&shape);
        let starts: Vec<Operand> =
            starts.map(|(&i, &n)| self.window_start(i, start.steps.stride(n))).collect();
        let threads = thread_coords(layout);
        let (room, inside) = self.bounds((param, start.steps), &shape, &starts, &threads);
        let base = self.base(param, elem, &starts, &threads);
        let accesses = accesses(layout, unit, widest);
        Window { param, elem, unit, accesses, base, room, inside }
    }

    /// The parameter of a tensor, its unit-stride axis and its element type.
    pub(super) fn tensor(&self, tensor: ValueId) -> (usize, Option<usize>, Elem) {
        let param =
            self.kernel.params.iter().position(|p| p.value == tensor).expect("tensors are parameters");
        let unit = self.kernel.facts(tensor).expect("a tensor parameter has facts").unit_axis;
        (param, unit, self.kernel.ty(tensor).as_tensor().expect("a tensor").elem)
    }

    /// The first element of window `index` along an axis, in 64 bits, where windows are `stride` elements apart. Those whose
    /// start would not fit are outside of every tensor, and so is the one that stands for them.
    pub(super) fn window_start(&mut self, index: ValueId, stride: usize) -> Operand {
        let (ty, mut i) = (super::int_ty(self.elem(index)), self.scalar(index));
        if ty == Ty::S64 {
            i = self.f.int(IntOp::Max, Ty::S64, i, -(1i64 << 31));
            i = self.f.int(IntOp::Min, Ty::S64, i, 1i64 << 31);
        }
        let wide = self.f.cvt(Ty::S64, ty, i);
        self.f.mul_lo_s64(wide, stride as i64)
    }

    fn base(&mut self, param: usize, elem: Elem, starts: &[Operand], threads: &[ThreadOffset]) -> Operand {
        let mut base: Operand = self.param(Slot::Pointer { param }).into();
        for (axis, &start) in starts.iter().enumerate() {
            let stride = self.byte_stride(param, axis, elem);
            let offset = self.f.mul_lo_s64(start, stride);
            base = self.f.add_s64(base, offset);
        }
        let key = (param, threads.iter().map(|t| (t.lane, t.warp.clone())).collect::<Vec<_>>());
        let offset = match self.global.thread.get(&key) {
            Some(&known) => known,
            None => {
                let mut parts = Vec::new();
                for (axis, thread) in threads.iter().enumerate() {
                    let coord = self.linear(thread);
                    parts.push((coord, self.byte_stride(param, axis, elem)));
                }
                let offset = self.hoist(|f| {
                    let mut sum = Operand::Imm(0);
                    for (coord, stride) in parts {
                        let wide = f.cvt(Ty::S64, Ty::U32, coord);
                        let part = f.mul_lo_s64(wide, stride);
                        sum = f.add_s64(sum, part);
                    }
                    sum
                });
                self.global.thread.insert(key, offset);
                offset
            }
        };
        self.f.add_s64(base, offset)
    }

    /// The stride of an axis in bytes; the unit axis is known.
    pub(super) fn byte_stride(&mut self, param: usize, axis: usize, elem: Elem) -> Operand {
        let unit = self.kernel.facts(self.kernel.params[param].value).and_then(|f| f.unit_axis);
        if unit == Some(axis) {
            return Operand::Imm(elem.bytes() as i64);
        }
        let slot = Slot::Stride { param, axis };
        if let Some(&known) = self.global.stride.get(&slot) {
            return known.into();
        }
        let stride = self.param(slot);
        let bytes = self.hoist(|f| {
            let scaled = f.mul_lo_s64(stride, elem.bytes() as i64);
            f.materialize(Ty::S64, scaled)
        });
        self.global.stride.insert(slot, bytes);
        bytes.into()
    }

    /// What is inside along each axis, and whether axes of one element are inside at all.
    fn bounds(
        &mut self,
        (param, steps): (usize, Steps),
        shape: &[usize],
        starts: &[Operand],
        threads: &[ThreadOffset],
    ) -> (Vec<Room>, Option<Reg>) {
        let mut inside: Option<Reg> = None;
        let mut room = Vec::new();
        for (axis, (&size, &start)) in shape.iter().zip(starts).enumerate() {
            let extent = self.param(Slot::Extent { param, axis });
            let extent = self.hoist(|f| f.cvt(Ty::S64, Ty::U32, extent));
            if size == 1 {
                // As unsigned numbers, negative indices are beyond every extent.
                let ok = self.f.setp(Cmp::Lt, Ty::U64, start, extent);
                inside = Some(match inside {
                    Some(before) => self.f.pred(PredOp::And, before, ok),
                    None => ok,
                });
                room.push(Room::One);
                continue;
            }
            let left = self.f.sub_s64(extent, start);
            let left = self.up_to(left, size);
            let coord = self.linear(&threads[axis]);
            let never_before = matches!(start, Operand::Imm(start) if start >= 0);
            if steps == Steps::Elements && !never_before {
                let first = self.f.sub_s64(0, start);
                let first = self.up_to(first, size);
                let count = self.f.sub_s32(left, first);
                let count = self.f.int(IntOp::Max, Ty::S32, count, 0);
                room.push(Room::Between { first: self.f.sub_s32(coord, first), count });
                continue;
            }
            let before = self.f.setp(Cmp::Lt, Ty::S64, start, 0);
            let left = self.f.selp(Ty::S32, 0, left, before);
            room.push(Room::From(self.f.sub_s32(left, coord)));
        }
        (room, inside)
    }

    /// A number of elements of a tile along an axis of `size`, out of one that may be less or more.
    fn up_to(&mut self, count: Operand, size: usize) -> Operand {
        let count = self.f.int(IntOp::Max, Ty::S64, count, 0);
        let count = self.f.int(IntOp::Min, Ty::S64, count, size as i64);
        self.f.cvt(Ty::S32, Ty::S64, count)
    }

    /// Whether a constant coordinate beyond the thread's own is inside along an axis; `None` if other conditions say so.
    fn fits(&mut self, room: Room, coord: u32) -> Option<Reg> {
        match room {
            Room::One => None,
            Room::From(room) => Some(self.f.setp(Cmp::Gt, Ty::S32, room, coord)),
            Room::Between { first, count } => {
                // As unsigned numbers, coordinates before the first are beyond every count.
                let at = self.f.add_s32(first, coord);
                Some(self.f.setp(Cmp::Lt, Ty::U32, at, count))
            }
        }
    }

    /// The address of an access, and the predicate under which it is inside the tensor.
    fn place(&mut self, window: &Window, at: usize, masks: &mut Masks) -> (crate::ptx::Addr, Option<Reg>) {
        let access = &window.accesses[at];
        let mut constant = 0i64;
        let far: Vec<u32> = access
            .coords
            .iter()
            .enumerate()
            .map(|(axis, &c)| if window.unit == Some(axis) { 0 } else { c })
            .collect();
        let address = self.row_address(window, far, masks);
        if let Some(unit) = window.unit {
            constant = i64::from(access.coords[unit]) * window.elem.bytes() as i64;
        }
        let mut pred = window.inside;
        for (axis, &room) in window.room.iter().enumerate() {
            let key = (axis, access.coords[axis]);
            let ok = match masks.axes.get(&key) {
                Some(&known) => known,
                None => {
                    let Some(ok) = self.fits(room, access.coords[axis]) else { continue };
                    masks.axes.insert(key, ok);
                    ok
                }
            };
            pred = Some(match pred {
                None => ok,
                Some(before) => {
                    *masks.both.entry((before, ok)).or_insert_with(|| self.f.pred(PredOp::And, before, ok))
                }
            });
        }
        let base = self.f.materialize(Ty::B64, address);
        (crate::ptx::Addr::reg(base, constant), pred)
    }

    /// The address of a row. Only the steps of single coordinate bits are kept in registers: a row is one step beyond
    /// the row without its highest bit.
    fn row_address(&mut self, window: &Window, row: Vec<u32>, masks: &mut Masks) -> Operand {
        if let Some(&known) = masks.rows.get(&row) {
            return known;
        }
        let Some(axis) = row.iter().rposition(|&c| c != 0) else { return window.base };
        let bit = 1 << row[axis].ilog2();
        let mut before = row.clone();
        before[axis] ^= bit;
        let start = self.row_address(window, before, masks);
        let step = self.step(window.param, axis, bit, window.elem);
        let address = self.f.add_s64(start, step);
        masks.rows.insert(row, address);
        address
    }

    /// The byte offset of a constant coordinate along an axis.
    fn step(&mut self, param: usize, axis: usize, coord: u32, elem: Elem) -> Operand {
        let key = (Slot::Stride { param, axis }, coord);
        if let Some(&known) = self.global.step.get(&key) {
            return known;
        }
        let stride = self.byte_stride(param, axis, elem);
        let step = self.hoist(|f| f.mul_lo_s64(stride, i64::from(coord)));
        self.global.step.insert(key, step);
        step
    }

    /// Loads a window: one operand for each register of the layout; elements outside are `pad`.
    pub fn load_window(&mut self, window: &Window, read_only: bool, pad: Operand) -> Vec<Operand> {
        let count = window.accesses.iter().map(|a| a.regs.len()).sum();
        let mut out = vec![Operand::Imm(0); count];
        let mut masks = Masks::default();
        for at in 0..window.accesses.len() {
            let (addr, pred) = self.place(window, at, &mut masks);
            let regs = window.accesses[at].regs.clone();
            let loaded = self.load_vector(
                window.elem,
                regs.len(),
                crate::ptx::Space::Global,
                addr,
                pred,
                pad,
                read_only,
            );
            for (reg, value) in regs.into_iter().zip(loaded) {
                out[reg] = value;
            }
        }
        out
    }

    /// Stores a window; `owner` elects the thread that stores each element.
    pub fn store_window(&mut self, window: &Window, values: &[Operand], owner: Option<Reg>) {
        let mut masks = Masks::default();
        for at in 0..window.accesses.len() {
            let (addr, mut pred) = self.place(window, at, &mut masks);
            if let Some(owner) = owner {
                pred = Some(match pred {
                    None => owner,
                    Some(before) => *masks
                        .both
                        .entry((before, owner))
                        .or_insert_with(|| self.f.pred(PredOp::And, before, owner)),
                });
            }
            let part: Vec<Operand> = window.accesses[at].regs.iter().map(|&r| values[r]).collect();
            self.store_vector(window.elem, &part, crate::ptx::Space::Global, addr, pred);
        }
    }
}

impl LowerCx<'_> {
    /// Starts to copy a window of pieces to these places in shared memory; `owner` elects the thread that copies each. What
    /// lies outside of the tensor becomes zero.
    pub(super) fn copy_window(&mut self, window: &Window, to: &[crate::ptx::Addr], owner: Option<Reg>) {
        let facts = self.kernel.facts(self.kernel.params[window.param].value);
        let unit = window.unit.expect("pieces lie along the unit axis");
        let bytes = window.elem.bytes();
        let whole = facts.is_some_and(|f| f.extent_align[unit] as usize * bytes >= PIECE);
        let mut masks = Masks::default();
        let mut sizes: BTreeMap<(Option<Reg>, u32), Operand> = BTreeMap::new();
        for (at, &dst) in to.iter().enumerate() {
            let (src, pred) = self.place(window, at, &mut masks);
            let first = if whole { 0 } else { window.accesses[at].coords[unit] };
            let size = match sizes.get(&(pred, first)) {
                Some(&known) => known,
                None => {
                    let inside = match window.room[unit] {
                        Room::From(room) if !whole => {
                            let left = self.f.sub_s32(room, i64::from(first));
                            let left = self.f.int(IntOp::Min, Ty::S32, left, (PIECE / bytes) as i64);
                            self.f.mul_lo_s32(left, bytes as i64)
                        }
                        Room::From(_) | Room::One | Room::Between { .. } => Operand::Imm(PIECE as i64),
                    };
                    let size = pred.map_or(inside, |pred| self.f.selp(Ty::B32, inside, 0, pred));
                    sizes.insert((pred, first), size);
                    size
                }
            };
            let copy =
                Inst::CpAsync { cache: CpCache::Cg, bytes: PIECE as u32, dst, src, src_size: Some(size) };
            self.f.emit_guarded(owner.map(|owner| (owner, false)), copy);
        }
    }
}

/// Values shared by the accesses of one window.
#[derive(Default)]
struct Masks {
    rows: BTreeMap<Vec<u32>, Operand>,
    axes: BTreeMap<(usize, u32), Reg>,
    both: BTreeMap<(Reg, Reg), Reg>,
}

/// The part of each axis' coordinate that depends on the thread.
fn thread_coords(layout: &Layout) -> Vec<ThreadOffset> {
    (0..layout.shape().len())
        .map(|axis| {
            let (mask, size) = (layout.axis_bits(axis), layout.shape()[axis]);
            let coord = |base: u32| coordinate(base, mask, size);
            ThreadOffset {
                lane: layout.lane().map(coord),
                warp: layout.warp().iter().map(|&b| coord(b)).collect(),
            }
        })
        .collect()
}

/// The coordinate of a flat index along the axis with these bits.
fn coordinate(flat: u32, mask: u32, size: usize) -> u32 {
    if size == 1 { 0 } else { (flat & mask) >> mask.trailing_zeros() }
}

/// Groups registers into accesses of up to `widest` consecutive elements along the unit axis.
fn accesses(layout: &Layout, unit: Option<usize>, widest: usize) -> Vec<Access> {
    let first = unit
        .filter(|&axis| layout.shape()[axis] > 1)
        .map(|axis| 1u32 << layout.axis_bits(axis).trailing_zeros());
    let mut inner: Vec<usize> = Vec::new();
    if let Some(first) = first {
        while 1 << (inner.len() + 1) <= widest {
            let wanted = first << inner.len();
            match layout.reg().iter().position(|&b| b == wanted) {
                Some(bit) => inner.push(bit),
                None => break,
            }
        }
    }
    let outer: Vec<usize> = (0..layout.reg().len()).filter(|b| !inner.contains(b)).collect();
    let spread = |index: usize, bits: &[usize]| {
        bits.iter().enumerate().fold(0, |r, (i, bit)| r | (index >> i & 1) << bit)
    };
    (0..1 << outer.len())
        .map(|index| {
            let start = spread(index, &outer);
            let regs = (0..1 << inner.len()).map(|i| start | spread(i, &inner)).collect();
            let coords = layout.coords(start, 0, 0).into_iter().map(|c| c as u32).collect();
            Access { regs, coords }
        })
        .collect()
}
