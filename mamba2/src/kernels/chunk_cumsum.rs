//! `chunk_cumsum`: the time steps, and the running sum of their decays inside each chunk.

use tile_runtime::prelude::*;

use super::step_size::{exponent, step_size};

/// Decays that are summed at a time where sequences are packed.
const COLUMNS: usize = 32;

/// For every batch element, head and token: the step
///
/// ```text
/// dt = clamp(softplus?(dt_raw + bias?), low, high),   0 outside the sequence
/// ```
///
/// and `G`, the inclusive sum of `A dt`, clamped to -200 .. 0, from the start of the token's chunk, times log2(e). Where
/// sequences are packed, the sum starts anew with each.
///
/// | argument | shape |
/// |---|---|
/// | `a` | `[heads]`, negative |
/// | `dt` | `[batch, tokens, heads]` |
/// | `dt_bias` | `[heads]`, or none |
/// | `sequence_of` | `[batch, tokens]`: the number of each token's sequence; none for one sequence a batch element |
/// | `dt_out`, `decay` | `[batch, heads, tokens rounded up to whole chunks]` |
///
/// Grid: chunks, tiles of `block_heads` heads (1 with `sequence_of`), batch. The outputs are contiguous in tokens, so that the
/// kernels after this one load them as rows.
#[tile_kernel]
pub fn chunk_cumsum<T: Float + Storable>(
    a: Tensor<f32, 1>,
    dt: Tensor<T, 3>,
    dt_bias: Option<Tensor<f32, 1>>,
    sequence_of: Option<Tensor<i32, 2>>,
    dt_out: TensorMut<f32, 3>,
    decay: TensorMut<f32, 3>,
    low: Scalar<f32>,
    high: Scalar<f32>,
    dt_softplus: Const<bool>,
    chunk: Const<usize>,
    block_heads: Const<usize>,
) {
    let (chunk_idx, head_tile, batch) = (bid(0), bid(1), bid(2));
    let a = load(a, (head_tile,), (block_heads,));
    // The steps of `tokens` tokens, tile number `index` of them.
    let steps = |index: Scalar<i32>, tokens: usize| {
        let raw = load(dt, (batch, index, head_tile), (1, tokens, block_heads)).cast::<f32>();
        let bias = dt_bias.map(|bias| load(bias, (head_tile,), (block_heads,)));
        let step = step_size(raw, bias, dt_softplus, low, high);
        let token = (arange::<i32>(tokens) + index * tokens).reshape((1, tokens, 1));
        where_(token < dt.dim(1), step, 0.0)
    };
    let step = steps(chunk_idx, chunk);
    let sum = match sequence_of {
        None => cumsum(exponent(a, step), 1),
        Some(sequence_of) => {
            // A select for each pair of tokens: whatever lies in other sequences, not even NaN passes.
            let columns = if chunk < COLUMNS { chunk } else { COLUMNS };
            let parts = chunk / columns;
            let own = load_with(sequence_of, (batch, chunk_idx), (1, chunk), -1).reshape((chunk, 1));
            let row = arange::<i32>(chunk).reshape((chunk, 1));
            let mut sum = zeros::<f32>((chunk,));
            for part in unroll(0..parts) {
                let index = chunk_idx * parts + part;
                let decay = exponent(a, steps(index, columns)).reshape((1, columns));
                let other = load_with(sequence_of, (batch, index), (1, columns), -1);
                let column = (arange::<i32>(columns) + part * columns).reshape((1, columns));
                sum = sum + where_((own == other) & (column <= row), decay, 0.0).sum(1);
            }
            sum.reshape((1, chunk, 1))
        }
    };
    store(dt_out, (batch, head_tile, chunk_idx), step.permute((0, 2, 1)));
    store(decay, (batch, head_tile, chunk_idx), (sum * LOG2_E).permute((0, 2, 1)));
}
