//! Elements of a tensor that index tiles name one by one: what gathers, scatters and atomics share.

use super::place::{Natural, PlaceCx, Want, strongest};
use super::rule;
use crate::diag::{Code, OpError};
use crate::dsl::session::{self, Raw};
use crate::dsl::{Scalar, Tile, host};
use crate::ir::{Elem, Kernel, Op, TensorType, Type, ValueId};
use crate::layout::{Layout, blocked};

// ---- types

/// The type rule: a tensor, an index tile for each of its axes, and a mask or none, all of one shape. Returns the tensor and
/// the shape.
pub(super) fn elements<'a>(op: &str, list: &'a [Type]) -> Result<(&'a TensorType, &'a [usize]), OpError> {
    let (tensor, rest) = rule::tensor_and_index(op, list)?;
    if rest.len() != tensor.rank && rest.len() != tensor.rank + 1 || tensor.rank == 0 {
        let rank = tensor.rank;
        let found = rest.len();
        let message = format!("`{op}` on a tensor of rank {rank} needs as many index tiles, found {found}");
        return Err(OpError::new(Code::Rank, message).help("give one index for each axis of the tensor"));
    }
    let (index, mask) = rest.split_at(tensor.rank);
    let shape = &rule::tile(op, &index[0])?.shape;
    for ty in index {
        let tile = rule::tile(op, ty)?;
        if !tile.elem.is_int() {
            let message = format!("an index of `{op}` must be i32, i64 or u32, found {}", tile.elem);
            return Err(OpError::new(Code::ElementType, message).help("cast it: `.cast::<i32>()`"));
        }
        rule::same_shape(op, shape, &tile.shape)?;
    }
    for ty in mask {
        let tile = rule::tile(op, ty)?;
        if tile.elem != Elem::Bool {
            let message = format!("the mask of `{op}` must be bool, found {}", tile.elem);
            return Err(OpError::new(Code::ElementType, message).help("compare first: `i < n`"));
        }
        rule::same_shape(op, shape, &tile.shape)?;
    }
    Ok((tensor, shape))
}

/// The operands of an operation on elements, of which the first `values` are values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Indexed<'a> {
    pub(crate) values: &'a [ValueId],
    pub(crate) tensor: ValueId,
    pub(crate) index: &'a [ValueId],
    pub(crate) mask: Option<ValueId>,
}

impl<'a> Indexed<'a> {
    pub(crate) fn of(kernel: &Kernel, op: &'a Op, values: usize) -> Self {
        let (values, rest) = op.operands.split_at(values);
        let (&tensor, rest) = rest.split_first().expect("the type rules ask for a tensor here");
        let rank = kernel.ty(tensor).as_tensor().expect("the type rules ask for a tensor here").rank;
        Indexed { values, tensor, index: &rest[..rank], mask: rest.get(rank).copied() }
    }
}

// ---- in kernels

/// One index of `gather` or `scatter`: a tile of integers, a scalar or a number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an index tile",
    label = "expected a `Tile` or a `Scalar` of `i32`, `i64` or `u32`, or a number",
    note = "cast it: `.cast::<i32>()`"
)]
pub trait IndexTile: Copy {
    #[doc(hidden)]
    #[track_caller]
    fn tile_raw(self) -> Raw;
}

macro_rules! runtime_indices {
    ($($ty:ty)*) => {$(
        impl IndexTile for Tile<$ty> {
            fn tile_raw(self) -> Raw {
                self.raw()
            }
        }
        impl IndexTile for Scalar<$ty> {
            fn tile_raw(self) -> Raw {
                self.raw()
            }
        }
    )*};
}
runtime_indices! { i32 i64 u32 }

macro_rules! host_indices {
    ($($ty:ty)*) => {$(
        impl IndexTile for $ty {
            #[track_caller]
            fn tile_raw(self) -> Raw {
                crate::dsl::IndexItem::index_raw(self)
            }
        }
    )*};
}
host_indices! { i32 i64 u32 usize }

/// Index tiles for a tensor of rank `RANK`: a tuple or array, one for each axis. They broadcast to one shape.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name elements of a tensor of rank {RANK}",
    label = "expected a tuple of {RANK} index tiles",
    note = "a single index has a comma: `(i,)`"
)]
pub trait IndexTiles<const RANK: usize> {
    #[doc(hidden)]
    #[track_caller]
    fn tile_raws(self) -> Vec<Raw>;
}

macro_rules! tuples {
    ($($rank:literal: $($t:ident $n:tt)*;)*) => {$(
        impl<$($t: IndexTile),*> IndexTiles<$rank> for ($($t,)*) {
            #[track_caller]
            fn tile_raws(self) -> Vec<Raw> {
                vec![$(self.$n.tile_raw()),*]
            }
        }
    )*};
}
tuples! { 1: A 0; 2: A 0 B 1; 3: A 0 B 1 C 2; 4: A 0 B 1 C 2 D 3; 5: A 0 B 1 C 2 D 3 E 4; }

impl<I: IndexTile, const N: usize> IndexTiles<N> for [I; N] {
    #[track_caller]
    fn tile_raws(self) -> Vec<Raw> {
        let mut raws = Vec::with_capacity(N);
        for item in self {
            raws.push(item.tile_raw());
        }
        raws
    }
}

/// Which elements take part: a tile, a scalar or a host value of `bool`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a mask",
    label = "expected a `Tile<bool>`, a `Scalar<bool>` or a `bool`",
    note = "compare first: `i < n`"
)]
pub trait Mask {
    #[doc(hidden)]
    #[track_caller]
    fn mask_raw(self) -> Raw;
}

impl Mask for Tile<bool> {
    fn mask_raw(self) -> Raw {
        self.raw()
    }
}
impl Mask for Scalar<bool> {
    fn mask_raw(self) -> Raw {
        self.raw()
    }
}
impl Mask for bool {
    #[track_caller]
    fn mask_raw(self) -> Raw {
        host::constant::<bool>(self)
    }
}

/// The operands of an operation on elements, all but the tensor repeated to their common shape.
#[track_caller]
pub(super) fn operands(op: &str, values: &[Raw], tensor: Raw, index: &[Raw], mask: Option<Raw>) -> Vec<Raw> {
    let at = std::panic::Location::caller();
    let tiles = [values, index, mask.as_slice()].concat();
    let mut tiles = session::with(|s| s.common_list(&tiles, op, at));
    tiles.insert(values.len(), tensor);
    tiles
}

/// A value of the tensor's element type.
pub(super) fn same_elem(op: &str, value: Elem, tensor: Elem) -> Result<(), OpError> {
    if value == tensor {
        return Ok(());
    }
    let message = format!("`{op}` of a `{value}` tile into a `{tensor}` tensor");
    Err(OpError::new(Code::ElementType, message).help(format!("convert it: `.cast::<{tensor}>()`")))
}

/// A tensor that may be written.
pub(super) fn writable(op: &str, tensor: &TensorType) -> Result<(), OpError> {
    if tensor.mutable {
        return Ok(());
    }
    Err(OpError::new(Code::ElementType, format!("`{op}` into a tensor that is only read"))
        .help("declare the parameter as `TensorMut<..>`"))
}

// ---- layouts

/// The layout in which elements are accessed: that of the operand with the strongest one, else consecutive elements in
/// consecutive threads.
pub(super) fn layout(cx: &PlaceCx<'_>, shape: &[usize], operands: &[Option<Natural>]) -> Layout {
    if let Some(natural) = strongest(operands) {
        return natural.layout;
    }
    let order: Vec<usize> = (0..shape.len()).rev().collect();
    blocked(shape, &order, 1, cx.num_warps).expect("tile dimensions and warps are powers of two")
}

/// What an operation on elements without a placed result wants: everything in one layout.
pub(super) fn wants(cx: &PlaceCx<'_>, operands: &[Option<Natural>]) -> Vec<Want> {
    let Some(tile) = cx.tile(0).filter(|tile| tile.rank() > 0) else { return cx.any() };
    cx.all(&layout(cx, &tile.shape, operands))
}
