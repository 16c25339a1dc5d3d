//! Element types as Rust types, and the traits that say what each may be used for.

use half::{bf16, f16};

use crate::ir::Elem;

mod sealed {
    pub trait Sealed {}
}

/// The type of one element of a tile, scalar or tensor.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tile element type",
    label = "not an element type",
    note = "element types are `f32`, `f16`, `bf16`, `tf32`, `i32`, `i64`, `u32` and `bool`"
)]
pub trait Element: sealed::Sealed + Copy + 'static {
    /// The same type in the IR.
    const ELEM: Elem;
}

/// An element type that memory can hold: all but `tf32`.
#[diagnostic::on_unimplemented(
    message = "a tensor cannot hold `{Self}`",
    label = "not the element type of a tensor",
    note = "tensors hold `f32`, `f16`, `bf16`, `i32`, `i64`, `u32` and `bool`; `tf32` tiles come from `.cast::<tf32>()`"
)]
pub trait Storable: Element {}

/// An element type with arithmetic: every float and integer type, not `bool` and `tf32`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no arithmetic",
    label = "not a number",
    note = "convert first: `.cast::<i32>()` counts truth values; a `tf32` tile is an operand of `mma` only"
)]
pub trait Number: Storable {}

/// A floating-point element type. Every width computes in f32 and rounds once.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a floating-point element type",
    label = "expected `f32`, `f16` or `bf16`",
    note = "convert first: `.cast::<f32>()`"
)]
pub trait Float: Number {}

/// An integer element type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an integer element type",
    label = "expected `i32`, `i64` or `u32`",
    note = "convert first: `.cast::<i32>()`"
)]
pub trait Int: AtomicNumber {}

/// A number type that memory can add in one step.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no such atomic operation",
    label = "expected `f32`, `i32`, `i64` or `u32`",
    note = "16-bit floats: keep the sums in a tensor of `f32`"
)]
pub trait AtomicNumber: Number {}

/// An element type with bitwise or logical operations.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no bitwise or logical operations",
    label = "expected an integer type or `bool`"
)]
pub trait Bits: Storable {}

/// An element type that matrix products multiply. Both operands have the same; the accumulator is f32.
#[diagnostic::on_unimplemented(
    message = "`mma` does not multiply `{Self}`",
    label = "expected `f32`, `f16`, `bf16` or `tf32`",
    note = "convert both operands to one of these: `.cast::<bf16>()`"
)]
pub trait MmaOperand: Element {}

/// An f32 whose mantissa is rounded to 10 bits, the input of tensor cores. It exists in tiles only, made by
/// `.cast::<tf32>()` and consumed by `mma`.
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "element types are spelt like Rust's own")]
pub struct tf32(());

macro_rules! elements {
    ($($ty:ty, $elem:ident: $($class:ident)*;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const ELEM: Elem = Elem::$elem;
        }
        $(impl $class for $ty {})*
    )*};
}

elements! {
    f32, F32: Storable Number Float MmaOperand AtomicNumber;
    f16, F16: Storable Number Float MmaOperand;
    bf16, BF16: Storable Number Float MmaOperand;
    tf32, TF32: MmaOperand;
    i32, I32: Storable Number Int Bits AtomicNumber;
    i64, I64: Storable Number Int Bits AtomicNumber;
    u32, U32: Storable Number Int Bits AtomicNumber;
    bool, Bool: Storable Bits;
}
