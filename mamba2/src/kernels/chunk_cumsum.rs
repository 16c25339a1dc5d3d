//! `chunk_cumsum`: the time steps, and the running sum of their decays inside each chunk.

use tile_runtime::prelude::*;

/// For every batch element, head and token: `dt`, at least 0 and 0 outside the sequence, and `G`, the inclusive sum of
/// `A dt`, clamped to -200 .. 0, from the start of the token's chunk, times log2(e).
///
/// | argument | shape |
/// |---|---|
/// | `a` | `[heads]`, negative |
/// | `dt` | `[batch, tokens, heads]` |
/// | `dt_out`, `decay` | `[batch, heads, tokens rounded up to whole chunks]` |
///
/// Grid: chunks, tiles of `block_heads` heads, batch. The outputs are contiguous in tokens, so that the kernels after
/// this one load them as rows.
#[tile_kernel]
pub fn chunk_cumsum<T: Float + Storable>(
    a: Tensor<f32, 1>,
    dt: Tensor<T, 3>,
    dt_out: TensorMut<f32, 3>,
    decay: TensorMut<f32, 3>,
    chunk: Const<usize>,
    block_heads: Const<usize>,
) {
    let (chunk_idx, head_tile, batch) = (bid(0), bid(1), bid(2));
    let dt = load(dt, (batch, chunk_idx, head_tile), (1, chunk, block_heads)).cast::<f32>();
    let dt = maximum_nan(dt, 0.0);
    let a = load(a, (head_tile,), (block_heads,));
    // exp(-200) is 0 in f32, and a bounded sum keeps its precision for the tokens after one with a strong decay.
    // Steps of 0, as those beyond the sequence, do not decay, whatever A is.
    let step = where_(dt == 0.0, 0.0, a * dt);
    let decay_tile = cumsum(minimum_nan(maximum_nan(step, -200.0), 0.0), 1) * LOG2_E;
    store(dt_out, (batch, head_tile, chunk_idx), dt.permute((0, 2, 1)));
    store(decay, (batch, head_tile, chunk_idx), decay_tile.permute((0, 2, 1)));
}
