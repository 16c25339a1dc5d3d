//! `gather`: elements of a tensor that index tiles name one by one. Indices count elements; where they are outside the
//! tensor, or the mask is false, the element is the padding value and nothing is read.

use super::indexed::{self, IndexTiles, Indexed, Mask};
use super::{Attr, AttrReader, Effects, Literal, TileOp};
use crate::diag::OpError;
use crate::dsl::session::{self, Raw};
use crate::dsl::{AnyTensor, Operand, Storable, Tile};
use crate::ir::Type;

/// (tensor, one index tile for each axis, a mask or none) -> tile of their shape.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Gather {
    /// What elements outside the tensor, and those that the mask leaves out, read as.
    pub pad: Literal,
}

impl TileOp for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("pad", Attr::Literal(self.pad))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "gather").then(|| Ok(Self { pad: attrs.literal("pad")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let (tensor, shape) = indexed::elements("gather", operands)?;
        self.pad.check(tensor.elem)?;
        Ok(vec![Type::tile(tensor.elem, shape.to_vec())])
    }
    fn effects(&self) -> Effects {
        Effects::ReadsGlobal
    }
}

// ---- in kernels

/// The elements of a tensor at `index`: one tile of `i32`, `i64` or `u32` for each axis, counted in elements, which
/// broadcast to the shape of the result. `gather(x, (rows.expand_dims(1), arange::<i32>(64)))` takes 64 elements of each of
/// some rows. Elements outside the tensor are zero (`false`), also those of negative indices, and are not read.
#[track_caller]
pub fn gather<T: Storable, const RANK: usize>(
    tensor: impl AnyTensor<T, RANK>,
    index: impl IndexTiles<RANK>,
) -> Tile<T> {
    Tile::new(raw(tensor.to_raw(), &index.tile_raws(), None, Ok(super::load::zero::<T>())))
}

/// As [`gather`]; elements outside the tensor are `pad`.
#[track_caller]
pub fn gather_with<T: Storable, const RANK: usize>(
    tensor: impl AnyTensor<T, RANK>,
    index: impl IndexTiles<RANK>,
    pad: impl Operand<Tile<T>>,
) -> Tile<T> {
    Tile::new(raw(tensor.to_raw(), &index.tile_raws(), None, pad.literal()))
}

/// As [`gather`], where `mask` holds; the other elements are zero (`false`) and are not read. The mask broadcasts with the
/// indices.
#[track_caller]
pub fn gather_masked<T: Storable, const RANK: usize>(
    tensor: impl AnyTensor<T, RANK>,
    index: impl IndexTiles<RANK>,
    mask: impl Mask,
) -> Tile<T> {
    let index = index.tile_raws();
    Tile::new(raw(tensor.to_raw(), &index, Some(mask.mask_raw()), Ok(super::load::zero::<T>())))
}

/// As [`gather_masked`]; the elements that are not read are `pad`.
#[track_caller]
pub fn gather_masked_with<T: Storable, const RANK: usize>(
    tensor: impl AnyTensor<T, RANK>,
    index: impl IndexTiles<RANK>,
    mask: impl Mask,
    pad: impl Operand<Tile<T>>,
) -> Tile<T> {
    let index = index.tile_raws();
    Tile::new(raw(tensor.to_raw(), &index, Some(mask.mask_raw()), pad.literal()))
}

#[track_caller]
fn raw(tensor: Raw, index: &[Raw], mask: Option<Raw>, pad: Result<Literal, OpError>) -> Raw {
    match pad {
        Ok(pad) => session::op(Gather { pad }, &indexed::operands("gather", &[], tensor, index, mask)),
        Err(error) => session::fault(error),
    }
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Gather {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        Some(crate::cpu::indexed::Elements::new(operands).gather(self.pad))
    }
}

// ---- in PTX

use super::place::{Natural, Place, PlaceCx, Want};
use crate::layout::Layout;

/// Tiles up to this many elements are gathered in whatever layout each user wants, as small loads are.
const REPEAT: usize = 512;

impl Place for Gather {
    fn natural(&self, cx: &PlaceCx<'_>, operands: &[Option<Natural>]) -> Option<Natural> {
        let mutable = cx.kernel.ty(cx.op.operands[0]).as_tensor().is_some_and(|t| t.mutable);
        let free = operands.iter().all(Option::is_none);
        if free && cx.result().numel() <= REPEAT && !mutable {
            return None;
        }
        Some(Natural { layout: indexed::layout(cx, &cx.result().shape, operands), weight: 1, soft: false })
    }
    fn wants(&self, cx: &PlaceCx<'_>, _: &[Option<Natural>], result: Option<&Layout>) -> Vec<Want> {
        result.map_or_else(|| cx.any(), |layout| cx.all(layout))
    }
}

impl super::lower::Lower for Gather {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let op = cx.kernel.ops[id].clone();
        let indexed = Indexed::of(cx.kernel, &op, 0);
        let tensor = cx.kernel.ty(indexed.tensor).as_tensor().expect("gather reads a tensor").clone();
        let pad = super::constant::literal_operand(self.pad, tensor.elem);
        let values = cx.gather(&indexed, &tensor, pad);
        cx.bind(op.results[0], values);
    }
}
