//! `fwd_pass_state`: the state at the start of every chunk, and after the last.

use tile_runtime::prelude::*;

use crate::sequences::column;

/// Carries the state over the chunks of one (sequence, head): stores what each chunk starts with, then applies
///
/// ```text
/// S <- exp(G_last) S + X^T (B o dt_j o exp(G_last - G_j))
/// ```
///
/// The state stays in f32; the factors `dt_j exp(..)` multiply B in f32 and round once to B's type.
///
/// | argument | shape |
/// |---|---|
/// | `x` | `[batch, tokens, heads, head_dim]` |
/// | `b` | `[batch, tokens, groups, state]`; head h uses group h / `heads_per_group` |
/// | `dt`, `decay` | `[batch, heads, padded tokens]`, from `chunk_cumsum` |
/// | `initial` | `[rows, heads, head_dim, state]`, or none for zero |
/// | `sequences` | `[sequences, columns]`: what [`column`] names; none for one sequence a batch element |
/// | `chunk_states` | `[batch, heads, chunks, head_dim, state]` |
/// | `final_states` | `[batch, heads, head_dim, state]` |
/// | `sequence_states` | `[rows, heads, head_dim, state]`: the state after each packed sequence, or none |
///
/// Grid: tiles of head_dim, tiles of state, sequences x heads. A chunk is `chunk / block_tokens` products. A packed sequence
/// takes its part of its first and last chunk: what lies outside is masked, in x and in B.
#[tile_kernel]
pub fn fwd_pass_state<T: MmaOperand + Storable, S: Float + Storable, I: Float + Storable>(
    x: Tensor<T, 4>,
    b: Tensor<T, 4>,
    dt: Tensor<f32, 3>,
    decay: Tensor<f32, 3>,
    initial: Option<Tensor<I, 4>>,
    sequences: Option<Tensor<i32, 2>>,
    chunk_states: TensorMut<S, 5>,
    final_states: TensorMut<f32, 4>,
    sequence_states: Option<TensorMut<f32, 4>>,
    heads_per_group: Scalar<i32>,
    chunk: Const<usize>,
    block_tokens: Const<usize>,
    block_head_dim: Const<usize>,
    block_state: Const<usize>,
) {
    let (head_tile, state_tile) = (bid(0), bid(1));
    let (sequence, head) = (bid(2) / x.dim(2), bid(2) % x.dim(2));
    let group = head / heads_per_group;
    let parts = chunk / block_tokens;
    let of = |sequences: Tensor<i32, 2>, column: usize| load_scalar(sequences, (sequence, column));
    let batch = match sequences {
        Some(sequences) => of(sequences, column::BATCH),
        None => sequence,
    };

    let mut state = match initial {
        Some(initial) => {
            let row = match sequences {
                Some(sequences) => of(sequences, column::INITIAL),
                None => batch,
            };
            // A sequence without a row has -1, which is outside of the tensor: zeros.
            let tile = (1, 1, block_head_dim, block_state);
            let initial = load(initial, (row, head, head_tile, state_tile), tile).cast::<f32>();
            initial.reshape((block_head_dim, block_state))
        }
        None => zeros::<f32>((block_head_dim, block_state)),
    };
    let chunks = match sequences {
        // Sequences without tokens begin and end at 0.
        Some(sequences) => {
            let (start, end) = (of(sequences, column::START), of(sequences, column::END));
            (start / chunk, cdiv(end, chunk))
        }
        None => (scalar(0), cdiv(x.dim(1), chunk)),
    };
    for chunk_idx in chunks.0..chunks.1 {
        let stored = state.cast::<S>().reshape((1, 1, 1, block_head_dim, block_state));
        let place = (batch, head, chunk_idx, head_tile, state_tile);
        // A sequence that begins inside of the chunk leaves this place to the one before it.
        let last_token = match sequences {
            Some(sequences) => {
                if of(sequences, column::START) <= chunk_idx * chunk {
                    store(chunk_states, place, stored);
                }
                minimum(of(sequences, column::END), (chunk_idx + 1) * chunk) - 1
            }
            None => {
                store(chunk_states, place, stored);
                chunk_idx * chunk + (chunk - 1)
            }
        };
        let last = load_scalar(decay, (batch, head, last_token));
        state = state * exp2(minimum_nan(last, 0.0));
        for part in unroll(0..parts) {
            let tokens = chunk_idx * parts + part;
            let x = load(x, (batch, tokens, head, head_tile), (1, block_tokens, 1, block_head_dim));
            let b = load(b, (batch, tokens, group, state_tile), (1, block_tokens, 1, block_state));
            let dt = load(dt, (batch, head, tokens), (1, 1, block_tokens)).reshape((block_tokens, 1));
            let decay = load(decay, (batch, head, tokens), (1, 1, block_tokens)).reshape((block_tokens, 1));
            let mut x = x.reshape((block_tokens, block_head_dim));
            let mut b = b.reshape((block_tokens, block_state)).cast::<f32>();
            b = b * (dt * exp2(minimum_nan(last - decay, 0.0)));
            if let Some(sequences) = sequences {
                let token = (arange::<i32>(block_tokens) + tokens * block_tokens).expand_dims(1);
                let inside = (token >= of(sequences, column::START)) & (token < of(sequences, column::END));
                x = where_(inside, x, zeros::<T>((block_tokens, block_head_dim)));
                b = where_(inside, b, 0.0);
            }
            state = mma(x.transpose(), b.cast::<T>(), state);
        }
    }
    let stored = state.reshape((1, 1, block_head_dim, block_state));
    match sequences {
        None => store(final_states, (batch, head, head_tile, state_tile), stored),
        Some(sequences) => {
            let final_row = of(sequences, column::FINAL);
            if final_row >= 0 {
                store(final_states, (final_row, head, head_tile, state_tile), stored);
            }
            if let Some(sequence_states) = sequence_states {
                store(sequence_states, (sequence, head, head_tile, state_tile), stored);
            }
        }
    }
}
