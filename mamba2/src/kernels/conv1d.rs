//! `conv1d`: a causal convolution along the tokens, a filter a channel; and `conv1d_state`, the inputs that later tokens need.

use tile_runtime::prelude::*;

use crate::sequences::column;

/// `y_t = silu?(bias + sum_k weight_k x_{t - width + 1 + k})`, in f32 with one rounding. Tokens before the first are those of
/// `state`, or zeros.
///
/// | argument | shape |
/// |---|---|
/// | `x`, `y` | `[batch, tokens, channels]` |
/// | `weight` | `[channels, width]` |
/// | `bias` | `[channels]`, or none |
/// | `state` | `[batch, channels, width]`: the inputs before the first token, the latest last; or none |
/// | `sequence_of` | `[batch, tokens]`: the number of each token's sequence; none for one sequence a batch element |
///
/// Grid: blocks of tokens, tiles of channels, batch. With `sequence_of` no token sees another sequence, and there is no `state`.
#[tile_kernel]
pub fn conv1d<T: Float + Storable>(
    x: Tensor<T, 3>,
    weight: Tensor<f32, 2>,
    bias: Option<Tensor<f32, 1>>,
    state: Option<Tensor<T, 3>>,
    sequence_of: Option<Tensor<i32, 2>>,
    y: TensorMut<T, 3>,
    silu: Const<bool>,
    width: Const<usize>,
    block_tokens: Const<usize>,
    block_channels: Const<usize>,
) {
    let (block, channels, batch) = (bid(0), bid(1), bid(2));
    let (first, channel) = (block * block_tokens, channels * block_channels);
    let own = sequence_of.map(|sequence_of| {
        load_with(sequence_of, (batch, block), (1, block_tokens), -1).reshape((block_tokens, 1))
    });
    let mut sum = match bias {
        Some(bias) => load(bias, (channels,), (block_channels,)).expand_dims(0),
        None => zeros::<f32>((1, block_channels)),
    };
    sum = sum.broadcast_to((block_tokens, block_channels));
    for k in unroll(0..width) {
        let back = width - 1 - k;
        let tile = (1, block_tokens, block_channels);
        let mut value = load_at(x, (batch, first - back, channel), tile).cast::<f32>();
        value = value.reshape((block_tokens, block_channels));
        if let Some(state) = state {
            // Outside of either tensor is zero, and no token is in both.
            let tile = (1, block_channels, block_tokens);
            let before = load_at(state, (batch, channel, first + (width - back)), tile).cast::<f32>();
            value = value + before.reshape((block_channels, block_tokens)).transpose();
        }
        if let (Some(sequence_of), Some(own)) = (sequence_of, own)
            && back > 0
        {
            let other = load_at_with(sequence_of, (batch, first - back), (1, block_tokens), -1);
            value = where_(own == other.reshape((block_tokens, 1)), value, 0.0);
        }
        sum = sum + value * load_at(weight, (channel, k), (block_channels, 1)).reshape((1, block_channels));
    }
    if silu {
        sum = sum * sigmoid(sum);
    }
    store(y, (batch, block, channels), sum.cast::<T>().reshape((1, block_tokens, block_channels)));
}

/// The last `width` inputs of each sequence, the latest last; tokens before the first are those of `before`, or zeros.
///
/// | argument | shape |
/// |---|---|
/// | `x` | `[batch, tokens, channels]` |
/// | `before` | `[sequences, channels, width]`, or none |
/// | `sequences` | the table of sequences; none for one a batch element |
/// | `state` | `[sequences, channels, width]`; unless `own_rows` those alone that end a batch element, in its row |
///
/// Grid: tiles of channels, sequences. `block_width` is a power of two that covers the width.
#[tile_kernel]
pub fn conv1d_state<T: Float + Storable>(
    x: Tensor<T, 3>,
    before: Option<Tensor<T, 3>>,
    sequences: Option<Tensor<i32, 2>>,
    state: TensorMut<T, 3>,
    own_rows: Const<bool>,
    width: Const<usize>,
    block_width: Const<usize>,
    block_channels: Const<usize>,
) {
    let (channels, sequence) = (bid(0), bid(1));
    let channel = channels * block_channels;
    let of = |sequences: Tensor<i32, 2>, column: usize| load_scalar(sequences, (sequence, column));
    let (batch, start, end) = match sequences {
        Some(sequences) => {
            (of(sequences, column::BATCH), of(sequences, column::START), of(sequences, column::END))
        }
        None => (sequence, scalar(0), x.dim(1)),
    };
    let row = match sequences {
        Some(sequences) if !own_rows => of(sequences, column::FINAL),
        _ => sequence,
    };
    let token = (arange::<i32>(block_width) + (end - width)).reshape((block_width, 1));
    let value = load_at(x, (batch, end - width, channel), (1, block_width, block_channels));
    let none = zeros::<T>((block_width, block_channels));
    let mut value = where_(token >= start, value.reshape((block_width, block_channels)), none).transpose();
    if let Some(before) = before {
        // Those of the `width` inputs before that are still among the last.
        let tile = (1, block_channels, block_width);
        let kept = load_at(before, (sequence, channel, end - start), tile);
        let kept = kept.reshape((block_channels, block_width));
        value = where_(token.reshape((1, block_width)) < start, kept, value);
    }
    if row >= 0 {
        store(state, (row, channels, 0), value.reshape((1, block_channels, block_width)));
    }
}
