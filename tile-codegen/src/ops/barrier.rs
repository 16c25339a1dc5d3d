//! `barrier`: orders shared-memory accesses among the threads of a block. Only `insert_barriers` makes it.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::OpError;
use crate::ir::Type;

/// No operands, no results.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Barrier;

impl TileOp for Barrier {
    fn name(&self) -> &'static str {
        "barrier"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        Vec::new()
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "barrier").then(|| {
            let _ = attrs;
            Ok(Self)
        })
    }
    fn result_count(&self) -> usize {
        0
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        super::rule::no_operands("barrier", operands)?;
        Ok(Vec::new())
    }
    fn effects(&self) -> Effects {
        Effects::Barrier
    }
}

// ---- in kernels

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Barrier {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let _ = operands;
        None
    }
}

// ---- in PTX

super::place::place_nothing!(Barrier);

impl super::lower::Lower for Barrier {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let _ = id;
        cx.barrier();
    }
}
