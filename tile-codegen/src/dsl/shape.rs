//! Shapes, indices and axes as users write them: tuples of numbers.

use std::panic::Location;

use super::handle::Scalar;
use super::host::constant;
use super::session::{self, Raw};
use crate::diag::{Code, OpError};
use crate::ops::OpKind;
use crate::ops::cast::Cast;

/// One dimension of a tile shape: a number known when the kernel is specialised.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tile dimension",
    label = "a tile dimension is a host value: a literal, `usize` or `Const<usize>`"
)]
pub trait Dim: Copy {
    #[doc(hidden)]
    fn size(self) -> i64;
}

macro_rules! dims {
    ($($ty:ty)*) => {$(
        impl Dim for $ty {
            fn size(self) -> i64 {
                i64::try_from(self).unwrap_or(i64::MAX)
            }
        }
    )*};
}
dims! { usize i32 i64 u32 }

/// A tile shape of any rank: a tuple or array of dimensions.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tile shape",
    label = "expected a tuple of dimensions, such as `(64, 64)` or `(64,)`",
    note = "the shape of a one-dimensional tile has a comma: `(64,)`"
)]
pub trait Shape {
    #[doc(hidden)]
    fn sizes(self) -> Vec<i64>;
}

/// A tile shape of rank `RANK`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tile shape of rank {RANK}",
    label = "expected a tuple of {RANK} dimensions",
    note = "the tile has one dimension for each axis of the tensor; use 1 for an axis of which it takes one element"
)]
pub trait ShapeOfRank<const RANK: usize>: Shape {}

/// One index of `load` or `store`, counted in tiles.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an index",
    label = "expected a literal, `usize`, `Scalar<i32>` or `Scalar<i64>`"
)]
pub trait IndexItem: Copy {
    #[doc(hidden)]
    #[track_caller]
    fn index_raw(self) -> Raw;
}

impl IndexItem for Scalar<i32> {
    fn index_raw(self) -> Raw {
        self.raw()
    }
}
impl IndexItem for Scalar<i64> {
    fn index_raw(self) -> Raw {
        self.raw()
    }
}
impl IndexItem for Scalar<u32> {
    /// Widened, so that large values do not turn negative.
    #[track_caller]
    fn index_raw(self) -> Raw {
        session::op(Cast { elem: crate::ir::Elem::I64 }, &[self.raw()])
    }
}

macro_rules! index_items {
    ($($ty:ty)*) => {$(
        impl IndexItem for $ty {
            /// An i32 where the number fits one, else an i64.
            #[track_caller]
            fn index_raw(self) -> Raw {
                match i32::try_from(self) {
                    Ok(small) => constant::<i32>(small),
                    Err(_) => constant::<i64>(self),
                }
            }
        }
    )*};
}
index_items! { usize i64 u32 }
impl IndexItem for i32 {
    #[track_caller]
    fn index_raw(self) -> Raw {
        constant::<i32>(self)
    }
}

/// The index of a tile in a tensor of rank `RANK`: a tuple or array, one index for each axis, counted in tiles.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not index a tensor of rank {RANK}",
    label = "expected a tuple of {RANK} indices",
    note = "a single index has a comma: `(i,)`"
)]
pub trait IndexOfRank<const RANK: usize> {
    #[doc(hidden)]
    #[track_caller]
    fn index_raws(self) -> Vec<Raw>;
}

/// One axis number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an axis",
    label = "an axis is a host number; negative ones count from the last"
)]
pub trait Axis: Copy {
    #[doc(hidden)]
    fn number(self) -> i64;
}

macro_rules! axis_numbers {
    ($($ty:ty)*) => {$(
        impl Axis for $ty {
            fn number(self) -> i64 {
                i64::try_from(self).unwrap_or(i64::MAX)
            }
        }
    )*};
}
axis_numbers! { i32 i64 usize u32 }

/// Some axes: one number, a tuple or array of them, or [`ALL`]. Negative numbers count from the last.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name axes",
    label = "expected an axis, a tuple of axes, or `ALL`"
)]
pub trait Axes {
    /// `None` stands for every axis.
    #[doc(hidden)]
    fn numbers(self) -> Option<Vec<i64>>;
}

/// Every axis of a tile: `sum(t, ALL)`.
#[derive(Clone, Copy, Debug)]
pub struct AllAxes;

/// Every axis of a tile: `sum(t, ALL)`.
pub const ALL: AllAxes = AllAxes;

impl Axes for AllAxes {
    fn numbers(self) -> Option<Vec<i64>> {
        None
    }
}

impl<A: Axis> Axes for A {
    fn numbers(self) -> Option<Vec<i64>> {
        Some(vec![self.number()])
    }
}

macro_rules! tuples {
    ($($rank:literal: $($t:ident $n:tt)*;)*) => {$(
        impl<$($t: Dim),*> Shape for ($($t,)*) {
            fn sizes(self) -> Vec<i64> {
                vec![$(self.$n.size()),*]
            }
        }
        impl<$($t: Dim),*> ShapeOfRank<$rank> for ($($t,)*) {}
        impl<$($t: IndexItem),*> IndexOfRank<$rank> for ($($t,)*) {
            #[track_caller]
            fn index_raws(self) -> Vec<Raw> {
                vec![$(self.$n.index_raw()),*]
            }
        }
        impl<$($t: Axis),*> Axes for ($($t,)*) {
            fn numbers(self) -> Option<Vec<i64>> {
                Some(vec![$(self.$n.number()),*])
            }
        }
    )*};
}
tuples! { 1: A 0; 2: A 0 B 1; 3: A 0 B 1 C 2; 4: A 0 B 1 C 2 D 3; 5: A 0 B 1 C 2 D 3 E 4; }

impl Shape for () {
    fn sizes(self) -> Vec<i64> {
        Vec::new()
    }
}
impl<D: Dim, const N: usize> Shape for [D; N] {
    fn sizes(self) -> Vec<i64> {
        self.map(Dim::size).to_vec()
    }
}
impl<D: Dim, const N: usize> ShapeOfRank<N> for [D; N] {}
impl<D: Dim> Shape for &[D] {
    fn sizes(self) -> Vec<i64> {
        self.iter().map(|d| d.size()).collect()
    }
}
impl<D: Dim> Shape for &Vec<D> {
    fn sizes(self) -> Vec<i64> {
        self.as_slice().sizes()
    }
}
impl<D: Dim> Shape for Vec<D> {
    fn sizes(self) -> Vec<i64> {
        self.as_slice().sizes()
    }
}
impl<I: IndexItem, const N: usize> IndexOfRank<N> for [I; N] {
    #[track_caller]
    fn index_raws(self) -> Vec<Raw> {
        let mut raws = Vec::with_capacity(N);
        for item in self {
            raws.push(item.index_raw());
        }
        raws
    }
}
impl<A: Axis, const N: usize> Axes for [A; N] {
    fn numbers(self) -> Option<Vec<i64>> {
        Some(self.map(Axis::number).to_vec())
    }
}

/// Dimensions as the IR holds them; a fault for those that are no size.
pub(crate) fn dims(shape: impl Shape) -> Result<Vec<usize>, OpError> {
    let sizes = shape.sizes();
    sizes.iter().map(|&size| dim(size, &sizes)).collect()
}

/// As [`dims`], where one dimension may be -1: whatever gives `count` elements.
pub(crate) fn dims_of(shape: impl Shape, count: usize) -> Result<Vec<usize>, OpError> {
    let mut sizes = shape.sizes();
    let known: i64 = sizes.iter().filter(|&&size| size != -1).fold(1, |n, &size| n.saturating_mul(size));
    if let Some(open) = sizes.iter().position(|&size| size == -1)
        && known > 0
        && count as i64 % known == 0
    {
        sizes[open] = count as i64 / known;
    }
    sizes.iter().map(|&size| dim(size, &sizes)).collect()
}

fn dim(size: i64, all: &[i64]) -> Result<usize, OpError> {
    usize::try_from(size).ok().filter(|&size| size.is_power_of_two() && size <= MAX_DIM).ok_or_else(|| {
        let error = OpError::new(
            Code::TileDimension,
            format!("a tile dimension must be a power of two, found {size} in {}", show(all)),
        );
        error.help(
            "use the next power of two: loads outside the tensor are padded and stores outside it are dropped",
        )
    })
}

fn show(sizes: &[i64]) -> String {
    match sizes {
        [one] => format!("({one},)"),
        many => format!("({})", many.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Keeps products of dimensions within a machine word.
const MAX_DIM: usize = 1 << 24;

/// Static indices, as `extract` takes them.
pub(crate) fn static_index(index: impl Shape) -> Result<Vec<usize>, OpError> {
    let numbers = index.sizes();
    let index = numbers.iter().map(|&i| usize::try_from(i)).collect::<Result<_, _>>();
    index.map_err(|_| {
        OpError::new(Code::Extract, "an index of `extract` is negative")
            .help("indices count sub-tiles from 0")
    })
}

/// Axis numbers of a tile of some rank, the negative ones resolved; ascending order is not required.
pub(crate) fn axes(list: &[i64], rank: usize) -> Result<Vec<usize>, OpError> {
    list.iter().map(|&axis| resolve(axis, rank)).collect()
}

/// An axis number of a tile of some rank, counted from the last if negative.
pub(crate) fn resolve(axis: i64, rank: usize) -> Result<usize, OpError> {
    let resolved = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
    usize::try_from(resolved).ok().filter(|&a| a < rank).ok_or_else(|| {
        let axes = match rank {
            0 => "there is none".to_string(),
            1 => "the only axis is 0".to_string(),
            n => format!("axes are 0 to {}", n - 1),
        };
        OpError::new(Code::Axis, format!("axis {axis} of a tile of rank {rank}: {axes}"))
            .help("negative axes count from the last")
    })
}

/// A place that operations are recorded for: closures have no caller of their own.
#[derive(Clone, Copy)]
pub(crate) struct At(&'static Location<'static>);

impl At {
    /// Records an operation with one result.
    pub(crate) fn op(self, kind: impl Into<OpKind>, operands: &[Raw]) -> Raw {
        session::with(|s| s.op(kind, operands, self.0))
    }
}

/// Runs a rule over the shape of `x` and records its fault at the caller; nothing after an earlier fault.
#[track_caller]
pub(crate) fn with_shape(x: Raw, rule: impl FnOnce(&[usize], At) -> Result<Raw, OpError>) -> Raw {
    let at = Location::caller();
    let shape = session::with(|s| {
        s.id(x, at);
        s.shape(x)
    });
    let Some(shape) = shape else { return session::with(|s| s.error()) };
    rule(&shape, At(at)).unwrap_or_else(|error| session::with(|s| s.fault(error, at)))
}
