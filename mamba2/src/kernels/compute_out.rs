//! `compute_out`: the outputs of every chunk from its starting state.

use tile_runtime::prelude::*;

use super::exact_rows::{Rows, exact_rows};
use crate::sequences::column;

/// For `block_tokens` rows of one (batch element, chunk, head):
///
/// ```text
/// Y = exp(G_i) (C S_in^T) + (C B^T o exp(G_i - G_j) o dt_j o [i >= j]) X + D X,   times silu(Z) if z is given
/// ```
///
/// `C B^T` never leaves the chip. Columns are taken `block_tokens` at a time, from the start of the chunk up to the
/// rows' own block; the causal mask is a select, so that no weight above the diagonal can spread. Weights are formed in
/// f32 and round once to x's type; `D X` is added, and the gate applied, in f32.
///
/// Where sequences are packed, weights between two of them are 0, the state of the chunk reaches its first sequence alone,
/// and those that begin later in the chunk start from their own initial states.
///
/// | argument | shape |
/// |---|---|
/// | `x`, `y` | `[batch, tokens, heads, head_dim]` |
/// | `b`, `c` | `[batch, tokens, groups, state]` |
/// | `dt`, `decay` | `[batch, heads, padded tokens]`, from `chunk_cumsum` |
/// | `d` | `[heads, head_dim]`, `[heads, 1]` unless `d_per_channel`, or none |
/// | `z` | as `x`, or none |
/// | `sequence_of` | `[batch, tokens]`: the number of each token's sequence; none for one sequence a batch element |
/// | `sequences`, `initial` | as in `fwd_pass_state`, if sequences may begin inside of a chunk with states of their own |
/// | `chunk_states` | `[batch, heads, chunks, head_dim, state]`, from `fwd_pass_state` |
///
/// Grid: blocks of rows, tiles of head_dim, batch x heads. The state axis is `state_tiles` tiles of `block_state`.
#[tile_kernel]
pub fn compute_out<
    T: MmaOperand + Storable,
    D: Float + Storable,
    Z: Float + Storable,
    S: Float + Storable,
    I: Float + Storable,
>(
    x: Tensor<T, 4>,
    b: Tensor<T, 4>,
    c: Tensor<T, 4>,
    dt: Tensor<f32, 3>,
    decay: Tensor<f32, 3>,
    d: Option<Tensor<D, 2>>,
    z: Option<Tensor<Z, 4>>,
    sequence_of: Option<Tensor<i32, 2>>,
    sequences: Option<Tensor<i32, 2>>,
    initial: Option<Tensor<I, 4>>,
    chunk_states: Tensor<S, 5>,
    y: TensorMut<T, 4>,
    heads_per_group: Scalar<i32>,
    d_per_channel: Const<bool>,
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
        let start = load(chunk_states, (batch, head, chunk_idx, head_tile, s), tile).cast::<T>();
        out = mma(c, start.reshape((block_head_dim, block_state)).transpose(), out);
        c_tiles.push(c);
    }
    let reach = exp2(minimum_nan(decay_rows, 0.0));
    out = out * reach;

    // The sequences of a block of tokens.
    let numbers = |sequence_of: Tensor<i32, 2>, block: Scalar<i32>| {
        load_with(sequence_of, (batch, block), (1, block_tokens), -1)
    };
    if let Some(sequence_of) = sequence_of {
        let own = numbers(sequence_of, rows).reshape((block_tokens, 1));
        let first = load_scalar(sequence_of, (batch, chunk_idx * chunk));
        out = where_(own == first, out, 0.0);
        if let (Some(sequences), Some(initial)) = (sequences, initial) {
            // Those that begin inside of the chunk.
            let end = minimum((rows + 1) * block_tokens, x.dim(1));
            let begin = maximum(load_scalar(sequence_of, (batch, rows * block_tokens)), first + 1);
            for sequence in begin..load_scalar(sequence_of, (batch, end - 1)) + 1 {
                let row = load_scalar(sequences, (sequence, column::INITIAL));
                let mut fresh = zeros::<f32>((block_tokens, block_head_dim));
                for s in unroll(0..state_tiles) {
                    let tile = (1, 1, block_head_dim, block_state);
                    let start = load(initial, (row, head, head_tile, s), tile).cast::<T>();
                    fresh = mma(c_tiles[s], start.reshape((block_head_dim, block_state)).transpose(), fresh);
                }
                out = where_(own == sequence, fresh * reach, out);
            }
        }
    }

    // The weights of a block of columns, before the mask: C B^T o exp(G_i - G_j) o dt_j.
    let weights = |columns: Scalar<i32>| {
        let mut weight = zeros::<f32>((block_tokens, block_tokens));
        for s in unroll(0..state_tiles) {
            let b = load(b, (batch, columns, group, s), (1, block_tokens, 1, block_state));
            weight = mma(c_tiles[s], b.reshape((block_tokens, block_state)).transpose(), weight);
        }
        let dt = load(dt, (batch, head, columns), (1, 1, block_tokens)).reshape((1, block_tokens));
        let decay = load(decay, (batch, head, columns), (1, 1, block_tokens)).reshape((1, block_tokens));
        let weight = weight * exp2(minimum_nan(decay_rows - decay, 0.0)) * dt;
        match sequence_of {
            None => weight,
            Some(sequence_of) => {
                let own = numbers(sequence_of, rows).reshape((block_tokens, 1));
                where_(own == numbers(sequence_of, columns), weight, 0.0)
            }
        }
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
    // 0 times an x that is not finite is NaN: such blocks are done again without products.
    if !(max_nan(abs(out), ALL).item() <= f32::MAX) {
        let of = Rows { x, b, c, dt, decay, sequence_of, sequences, initial, chunk_states };
        let (head, place) = ((batch, head, group), (rows, head_tile));
        out = exact_rows(of, head, place, out, chunk);
    }
    if let Some(d) = d {
        let x_rows = x_rows.cast::<f32>();
        out = match d_per_channel {
            true => out + load(d, (head, head_tile), (1, block_head_dim)).cast::<f32>() * x_rows,
            false => out + load_scalar(d, (head, 0)).cast::<f32>() * x_rows,
        };
    }
    if let Some(z) = z {
        let z = load(z, (batch, rows, head, head_tile), (1, block_tokens, 1, block_head_dim));
        let z = z.reshape((block_tokens, block_head_dim)).cast::<f32>();
        out = out * (z * sigmoid(z));
    }
    let out = out.cast::<T>().reshape((1, block_tokens, 1, block_head_dim));
    store(y, (batch, rows, head, head_tile), out);
}
