//! What kernels use: handles, element types and operations.

pub use half::{bf16, f16};

pub use super::{
    ALL, AtomicNumber, Const, Element, Float, Int, MmaOperand, Number, Operand, Scalar, Storable, Tensor,
    TensorMut, Tile, TileOrScalar, cdiv, scalar, tf32, unroll,
};
pub use crate::ops::arange::arange;
pub use crate::ops::atomic::{
    Atomically, MemoryOrder, MemoryScope, atomic_add, atomic_add_with, atomic_and, atomic_and_with,
    atomic_cas, atomic_cas_with, atomic_max, atomic_max_with, atomic_min, atomic_min_with, atomic_or,
    atomic_or_with, atomic_xchg, atomic_xchg_with, atomic_xor, atomic_xor_with,
};
pub use crate::ops::bid::bid;
pub use crate::ops::binary::{maximum, maximum_nan, minimum, minimum_nan};
pub use crate::ops::broadcast_to::broadcast_to;
pub use crate::ops::cast::cast;
pub use crate::ops::constant::{full, ones, zeros};
pub use crate::ops::cumsum::{cumsum, cumsum_reverse};
pub use crate::ops::extract::extract;
pub use crate::ops::fma::fma;
pub use crate::ops::gather::{gather, gather_masked, gather_masked_with, gather_with};
pub use crate::ops::load::{
    Hints, load, load_at, load_at_with, load_hinted, load_scalar, load_with, load_with_hinted,
};
pub use crate::ops::mma::mma;
pub use crate::ops::num_blocks::num_blocks;
pub use crate::ops::permute::{permute, transpose, transpose_axes};
pub use crate::ops::reduce::{
    max, max_keepdims, max_nan, max_nan_keepdims, min, min_keepdims, min_nan, min_nan_keepdims, sum,
    sum_keepdims,
};
pub use crate::ops::reshape::{expand_dims, reshape};
pub use crate::ops::scatter::{scatter, scatter_masked};
pub use crate::ops::store::{store, store_at};
pub use crate::ops::unary::{abs, ceil, exp, exp2, floor, log, log2, rsqrt, sigmoid, softplus, sqrt, tanh};
pub use crate::ops::where_::where_;

/// log2(e): `exp(x)` is `exp2(x * LOG2_E)`.
pub const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln(2): `log(x)` is `log2(x) * LN_2`.
pub const LN_2: f32 = std::f32::consts::LN_2;
