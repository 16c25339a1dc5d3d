//! `broadcast_to`: repeats size-1 and missing leading axes, by the rules of NumPy.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::{Element, Scalar, Shape, Tile, TileOrScalar, session, shape};
use crate::ir::{Dim, TileType, Type, dim};

/// Tile -> larger tile; the operand's rank may be smaller.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BroadcastTo {
    /// The new shape.
    pub shape: Vec<usize>,
}

impl TileOp for BroadcastTo {
    fn name(&self) -> &'static str {
        "broadcast_to"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("shape", Attr::list(&self.shape))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "broadcast_to").then(|| Ok(Self { shape: attrs.indices("shape")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [x] = super::rule::operands::<1>("broadcast_to", operands)?;
        Ok(vec![Type::Tile(rule(super::rule::tile("broadcast_to", x)?, &self.shape)?)])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

/// The shape rule: every axis of the operand, aligned at the last, is 1 or the new size.
pub fn rule<D: Dim>(x: &TileType<D>, shape: &[D]) -> Result<TileType<D>, OpError> {
    super::rule::tile_shape(shape)?;
    let fits = x.rank() <= shape.len()
        && x.shape.iter().rev().zip(shape.iter().rev()).all(|(from, to)| from.is_one() || !from.differs(to));
    if !fits {
        return Err(OpError::new(
            Code::Broadcast,
            format!("a tile of shape {} does not broadcast to {}", dim::show(&x.shape), dim::show(shape)),
        )
        .help("aligned at the last axis, every dimension must be 1 or the new one; `expand_dims` or `reshape` adds axes of size 1"));
    }
    Ok(x.with_shape(shape.to_vec()))
}

/// The common shape of two operands of a binary operation.
pub fn common<D: Dim>(a: &[D], b: &[D]) -> Result<Vec<D>, OpError> {
    let rank = a.len().max(b.len());
    let at =
        |s: &[D], i: usize| (i + s.len()).checked_sub(rank).map(|i| s[i].clone()).unwrap_or(D::from_usize(1));
    (0..rank)
        .map(|i| {
            let (x, y) = (at(a, i), at(b, i));
            if x.is_one() {
                return Ok(y);
            }
            if y.is_one() || !x.differs(&y) {
                return Ok(x);
            }
            Err(OpError::new(
                Code::Broadcast,
                format!(
                    "the shapes {} and {} do not broadcast to one: axis {i} is {x} and {y}",
                    dim::show(a),
                    dim::show(b)
                ),
            )
            .help("every pair of dimensions, aligned at the last axis, must be equal or one of them 1"))
        })
        .collect()
}

// ---- in kernels

/// Repeats axes of size 1 and missing leading axes. Operators do this by themselves.
#[track_caller]
pub fn broadcast_to<V: TileOrScalar>(x: V, shape: impl Shape) -> Tile<V::Elem> {
    Tile::new(match shape::dims(shape) {
        Ok(dims) => session::broadcast(x.to_raw(), &dims),
        Err(error) => session::fault(error),
    })
}

macro_rules! broadcast_methods {
    ($($handle:ident)*) => {$(
        impl<T: Element> $handle<T> {
            /// See [`broadcast_to`].
            #[track_caller]
            pub fn broadcast_to(self, shape: impl Shape) -> Tile<T> {
                broadcast_to(self, shape)
            }
        }
    )*};
}
broadcast_methods! { Tile Scalar }

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for BroadcastTo {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let x = operands.tile();
        let missing = self.shape.len() - x.shape().len();
        let strides = (0..self.shape.len()).map(|axis| match axis.checked_sub(missing) {
            Some(from) if x.shape()[from] != 1 => x.strides()[from],
            Some(_) | None => 0,
        });
        let strides = strides.collect();
        Some(x.with_view(self.shape.as_slice().into(), strides, 0))
    }
}

// ---- in PTX

use super::place::{Natural, Place, PlaceCx, Want};
use crate::layout::Layout;

impl Place for BroadcastTo {
    /// Any layout: the operand is small, and its users know better.
    fn natural(&self, _: &PlaceCx<'_>, _: &[Option<Natural>]) -> Option<Natural> {
        None
    }
    fn wants(&self, cx: &PlaceCx<'_>, _: &[Option<Natural>], result: Option<&Layout>) -> Vec<Want> {
        let (Some(result), Some(x)) = (result, cx.tile(0)) else { return vec![Want::Any] };
        cx.all(&operand_layout(x, result))
    }
}

/// The layout of the operand in which every thread holds what it needs for `result`.
pub(crate) fn operand_layout(x: &TileType, result: &Layout) -> Layout {
    let missing = result.shape().len() - x.rank();
    let grown = |axis: &usize| *axis < missing || x.shape[axis - missing] != result.shape()[*axis];
    let axes: Vec<usize> = (0..result.shape().len()).filter(grown).collect();
    result.project(&axes).reshape(&x.shape).expect("a projected layout has the operand's elements")
}

impl super::lower::Lower for BroadcastTo {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let op = &cx.kernel.ops[id];
        let (x, result) = (op.operands[0], op.results[0]);
        let (tile, layout) = (cx.kernel.tile(x).clone(), cx.layout(result).clone());
        let values = cx.values(x);
        let out = if tile.rank() == 0 {
            vec![values[0]; layout.num_regs()]
        } else {
            let missing = layout.shape().len() - tile.rank();
            let grown = |axis: &usize| *axis < missing || tile.shape[axis - missing] != layout.shape()[*axis];
            let axes: Vec<usize> = (0..layout.shape().len()).filter(grown).collect();
            layout.project_map(&axes).into_iter().map(|r| values[r]).collect()
        };
        cx.bind_result(id, out);
    }
}
