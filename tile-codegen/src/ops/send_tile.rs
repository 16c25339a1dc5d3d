//! `send_tile`: writes a computed tile into the next stage of a channel. Only `assign_roles` makes it.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::ir::{Elem, Type};
use crate::layout::SharedLayout;

/// Tile or scalar -> nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SendTile {
    /// The channel.
    pub channel: usize,
    /// The element type.
    pub elem: Elem,
    /// The place of each element in a stage.
    pub layout: SharedLayout,
    /// The number of stages.
    pub stages: usize,
}

impl TileOp for SendTile {
    fn name(&self) -> &'static str {
        "send_tile"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        Attr::stage(self.channel, self.elem, &self.layout, self.stages)
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "send_tile").then(|| {
            let (channel, elem, layout, stages) = attrs.stage()?;
            Ok(Self { channel, elem, layout, stages })
        })
    }
    fn result_count(&self) -> usize {
        0
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [x] = super::rule::operands::<1>("send_tile", operands)?;
        let x = super::rule::tile("send_tile", x)?;
        if self.stages == 0 {
            return Err(OpError::new(Code::Structure, "a channel has at least one stage"));
        }
        if x.elem != self.elem || x.shape != self.layout.shape || x.elem.bytes() != self.layout.elem_bytes {
            return Err(OpError::new(
                Code::Structure,
                "`send_tile` sends a tile of its layout's shape and type",
            ));
        }
        Ok(Vec::new())
    }
    fn effects(&self) -> Effects {
        Effects::Channel
    }
}

// ---- in kernels

// ---- on the CPU

super::refused_by_cpu!(SendTile);

// ---- in PTX

use super::place::{Natural, Place, PlaceCx, Want};
use crate::layout::Layout;

impl Place for SendTile {
    fn natural(&self, _: &PlaceCx<'_>, _: &[Option<Natural>]) -> Option<Natural> {
        None
    }
    fn wants(&self, cx: &PlaceCx<'_>, operands: &[Option<Natural>], _: Option<&Layout>) -> Vec<Want> {
        let Some(tile) = cx.tile(0).filter(|tile| tile.rank() > 0) else { return cx.any() };
        let natural = operands[0].as_ref().map(|natural| natural.layout.clone());
        vec![Want::Regs(natural.unwrap_or_else(|| cx.default_layout(tile)))]
    }
}

impl super::lower::Lower for SendTile {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        cx.send_tile(id, self);
    }
}
