//! What authors of kernels need: `use tile_runtime::prelude::*;`.

pub use tile_codegen::dsl::prelude::*;
pub use tile_macros::{tile_fn, tile_kernel};

pub use crate::{
    BorrowedTensor, BorrowedTensorMut, ByTarget, Config, ConstParam, Device, DeviceTensor,
    Element as HostElement, Error, ExecutorOptions, Graph, Grid, KernelParam, Launch, Result, Stream, Target,
};
