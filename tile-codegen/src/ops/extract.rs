//! `extract`: one sub-tile out of the grid of sub-tiles of a tile.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::{Element, Shape, Tile, session, shape};
use crate::ir::Type;

/// Tile -> smaller tile of the same rank; element `j` of axis `i` is element `index[i] * shape[i] + j` of the operand.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Extract {
    /// Which sub-tile, counted in sub-tiles along each axis.
    pub index: Vec<usize>,
    /// The shape of the sub-tile.
    pub shape: Vec<usize>,
}

impl TileOp for Extract {
    fn name(&self) -> &'static str {
        "extract"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("index", Attr::list(&self.index)), ("shape", Attr::list(&self.shape))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "extract")
            .then(|| Ok(Self { index: attrs.indices("index")?, shape: attrs.indices("shape")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [x] = super::rule::operands::<1>("extract", operands)?;
        let x = super::rule::tile("extract", x)?;
        super::rule::tile_shape(&self.shape)?;
        if self.index.len() != x.rank() || self.shape.len() != x.rank() {
            return Err(OpError::new(
                Code::Rank,
                format!(
                    "`extract` from a tile of rank {} needs as many indices and dimensions, found {} and {}",
                    x.rank(),
                    self.index.len(),
                    self.shape.len()
                ),
            ));
        }
        for axis in 0..x.rank() {
            let (size, part, at) = (x.shape[axis], self.shape[axis], self.index[axis]);
            if part > size || at >= size / part {
                return Err(OpError::new(
                    Code::Extract,
                    format!("`extract` reaches outside axis {axis}: sub-tile {at} of size {part} in a dimension of {size}"),
                )
                .help(format!("the index counts sub-tiles: it must be below {}", size / part.min(size))));
            }
        }
        Ok(vec![Type::Tile(x.with_shape(self.shape.clone()))])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

// ---- in kernels

/// One sub-tile of shape `shape`; `index` counts sub-tiles: with shape `(16, 32)`, index `(1, 0)` begins at row 16.
#[track_caller]
pub fn extract<T: Element>(x: Tile<T>, index: impl Shape, shape: impl Shape) -> Tile<T> {
    Tile::new(match (shape::static_index(index), shape::dims(shape)) {
        (Ok(index), Ok(shape)) => session::op(Extract { index, shape }, &[x.raw()]),
        (Err(error), _) | (_, Err(error)) => session::fault(error),
    })
}

impl<T: Element> Tile<T> {
    /// See [`extract`].
    #[track_caller]
    pub fn extract(self, index: impl Shape, shape: impl Shape) -> Self {
        extract(self, index, shape)
    }
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Extract {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let x = operands.tile();
        let skip = (0..self.shape.len()).map(|axis| self.index[axis] * self.shape[axis] * x.strides()[axis]);
        let (skip, strides) = (skip.sum(), x.strides().into());
        Some(x.with_view(self.shape.as_slice().into(), strides, skip))
    }
}

// ---- in PTX

use super::place::{Natural, Place, PlaceCx, Want};
use crate::layout::Layout;

impl Place for Extract {
    /// Any layout: the sub-tile is read out of shared memory.
    fn natural(&self, _: &PlaceCx<'_>, _: &[Option<Natural>]) -> Option<Natural> {
        None
    }
    fn wants(&self, cx: &PlaceCx<'_>, _: &[Option<Natural>], _: Option<&Layout>) -> Vec<Want> {
        let rank = cx.tile(0).map_or(0, |x| x.rank());
        vec![Want::Shared((0..rank).rev().collect())]
    }
}

impl super::lower::Lower for Extract {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        // `assign_layouts` has made it a read of shared memory, but for one-element tiles, which every thread holds.
        let x = cx.kernel.ops[id].operands[0];
        let values = cx.values(x);
        cx.bind_result(id, values);
    }
}
