//! The outputs of `compute_out` without matrix products, for blocks in which some value is not finite.
//!
//! A product multiplies every weight with every x, also weights of 0 with the x of later tokens and of other sequences; where
//! such an x is not finite, that makes NaN of outputs that do not depend on it. Here whatever a row does not depend on is left out by
//! selects. Slow, and hardly ever run: one row at a time, so that the blocks that are not done again need no more registers for it.

use tile_runtime::prelude::*;

use crate::sequences::column;

/// States that are taken at a time.
const STATES: usize = 32;
/// Tokens that are taken at a time; they divide a chunk.
const TOKENS: usize = 16;

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

/// `out` `(block_tokens, block_head_dim)`, rows `block_tokens * rows ..` of y before D and the gate, with every row done again.
#[tile_fn]
pub(crate) fn exact_rows<T: Storable, S: Storable, I: Storable>(
    of: Rows<T, S, I>,
    (batch, head, group): (Scalar<i32>, Scalar<i32>, Scalar<i32>),
    (rows, head_tile): (Scalar<i32>, Scalar<i32>),
    out: Tile<f32>,
    chunk: usize,
) -> Tile<f32> {
    let Rows { x, b, c, dt, decay, sequence_of, sequences, initial, chunk_states } = of;
    let (block_tokens, block_head_dim) = (out.shape()[0], out.shape()[1]);
    let first = rows / (chunk / block_tokens) * chunk;
    let index = arange::<i32>(block_tokens).expand_dims(1);
    let mut out = out;
    for row in 0..block_tokens {
        let token = rows * block_tokens + row;
        let sum = load_scalar(decay, (batch, head, token));
        let c_part = |n: Scalar<i32>| {
            load(c, (batch, token, group, n), (1, 1, 1, STATES)).cast::<f32>().reshape((1, STATES))
        };

        // What the state that the row's sequence has at the start of the chunk, or starts with, adds.
        let mut y = zeros::<f32>((block_head_dim,));
        let own = sequence_of.map(|sequence_of| load_scalar(sequence_of, (batch, token)));
        let is_first = match (sequence_of, own) {
            (Some(sequence_of), Some(own)) => own == load_scalar(sequence_of, (batch, first)),
            _ => scalar(true),
        };
        for n in 0..cdiv(b.dim(3), STATES) {
            if is_first {
                let tile = (1, 1, 1, block_head_dim, STATES);
                let start =
                    load(chunk_states, (batch, head, first / chunk, head_tile, n), tile).cast::<f32>();
                y = y + (start.reshape((block_head_dim, STATES)) * c_part(n)).sum(1);
            }
            if let (Some(sequences), Some(initial), Some(own)) = (sequences, initial, own) {
                if !is_first {
                    let from = load_scalar(sequences, (own, column::INITIAL));
                    let tile = (1, 1, block_head_dim, STATES);
                    let start = load(initial, (from, head, head_tile, n), tile).cast::<f32>();
                    y = y + (start.reshape((block_head_dim, STATES)) * c_part(n)).sum(1);
                }
            }
        }
        y = y * exp2(minimum_nan(sum, 0.0));

        // What the tokens of the chunk add, up to the row's own.
        for tokens in first / TOKENS..token / TOKENS + 1 {
            let mut weight = zeros::<f32>((TOKENS,));
            for n in 0..cdiv(b.dim(3), STATES) {
                let b = load(b, (batch, tokens, group, n), (1, TOKENS, 1, STATES)).cast::<f32>();
                weight = weight + (b.reshape((TOKENS, STATES)) * c_part(n)).sum(1);
            }
            let sums = load(decay, (batch, head, tokens), (1, 1, TOKENS)).reshape((TOKENS,));
            let dt = load(dt, (batch, head, tokens), (1, 1, TOKENS)).reshape((TOKENS,));
            weight = weight * exp2(minimum_nan(sum - sums, 0.0)) * dt;
            let mut reached = arange::<i32>(TOKENS) + tokens * TOKENS <= token;
            if let (Some(sequence_of), Some(own)) = (sequence_of, own) {
                let other = load_with(sequence_of, (batch, tokens), (1, TOKENS), -1);
                reached = reached & (other.reshape((TOKENS,)) == own);
            }
            let x = load(x, (batch, tokens, head, head_tile), (1, TOKENS, 1, block_head_dim)).cast::<f32>();
            let added = weight.expand_dims(1) * x.reshape((TOKENS, block_head_dim));
            y = y + where_(reached.expand_dims(1), added, 0.0).sum(0);
        }
        out = where_(index == row, y.expand_dims(0), out);
    }
    out
}
