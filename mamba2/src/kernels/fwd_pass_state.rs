//! `fwd_pass_state`: the state at the start of every chunk, and after the last.

use tile_runtime::prelude::*;

/// Carries the state over the chunks of one (batch element, head): stores what each chunk starts with, then applies
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
/// | `initial` | `[batch, heads, head_dim, state]`, or none for zero |
/// | `chunk_states` | `[batch, heads, chunks, head_dim, state]` |
/// | `final_states` | `[batch, heads, head_dim, state]` |
///
/// Grid: tiles of head_dim, tiles of state, batch x heads. A chunk is `chunk / block_tokens` products.
#[tile_kernel]
pub fn fwd_pass_state<T: MmaOperand + Storable>(
    x: Tensor<T, 4>,
    b: Tensor<T, 4>,
    dt: Tensor<f32, 3>,
    decay: Tensor<f32, 3>,
    initial: Option<Tensor<f32, 4>>,
    chunk_states: TensorMut<T, 5>,
    final_states: TensorMut<f32, 4>,
    heads_per_group: Scalar<i32>,
    chunk: Const<usize>,
    block_tokens: Const<usize>,
    block_head_dim: Const<usize>,
    block_state: Const<usize>,
) {
    let (head_tile, state_tile) = (bid(0), bid(1));
    let (batch, head) = (bid(2) / x.dim(2), bid(2) % x.dim(2));
    let group = head / heads_per_group;
    let parts = chunk / block_tokens;

    let mut state = match initial {
        Some(initial) => {
            let tile = (1, 1, block_head_dim, block_state);
            load(initial, (batch, head, head_tile, state_tile), tile).reshape((block_head_dim, block_state))
        }
        None => zeros::<f32>((block_head_dim, block_state)),
    };
    for chunk_idx in 0..cdiv(x.dim(1), chunk) {
        let stored = state.cast::<T>().reshape((1, 1, 1, block_head_dim, block_state));
        store(chunk_states, (batch, head, chunk_idx, head_tile, state_tile), stored);

        let last = load_scalar(decay, (batch, head, chunk_idx * chunk + (chunk - 1)));
        state = state * exp2(minimum_nan(last, 0.0));
        for part in unroll(0..parts) {
            let tokens = chunk_idx * parts + part;
            let x = load(x, (batch, tokens, head, head_tile), (1, block_tokens, 1, block_head_dim));
            let b = load(b, (batch, tokens, group, state_tile), (1, block_tokens, 1, block_state));
            let dt = load(dt, (batch, head, tokens), (1, 1, block_tokens)).reshape((block_tokens, 1));
            let decay = load(decay, (batch, head, tokens), (1, 1, block_tokens)).reshape((block_tokens, 1));
            let weight = dt * exp2(minimum_nan(last - decay, 0.0));
            let b = b.reshape((block_tokens, block_state)).cast::<f32>() * weight;
            let x = x.reshape((block_tokens, block_head_dim)).transpose();
            state = mma(x, b.cast::<T>(), state);
        }
    }
    let stored = state.reshape((1, 1, block_head_dim, block_state));
    store(final_states, (batch, head, head_tile, state_tile), stored);
}
