//! `copy_async`: starts to copy a tile of a tensor into a stage of a ring, by `cp.async`. Only `pipeline_loads` makes it.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::ir::{Elem, Type};
use crate::layout::SharedLayout;

/// (tensor, index..., i32 scalar: the stage) -> nothing. Indices count tiles; elements outside the tensor become zero.
///
/// Every thread copies its pieces of 16 bytes, which have landed once a [`copy_wait`](super::copy_wait) has waited for the
/// group that the next [`copy_commit`](super::copy_commit) makes of them; other threads know after a barrier.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CopyAsync {
    /// The ring.
    pub channel: usize,
    /// The element type.
    pub elem: Elem,
    /// The place of each element in a stage.
    pub layout: SharedLayout,
    /// The number of stages.
    pub stages: usize,
}

impl TileOp for CopyAsync {
    fn name(&self) -> &'static str {
        "copy_async"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        Attr::stage(self.channel, self.elem, &self.layout, self.stages)
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "copy_async").then(|| {
            let (channel, elem, layout, stages) = attrs.stage()?;
            Ok(Self { channel, elem, layout, stages })
        })
    }
    fn result_count(&self) -> usize {
        0
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [tensor, index @ .., stage] = operands else {
            return Err(OpError::new(Code::Structure, "`copy_async` takes a tensor, its index and a stage"));
        };
        let tensor = super::rule::tensor("copy_async", tensor)?;
        if tensor.elem != self.elem || tensor.elem.bytes() != self.layout.elem_bytes {
            return Err(OpError::new(Code::Structure, "`copy_async` copies elements of the tensor's type"));
        }
        super::rule::tile_index("copy_async", tensor, &self.layout.shape, index)?;
        super::rule::stage("copy_async", stage, self.stages)?;
        Ok(Vec::new())
    }
    fn effects(&self) -> Effects {
        Effects::Channel
    }
}

// ---- in kernels

// ---- on the CPU

super::refused_by_cpu!(CopyAsync);

// ---- in PTX

super::place::place_nothing!(CopyAsync);

impl super::lower::Lower for CopyAsync {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        cx.copy_async(id, self);
    }
}
