//! `extent`: the runtime size of a tensor along an axis.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::OpError;
use crate::ir::{Elem, Type};

/// Tensor -> i32 scalar.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Extent {
    /// Tensor axis.
    pub axis: usize,
}

impl TileOp for Extent {
    fn name(&self) -> &'static str {
        "extent"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("axis", Attr::Int(self.axis as i64))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "extent").then(|| Ok(Self { axis: attrs.index("axis")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [tensor] = super::rule::operands::<1>("extent", operands)?;
        let tensor = super::rule::tensor("extent", tensor)?;
        super::rule::axis(self.axis, tensor.rank)?;
        Ok(vec![Type::scalar(Elem::I32)])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

// ---- in kernels

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Extent {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let extent = operands.tensor().shape[self.axis];
        Some(crate::cpu::TileValue::scalar(Elem::I32, i32::try_from(extent).unwrap_or(i32::MAX)))
    }
}

// ---- in PTX

super::place::place_nothing!(Extent);

impl super::lower::Lower for Extent {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let tensor = cx.kernel.ops[id].operands[0];
        let param = cx.kernel.params.iter().position(|p| p.value == tensor).expect("tensors are parameters");
        let extent = cx.param(crate::lower::Slot::Extent { param, axis: self.axis });
        cx.bind_result(id, vec![extent.into()]);
    }
}
