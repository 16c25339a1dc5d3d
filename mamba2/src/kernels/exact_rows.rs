//! The outputs of `compute_out` without matrix products, for blocks in which some value is not finite.
//!
//! A product multiplies every weight with every x, also weights of 0 with the x of later tokens and of other sequences; where
//! such an x is not finite, that makes NaN of outputs that do not depend on it. Here whatever a row does not depend on is left out by
//! selects. Slow, and hardly ever run.

use tile_runtime::prelude::*;

use crate::sequences::column;

/// States that are taken at a time.
const STATES: usize = 32;

/// What [`exact_rows`] reads: the tensors of `compute_out`.
#[derive(Clone, Copy)]
pub(crate) struct Rows<T: Storable, S: Storable, I: Storable> {
    pub(crate) x: Tensor<T, 4>,
    pub(crate) b: Tensor<T, 4>,
    pub(crate) c: Tensor<T, 4>,
    pub(crate) dt: Tensor<f32, 3>,
    pub(crate) decay: Tensor<f32, 3>,
    pub(crate) sequence_of: Option<Tensor<i32, 2>>,
    pub(crate) sequences: Option<Tensor<i32, 2>>,
    pub(crate) initial: Option<Tensor<I, 4>>,
    pub(crate) chunk_states: Tensor<S, 5>,
}

/// Rows `block_tokens * rows ..` of y, before D and the gate: `(block_tokens, block_head_dim)`.
#[tile_fn]
pub(crate) fn exact_rows<T: Storable, S: Storable, I: Storable>(
    of: Rows<T, S, I>,
    (batch, head, group): (Scalar<i32>, Scalar<i32>, Scalar<i32>),
    (rows, head_tile): (Scalar<i32>, Scalar<i32>),
    chunk: usize,
    block_tokens: usize,
    block_head_dim: usize,
) -> Tile<f32> {
    let Rows { x, b, c, dt, decay, sequence_of, sequences, initial, chunk_states } = of;
    let chunk_idx = rows / (chunk / block_tokens);
    let token = (arange::<i32>(block_tokens) + rows * block_tokens).expand_dims(1);
    let sums = load(decay, (batch, head, rows), (1, 1, block_tokens)).reshape((block_tokens, 1));
    let reach = exp2(minimum_nan(sums, 0.0));
    let own = sequence_of.map(|sequence_of| {
        load_with(sequence_of, (batch, rows), (1, block_tokens), -1).reshape((block_tokens, 1))
    });
    let c_column = |n: Scalar<i32>, states: usize| {
        let c = load(c, (batch, rows, group, n), (1, block_tokens, 1, states));
        c.cast::<f32>().reshape((block_tokens, states))
    };

    // What the state at the start of the chunk adds.
    let mut out = zeros::<f32>((block_tokens, block_head_dim));
    for n in 0..b.dim(3) {
        let tile = (1, 1, 1, block_head_dim, 1);
        let start = load(chunk_states, (batch, head, chunk_idx, head_tile, n), tile);
        out = out + c_column(n, 1) * start.cast::<f32>().reshape((1, block_head_dim));
    }
    out = out * reach;
    if let (Some(sequence_of), Some(own)) = (sequence_of, own) {
        let first = load_scalar(sequence_of, (batch, chunk_idx * chunk));
        out = where_(own == first, out, 0.0);
        if let (Some(sequences), Some(initial)) = (sequences, initial) {
            let end = minimum((rows + 1) * block_tokens, x.dim(1));
            let begin = maximum(load_scalar(sequence_of, (batch, rows * block_tokens)), first + 1);
            for sequence in begin..load_scalar(sequence_of, (batch, end - 1)) + 1 {
                let row = load_scalar(sequences, (sequence, column::INITIAL));
                let mut fresh = zeros::<f32>((block_tokens, block_head_dim));
                for n in 0..b.dim(3) {
                    let start = load(initial, (row, head, head_tile, n), (1, 1, block_head_dim, 1));
                    fresh = fresh + c_column(n, 1) * start.cast::<f32>().reshape((1, block_head_dim));
                }
                out = where_(own == sequence, fresh * reach, out);
            }
        }
    }

    // What each token of the chunk adds to those after it.
    for other in chunk_idx * chunk..minimum((rows + 1) * block_tokens, x.dim(1)) {
        let mut weight = zeros::<f32>((block_tokens, 1));
        for n in 0..cdiv(b.dim(3), STATES) {
            let b = load(b, (batch, other, group, n), (1, 1, 1, STATES)).cast::<f32>();
            weight = weight + (c_column(n, STATES) * b.reshape((1, STATES))).sum_keepdims(1);
        }
        let sum = load_scalar(decay, (batch, head, other));
        weight = weight * exp2(minimum_nan(sums - sum, 0.0)) * load_scalar(dt, (batch, head, other));
        let x = load(x, (batch, other, head, head_tile), (1, 1, 1, block_head_dim));
        let mut reached = token >= other;
        if let (Some(sequence_of), Some(own)) = (sequence_of, own) {
            reached = reached & (own == load_scalar(sequence_of, (batch, other)));
        }
        out = out + where_(reached, weight * x.cast::<f32>().reshape((1, block_head_dim)), 0.0);
    }
    out
}
