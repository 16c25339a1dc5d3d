//! `bid`: the index of this block along a grid axis.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::{Scalar, session};
use crate::ir::{Elem, Type};

/// The index of this block along a grid axis: an i32 scalar.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Bid {
    /// Grid axis, 0 to 2.
    pub axis: usize,
}

impl TileOp for Bid {
    fn name(&self) -> &'static str {
        "bid"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("axis", Attr::Int(self.axis as i64))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "bid").then(|| Ok(Self { axis: attrs.index("axis")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        super::rule::no_operands("bid", operands)?;
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

/// The index of this block along a grid axis, 0 to 2.
#[track_caller]
pub fn bid(axis: usize) -> Scalar<i32> {
    Scalar::new(session::op(Bid { axis }, &[]))
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Bid {
    fn eval(
        &self,
        cx: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let _ = operands;
        Some(crate::cpu::TileValue::scalar(Elem::I32, cx.block[self.axis] as i32))
    }
}

// ---- in PTX

super::place::place_nothing!(Bid);

impl super::lower::Lower for Bid {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let block = cx.block_index();
        cx.bind_result(id, vec![block[self.axis]]);
    }
}
