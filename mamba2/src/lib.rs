//! The Mamba-2 forward pass, decoding, and whole layers.
//!
//! For one batch element and head, with `x_t` and `z_t` of `head_dim` values, `B_t` and `C_t` of `state` values, and scalars
//! `dt_t`, `A` and `D`:
//!
//! ```text
//! dt_t = clamp(softplus?(dt_t + dt_bias?), dt_limit)
//! S_t  = exp(A dt_t) S_{t-1} + dt_t x_t B_t^T          S: [head_dim, state]
//! y_t  = (S_t C_t + D? x_t) silu(z_t)?
//! ```
//!
//! | to | use |
//! |---|---|
//! | run a prompt or a batch | [`forward()`], or [`forward_into`] with a [`Workspace`], which allocates nothing |
//! | decode token by token | [`step()`] or [`step_into`], also in a pool of states ([`Slots`]) |
//! | pack sequences of any lengths | [`Sequences`] |
//! | run a whole layer from the weights of a checkpoint | [`Mixer`], [`MixerWeights`] |
//! | say what the inputs are | [`Inputs`], [`Options`], [`StepOptions`] |
//! | know the right answer | [`mod@reference`], which defines all this in f64, and [`tolerance`], how far from it results may be |
//! | look into the kernels | [`Variant`], [`kernels`] |
//! | run problems from files or from a seed | [`case`], [`mod@file`], [`golden`], [`inputs`], [`resident`] |
//!
//! A prompt of two packed sequences, and one more token for each:
//!
//! ```
//! use mamba2::{Inputs, Options, Sequences, StepOptions, forward, step};
//! use tile_runtime::{Device, DeviceTensor};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::best();
//! let (heads, head_dim, groups, state) = (2, 16, 1, 32);
//! // dt = 1 and x = B = C = 1, so that S_t = exp(-1) S_{t-1} + 1 and y_t = state S_t.
//! let ones = |shape: &[usize]| DeviceTensor::<f32>::full(&device, shape, 1.0);
//! let a = DeviceTensor::<f32>::full(&device, &[heads], -1.0)?;
//!
//! let (x, dt, b) = (ones(&[1, 5, heads, head_dim])?, ones(&[1, 5, heads])?, ones(&[1, 5, groups, state])?);
//! let sequences = Sequences::from_cu_seqlens(&device, &[0, 2, 5])?;
//! let inputs = Inputs::new(&x, &dt, &a, &b, &b).sequences(&sequences);
//! let outputs = forward(&inputs, &Options::default())?;
//! let y = outputs.y.to_vec()?;
//! let token = |t: usize| y[t * heads * head_dim];
//! let e = (-1.0f32).exp();
//! assert!((token(0) - 32.0).abs() < 1e-3 && (token(1) - 32.0 * (1.0 + e)).abs() < 1e-3);
//! assert!((token(2) - 32.0).abs() < 1e-3, "the second sequence knows nothing of the first");
//!
//! // The states after both sequences, [2, heads, head_dim, state], are those of a batch of two.
//! let mut states = outputs.sequence_states.expect("the sequences have states of their own");
//! let (x, dt, b) = (ones(&[2, 1, heads, head_dim])?, ones(&[2, 1, heads])?, ones(&[2, 1, groups, state])?);
//! let y = step(&Inputs::new(&x, &dt, &a, &b, &b), &mut states, &StepOptions::default())?.to_vec()?;
//! assert!((y[0] - 32.0 * (1.0 + e + e * e)).abs() < 1e-3);
//! assert!((y[heads * head_dim] - 32.0 * (1.0 + e + e * e + e * e * e)).abs() < 1e-3);
//! # Ok(()) }
//! ```
//!
//! Results are the same bits from run to run, and on the CPU for any number of threads.

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
pub mod tune;
mod tuned;
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
pub use tuned::{Choice, choice};
pub use workspace::Workspace;

/// The name of the target that kernels are compiled for on a device.
pub fn target_name(device: &tile_runtime::Device) -> String {
    tile_runtime::target_of(device).map_or_else(|| "cpu".to_string(), |target| target.name.to_string())
}
