//! `copied`: the tile in a stage of a ring that asynchronous copies fill. Only `pipeline_loads` makes it.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::OpError;
use crate::ir::{Elem, SharedType, Type};
use crate::layout::SharedLayout;

/// (i32 scalar: the stage) -> the tile: in registers before layouts are assigned, in shared memory after. Its copies have
/// been waited for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Copied {
    /// The ring.
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

impl TileOp for Copied {
    fn name(&self) -> &'static str {
        "copied"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        let mut attrs = Attr::stage(self.channel, self.elem, &self.layout, self.stages);
        attrs.push(("placed", Attr::Bool(self.placed)));
        attrs
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "copied").then(|| {
            let (channel, elem, layout, stages) = attrs.stage()?;
            Ok(Self { channel, elem, layout, stages, placed: attrs.flag("placed")? })
        })
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [stage] = super::rule::operands::<1>("copied", operands)?;
        super::rule::stage("copied", stage, self.stages)?;
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

super::refused_by_cpu!(Copied);

// ---- in PTX

super::place::place_nothing!(Copied);

impl super::lower::Lower for Copied {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        cx.copied(id, self);
    }
}
