//! `constant`: a scalar literal. Constants live in the entry region.

use super::{Attr, AttrReader, Effects, Literal, TileOp};
use crate::diag::OpError;
use crate::dsl::{Element, ScalarValue, Shape, Storable, Tile, host, session, shape};
use crate::ir::{Class, Elem, Type};

/// A scalar constant.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Constant {
    /// The value, rounded once to the element type.
    pub value: Literal,
    /// Element type.
    pub elem: Elem,
}

impl TileOp for Constant {
    fn name(&self) -> &'static str {
        "constant"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("value", Attr::Literal(self.value)), ("elem", Attr::Elem(self.elem))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "constant").then(|| Ok(Self { value: attrs.literal("value")?, elem: attrs.elem("elem")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        super::rule::no_operands("constant", operands)?;
        self.value.check(self.elem)?;
        Ok(vec![Type::scalar(self.elem)])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

// ---- in kernels

/// A tile of one value: `full::<f32>((64, 64), 1.5)`. The value is a number or a `Scalar`.
#[track_caller]
pub fn full<T: Element>(shape: impl Shape, value: impl ScalarValue<T>) -> Tile<T> {
    let value = value.scalar_raw();
    Tile::new(match shape::dims(shape) {
        Ok(dims) => session::broadcast(value, &dims),
        Err(error) => session::fault(error),
    })
}

/// A tile of zeros (`false`): `zeros::<f32>((64, 64))`.
#[track_caller]
pub fn zeros<T: Storable>(shape: impl Shape) -> Tile<T> {
    repeated(shape, 0)
}

/// A tile of ones (`true`).
#[track_caller]
pub fn ones<T: Storable>(shape: impl Shape) -> Tile<T> {
    repeated(shape, 1)
}

#[track_caller]
fn repeated<T: Storable>(shape: impl Shape, value: i32) -> Tile<T> {
    let value = match T::ELEM.class() {
        Class::Float => host::constant::<T>(f64::from(value)),
        Class::Int => host::constant::<T>(value),
        Class::Bool => host::constant::<T>(value != 0),
    };
    Tile::new(match shape::dims(shape) {
        Ok(dims) => session::broadcast(value, &dims),
        Err(error) => session::fault(error),
    })
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Constant {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let _ = operands;
        Some(crate::cpu::TileValue::literal(self.elem, self.value))
    }
}

// ---- in PTX
