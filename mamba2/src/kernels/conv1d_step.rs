//! `conv1d_step`: the convolution for a few tokens of decoding, with its state updated in place.

use tile_runtime::prelude::*;

/// For each token the state moves on by one, and
///
/// ```text
/// y = silu?(bias + sum_k weight_k state_k)
/// ```
///
/// | argument | shape |
/// |---|---|
/// | `x`, `y` | `[batch, tokens, channels]` |
/// | `weight` | `[channels, width]` |
/// | `bias` | `[channels]`, or none |
/// | `slots` | `[batch]`: the row of `state` of a batch element, or none for its own; below 0 the element is skipped, and its y is 0 |
/// | `state` | `[rows, channels, width]`: the latest inputs, the latest last |
///
/// Grid: tiles of channels, batch. `block_width` is a power of two that covers the width.
#[tile_kernel]
pub fn conv1d_step<T: Float + Storable>(
    x: Tensor<T, 3>,
    weight: Tensor<f32, 2>,
    bias: Option<Tensor<f32, 1>>,
    slots: Option<Tensor<i32, 1>>,
    state: TensorMut<T, 3>,
    y: TensorMut<T, 3>,
    silu: Const<bool>,
    width: Const<usize>,
    block_width: Const<usize>,
    block_channels: Const<usize>,
) {
    let (channels, batch) = (bid(0), bid(1));
    let channel = channels * block_channels;
    let row = (1, 1, block_channels);
    let slot = match slots {
        Some(slots) => load_scalar(slots, (batch,)),
        None => batch,
    };
    if slot < 0 {
        for token in 0..x.dim(1) {
            store(y, (batch, token, channels), zeros::<T>(row));
        }
        return;
    }
    let bias = match bias {
        Some(bias) => load(bias, (channels,), (block_channels,)),
        None => zeros::<f32>((block_channels,)),
    };
    // Input number i of the state and the tokens in one row.
    let input = |i: Scalar<i32>| {
        let before = load_at(state, (slot, channel, i), (1, block_channels, 1)).reshape((block_channels,));
        let token = load_at(x, (batch, i - width, channel), row).reshape((block_channels,));
        where_(i < width, before, token)
    };
    for token in 0..x.dim(1) {
        let mut sum = bias;
        for k in unroll(0..width) {
            let weight = load_at(weight, (channel, k), (block_channels, 1)).reshape((block_channels,));
            sum = sum + input(token + (k + 1)).cast::<f32>() * weight;
        }
        if silu {
            sum = sum * sigmoid(sum);
        }
        store(y, (batch, token, channels), sum.cast::<T>().reshape(row));
    }
    let index = arange::<i32>(block_width) + x.dim(1);
    let tile = (1, block_channels, block_width);
    let kept = load_at(state, (slot, channel, x.dim(1)), tile);
    let new = load_at(x, (batch, x.dim(1) - width, channel), (1, block_width, block_channels));
    let new = new.reshape((block_width, block_channels)).transpose().reshape(tile);
    store(state, (slot, channels, 0), where_((index < width).reshape((1, 1, block_width)), kept, new));
}
