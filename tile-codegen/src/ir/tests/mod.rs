//! Tests of IR text and of the verifier.

mod random;
mod text;
mod verifier;

pub(crate) use random::random_kernel;
