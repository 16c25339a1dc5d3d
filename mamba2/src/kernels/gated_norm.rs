//! `gated_norm`: root-mean-square normalisation with a gate.

use tile_runtime::prelude::*;

/// Normalises each group of channels of a row, in f32:
///
/// ```text
/// rms(v) = v / sqrt(mean(v^2) + epsilon) * weight
/// y = rms(x) silu(z) if norm_first, else rms(x silu(z));   rms(x) without z
/// ```
///
/// | argument | shape |
/// |---|---|
/// | `x`, `z`, `y` | `[rows, groups, channels]` |
/// | `weight` | `[groups, channels]` |
///
/// Grid: rows, groups. `block` is a power of two that covers a group's channels.
#[tile_kernel]
pub fn gated_norm<T: Float + Storable, Z: Float + Storable>(
    x: Tensor<T, 3>,
    z: Option<Tensor<Z, 3>>,
    weight: Tensor<f32, 2>,
    y: TensorMut<T, 3>,
    epsilon: Scalar<f32>,
    norm_first: Const<bool>,
    block: Const<usize>,
) {
    let (row, group) = (bid(0), bid(1));
    let mut value = load(x, (row, group, 0), (1, 1, block)).cast::<f32>().reshape((block,));
    let gate = z.map(|z| {
        let z = load(z, (row, group, 0), (1, 1, block)).cast::<f32>().reshape((block,));
        z * sigmoid(z)
    });
    if let (Some(gate), false) = (gate, norm_first) {
        value = value * gate;
    }
    // Past the end of the channels are zeros, which add nothing.
    let mean = (value * value).sum_keepdims(0) / x.dim(2).cast::<f32>();
    let weight = load(weight, (group, 0), (1, block)).reshape((block,));
    value = value * rsqrt(mean + epsilon) * weight;
    if let (Some(gate), true) = (gate, norm_first) {
        value = value * gate;
    }
    store(y, (row, group, 0), value.cast::<T>().reshape((1, 1, block)));
}
