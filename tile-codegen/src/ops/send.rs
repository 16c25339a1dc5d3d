//! `send`: copies a tile of a tensor into the next stage of a channel, by bulk tensor copies. Only `assign_roles` makes it.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::ir::{Elem, Type};
use crate::layout::SharedLayout;

/// (tensor, index...) -> nothing. Indices count tiles; elements outside the tensor are zero.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Send {
    /// The channel.
    pub channel: usize,
    /// The element type.
    pub elem: Elem,
    /// The place of each element in a stage.
    pub layout: SharedLayout,
    /// The number of stages.
    pub stages: usize,
}

impl TileOp for Send {
    fn name(&self) -> &'static str {
        "send"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        Attr::stage(self.channel, self.elem, &self.layout, self.stages)
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "send").then(|| {
            let (channel, elem, layout, stages) = attrs.stage()?;
            Ok(Self { channel, elem, layout, stages })
        })
    }
    fn result_count(&self) -> usize {
        0
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [tensor, index @ ..] = operands else {
            return Err(OpError::new(Code::Structure, "`send` takes a tensor and its index"));
        };
        let tensor = super::rule::tensor("send", tensor)?;
        if tensor.elem != self.elem || tensor.rank != self.layout.shape.len() || index.len() != tensor.rank {
            return Err(OpError::new(Code::Structure, "`send` copies a tile of the tensor's type and rank"));
        }
        Ok(Vec::new())
    }
    fn effects(&self) -> Effects {
        Effects::Channel
    }
}

// ---- in kernels

// ---- on the CPU

super::refused_by_cpu!(Send);

// ---- in PTX

super::place::place_nothing!(Send);

impl super::lower::Lower for Send {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        cx.send(id, self);
    }
}
