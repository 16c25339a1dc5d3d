//! The three kernels of the forward pass and that of the decode step, one file each, with their mathematics.
//!
//! Notation: for one batch element and head, `x_t` `[head_dim]`, `B_t`, `C_t` `[state]`, `dt_t` and `A` scalars. The
//! recurrence is
//!
//! ```text
//! S_t = exp(A dt_t) S_{t-1} + dt_t x_t B_t^T        S: [head_dim, state]
//! y_t = S_t C_t + D x_t
//! ```
//!
//! Tokens are cut into chunks. With `G` the inclusive sum of `A dt` inside a chunk, kept times log2(e) so that `exp`
//! becomes `exp2`, a chunk that starts in state `S_in` has (all products are matrix products over the chunk)
//!
//! ```text
//! Y     = exp(G) (C S_in^T) + (C B^T o exp(G_i - G_j) o dt_j o [i >= j]) X + D X
//! S_out = exp(G_last) S_in + X^T (B o dt_j o exp(G_last - G_j))
//! ```
//!
//! Exponents are clamped to at most 0 before `exp2`: with `A dt <= 0` this changes nothing, and where `A dt` is positive
//! it is the documented meaning (no decay). NaN stays NaN.

mod chunk_cumsum;
mod compute_out;
mod conv1d;
mod conv1d_step;
mod exact_rows;
mod fwd_pass_state;
mod gated_norm;
mod linear;
mod step;
mod step_size;

pub use chunk_cumsum::chunk_cumsum;
pub use compute_out::compute_out;
pub use conv1d::{conv1d, conv1d_state};
pub use conv1d_step::conv1d_step;
pub use fwd_pass_state::fwd_pass_state;
pub use gated_norm::gated_norm;
pub use linear::linear;
pub use step::step;
