//! `step`: a few tokens of decoding, with the state updated in place.

use tile_runtime::prelude::*;

use super::step_size::{exponent, step_size};

/// For each token of one (batch element, head), in f32:
///
/// ```text
/// S <- exp(A dt) S + dt x B^T,   y = (S C + D x) silu(z)
/// ```
///
/// | argument | shape |
/// |---|---|
/// | `x`, `z`, `y` | `[batch, tokens, heads, head_dim]` |
/// | `dt` | `[batch, tokens, heads]` |
/// | `a`, `dt_bias` | `[heads]` |
/// | `b`, `c` | `[batch, tokens, groups, state]`; head h uses group h / `heads_per_group` |
/// | `d` | `[heads, head_dim]`, `[heads, 1]` unless `d_per_channel`, or none |
/// | `slots` | `[batch]`: the row of `states` of a batch element, or none for its own; below 0 the element is skipped, and its y is 0 |
/// | `states` | `[rows, heads, head_dim, state]` |
///
/// Grid: tiles of head_dim, batch x heads. `block_state` covers the state axis.
#[tile_kernel]
pub fn step<
    T: Float + Storable,
    Dt: Float + Storable,
    D: Float + Storable,
    Z: Float + Storable,
    S: Float + Storable,
>(
    x: Tensor<T, 4>,
    dt: Tensor<Dt, 3>,
    a: Tensor<f32, 1>,
    b: Tensor<T, 4>,
    c: Tensor<T, 4>,
    dt_bias: Option<Tensor<f32, 1>>,
    d: Option<Tensor<D, 2>>,
    z: Option<Tensor<Z, 4>>,
    slots: Option<Tensor<i32, 1>>,
    states: TensorMut<S, 4>,
    y: TensorMut<T, 4>,
    heads_per_group: Scalar<i32>,
    low: Scalar<f32>,
    high: Scalar<f32>,
    dt_softplus: Const<bool>,
    d_per_channel: Const<bool>,
    block_head_dim: Const<usize>,
    block_state: Const<usize>,
) {
    let tile = bid(0);
    let (batch, head) = (bid(1) / x.dim(2), bid(1) % x.dim(2));
    let group = head / heads_per_group;
    let row = (1, 1, 1, block_head_dim);
    let slot = match slots {
        Some(slots) => load_scalar(slots, (batch,)),
        None => batch,
    };
    if slot < 0 {
        for token in 0..x.dim(1) {
            store(y, (batch, token, head, tile), zeros::<T>(row));
        }
        return;
    }
    let place = (slot, head, tile, 0);
    let state = load(states, place, (1, 1, block_head_dim, block_state)).cast::<f32>();
    let mut state = state.reshape((block_head_dim, block_state));
    let bias = dt_bias.map(|bias| load(bias, (head,), (1,)));
    let a = load(a, (head,), (1,));
    for token in 0..x.dim(1) {
        let dt = load(dt, (batch, token, head), (1, 1, 1)).cast::<f32>().reshape((1,));
        let dt = step_size(dt, bias, dt_softplus, low, high);
        let decay = exp2(exponent(a, dt) * LOG2_E).reshape((1, 1));
        let x = load(x, (batch, token, head, tile), row).cast::<f32>().reshape((block_head_dim, 1));
        let b = load(b, (batch, token, group, 0), (1, 1, 1, block_state)).cast::<f32>();
        let c = load(c, (batch, token, group, 0), (1, 1, 1, block_state)).cast::<f32>();
        state = state * decay + (x * dt) * b.reshape((1, block_state));
        let mut out = (state * c.reshape((1, block_state))).sum_keepdims(1);
        if let Some(d) = d {
            out = match d_per_channel {
                true => {
                    out + load(d, (head, tile), (1, block_head_dim))
                        .cast::<f32>()
                        .reshape((block_head_dim, 1))
                        * x
                }
                false => out + load_scalar(d, (head, 0)).cast::<f32>() * x,
            };
        }
        if let Some(z) = z {
            let z = load(z, (batch, token, head, tile), row).cast::<f32>().reshape((block_head_dim, 1));
            out = out * (z * sigmoid(z));
        }
        store(y, (batch, token, head, tile), out.cast::<T>().reshape(row));
    }
    store(states, place, state.cast::<S>().reshape((1, 1, block_head_dim, block_state)));
}
