//! A whole Mamba-2 mixer: input projection, convolution, state space model, norm, output projection.

mod layer;
mod ops;
pub mod reference;
mod sizes;
mod weights;

pub use layer::{Mixer, MixerOutputs, MixerState};
pub use sizes::Sizes;
pub use weights::MixerWeights;

/// What the shapes of the weights do not say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MixerOptions {
    /// Groups of heads that share B and C; the norm is over the channels of each.
    pub groups: usize,
    /// Whether the norm comes before the gate.
    pub norm_before_gate: bool,
    /// Added to the mean square.
    pub epsilon: f32,
    /// The range of dt after bias and softplus.
    pub dt_limit: (f32, f32),
    /// Tokens in a chunk; chosen when not given.
    pub chunk: Option<usize>,
    /// What GPUs' code is generated for; what suits the device when not given.
    pub target: Option<tile_runtime::Target>,
}

impl Default for MixerOptions {
    /// Those of published models: one group, the gate before the norm, epsilon 1e-5, no limits.
    fn default() -> Self {
        Self {
            groups: 1,
            norm_before_gate: false,
            epsilon: 1e-5,
            dt_limit: (0.0, f32::INFINITY),
            chunk: None,
            target: None,
        }
    }
}
