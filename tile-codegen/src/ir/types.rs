//! Types of IR values.

use std::fmt;

use super::dim::Dim;
use super::elem::Elem;
use crate::layout::SharedLayout;

/// A tile: a block of elements held by the threads of one grid block. Rank 0 is a scalar, equal in every thread.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TileType<D = usize> {
    /// Element type.
    pub elem: Elem,
    /// Sizes of the axes, outermost first; each a power of two.
    pub shape: Vec<D>,
}

impl<D: Dim> TileType<D> {
    /// A tile type.
    pub fn new(elem: Elem, shape: impl Into<Vec<D>>) -> Self {
        Self { elem, shape: shape.into() }
    }
    /// A scalar type.
    pub fn scalar(elem: Elem) -> Self {
        Self { elem, shape: Vec::new() }
    }
    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }
    /// The same shape with another element type.
    pub fn with_elem(&self, elem: Elem) -> Self {
        Self { elem, shape: self.shape.clone() }
    }
    /// The same element type with another shape.
    pub fn with_shape(&self, shape: Vec<D>) -> Self {
        Self { elem: self.elem, shape }
    }
}

impl TileType<usize> {
    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }
}

/// A tensor in global memory, as a kernel sees it: rank and element type are static, extents and strides are not.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorType {
    /// Element type.
    pub elem: Elem,
    /// Number of axes, 1 to 5.
    pub rank: usize,
    /// Whether the kernel may store to it.
    pub mutable: bool,
}

/// A tile in shared memory, made by the compiler when threads exchange data.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SharedType {
    /// Element type.
    pub elem: Elem,
    /// Where each element lies.
    pub layout: SharedLayout,
}

/// The type of an IR value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// A tile or scalar.
    Tile(TileType),
    /// A tensor argument.
    Tensor(TensorType),
    /// A tile in shared memory.
    Shared(SharedType),
    /// The result of an operation that was refused; it silences follow-up errors.
    Error,
}

impl Type {
    /// A tile type.
    pub fn tile(elem: Elem, shape: impl Into<Vec<usize>>) -> Type {
        Type::Tile(TileType::new(elem, shape))
    }
    /// A scalar type.
    pub fn scalar(elem: Elem) -> Type {
        Type::Tile(TileType::scalar(elem))
    }
    /// The tile type, if this is one.
    pub fn as_tile(&self) -> Option<&TileType> {
        match self {
            Type::Tile(t) => Some(t),
            Type::Tensor(_) | Type::Shared(_) | Type::Error => None,
        }
    }
    /// The tensor type, if this is one.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(t) => Some(t),
            Type::Tile(_) | Type::Shared(_) | Type::Error => None,
        }
    }
    /// The shared type, if this is one.
    pub fn as_shared(&self) -> Option<&SharedType> {
        match self {
            Type::Shared(t) => Some(t),
            Type::Tile(_) | Type::Tensor(_) | Type::Error => None,
        }
    }
}

/// `64x128xbf16`, or `i32` for a scalar.
impl fmt::Display for TileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for d in &self.shape {
            write!(f, "{d}x")?;
        }
        write!(f, "{}", self.elem)
    }
}
