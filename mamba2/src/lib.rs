//! The Mamba-2 forward pass.
//!
//! [`mod@reference`] defines it; every other implementation is measured against that one, within the limits of
//! [`tolerance`].

mod arguments;
pub mod case;
mod check;
mod error;
pub mod file;
mod forward;
pub mod golden;
pub mod inputs;
pub mod kernels;
pub mod mixer;
mod pass;
mod plan;
pub mod problem;
pub mod reference;
pub mod resident;
mod sequences;
mod show;
mod step;
pub mod tolerance;
mod workspace;

pub use arguments::{FloatElement, Inputs, Options, Outputs, StateType, Value};
pub use error::{Error, Result};
pub use forward::{forward, forward_into};
pub use mixer::{Mixer, MixerOptions, MixerState, MixerWeights};
pub use pass::Rerun;
pub use plan::default_chunk;
pub use sequences::Sequences;
pub use show::{KERNELS, Variant, With};
pub use step::{Slots, StepOptions, step, step_into};
pub use workspace::Workspace;

/// The name of the target that kernels are compiled for on a device.
pub fn target_name(device: &tile_runtime::Device) -> String {
    tile_runtime::target_of(device).map_or_else(|| "cpu".to_string(), |target| target.name.to_string())
}
