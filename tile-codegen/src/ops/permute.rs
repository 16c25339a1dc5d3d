//! `permute`: reorders axes; axis `i` of the result is axis `axes[i]` of the operand.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::{Axes, Axis, Element, Tile, shape};
use crate::ir::{Dim, TileType, Type};

/// Tile -> tile.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Permute {
    /// For each result axis, the operand axis.
    pub axes: Vec<usize>,
}

impl TileOp for Permute {
    fn name(&self) -> &'static str {
        "permute"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("axes", Attr::list(&self.axes))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "permute").then(|| Ok(Self { axes: attrs.indices("axes")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [x] = super::rule::operands::<1>("permute", operands)?;
        Ok(vec![Type::Tile(rule(super::rule::tile("permute", x)?, &self.axes)?)])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

/// The shape rule: `axes` names every axis once.
pub fn rule<D: Dim>(x: &TileType<D>, axes: &[usize]) -> Result<TileType<D>, OpError> {
    if axes.len() != x.rank() {
        return Err(OpError::new(
            Code::Rank,
            format!("`permute` of a tile of rank {} needs {} axes, found {}", x.rank(), x.rank(), axes.len()),
        ));
    }
    super::rule::axes(axes, x.rank())?;
    Ok(x.with_shape(axes.iter().map(|&a| x.shape[a].clone()).collect()))
}

// ---- in kernels

/// Reorders axes: axis `i` of the result is axis `axes[i]` of `x`. Negative axes count from the last.
#[track_caller]
pub fn permute<T: Element>(x: Tile<T>, axes: impl Axes) -> Tile<T> {
    Tile::new(shape::with_shape(x.raw(), |from, at| {
        let axes = match axes.numbers() {
            // The operation's rule reports the count.
            Some(numbers) if numbers.len() != from.len() => (0..numbers.len()).collect(),
            Some(numbers) => shape::axes(&numbers, from.len())?,
            None => (0..from.len()).collect(),
        };
        Ok(at.op(Permute { axes }, &[x.raw()]))
    }))
}

/// Swaps the axes of a tile of rank 2.
#[track_caller]
pub fn transpose<T: Element>(x: Tile<T>) -> Tile<T> {
    Tile::new(shape::with_shape(x.raw(), |from, at| match from.len() {
        2 => Ok(at.op(Permute { axes: vec![1, 0] }, &[x.raw()])),
        rank => {
            Err(OpError::new(Code::Rank, format!("`transpose` of a tile of rank {rank}, expected rank 2"))
                .help("name the axes to swap: `transpose_axes(t, 1, 2)`"))
        }
    }))
}

/// Swaps two axes. Negative axes count from the last.
#[track_caller]
pub fn transpose_axes<T: Element>(x: Tile<T>, a: impl Axis, b: impl Axis) -> Tile<T> {
    Tile::new(shape::with_shape(x.raw(), |from, at| {
        let (a, b) = (shape::resolve(a.number(), from.len())?, shape::resolve(b.number(), from.len())?);
        let mut axes: Vec<usize> = (0..from.len()).collect();
        axes.swap(a, b);
        Ok(at.op(Permute { axes }, &[x.raw()]))
    }))
}

impl<T: Element> Tile<T> {
    /// See [`permute`].
    #[track_caller]
    pub fn permute(self, axes: impl Axes) -> Self {
        permute(self, axes)
    }

    /// See [`transpose`].
    #[track_caller]
    pub fn transpose(self) -> Self {
        transpose(self)
    }

    /// See [`transpose_axes`].
    #[track_caller]
    pub fn transpose_axes(self, a: impl Axis, b: impl Axis) -> Self {
        transpose_axes(self, a, b)
    }
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Permute {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let x = operands.tile();
        let (shape, strides) = self.axes.iter().map(|&axis| (x.shape()[axis], x.strides()[axis])).unzip();
        Some(x.with_view(shape, strides, 0))
    }
}

// ---- in PTX

use super::place::{Natural, Place, PlaceCx, Want};
use crate::layout::Layout;

impl Place for Permute {
    fn natural(&self, _: &PlaceCx<'_>, operands: &[Option<Natural>]) -> Option<Natural> {
        let x = operands[0].as_ref()?;
        let layout = x.layout.permute(&self.axes).expect("the shape rule checked the axes");
        Some(Natural { layout, weight: x.weight, soft: x.soft })
    }
    fn wants(&self, cx: &PlaceCx<'_>, _: &[Option<Natural>], result: Option<&Layout>) -> Vec<Want> {
        let back = |r: &Layout| r.inverse_permute(&self.axes).ok();
        result.and_then(back).map_or_else(|| vec![Want::Any], |layout| cx.all(&layout))
    }
}

impl super::lower::Lower for Permute {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let x = cx.kernel.ops[id].operands[0];
        let values = cx.values(x);
        cx.bind_result(id, values);
    }
}
