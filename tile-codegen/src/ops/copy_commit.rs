//! `copy_commit`: makes a group of the asynchronous copies since the last one. Only `pipeline_loads` makes it.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::OpError;
use crate::ir::Type;

/// Nothing -> nothing. A group may be empty.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CopyCommit;

impl TileOp for CopyCommit {
    fn name(&self) -> &'static str {
        "copy_commit"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        Vec::new()
    }
    fn parse(name: &str, _: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "copy_commit").then_some(Ok(Self))
    }
    fn result_count(&self) -> usize {
        0
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        super::rule::no_operands("copy_commit", operands)?;
        Ok(Vec::new())
    }
    fn effects(&self) -> Effects {
        Effects::Channel
    }
}

// ---- in kernels

// ---- on the CPU

super::refused_by_cpu!(CopyCommit);

// ---- in PTX

super::place::place_nothing!(CopyCommit);

impl super::lower::Lower for CopyCommit {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, _: crate::ir::OpId) {
        cx.f.emit(crate::ptx::Inst::CpAsyncCommit);
    }
}
