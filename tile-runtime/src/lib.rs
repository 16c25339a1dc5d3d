//! Devices, tensors and launches.

mod buffer;
mod cpu_buffer;
mod cpu_memory;
pub mod cuda;
mod device;
mod element;
mod error;
mod event;
mod graph;
mod interop;
mod stream;
mod strided;
mod tensor;
mod tensor_any;

pub use buffer::{Access, Storage, Use};
pub use cpu_buffer::{ALIGNMENT, CpuBuffer};
pub use cpu_memory::CpuMemory;
pub use device::{Device, DeviceKind};
pub use element::Element;
pub use error::{Error, ModuleError, Result};
pub use event::Event;
pub use graph::Graph;
pub use interop::{BorrowedTensor, BorrowedTensorMut};
pub use stream::Stream;
pub use strided::Strided;
pub use tensor::DeviceTensor;
pub use tensor_any::AnyTensor;
pub use tile_codegen::ir::Elem;
