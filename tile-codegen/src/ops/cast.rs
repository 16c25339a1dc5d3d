//! `cast`: converts the element type; floats round to nearest even, float to integer truncates and saturates.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::OpError;
use crate::dsl::session::Raw;
use crate::dsl::{Element, Scalar, Tile, TileOrScalar, session};
use crate::ir::{Elem, Type};

/// Tile -> tile of the same shape. `bool` becomes 0 or 1; a number is true when it is not zero.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cast {
    /// The new element type.
    pub elem: Elem,
}

impl TileOp for Cast {
    fn name(&self) -> &'static str {
        "cast"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("elem", Attr::Elem(self.elem))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "cast").then(|| Ok(Self { elem: attrs.elem("elem")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [x] = super::rule::operands::<1>("cast", operands)?;
        Ok(vec![Type::Tile(super::rule::tile("cast", x)?.with_elem(self.elem))])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

// ---- in kernels

/// Converts the element type, as the method `cast` does.
#[track_caller]
pub fn cast<U: Element, V: TileOrScalar>(x: V) -> V::With<U> {
    TileOrScalar::from_raw(cast_raw::<V::Elem, U>(x.to_raw()))
}

/// Nothing is recorded for a conversion to the same type, which generic kernels write.
#[track_caller]
pub(crate) fn cast_raw<T: Element, U: Element>(x: Raw) -> Raw {
    if T::ELEM == U::ELEM { x } else { session::op(Cast { elem: U::ELEM }, &[x]) }
}

macro_rules! cast_methods {
    ($($handle:ident)*) => {$(
        impl<T: Element> $handle<T> {
            /// Converts the element type: floats round to nearest even, float to integer truncates and saturates,
            /// `bool` becomes 0 or 1, and a number is true when it is not zero.
            #[track_caller]
            pub fn cast<U: Element>(self) -> $handle<U> {
                cast(self)
            }
        }
    )*};
}
cast_methods! { Tile Scalar }

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Cast {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        Some(crate::cpu::convert::cast(operands.tile(), self.elem))
    }
}

// ---- in PTX

use super::place::{Natural, Place, PlaceCx, Want};
use crate::layout::Layout;

impl Place for Cast {
    /// That of the operand; soft where the result is wider, so that the narrow operand crosses threads. A narrow
    /// result is hard again.
    fn natural(&self, cx: &PlaceCx<'_>, operands: &[Option<Natural>]) -> Option<Natural> {
        let x = operands[0].clone()?;
        let before = cx.tile(0).map_or(0, |t| t.elem.bytes());
        let soft = before <= self.elem.bytes() && (x.soft || (before < self.elem.bytes() && x.weight <= 1));
        Some(Natural { soft, ..x })
    }
    fn wants(&self, cx: &PlaceCx<'_>, _: &[Option<Natural>], result: Option<&Layout>) -> Vec<Want> {
        result.map_or_else(|| cx.any(), |layout| cx.all(layout))
    }
}

impl super::lower::Lower for Cast {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let x = cx.kernel.ops[id].operands[0];
        let from = cx.elem(x);
        let values = cx.values(x);
        let out = if from.is_float() && self.elem.is_float() && from != self.elem {
            let wide: Vec<_> = values.into_iter().map(|v| cx.widen(from, v)).collect();
            cx.narrow_all(self.elem, &wide)
        } else {
            values.into_iter().map(|v| cx.convert(from, self.elem, v)).collect()
        };
        cx.bind_result(id, out);
    }
}
