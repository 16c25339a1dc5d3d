//! `num_blocks`: the number of blocks along a grid axis.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::{Scalar, session};
use crate::ir::{Elem, Type};

/// The number of blocks along a grid axis: an i32 scalar.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NumBlocks {
    /// Grid axis, 0 to 2.
    pub axis: usize,
}

impl TileOp for NumBlocks {
    fn name(&self) -> &'static str {
        "num_blocks"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("axis", Attr::Int(self.axis as i64))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "num_blocks").then(|| Ok(Self { axis: attrs.index("axis")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        super::rule::no_operands("num_blocks", operands)?;
        if self.axis > 2 {
            return Err(OpError::new(Code::Axis, format!("a grid has axes 0, 1 and 2, found {}", self.axis)));
        }
        Ok(vec![Type::scalar(Elem::I32)])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

// ---- in kernels

/// The number of blocks along a grid axis, 0 to 2.
#[track_caller]
pub fn num_blocks(axis: usize) -> Scalar<i32> {
    Scalar::new(session::op(NumBlocks { axis }, &[]))
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for NumBlocks {
    fn eval(
        &self,
        cx: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let _ = operands;
        Some(crate::cpu::TileValue::scalar(Elem::I32, cx.grid[self.axis] as i32))
    }
}

// ---- in PTX

super::place::place_nothing!(NumBlocks);

impl super::lower::Lower for NumBlocks {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let blocks = cx.param(crate::lower::Slot::Blocks { axis: self.axis });
        cx.bind_result(id, vec![blocks.into()]);
    }
}
