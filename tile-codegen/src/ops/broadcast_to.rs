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
