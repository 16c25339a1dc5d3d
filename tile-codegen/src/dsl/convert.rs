//! `as`, and `cdiv`: arithmetic that is written the same on host and runtime values.

use super::element::{Element, Int};
use super::handle::{Scalar, Tile, TileOrScalar};
use super::host::Operand;
use super::{arith::Mix, session};
use crate::ops::binary::{Binary, BinaryOp};
use crate::ops::cast::cast_raw;
use crate::ops::compare::{Compare, CompareOp};
use crate::ops::where_::Where;

/// `value as T`: as in Rust on host numbers, a `cast` on runtime values.
#[diagnostic::on_unimplemented(
    message = "cannot cast `{Self}` as `{T}`",
    label = "no such cast",
    note = "numbers cast to numbers; a tile or scalar casts to an element type: `x as f32` or `x.cast::<f32>()`"
)]
pub trait CastAs<T> {
    /// The type of the result.
    type Out;
    /// `self as T`
    #[track_caller]
    fn cast_as(self) -> Self::Out;
}

macro_rules! runtime_casts {
    ($($handle:ident)*) => {$(
        impl<S: Element, T: Element> CastAs<T> for $handle<S> {
            type Out = $handle<T>;
            #[track_caller]
            fn cast_as(self) -> $handle<T> {
                $handle::new(cast_raw::<S, T>(self.raw()))
            }
        }
    )*};
}
runtime_casts! { Tile Scalar }

macro_rules! host_casts {
    ([$($from:ty)*] $to:tt) => {$(
        host_casts!(@one $from, $to);
    )*};
    (@one $from:ty, [$($to:ty)*]) => {$(
        impl CastAs<$to> for $from {
            type Out = $to;
            fn cast_as(self) -> $to {
                self as $to
            }
        }
    )*};
}
host_casts! {
    [i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64]
    [i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64]
}
host_casts! { [bool] [bool i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize] }
host_casts! { [char] [char i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize] }
host_casts! { [u8] [char] }

/// What `cdiv` divides.
#[diagnostic::on_unimplemented(
    message = "`cdiv` does not divide `{Self}` by `{R}`",
    label = "expected two integers",
    note = "both are host integers of one type, or runtime integers of one element type, or one of each"
)]
pub trait CeilDiv<R> {
    /// The type of the quotient.
    type Out;
    #[doc(hidden)]
    #[track_caller]
    fn ceil_div(self, right: R) -> Self::Out;
}

macro_rules! host_ceil_div {
    ($($host:ty: |$a:ident, $b:ident| $adjust:expr;)*) => {$(
        impl CeilDiv<$host> for $host {
            type Out = $host;
            #[track_caller]
            fn ceil_div(self, right: $host) -> $host {
                let ($a, $b) = (self, right);
                self / right + <$host>::from($adjust)
            }
        }
    )*};
}
host_ceil_div! {
    i32: |a, b| a % b != 0 && (a < 0) == (b < 0);
    i64: |a, b| a % b != 0 && (a < 0) == (b < 0);
    u32: |a, b| a % b != 0;
    usize: |a, b| a % b != 0;
}

macro_rules! runtime_ceil_div {
    ($($left:ident $right:ident $out:ident;)*) => {$(
        impl<T: Int> CeilDiv<$right<T>> for $left<T> {
            type Out = $out<T>;
            #[track_caller]
            fn ceil_div(self, right: $right<T>) -> $out<T> {
                ceil_div(self, right)
            }
        }
    )*};
    (host $($handle:ident: $($host:ty)*;)*) => {$(
        impl<T: Int, H: Operand<$handle<T>>> CeilDiv<H> for $handle<T> {
            type Out = $handle<T>;
            #[track_caller]
            fn ceil_div(self, right: H) -> $handle<T> {
                ceil_div(self, right)
            }
        }
        $(impl<T: Int> CeilDiv<$handle<T>> for $host {
            type Out = $handle<T>;
            #[track_caller]
            fn ceil_div(self, right: $handle<T>) -> $handle<T> {
                ceil_div(self, right)
            }
        })*
    )*};
}
runtime_ceil_div! { Tile Tile Tile; Tile Scalar Tile; Scalar Tile Tile; Scalar Scalar Scalar; }
runtime_ceil_div! { host Tile: i32 i64 u32 usize; Scalar: i32 i64 u32 usize; }

/// The quotient rounded up: one more than the truncated quotient where a remainder is left and the quotient is positive.
#[track_caller]
fn ceil_div<A: Mix<B>, B>(a: A, b: B) -> A::Out
where
    A::Elem: Int,
{
    let (a, b) = a.raws(b);
    let at = std::panic::Location::caller();
    TileOrScalar::from_raw(session::with(|s| {
        let [a, b] = s.common([a, b], "cdiv", at);
        let quotient = s.op(Binary { op: BinaryOp::Div }, &[a, b], at);
        let remainder = s.op(Binary { op: BinaryOp::Rem }, &[a, b], at);
        let shape = s.shape(quotient).unwrap_or_default();
        let [zero, one] = [0, 1].map(|number| {
            let number = s.host::<A::Elem>(number, at);
            s.broadcast(number, &shape, at)
        });
        let left = s.op(Compare { op: CompareOp::Ne }, &[remainder, zero], at);
        let signs = s.op(Binary { op: BinaryOp::Xor }, &[a, b], at);
        let positive = s.op(Compare { op: CompareOp::Ge }, &[signs, zero], at);
        let up = s.op(Binary { op: BinaryOp::And }, &[left, positive], at);
        let extra = s.op(Where, &[up, one, zero], at);
        s.op(Binary { op: BinaryOp::Add }, &[quotient, extra], at)
    }))
}

/// `a / b` rounded up, on host integers, runtime integers or one of each: the number of tiles of size `b` that cover
/// `a` elements. A runtime divisor of zero gives no defined number.
#[track_caller]
pub fn cdiv<A: CeilDiv<B>, B>(a: A, b: B) -> A::Out {
    a.ceil_div(b)
}

/// The elements of a host range or other iterator, for a loop that runs while the kernel is built:
/// `for i in unroll(0..4)`.
pub fn unroll<I: IntoIterator>(items: I) -> I::IntoIter {
    items.into_iter()
}
