//! `compute_out`: the outputs of every chunk from its starting state.

use tile_runtime::prelude::*;

/// For `block_tokens` rows of one (batch element, chunk, head):
///
/// ```text
/// Y = exp(G_i) (C S_in^T) + (C B^T o exp(G_i - G_j) o dt_j o [i >= j]) X + D X
/// ```
///
/// `C B^T` never leaves the chip. Columns are taken `block_tokens` at a time, from the start of the chunk up to the
/// rows' own block; the causal mask is a select, so that no weight above the diagonal can spread. Weights are formed in
/// f32 and round once to x's type; `D X` is added in f32.
///
/// | argument | shape |
/// |---|---|
/// | `x`, `y` | `[batch, tokens, heads, head_dim]` |
/// | `b`, `c` | `[batch, tokens, groups, state]` |
/// | `dt`, `decay` | `[batch, heads, padded tokens]`, from `chunk_cumsum` |
/// | `d` | `[heads]`, or none |
/// | `chunk_states` | `[batch, heads, chunks, head_dim, state]`, from `fwd_pass_state` |
///
/// Grid: blocks of rows, tiles of head_dim, batch x heads. The state axis is `state_tiles` tiles of `block_state`.
#[tile_kernel]
pub fn compute_out<T: MmaOperand + Storable>(
    x: Tensor<T, 4>,
    b: Tensor<T, 4>,
    c: Tensor<T, 4>,
    dt: Tensor<f32, 3>,
    decay: Tensor<f32, 3>,
    d: Option<Tensor<f32, 1>>,
    chunk_states: Tensor<T, 5>,
    y: TensorMut<T, 4>,
    heads_per_group: Scalar<i32>,
    chunk: Const<usize>,
    block_tokens: Const<usize>,
    block_head_dim: Const<usize>,
    block_state: Const<usize>,
    state_tiles: Const<usize>,
) {
    let (rows, head_tile) = (bid(0), bid(1));
    let (batch, head) = (bid(2) / x.dim(2), bid(2) % x.dim(2));
    let group = head / heads_per_group;
    let parts = chunk / block_tokens;
    let (chunk_idx, part) = (rows / parts, rows % parts);

    let decay_rows = load(decay, (batch, head, rows), (1, 1, block_tokens)).reshape((block_tokens, 1));
    let mut c_tiles = Vec::new();
    let mut out = zeros::<f32>((block_tokens, block_head_dim));
    for s in unroll(0..state_tiles) {
        let c = load(c, (batch, rows, group, s), (1, block_tokens, 1, block_state));
        let c = c.reshape((block_tokens, block_state));
        let tile = (1, 1, 1, block_head_dim, block_state);
        let start = load(chunk_states, (batch, head, chunk_idx, head_tile, s), tile);
        out = mma(c, start.reshape((block_head_dim, block_state)).transpose(), out);
        c_tiles.push(c);
    }
    out = out * exp2(minimum_nan(decay_rows, 0.0));

    // The weights of a block of columns, before the mask: C B^T o exp(G_i - G_j) o dt_j.
    let weights = |columns: Scalar<i32>| {
        let mut weight = zeros::<f32>((block_tokens, block_tokens));
        for s in unroll(0..state_tiles) {
            let b = load(b, (batch, columns, group, s), (1, block_tokens, 1, block_state));
            weight = mma(c_tiles[s], b.reshape((block_tokens, block_state)).transpose(), weight);
        }
        let dt = load(dt, (batch, head, columns), (1, 1, block_tokens)).reshape((1, block_tokens));
        let decay = load(decay, (batch, head, columns), (1, 1, block_tokens)).reshape((1, block_tokens));
        weight * exp2(minimum_nan(decay_rows - decay, 0.0)) * dt
    };
    let load_x = |columns: Scalar<i32>| {
        let x = load(x, (batch, columns, head, head_tile), (1, block_tokens, 1, block_head_dim));
        x.reshape((block_tokens, block_head_dim))
    };

    // Blocks left of the diagonal, of which two parts have at most one; then the block on it.
    if parts == 2 {
        if part > 0 {
            out = mma(weights(rows - 1).cast::<T>(), load_x(rows - 1), out);
        }
    } else if parts > 2 {
        for column in 0..part {
            let columns = chunk_idx * parts + column;
            out = mma(weights(columns).cast::<T>(), load_x(columns), out);
        }
    }
    let offset = arange::<i32>(block_tokens);
    let causal = offset.expand_dims(1) >= offset.expand_dims(0);
    let x_rows = load_x(rows);
    out = mma(where_(causal, weights(rows), 0.0).cast::<T>(), x_rows, out);
    if let Some(d) = d {
        out = out + load_scalar(d, (head,)) * x_rows.cast::<f32>();
    }
    let out = out.cast::<T>().reshape((1, block_tokens, 1, block_head_dim));
    store(y, (batch, rows, head, head_tile), out);
}
