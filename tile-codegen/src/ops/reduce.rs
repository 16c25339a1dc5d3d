//! `reduce`: sum, max or min over axes, which stay as size 1. Floats accumulate in f32.

use super::reshape::Reshape;
use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::{Axes, Number, Tile, shape};
use crate::ir::{Dim, Elem, TileType, Type};

/// How elements combine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceKind {
    /// Sum; 16-bit floats accumulate in f32 and round once, integers wrap, `bool` is refused.
    Sum,
    /// Maximum; NaN wins when `propagate_nan`, else it is ignored.
    Max,
    /// Minimum; likewise.
    Min,
}

impl ReduceKind {
    /// The name in IR text.
    pub fn name(self) -> &'static str {
        match self {
            ReduceKind::Sum => "sum",
            ReduceKind::Max => "max",
            ReduceKind::Min => "min",
        }
    }
}

/// Tile -> tile with `axes` of size 1.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reduce {
    /// How elements combine.
    pub kind: ReduceKind,
    /// The axes that are reduced, ascending.
    pub axes: Vec<usize>,
    /// Whether NaN wins a max or min (for a sum it always does).
    pub propagate_nan: bool,
}

impl TileOp for Reduce {
    fn name(&self) -> &'static str {
        "reduce"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![
            ("kind", Attr::Word(self.kind.name())),
            ("axes", Attr::list(&self.axes)),
            ("propagate_nan", Attr::Bool(self.propagate_nan)),
        ]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "reduce").then(|| {
            let kind = attrs.word("kind")?;
            let kind =
                [ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min].into_iter().find(|k| k.name() == kind);
            let kind =
                kind.ok_or_else(|| OpError::new(Code::Parse, "`kind` must be `sum`, `max` or `min`"))?;
            Ok(Self { kind, axes: attrs.indices("axes")?, propagate_nan: attrs.flag("propagate_nan")? })
        })
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [x] = super::rule::operands::<1>(self.kind.name(), operands)?;
        let x = super::rule::tile(self.kind.name(), x)?;
        if x.elem == Elem::Bool {
            return Err(OpError::new(
                Code::ElementType,
                format!("`{}` over a `bool` tile", self.kind.name()),
            )
            .help("convert it first: `.cast::<i32>()`"));
        }
        Ok(vec![Type::Tile(rule(x, &self.axes)?)])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

/// The shape rule: reduced axes become 1.
pub fn rule<D: Dim>(x: &TileType<D>, axes: &[usize]) -> Result<TileType<D>, OpError> {
    super::rule::axes(axes, x.rank())?;
    let size = |(axis, d): (usize, &D)| if axes.contains(&axis) { D::from_usize(1) } else { d.clone() };
    Ok(x.with_shape(x.shape.iter().enumerate().map(size).collect()))
}

// ---- in kernels

macro_rules! reductions {
    ($($(#[doc = $doc:literal])+ $f:ident $keep:ident $kind:ident $nan:literal;)*) => {
        $(
            $(#[doc = $doc])+
            /// `axes` is one axis, a tuple of axes or `ALL`; they are dropped from the shape.
            #[track_caller]
            pub fn $f<T: Number>(x: Tile<T>, axes: impl Axes) -> Tile<T> {
                reduced(x, axes, false, |axes| Reduce { kind: ReduceKind::$kind, axes, propagate_nan: $nan })
            }

            $(#[doc = $doc])+
            /// `axes` is one axis, a tuple of axes or `ALL`; they stay in the shape with size 1.
            #[track_caller]
            pub fn $keep<T: Number>(x: Tile<T>, axes: impl Axes) -> Tile<T> {
                reduced(x, axes, true, |axes| Reduce { kind: ReduceKind::$kind, axes, propagate_nan: $nan })
            }
        )*

        impl<T: Number> Tile<T> {
            $(
                $(#[doc = $doc])+
                /// `axes` is one axis, a tuple of axes or `ALL`; they are dropped from the shape.
                #[track_caller]
                pub fn $f(self, axes: impl Axes) -> Self {
                    $f(self, axes)
                }

                $(#[doc = $doc])+
                /// `axes` is one axis, a tuple of axes or `ALL`; they stay in the shape with size 1.
                #[track_caller]
                pub fn $keep(self, axes: impl Axes) -> Self {
                    $keep(self, axes)
                }
            )*
        }
    };
}
reductions! {
    /// The sum over axes. 16-bit floats accumulate in f32 and round once; integers wrap.
    sum sum_keepdims Sum false;
    /// The maximum over axes; NaN elements are ignored.
    max max_keepdims Max false;
    /// The minimum over axes; NaN elements are ignored.
    min min_keepdims Min false;
    /// The maximum over axes; NaN wins.
    max_nan max_nan_keepdims Max true;
    /// The minimum over axes; NaN wins.
    min_nan min_nan_keepdims Min true;
}

#[track_caller]
fn reduced<T: Number>(
    x: Tile<T>,
    axes: impl Axes,
    keep: bool,
    op: impl FnOnce(Vec<usize>) -> Reduce,
) -> Tile<T> {
    Tile::new(shape::with_shape(x.raw(), |from, at| {
        let mut axes = match axes.numbers() {
            Some(numbers) => shape::axes(&numbers, from.len())?,
            None => (0..from.len()).collect(),
        };
        super::rule::axes(&axes, from.len())?;
        axes.sort_unstable();
        let left: Vec<usize> = (0..from.len()).filter(|i| !axes.contains(i)).map(|i| from[i]).collect();
        let result = at.op(op(axes), &[x.raw()]);
        Ok(if keep { result } else { at.op(Reshape { shape: left }, &[result]) })
    }))
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Reduce {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        Some(crate::cpu::reduce::reduce(&operands.tile(), self.kind, &self.axes, self.propagate_nan))
    }
}

// ---- in PTX

use super::place::{Natural, Place, PlaceCx, Want};
use crate::layout::Layout;

impl Reduce {
    fn operand_layout(&self, cx: &PlaceCx<'_>, operands: &[Option<Natural>]) -> Layout {
        let default = || cx.default_layout(cx.tile(0).expect("a reduction takes a tile"));
        operands[0].as_ref().map_or_else(default, |x| x.layout.clone())
    }
}

impl Place for Reduce {
    fn natural(&self, cx: &PlaceCx<'_>, operands: &[Option<Natural>]) -> Option<Natural> {
        Some(Natural {
            layout: self.operand_layout(cx, operands).project(&self.axes),
            weight: 2,
            soft: false,
        })
    }
    fn wants(&self, cx: &PlaceCx<'_>, operands: &[Option<Natural>], _: Option<&Layout>) -> Vec<Want> {
        cx.all(&self.operand_layout(cx, operands))
    }
}

use crate::ir::{Class, Kernel, Op, OpId};
use crate::layout::ThreadOffset;
use crate::lower::{LowerCx, class, int_ty};
use crate::ptx::{FloatOp, IntOp, Operand, Reg, ShflMode, Space, Ty};

/// Bytes of one partial result in scratch.
fn partial_bytes(elem: Elem) -> u32 {
    if elem == Elem::I64 { 8 } else { 4 }
}

/// The type that partial results are kept in: f32 for all floats.
fn partial_elem(elem: Elem) -> Elem {
    if elem.is_float() { Elem::F32 } else { elem }
}

impl super::lower::Lower for Reduce {
    /// One partial result for each warp along the axes and each element of the result.
    fn scratch(&self, kernel: &Kernel, op: &Op) -> u32 {
        let Some(layout) = &kernel.values[op.operands[0]].layout else { return 0 };
        let warps = axis_warps(layout, &self.axes);
        if warps == 0 {
            return 0;
        }
        let result = kernel.tile(op.results[0]);
        (partial_bytes(result.elem) * result.numel() as u32) << warps.count_ones()
    }

    fn lower(&self, cx: &mut LowerCx<'_>, id: OpId) {
        let op = cx.kernel.ops[id].clone();
        let x = op.operands[0];
        let (elem, layout) = (cx.elem(x), cx.layout(x).clone());
        let partial = partial_elem(elem);
        let values: Vec<Operand> = cx.values(x).into_iter().map(|v| cx.widen(elem, v)).collect();
        let mut sums = self.in_thread(cx, partial, &values, &layout);
        for bit in (0..5).filter(|bit| self.axes.iter().any(|&a| layout.lane_bits_on(a) >> bit & 1 == 1)) {
            for sum in &mut sums {
                let other = cx.shuffle(partial, ShflMode::Bfly, *sum, Operand::Imm(1 << bit));
                *sum = self.combine(cx, partial, *sum, other);
            }
        }
        let warps = axis_warps(&layout, &self.axes);
        if warps != 0 {
            sums = self.across_warps(cx, partial, id, &layout, warps, sums);
        }
        let out = if elem.is_float() { cx.narrow_all(elem, &sums) } else { sums };
        cx.bind_result(id, out);
    }
}

/// The warp bits along the axes.
fn axis_warps(layout: &Layout, axes: &[usize]) -> u32 {
    axes.iter().fold(0, |mask, &axis| mask | layout.warp_bits_on(axis))
}

impl Reduce {
    pub(crate) fn combine(&self, cx: &mut LowerCx<'_>, elem: Elem, a: Operand, b: Operand) -> Operand {
        match elem.class() {
            Class::Float => {
                let op = match (self.kind, self.propagate_nan) {
                    (ReduceKind::Sum, _) => FloatOp::Add,
                    (ReduceKind::Max, true) => FloatOp::MaxNan,
                    (ReduceKind::Max, false) => FloatOp::Max,
                    (ReduceKind::Min, true) => FloatOp::MinNan,
                    (ReduceKind::Min, false) => FloatOp::Min,
                };
                cx.f.float(op, Ty::F32, a, b).into()
            }
            Class::Int | Class::Bool => {
                let op = match self.kind {
                    ReduceKind::Sum => IntOp::Add,
                    ReduceKind::Max => IntOp::Max,
                    ReduceKind::Min => IntOp::Min,
                };
                cx.f.int(op, int_ty(elem), a, b)
            }
        }
    }

    /// Combines the registers that meet in one register of the result, as a tree.
    fn in_thread(
        &self,
        cx: &mut LowerCx<'_>,
        elem: Elem,
        values: &[Operand],
        layout: &Layout,
    ) -> Vec<Operand> {
        let map = layout.project_map(&self.axes);
        let count = layout.project(&self.axes).num_regs();
        let mut out = Vec::with_capacity(count);
        for target in 0..count {
            let mut level: Vec<Operand> =
                values.iter().zip(&map).filter(|(_, m)| **m == target).map(|(v, _)| *v).collect();
            while level.len() > 1 {
                level = level
                    .chunks(2)
                    .map(
                        |pair| {
                            if pair.len() == 2 { self.combine(cx, elem, pair[0], pair[1]) } else { pair[0] }
                        },
                    )
                    .collect();
            }
            out.push(level[0]);
        }
        out
    }

    /// Warps exchange their partial results through scratch, and each combines all of them in the same order.
    fn across_warps(
        &self,
        cx: &mut LowerCx<'_>,
        elem: Elem,
        id: OpId,
        layout: &Layout,
        warps: u32,
        sums: Vec<Operand>,
    ) -> Vec<Operand> {
        let (at, bytes) = ((cx.shared_base(), cx.shared.scratch[&id]), partial_bytes(elem));
        let result = layout.project(&self.axes);
        let plane = bytes * result.numel() as u32;
        let lane = result.lane().map(|b| b * bytes);
        let read = ThreadOffset { lane, warp: result.warp().iter().map(|b| b * bytes).collect() };
        let mut write = read.clone();
        let mut part = plane;
        for (bit, base) in write.warp.iter_mut().enumerate().filter(|(bit, _)| warps >> bit & 1 == 1) {
            debug_assert_eq!(result.warp()[bit], 0, "a reduced axis is gone from the result");
            *base = part;
            part *= 2;
        }
        let (lanes, copies) = result.replication();
        let owner = cx.owner(lanes, copies & !warps);
        for (reg, &sum) in sums.iter().enumerate() {
            let addr = cx.shared_address(at, &write, result.flat(reg, 0, 0) * bytes);
            cx.store_vector(elem, &[sum], Space::Shared, addr, owner);
        }
        cx.barrier();
        let mut out = Vec::new();
        for reg in 0..result.num_regs() {
            let mut total: Option<Operand> = None;
            for part in 0..1u32 << warps.count_ones() {
                let addr = cx.shared_address(at, &read, part * plane + result.flat(reg, 0, 0) * bytes);
                let value = cx.load_vector(elem, 1, Space::Shared, addr, None, Operand::Imm(0), false)[0];
                total = Some(match total {
                    Some(before) => self.combine(cx, elem, before, value),
                    None => value,
                });
            }
            out.extend(total);
        }
        out
    }
}

impl LowerCx<'_> {
    /// An element of another lane; 64-bit elements go in two halves.
    pub fn shuffle(&mut self, elem: Elem, mode: ShflMode, x: Operand, lane: Operand) -> Operand {
        let reg: Reg = self.in_reg(elem, x);
        if class(elem) == crate::ptx::RegClass::B64 {
            let halves = self.f.unpack::<2>(Ty::B64, crate::ptx::RegClass::B32, reg);
            let moved = halves.map(|half| self.f.shfl(mode, half, lane));
            return self.f.pack(Ty::B64, &moved).into();
        }
        self.f.shfl(mode, reg, lane).into()
    }
}
