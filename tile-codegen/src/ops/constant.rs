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

super::place::place_nothing!(Constant);

impl super::lower::Lower for Constant {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let operand = literal_operand(self.value, self.elem);
        let operand = match self.elem {
            // A predicate has no literal form.
            Elem::Bool => cx.in_reg(self.elem, operand).into(),
            Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::I32 | Elem::I64 | Elem::U32 => operand,
        };
        cx.bind_result(id, vec![operand]);
    }
}

/// A literal as an operand: the bits of 16-bit floats, 0 or 1 for `bool`.
pub(crate) fn literal_operand(value: Literal, elem: Elem) -> crate::ptx::Operand {
    use crate::ptx::Operand;
    let float = value.as_f64();
    match (elem, value) {
        (Elem::F32, _) => Operand::f32(float as f32),
        (Elem::TF32, _) => Operand::F32(tf32_bits(float as f32)),
        (Elem::F16, _) => Operand::Imm(i64::from(half::f16::from_f64(float).to_bits())),
        (Elem::BF16, _) => Operand::Imm(i64::from(half::bf16::from_f64(float).to_bits())),
        (Elem::I32 | Elem::I64 | Elem::U32 | Elem::Bool, Literal::Int(i)) => Operand::Imm(i),
        (Elem::I32 | Elem::I64 | Elem::U32 | Elem::Bool, Literal::Bool(b)) => Operand::Imm(i64::from(b)),
        (Elem::I32 | Elem::I64 | Elem::U32 | Elem::Bool, Literal::Float(_)) => Operand::Imm(float as i64),
    }
}

/// Rounds to the 10-bit mantissa of tf32, to nearest with ties away from zero, as `cvt.rna.tf32` does.
fn tf32_bits(x: f32) -> u32 {
    let bits = x.to_bits();
    if x.is_finite() { bits.wrapping_add(0x1000) & !0x1fff } else { bits }
}
