//! `store`: a tile into a tensor. Indices count tiles; elements outside the tensor are dropped.

use super::reshape::Reshape;
use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::session::Raw;
use crate::dsl::{Element, IndexOfRank, Operand, Scalar, Storable, TensorMut, Tile, host, session};
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

/// What `store` writes: a tile of the tensor's element type, or one element: a `Scalar` or a number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored into a tensor of `{T}`",
    label = "expected a `Tile<{T}>`, a `Scalar<{T}>` or a number",
    note = "element types never convert silently: write `.cast::<{T}>()`"
)]
pub trait StoreValue<T> {
    #[doc(hidden)]
    #[track_caller]
    fn store_raw(self, rank: usize) -> Raw;
}

impl<T: Element> StoreValue<T> for Tile<T> {
    fn store_raw(self, _: usize) -> Raw {
        self.raw()
    }
}

/// One element, whatever the rank.
impl<T: Element> StoreValue<T> for Scalar<T> {
    #[track_caller]
    fn store_raw(self, rank: usize) -> Raw {
        session::op(Reshape { shape: vec![1; rank] }, &[self.raw()])
    }
}

impl<T: Element, H: Operand<Scalar<T>>> StoreValue<T> for H {
    #[track_caller]
    fn store_raw(self, rank: usize) -> Raw {
        Scalar::<T>::new(host::constant::<T>(self)).store_raw(rank)
    }
}

/// Writes a tile at an index that counts tiles of its shape; elements outside the tensor are dropped.
#[track_caller]
pub fn store<T: Storable, const RANK: usize>(
    tensor: TensorMut<T, RANK>,
    index: impl IndexOfRank<RANK>,
    value: impl StoreValue<T>,
) {
    let operands = [&[value.store_raw(RANK), tensor.raw()], index.index_raws().as_slice()].concat();
    session::effect(Store, &operands);
}

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
