//! `constant`: a scalar literal. Constants live in the entry region.

use super::{Attr, AttrReader, Effects, Literal, TileOp};
use crate::diag::OpError;
use crate::ir::{Elem, Type};

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
