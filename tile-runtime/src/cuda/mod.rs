//! The NVIDIA side of the runtime, on `cudarc`: everything that calls the driver lives below here.

mod capture;
mod context;
mod link;
mod memory;
mod module;
mod probe;
mod recent_maps;
mod stream;
mod tensor_map;

pub(crate) use capture::CudaGraph;
pub use context::Limits;
pub(crate) use context::{CudaDevice, open, visible_devices};
pub(crate) use link::driver_build;
pub(crate) use memory::CudaBuffer;
pub use module::{Function, FunctionAttributes, Module};
pub use probe::{DriverVersion, driver_version};
pub use recent_maps::RecentMaps;
pub(crate) use stream::CudaQueue;
pub use tensor_map::{EncodedTensorMap, L2Promotion, TensorMapSpec};
