//! `scatter`: a tile into elements of a tensor that index tiles name one by one. Indices count elements; those outside the
//! tensor, and those that the mask leaves out, are dropped.

use super::indexed::{self, IndexTiles, Indexed, Mask};
use super::store::StoreValue;
use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::session::{self, Raw};
use crate::dsl::{Storable, TensorMut};
use crate::ir::Type;

/// (tile, tensor, one index tile for each axis, a mask or none) -> nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Scatter;

impl TileOp for Scatter {
    fn name(&self) -> &'static str {
        "scatter"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        Vec::new()
    }
    fn parse(name: &str, _: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "scatter").then_some(Ok(Self))
    }
    fn result_count(&self) -> usize {
        0
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let Some((value, rest)) = operands.split_first() else {
            return Err(OpError::new(Code::Structure, "`scatter` takes a tile, a tensor and index tiles"));
        };
        let value = super::rule::tile("scatter", value)?;
        let (tensor, shape) = indexed::elements("scatter", rest)?;
        super::rule::same_shape("scatter", &value.shape, shape)?;
        indexed::same_elem("scatter", value.elem, tensor.elem)?;
        indexed::writable("scatter", tensor)?;
        Ok(Vec::new())
    }
    fn effects(&self) -> Effects {
        Effects::WritesGlobal
    }
}

// ---- in kernels

/// Writes `value` to the elements of a tensor at `index`: one tile of `i32`, `i64` or `u32` for each axis, counted in
/// elements. Indices and value broadcast to one shape. Elements outside the tensor are dropped, also those of negative
/// indices. Where several indices name one element, it has the value of an unspecified one of them.
#[track_caller]
pub fn scatter<T: Storable, const RANK: usize>(
    tensor: TensorMut<T, RANK>,
    index: impl IndexTiles<RANK>,
    value: impl StoreValue<T>,
) {
    raw(value.store_raw(0), tensor.raw(), &index.tile_raws(), None);
}

/// As [`scatter`], where `mask` holds; the other elements are not written. The mask broadcasts with the indices.
#[track_caller]
pub fn scatter_masked<T: Storable, const RANK: usize>(
    tensor: TensorMut<T, RANK>,
    index: impl IndexTiles<RANK>,
    value: impl StoreValue<T>,
    mask: impl Mask,
) {
    let (value, index) = (value.store_raw(0), index.tile_raws());
    raw(value, tensor.raw(), &index, Some(mask.mask_raw()));
}

#[track_caller]
fn raw(value: Raw, tensor: Raw, index: &[Raw], mask: Option<Raw>) {
    session::effect(Scatter, &indexed::operands("scatter", &[value], tensor, index, mask));
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Scatter {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let value = operands.tile();
        crate::cpu::indexed::Elements::new(operands).scatter(&value);
        None
    }
}

// ---- in PTX

use super::place::{Natural, Place, PlaceCx, Want};
use crate::layout::Layout;

impl Place for Scatter {
    fn natural(&self, _: &PlaceCx<'_>, _: &[Option<Natural>]) -> Option<Natural> {
        None
    }
    fn wants(&self, cx: &PlaceCx<'_>, operands: &[Option<Natural>], _: Option<&Layout>) -> Vec<Want> {
        indexed::wants(cx, operands)
    }
}

impl super::lower::Lower for Scatter {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let op = cx.kernel.ops[id].clone();
        cx.scatter(&Indexed::of(cx.kernel, &op, 1));
    }
}
