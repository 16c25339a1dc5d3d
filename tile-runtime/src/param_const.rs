//! Host values as kernel parameters: each value is a specialisation of the kernel.

use half::{bf16, f16};
use tile_codegen::ir::Elem;

use crate::args::ConstKey;

/// A host value that kernels are specialised by, as `Const<T>` parameters are.
///
/// Numbers, `bool`, `char` and arrays of them are. A type of your own needs to say what tells its values apart:
///
/// ```
/// use tile_runtime::{ConstKey, ConstParam};
///
/// #[derive(Clone, Copy)]
/// enum Activation {
///     Relu,
///     Silu,
/// }
///
/// impl ConstParam for Activation {
///     fn key(&self, key: &mut ConstKey<'_>) {
///         key.word(*self as u64);
///     }
/// }
/// ```
///
/// Kernels are kept for every value that was used, so that a constant should take few values; pass what changes from
/// launch to launch as a `Scalar<T>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel parameter",
    label = "expected `Tensor<T, RANK>`, `TensorMut<T, RANK>`, `Scalar<T>`, `Const<T>` or an `Option` of one",
    note = "host values of your own types specialise a kernel when they implement `tile_runtime::ConstParam`"
)]
pub trait ConstParam: Clone + Send + Sync + 'static {
    /// Adds to `key` words that differ for values that differ. A type whose values have different numbers of words
    /// puts the number, or the variant that decides it, first.
    fn key(&self, key: &mut ConstKey<'_>);
}

macro_rules! const_params {
    ($($ty:ty: |$x:ident| $word:expr;)*) => {$(
        impl ConstParam for $ty {
            fn key(&self, key: &mut ConstKey<'_>) {
                let $x = *self;
                key.word($word);
            }
        }
    )*};
}
const_params! {
    usize: |x| x as u64;
    u8: |x| x.into();
    u16: |x| x.into();
    u32: |x| x.into();
    u64: |x| x;
    isize: |x| x as u64;
    i8: |x| x as u64;
    i16: |x| x as u64;
    i32: |x| x as u64;
    i64: |x| x as u64;
    f32: |x| x.to_bits().into();
    f64: |x| x.to_bits();
    f16: |x| x.to_bits().into();
    bf16: |x| x.to_bits().into();
    bool: |x| x.into();
    char: |x| u32::from(x).into();
    Elem: |x| x as u64;
}

impl<T: ConstParam, const N: usize> ConstParam for [T; N] {
    fn key(&self, key: &mut ConstKey<'_>) {
        self.iter().for_each(|x| x.key(key));
    }
}
