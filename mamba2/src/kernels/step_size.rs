//! The step sizes: what happens to `dt` before it is used, in the forward pass as in the decode step.

use tile_runtime::prelude::*;

/// `clamp(softplus?(dt + bias?), low, high)`, elementwise; a bias is broadcast along the heads. NaN stays NaN.
#[tile_fn]
pub(crate) fn step_size(
    dt: Tile<f32>,
    bias: Option<Tile<f32>>,
    dt_softplus: bool,
    low: Scalar<f32>,
    high: Scalar<f32>,
) -> Tile<f32> {
    let mut step = dt;
    if let Some(bias) = bias {
        step = step + bias;
    }
    if dt_softplus {
        step = softplus(step);
    }
    minimum_nan(maximum_nan(step, low), high)
}

/// `A dt` as an exponent of the decay: -200 .. 0.
///
/// exp(-200) is 0 in f32, and a bounded sum keeps more of its precision for the tokens after a strong decay: running sums of up to s
/// have steps of s 2^-23, and later weights are that much off. Steps of 0, as those beyond the sequence, do not decay, whatever A is.
#[tile_fn]
pub(crate) fn exponent(a: Tile<f32>, step: Tile<f32>) -> Tile<f32> {
    minimum_nan(maximum_nan(where_(step == 0.0, 0.0, a * step), -200.0), 0.0)
}
