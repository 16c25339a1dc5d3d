//! The Mamba-2 forward pass.
//!
//! [`mod@reference`] defines it; every other implementation is measured against that one, within the limits of
//! [`tolerance`].

pub mod case;
mod error;
pub mod file;
mod forward;
pub mod golden;
pub mod inputs;
pub mod kernels;
mod plan;
pub mod problem;
pub mod reference;
mod show;
pub mod tolerance;

pub use error::{Error, Result};
pub use forward::{Inputs, Options, Outputs, Rerun, Value, forward};
pub use plan::default_chunk;
pub use show::{KERNELS, compile_time, explain, show};

/// The name of the target that kernels are compiled for on a device.
pub fn target_name(device: &tile_runtime::Device) -> String {
    tile_runtime::target_of(device).map_or_else(|| "cpu".to_string(), |target| target.name.to_string())
}
