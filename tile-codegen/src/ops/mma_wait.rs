//! `mma_wait`: waits for products of the warpgroup. Only `insert_waits` makes it.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::OpError;
use crate::ir::Type;

/// Nothing -> nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MmaWait {
    /// How many of the latest products may still run.
    pub pending: usize,
}

impl TileOp for MmaWait {
    fn name(&self) -> &'static str {
        "mma_wait"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("pending", Attr::Int(self.pending as i64))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "mma_wait").then(|| Ok(Self { pending: attrs.index("pending")? }))
    }
    fn result_count(&self) -> usize {
        0
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        super::rule::no_operands("mma_wait", operands)?;
        Ok(Vec::new())
    }
    fn effects(&self) -> Effects {
        Effects::Channel
    }
}

// ---- in kernels

// ---- on the CPU

super::refused_by_cpu!(MmaWait);

// ---- in PTX

super::place::place_nothing!(MmaWait);

impl super::lower::Lower for MmaWait {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let _ = id;
        cx.f.hopper(crate::ptx::Hopper::WgmmaWait(self.pending as u32));
    }
}
