//! The staged language: typed handles whose operations record tile IR.
//!
//! A kernel is a Rust function that runs on the host, once for every specialisation. `stage` opens a session, binds the
//! parameters and runs it; every operation on a handle appends to the session's IR and remembers its place in the
//! user's source. Rust checks names, arity and element types; shapes are checked while recording.

pub(crate) mod arith;
mod compare;
mod control;
mod convert;
mod element;
mod handle;
pub(crate) mod host;
mod panics;
mod params;
pub(crate) mod session;
pub(crate) mod shape;
mod source;

pub mod prelude;
pub mod private;

pub use arith::Mix;
pub use convert::{CeilDiv, cdiv, unroll};
pub use element::{AtomicNumber, Bits, Element, Float, Int, MmaOperand, Number, Storable, tf32};
pub use handle::{AnyTensor, Const, Scalar, Tensor, TensorMut, Tile, TileOrScalar};
pub use host::{HostNumber, Operand, ScalarValue, scalar};
pub use params::Params;
pub use session::{StageError, Staged, stage};
pub use shape::{ALL, AllAxes, Axes, Axis, Dim, IndexItem, IndexOfRank, Shape, ShapeOfRank};
pub use source::{KernelSource, SourceText};

#[cfg(test)]
mod tests;
