//! `cumsum`: the inclusive prefix sum along an axis. Floats accumulate in f32.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::{Axis, Number, Tile, shape};
use crate::ir::{Elem, Type};

/// Tile -> tile of the same type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cumsum {
    /// The scanned axis.
    pub axis: usize,
    /// Whether the sum runs from the last element to the first.
    pub reverse: bool,
}

impl TileOp for Cumsum {
    fn name(&self) -> &'static str {
        "cumsum"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("axis", Attr::Int(self.axis as i64)), ("reverse", Attr::Bool(self.reverse))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "cumsum").then(|| Ok(Self { axis: attrs.index("axis")?, reverse: attrs.flag("reverse")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [x] = super::rule::operands::<1>("cumsum", operands)?;
        let x = super::rule::tile("cumsum", x)?;
        super::rule::axis(self.axis, x.rank())?;
        if x.elem == Elem::Bool {
            return Err(OpError::new(Code::ElementType, "`cumsum` over a `bool` tile")
                .help("convert it first: `.cast::<i32>()`"));
        }
        Ok(vec![Type::Tile(x.clone())])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

// ---- in kernels

/// The inclusive prefix sum along an axis. Negative axes count from the last.
#[track_caller]
pub fn cumsum<T: Number>(x: Tile<T>, axis: impl Axis) -> Tile<T> {
    scan(x, axis.number(), false)
}

/// The inclusive sum from each element to the last along an axis.
#[track_caller]
pub fn cumsum_reverse<T: Number>(x: Tile<T>, axis: impl Axis) -> Tile<T> {
    scan(x, axis.number(), true)
}

#[track_caller]
fn scan<T: Number>(x: Tile<T>, axis: i64, reverse: bool) -> Tile<T> {
    Tile::new(shape::with_shape(x.raw(), |from, at| {
        let axis = shape::resolve(axis, from.len())?;
        Ok(at.op(Cumsum { axis, reverse }, &[x.raw()]))
    }))
}

impl<T: Number> Tile<T> {
    /// See [`cumsum`].
    #[track_caller]
    pub fn cumsum(self, axis: impl Axis) -> Self {
        cumsum(self, axis)
    }

    /// See [`cumsum_reverse`].
    #[track_caller]
    pub fn cumsum_reverse(self, axis: impl Axis) -> Self {
        cumsum_reverse(self, axis)
    }
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Cumsum {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        Some(crate::cpu::reduce::cumsum(operands.tile(), self.axis, self.reverse))
    }
}

// ---- in PTX

use super::place::{Natural, Place, PlaceCx, Want};
use crate::layout::Layout;

impl Place for Cumsum {
    fn natural(&self, cx: &PlaceCx<'_>, operands: &[Option<Natural>]) -> Option<Natural> {
        let default = || cx.default_layout(cx.result());
        Some(Natural {
            layout: operands[0].as_ref().map_or_else(default, |x| x.layout.clone()),
            weight: 2,
            soft: false,
        })
    }
    fn wants(&self, cx: &PlaceCx<'_>, operands: &[Option<Natural>], _: Option<&Layout>) -> Vec<Want> {
        self.natural(cx, operands).map_or_else(Vec::new, |n| cx.all(&n.layout))
    }
}

use crate::ir::{Class, Kernel, Op, OpId};
use crate::layout::ThreadOffset;
use crate::lower::{LowerCx, int_ty};
use crate::ptx::{Cmp, IntOp, Operand, PredOp, Reg, ShflMode, Space, Ty};

/// A scan goes over the bits of the axis from the lowest: at each bit, the elements in the upper halves of blocks twice
/// as long as before add the last element of their lower half (Sklansky). Where that element is follows from where the
/// layout keeps each bit: in a register, a lane or a warp.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The flat index bit.
    bit: u32,
    /// All lower bits of the axis.
    lower: u32,
}

/// Masks of location bits that hold given flat index bits.
struct Where {
    reg: usize,
    lane: u32,
    warp: u32,
}

fn location(layout: &Layout, bits: u32) -> Where {
    let mask =
        |bases: &[u32]| bases.iter().enumerate().fold(0u32, |m, (i, b)| m | u32::from(b & bits != 0) << i);
    Where { reg: mask(layout.reg()) as usize, lane: mask(layout.lane()), warp: mask(layout.warp()) }
}

impl super::lower::Lower for Cumsum {
    fn scratch(&self, kernel: &Kernel, op: &Op) -> u32 {
        let Some(layout) = &kernel.values[op.operands[0]].layout else { return 0 };
        if layout.warp_bits_on(self.axis) == 0 {
            return 0;
        }
        let tile = kernel.tile(op.operands[0]);
        let bytes = if tile.elem == Elem::I64 { 8 } else { 4 };
        bytes * tile.numel() as u32
    }

    fn lower(&self, cx: &mut LowerCx<'_>, id: OpId) {
        let op = cx.kernel.ops[id].clone();
        let x = op.operands[0];
        let (elem, layout) = (cx.elem(x), cx.layout(x).clone());
        let partial = if elem.is_float() { Elem::F32 } else { elem };
        let mut values: Vec<Operand> = cx.values(x).into_iter().map(|v| cx.widen(elem, v)).collect();
        let axis = if layout.shape()[self.axis] == 1 { 0 } else { layout.axis_bits(self.axis) };
        let mut exchanged = false;
        for bit in (0..32).map(|i| 1u32 << i).filter(|bit| axis & bit != 0) {
            let step = Step { bit, lower: axis & (bit - 1) };
            let (here, below) = (location(&layout, bit), location(&layout, step.lower));
            if here.warp | below.warp == 0 {
                self.in_warp(cx, partial, &here, &below, &mut values);
            } else {
                if exchanged {
                    cx.barrier();
                }
                exchanged = true;
                self.across_warps(cx, partial, id, &layout, step, &here, &mut values);
            }
        }
        let out = if elem.is_float() { cx.narrow_all(elem, &values) } else { values };
        cx.bind_result(id, out);
    }
}

impl Cumsum {
    /// `sum + other`, in the order of the scan.
    fn add(cx: &mut LowerCx<'_>, elem: Elem, sum: Operand, other: Operand) -> Operand {
        match elem.class() {
            Class::Float => cx.f.add_f32(other, sum).into(),
            Class::Int | Class::Bool => cx.f.int(IntOp::Add, int_ty(elem), other, sum),
        }
    }

    /// Sets or clears bits of a location: the source of an element. Forward: the bit clear, the lower ones set.
    fn source(&self, at: u32, bit: u32, lower: u32) -> u32 {
        if self.reverse { (at | bit) & !lower } else { (at & !bit) | lower }
    }

    /// Whether an element whose location has these bits set receives a sum at this step.
    fn receives(&self, at: u32, bit: u32) -> bool {
        (at & bit != 0) != self.reverse
    }

    fn in_warp(&self, cx: &mut LowerCx<'_>, elem: Elem, here: &Where, below: &Where, values: &mut [Operand]) {
        let old = values.to_vec();
        let lane = (here.lane | below.lane != 0).then(|| cx.lane());
        let from = lane.map(|lane| {
            let (set, clear) = if self.reverse { (here.lane, below.lane) } else { (below.lane, here.lane) };
            let kept = cx.f.int(IntOp::And, Ty::B32, lane, !clear as i32);
            cx.f.int(IntOp::Or, Ty::B32, kept, set as i32)
        });
        let receives = match lane {
            Some(lane) if here.lane != 0 => Some(self.bit_test(cx, lane, here.lane)),
            Some(_) | None => None,
        };
        let mut fetched: std::collections::BTreeMap<usize, Operand> = std::collections::BTreeMap::new();
        for reg in 0..values.len() {
            if here.reg != 0 && !self.receives(reg as u32, here.reg as u32) {
                continue;
            }
            let source = self.source(reg as u32, here.reg as u32, below.reg as u32) as usize;
            let other = match from {
                None => old[source],
                Some(from) => match fetched.get(&source) {
                    Some(&known) => known,
                    None => {
                        let value = cx.shuffle(elem, ShflMode::Idx, old[source], from);
                        fetched.insert(source, value);
                        value
                    }
                },
            };
            let sum = Self::add(cx, elem, old[reg], other);
            values[reg] = match receives {
                Some(pred) => cx.f.selp(crate::lower::move_ty(elem), sum, old[reg], pred),
                None => sum,
            };
        }
    }

    /// True where the bit of `index` says that an element receives.
    fn bit_test(&self, cx: &mut LowerCx<'_>, index: Operand, mask: u32) -> Reg {
        let bits = cx.f.int(IntOp::And, Ty::B32, index, mask as i32);
        cx.f.setp(if self.reverse { Cmp::Eq } else { Cmp::Ne }, Ty::S32, bits, 0)
    }

    #[expect(clippy::too_many_arguments, reason = "one step of a scan has this many properties")]
    fn across_warps(
        &self,
        cx: &mut LowerCx<'_>,
        elem: Elem,
        id: OpId,
        layout: &Layout,
        step: Step,
        here: &Where,
        values: &mut [Operand],
    ) {
        let (at, bytes) = ((cx.shared_base(), cx.shared.scratch[&id]), if elem == Elem::I64 { 8 } else { 4 });
        let scaled = |base: u32| base * bytes;
        let all = ThreadOffset {
            lane: layout.lane().map(scaled),
            warp: layout.warp().iter().map(|&b| scaled(b)).collect(),
        };
        // Writers: the elements that are sources of others.
        let sources = self.source(0, step.bit, step.lower);
        let moving = step.bit | step.lower;
        let writers = self.thread_matches(cx, layout, moving, sources);
        for (reg, &value) in values.iter().enumerate() {
            let flat = layout.flat(reg, 0, 0);
            let fixed = location(layout, moving).reg;
            let wanted = location(layout, moving & sources).reg;
            if reg & fixed == wanted {
                let addr = cx.shared_address(at, &all, scaled(flat));
                cx.store_vector(elem, &[value], Space::Shared, addr, writers);
            }
        }
        cx.barrier();
        let keep = |base: u32| scaled(base & !moving);
        let rest = ThreadOffset {
            lane: layout.lane().map(keep),
            warp: layout.warp().iter().map(|&b| keep(b)).collect(),
        };
        let receives = if here.reg != 0 {
            None
        } else {
            let mask = here.lane | here.warp << 5;
            let tid = cx.tid();
            Some(self.bit_test(cx, tid.into(), mask))
        };
        for (reg, value) in values.iter_mut().enumerate() {
            if here.reg != 0 && !self.receives(reg as u32, here.reg as u32) {
                continue;
            }
            let flat = (layout.flat(reg, 0, 0) & !moving) | sources;
            let addr = cx.shared_address(at, &rest, scaled(flat));
            let other = cx.load_vector(elem, 1, Space::Shared, addr, None, Operand::Imm(0), false)[0];
            let sum = Self::add(cx, elem, *value, other);
            *value = match receives {
                Some(pred) => cx.f.selp(crate::lower::move_ty(elem), sum, *value, pred),
                None => sum,
            };
        }
    }

    /// A predicate: the thread's lane and warp bits among `moving` are those of `wanted`, and it owns what it holds.
    fn thread_matches(&self, cx: &mut LowerCx<'_>, layout: &Layout, moving: u32, wanted: u32) -> Option<Reg> {
        let (fixed, want) = (location(layout, moving), location(layout, moving & wanted));
        let (mask, value) = (fixed.lane | fixed.warp << 5, want.lane | want.warp << 5);
        let (lanes, warps) = layout.replication();
        let owner = cx.owner(lanes, warps);
        if mask == 0 {
            return owner;
        }
        let tid = cx.tid();
        let bits = cx.f.int(IntOp::And, Ty::B32, tid, mask as i32);
        let matches = cx.f.setp(Cmp::Eq, Ty::S32, bits, value as i32);
        Some(match owner {
            Some(owner) => cx.f.pred(PredOp::And, owner, matches),
            None => matches,
        })
    }
}
