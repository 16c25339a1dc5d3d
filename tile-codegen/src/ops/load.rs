//! `load`: a tile out of a tensor. Indices count tiles; elements outside the tensor are the padding value and are not read.

use super::{Attr, AttrReader, Effects, Literal, TileOp};
use crate::diag::OpError;
use crate::ir::Type;

/// (tensor, i32 or i64 scalars: one index for each axis) -> tile.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Load {
    /// The shape of the tile, one dimension for each axis of the tensor.
    pub shape: Vec<usize>,
    /// What elements outside the tensor read as.
    pub pad: Literal,
}

impl TileOp for Load {
    fn name(&self) -> &'static str {
        "load"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("shape", Attr::list(&self.shape)), ("pad", Attr::Literal(self.pad))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "load").then(|| Ok(Self { shape: attrs.indices("shape")?, pad: attrs.literal("pad")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let (tensor, index) = super::rule::tensor_and_index("load", operands)?;
        super::rule::tile_index("load", tensor, &self.shape, index)?;
        self.pad.check(tensor.elem)?;
        Ok(vec![Type::tile(tensor.elem, self.shape.clone())])
    }
    fn effects(&self) -> Effects {
        Effects::ReadsGlobal
    }
}

// ---- in kernels

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Load {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let tensor = operands.tensor();
        Some(crate::cpu::transfer::load(tensor, &operands.indices(), &self.shape, self.pad))
    }
}

// ---- in PTX
