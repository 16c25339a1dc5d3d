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
