//! `copy_wait`: waits for groups of asynchronous copies. Only `pipeline_loads` makes it.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::OpError;
use crate::ir::Type;

/// Nothing -> nothing. Each thread waits for its own copies: others know of them after a barrier.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CopyWait {
    /// How many of the latest groups may still be on their way.
    pub pending: usize,
}

impl TileOp for CopyWait {
    fn name(&self) -> &'static str {
        "copy_wait"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("pending", Attr::Int(self.pending as i64))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "copy_wait").then(|| Ok(Self { pending: attrs.index("pending")? }))
    }
    fn result_count(&self) -> usize {
        0
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        super::rule::no_operands("copy_wait", operands)?;
        Ok(Vec::new())
    }
    fn effects(&self) -> Effects {
        Effects::Channel
    }
}

// ---- in kernels

// ---- on the CPU

super::refused_by_cpu!(CopyWait);

// ---- in PTX

super::place::place_nothing!(CopyWait);

impl super::lower::Lower for CopyWait {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, _: crate::ir::OpId) {
        cx.f.emit(crate::ptx::Inst::CpAsyncWait(self.pending as u32));
    }
}
