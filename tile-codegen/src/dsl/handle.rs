//! The handles of a kernel's values: tiles, scalars and tensors. They are copied freely and live while their kernel is
//! staged.

use std::marker::PhantomData;
use std::panic::Location;

use super::element::Element;
use super::session::{self, Raw};
use crate::ir::Elem;
use crate::ops::extent::Extent;

/// A constant of a kernel: a host value that each launch specialises the kernel by.
pub type Const<T> = T;

// Handles belong to the thread that stages their kernel.
type Marker<T> = PhantomData<(T, *const ())>;

/// A block of elements of type `T`, held by the threads of one grid block. Its shape is known when the kernel is
/// specialised; every dimension is a power of two.
pub struct Tile<T> {
    raw: Raw,
    marker: Marker<T>,
}

/// One element of type `T`, equal in every thread of a block.
pub struct Scalar<T> {
    raw: Raw,
    marker: Marker<T>,
}

/// A tensor in global memory that the kernel reads.
pub struct Tensor<T, const RANK: usize> {
    raw: Raw,
    marker: Marker<T>,
}

/// A tensor in global memory that the kernel reads and writes.
pub struct TensorMut<T, const RANK: usize> {
    raw: Raw,
    marker: Marker<T>,
}

macro_rules! handles {
    ($($handle:ident $(, $rank:ident)?;)*) => {$(
        impl<T $(, const $rank: usize)?> $handle<T $(, $rank)?> {
            pub(crate) fn new(raw: Raw) -> Self {
                Self { raw, marker: PhantomData }
            }
        }
        impl<T $(, const $rank: usize)?> Clone for $handle<T $(, $rank)?> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T $(, const $rank: usize)?> Copy for $handle<T $(, $rank)?> {}
        impl<T $(, const $rank: usize)?> std::fmt::Debug for $handle<T $(, $rank)?> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($handle), "(..)"))
            }
        }
    )*};
}
handles! { Tile; Scalar; Tensor, RANK; TensorMut, RANK; }

macro_rules! runtime_values {
    ($($handle:ident)*) => {$(
        impl<T> $handle<T> {
            pub(crate) fn raw(self) -> Raw {
                self.raw
            }
            pub(crate) fn set(&mut self, raw: Raw) {
                self.raw = raw;
            }
        }
    )*};
}
runtime_values! { Tile Scalar }

impl<T, const RANK: usize> TensorMut<T, RANK> {
    pub(crate) fn raw(self) -> Raw {
        self.raw
    }
}

/// A tile or a scalar: what elementwise operations take.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tile or a scalar",
    label = "expected a `Tile` or a `Scalar`",
    note = "`load` reads a tile out of a tensor; `scalar(x)` makes a runtime value of a host number"
)]
pub trait TileOrScalar: Copy {
    /// The element type.
    type Elem: Element;
    /// The same kind with another element type.
    type With<U: Element>: TileOrScalar<Elem = U>;
    #[doc(hidden)]
    fn to_raw(self) -> Raw;
    #[doc(hidden)]
    fn from_raw(raw: Raw) -> Self;
}

macro_rules! tile_or_scalar {
    ($($handle:ident)*) => {$(
        impl<T: Element> TileOrScalar for $handle<T> {
            type Elem = T;
            type With<U: Element> = $handle<U>;
            fn to_raw(self) -> Raw {
                self.raw
            }
            fn from_raw(raw: Raw) -> Self {
                Self::new(raw)
            }
        }
    )*};
}
tile_or_scalar! { Tile Scalar }

/// A tensor that can be read: `Tensor` or `TensorMut`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor",
    label = "expected a `Tensor` or a `TensorMut`"
)]
pub trait AnyTensor<T, const RANK: usize>: Copy {
    #[doc(hidden)]
    fn to_raw(self) -> Raw;
}

macro_rules! any_tensor {
    ($($handle:ident)*) => {$(
        impl<T: Element, const RANK: usize> AnyTensor<T, RANK> for $handle<T, RANK> {
            fn to_raw(self) -> Raw {
                self.raw
            }
        }

        impl<T: Element, const RANK: usize> $handle<T, RANK> {
            /// The number of axes.
            pub const RANK: usize = RANK;

            /// The size along an axis, at run time. An axis out of range is an error of the kernel.
            #[track_caller]
            pub fn dim(self, axis: usize) -> Scalar<i32> {
                Scalar::new(session::op(Extent { axis }, &[self.raw]))
            }

            /// The sizes along all axes, at run time.
            #[track_caller]
            pub fn shape(self) -> [Scalar<i32>; RANK] {
                let at = Location::caller();
                std::array::from_fn(|axis| session::with(|s| Scalar::new(s.op(Extent { axis }, &[self.raw], at))))
            }

            /// The element type.
            pub fn elem(self) -> Elem {
                T::ELEM
            }
        }
    )*};
}
any_tensor! { Tensor TensorMut }

impl<T: Element> Tile<T> {
    /// The dimensions, as host numbers. Empty for a tile that an error was reported for.
    #[track_caller]
    pub fn shape(self) -> Vec<usize> {
        session::shape(self.raw).unwrap_or_default()
    }

    /// The number of axes.
    #[track_caller]
    pub fn rank(self) -> usize {
        self.shape().len()
    }

    /// The element type.
    pub fn elem(self) -> Elem {
        T::ELEM
    }
}

/// A scalar is a tile of rank 0 wherever a tile is asked for.
impl<T: Element> From<Scalar<T>> for Tile<T> {
    fn from(scalar: Scalar<T>) -> Self {
        Tile::new(scalar.raw)
    }
}
