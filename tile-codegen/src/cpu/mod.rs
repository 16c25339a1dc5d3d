//! CPU execution of tile IR: the meaning of every operation, and an executor whose blocks can be suspended.

pub(crate) mod atomics;
pub(crate) mod convert;
pub(crate) mod elementwise;
mod error;
mod exec;
pub(crate) mod indexed;
mod liveness;
pub mod math;
pub mod memory;
pub(crate) mod product;
mod program;
pub(crate) mod reduce;
pub mod round;
pub(crate) mod strided;
pub(crate) mod transfer;
mod value;
mod vec_memory;

pub use error::ExecError;
pub use exec::{Arg, BlockRun, Progress, block_of, run_blocks, run_grid};
pub use memory::{Slice, SliceMut, TensorArg, TensorMemory};
pub use program::Program;
pub(crate) use value::for_element;
pub use value::{Element, TileData, TileValue};
pub use vec_memory::VecMemory;

#[cfg(test)]
mod tests;
