//! Devices, tensors and launches.

mod args;
mod buffer;
pub mod cache;
mod cpu_buffer;
mod cpu_memory;
pub mod cuda;
mod device;
mod element;
mod error;
mod event;
pub mod executor;
mod facts;
mod graph;
mod interop;
mod launch;
mod launch_check;
mod launch_cpu;
mod launch_cuda;
mod launch_grid;
mod launch_ptx;
mod param;
mod param_const;
pub mod prelude;
pub mod probing;
mod specialisations;
mod specialize;
mod stream;
mod strided;
mod tensor;
mod tensor_any;
mod tensor_maps;
pub mod testing;
pub mod timing;
pub mod tune;

pub use args::ConstKey;
pub use buffer::{Access, Storage, Use};
pub use cpu_buffer::{ALIGNMENT, CpuBuffer};
pub use cpu_memory::CpuMemory;
pub use device::{Device, DeviceKind};
pub use element::Element;
pub use error::{Error, KernelError, ModuleError, Result};
pub use event::Event;
pub use executor::{ExecutorError, ExecutorOptions};
pub use graph::Graph;
pub use interop::{BorrowedTensor, BorrowedTensorMut};
pub use launch::Launch;
pub use launch_grid::{Grid, GridAxis};
pub use param::KernelParam;
pub use param_const::ConstParam;
pub use stream::Stream;
pub use strided::Strided;
pub use tensor::DeviceTensor;
pub use tensor_any::AnyTensor;
/// The compiler, for those who look at tile IR and PTX.
pub use tile_codegen as codegen;
pub use tile_codegen::compile::Compiled;
pub use tile_codegen::config::{ByTarget, Config};
pub use tile_codegen::dsl::Staged;
pub use tile_codegen::explain::Explanation;
pub use tile_codegen::ir::Elem;
pub use tile_codegen::target::Target;
pub use tile_macros::{tile_fn, tile_kernel};

/// The target that kernels are compiled for on a device; none on the CPU and the meta device: `sm_90a` on an H100 or H200,
/// `sm_80` on every other GPU that can be opened.
pub fn target_of(device: &Device) -> Option<Target> {
    match device.kind() {
        DeviceKind::Cuda { .. } => Some(match device.compute_capability() {
            Some((9, 0)) => Target::SM_90A,
            Some(_) | None => Target::SM_80,
        }),
        DeviceKind::PtxExecutor { target } => Some(target),
        DeviceKind::Cpu | DeviceKind::Meta => None,
    }
}

/// What the kernel attributes expand to. Nothing here is for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use tile_codegen::dsl::private::*;

    pub use crate::args::{ArgList, KernelInfo, StageArgs};
    pub use crate::launch::launch;
    pub use crate::param::KernelParam;
}
