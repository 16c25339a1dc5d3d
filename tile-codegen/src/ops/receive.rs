//! `receive`: waits for the next stage of a channel. Only `assign_roles` makes it.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::ir::{Elem, SharedType, Type};
use crate::layout::SharedLayout;

/// Nothing -> the tile: in registers before layouts are assigned, in shared memory after.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Receive {
    /// The channel.
    pub channel: usize,
    /// The element type.
    pub elem: Elem,
    /// The place of each element in a stage.
    pub layout: SharedLayout,
    /// The number of stages.
    pub stages: usize,
    /// Whether the result is in shared memory.
    pub placed: bool,
}

impl TileOp for Receive {
    fn name(&self) -> &'static str {
        "receive"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        let mut attrs = Attr::stage(self.channel, self.elem, &self.layout, self.stages);
        attrs.push(("placed", Attr::Bool(self.placed)));
        attrs
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "receive").then(|| {
            let (channel, elem, layout, stages) = attrs.stage()?;
            Ok(Self { channel, elem, layout, stages, placed: attrs.flag("placed")? })
        })
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        super::rule::no_operands("receive", operands)?;
        if self.stages == 0 {
            return Err(OpError::new(Code::Structure, "a channel has at least one stage"));
        }
        let (elem, layout) = (self.elem, self.layout.clone());
        Ok(vec![match self.placed {
            true => Type::Shared(SharedType { elem, layout }),
            false => Type::tile(elem, layout.shape),
        }])
    }
    fn effects(&self) -> Effects {
        Effects::Channel
    }
}

// ---- in kernels

// ---- on the CPU

super::refused_by_cpu!(Receive);

// ---- in PTX

super::place::place_nothing!(Receive);

impl super::lower::Lower for Receive {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        cx.receive(id, self);
    }
}
