//! `store`: a tile into a tensor. Indices count tiles; elements outside the tensor are dropped.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::ir::Type;

/// (tile, tensor, one index for each axis) -> nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Store;

impl TileOp for Store {
    fn name(&self) -> &'static str {
        "store"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        Vec::new()
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "store").then(|| {
            let _ = attrs;
            Ok(Self)
        })
    }
    fn result_count(&self) -> usize {
        0
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let Some((tile, rest)) = operands.split_first() else {
            return Err(OpError::new(Code::Structure, "`store` takes a tile, a tensor and its indices"));
        };
        let tile = super::rule::tile("store", tile)?;
        let (tensor, index) = super::rule::tensor_and_index("store", rest)?;
        super::rule::tile_index("store", tensor, &tile.shape, index)?;
        if tile.elem != tensor.elem {
            return Err(OpError::new(
                Code::ElementType,
                format!("`store` of a `{}` tile into a `{}` tensor", tile.elem, tensor.elem),
            )
            .help(format!("convert it: `.cast::<{}>()`", tensor.elem)));
        }
        if !tensor.mutable {
            return Err(OpError::new(Code::ElementType, "`store` into a tensor that is only read")
                .help("declare the parameter as `TensorMut<..>`"));
        }
        Ok(Vec::new())
    }
    fn effects(&self) -> Effects {
        Effects::WritesGlobal
    }
}

// ---- in kernels

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Store {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let (tile, tensor) = (operands.tile(), operands.tensor());
        crate::cpu::transfer::store(&tile, tensor, &operands.indices());
        None
    }
}

// ---- in PTX
