//! Operators on tiles and scalars, with the broadcasting rules of NumPy.

use std::ops::*;
use std::panic::Location;

use half::{bf16, f16};

use super::element::{Bits, Element, Float, Int, Number};
use super::handle::{Scalar, Tile};
use super::host::{Lit, Operand};
use super::session::{self, Raw, Session};
use crate::ops::binary::{Binary, BinaryOp};
use crate::ops::unary::{Unary, UnaryOp};

impl Session {
    /// An elementwise operation on the common shape of its operands.
    pub(crate) fn binary(&mut self, op: BinaryOp, a: Raw, b: Raw, at: &'static Location<'static>) -> Raw {
        let operands = self.common([a, b], op.name(), at);
        self.op(Binary { op }, &operands, at)
    }
}

#[track_caller]
fn binary(op: BinaryOp, a: Raw, b: Raw) -> Raw {
    let at = Location::caller();
    session::with(|s| s.binary(op, a, b, at))
}

/// One method body: the two sides as values, then the operation.
macro_rules! method {
    ($f:ident $op:ident $out:ident, $right:ty, |$a:ident, $b:ident, $s:ident, $at:ident| $left_raw:expr, $right_raw:expr) => {
        type Output = $out<T>;
        #[track_caller]
        fn $f(self, right: $right) -> $out<T> {
            let $at = Location::caller();
            let ($a, $b) = (self, right);
            $out::new(session::with(|$s| {
                let left = $left_raw;
                let right = $right_raw;
                $s.binary(BinaryOp::$op, left, right, $at)
            }))
        }
    };
}

/// One impl for each pair of sides; a single generic one for host numbers on the right, so that inference decides early.
macro_rules! operators {
    ($($tr:ident $f:ident $assign:ident $fa:ident $op:ident: $class:ident, [$($left:ident: $($host:ty)*;)*], [$($lit:ty)*];)*) => {$(
        impl<T: $class> $tr<Tile<T>> for Tile<T> {
            method!($f $op Tile, Tile<T>, |a, b, s, at| a.raw(), b.raw());
        }
        impl<T: $class> $tr<Scalar<T>> for Tile<T> {
            method!($f $op Tile, Scalar<T>, |a, b, s, at| a.raw(), b.raw());
        }
        impl<T: $class> $tr<Tile<T>> for Scalar<T> {
            method!($f $op Tile, Tile<T>, |a, b, s, at| a.raw(), b.raw());
        }
        impl<T: $class> $tr<Scalar<T>> for Scalar<T> {
            method!($f $op Scalar, Scalar<T>, |a, b, s, at| a.raw(), b.raw());
        }
        impl<T: $class, H: Operand<Tile<T>>> $tr<H> for Tile<T> {
            method!($f $op Tile, H, |a, b, s, at| a.raw(), s.host::<T>(b, at));
        }
        impl<T: $class, H: Operand<Scalar<T>>> $tr<H> for Scalar<T> {
            method!($f $op Scalar, H, |a, b, s, at| a.raw(), s.host::<T>(b, at));
        }
        impl<T: $class, L: Operand<Tile<T>>> $tr<Tile<T>> for Lit<L> {
            method!($f $op Tile, Tile<T>, |a, b, s, at| s.host::<T>(a.0, at), b.raw());
        }
        impl<T: $class, L: Operand<Scalar<T>>> $tr<Scalar<T>> for Lit<L> {
            method!($f $op Scalar, Scalar<T>, |a, b, s, at| s.host::<T>(a.0, at), b.raw());
        }
        impl<T, R> $assign<R> for Tile<T>
        where
            Tile<T>: $tr<R, Output = Tile<T>>,
        {
            #[track_caller]
            fn $fa(&mut self, right: R) {
                *self = $tr::$f(*self, right);
            }
        }
        impl<T, R> $assign<R> for Scalar<T>
        where
            Scalar<T>: $tr<R, Output = Scalar<T>>,
        {
            #[track_caller]
            fn $fa(&mut self, right: R) {
                *self = $tr::$f(*self, right);
            }
        }
        $(operators!(@left $tr $f $op $left: $($host)*);)*
        $(impl $tr<$lit> for Lit<$lit> {
            type Output = <$lit as $tr<$lit>>::Output;
            #[track_caller]
            fn $f(self, right: $lit) -> Self::Output {
                $tr::$f(self.0, right)
            }
        })*
    )*};
    (@left $tr:ident $f:ident $op:ident $class:ident: $($host:ty)*) => {$(
        operators!(@side $tr $f $op $class $host);
    )*};
    (@side $tr:ident $f:ident $op:ident bool $host:ty) => {
        impl $tr<Tile<bool>> for $host {
            type Output = Tile<bool>;
            #[track_caller]
            fn $f(self, right: Tile<bool>) -> Tile<bool> {
                $tr::$f(right, self)
            }
        }
        impl $tr<Scalar<bool>> for $host {
            type Output = Scalar<bool>;
            #[track_caller]
            fn $f(self, right: Scalar<bool>) -> Scalar<bool> {
                $tr::$f(right, self)
            }
        }
    };
    (@side $tr:ident $f:ident $op:ident $class:ident $host:ty) => {
        impl<T: $class> $tr<Tile<T>> for $host {
            method!($f $op Tile, Tile<T>, |a, b, s, at| s.host::<T>(a, at), b.raw());
        }
        impl<T: $class> $tr<Scalar<T>> for $host {
            method!($f $op Scalar, Scalar<T>, |a, b, s, at| s.host::<T>(a, at), b.raw());
        }
    };
}

// On the left, f64 is left out: with a single float type that fits, `0.5 * tile` has a type at once.
operators! {
    Add add AddAssign add_assign Add: Number, [Float: f32 f16 bf16; Int: i32 i64 u32 usize;],
        [f32 f64 i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize];
    Sub sub SubAssign sub_assign Sub: Number, [Float: f32 f16 bf16; Int: i32 i64 u32 usize;],
        [f32 f64 i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize];
    Mul mul MulAssign mul_assign Mul: Number, [Float: f32 f16 bf16; Int: i32 i64 u32 usize;],
        [f32 f64 i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize];
    Div div DivAssign div_assign Div: Number, [Float: f32 f16 bf16; Int: i32 i64 u32 usize;],
        [f32 f64 i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize];
    Rem rem RemAssign rem_assign Rem: Int, [Int: i32 i64 u32 usize;],
        [f32 f64 i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize];
    BitAnd bitand BitAndAssign bitand_assign And: Bits, [Int: i32 i64 u32 usize; bool: bool;],
        [i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize];
    BitOr bitor BitOrAssign bitor_assign Or: Bits, [Int: i32 i64 u32 usize; bool: bool;],
        [i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize];
    BitXor bitxor BitXorAssign bitxor_assign Xor: Bits, [Int: i32 i64 u32 usize; bool: bool;],
        [i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize];
    Shl shl ShlAssign shl_assign Shl: Int, [Int: i32 i64 u32 usize;],
        [i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize];
    Shr shr ShrAssign shr_assign Shr: Int, [Int: i32 i64 u32 usize;],
        [i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize];
}

macro_rules! prefix {
    ($($tr:ident $f:ident $op:ident: $class:ident;)*) => {$(
        prefix!(@one $tr $f $op $class Tile);
        prefix!(@one $tr $f $op $class Scalar);
    )*};
    (@one $tr:ident $f:ident $op:ident $class:ident $handle:ident) => {
        impl<T: $class> $tr for $handle<T> {
            type Output = Self;
            #[track_caller]
            fn $f(self) -> Self {
                $handle::new(session::op(Unary { op: UnaryOp::$op }, &[self.raw()]))
            }
        }
    };
}
prefix! { Neg neg Neg: Number; Not not Not: Bits; }

/// Two values that an elementwise operation combines: tiles, scalars and host numbers in any mix.
#[diagnostic::on_unimplemented(
    message = "`{Self}` and `{R}` cannot be combined",
    label = "`{Self}` beside `{R}`",
    note = "element types never convert silently: write `.cast::<f32>()` on one side; a literal is `2.0` beside floats and `2` beside integers"
)]
pub trait Mix<R> {
    /// The element type of both.
    type Elem: Element;
    /// A tile if one of them is, else a scalar.
    type Out: super::handle::TileOrScalar<Elem = Self::Elem>;
    #[doc(hidden)]
    #[track_caller]
    fn raws(self, right: R) -> (Raw, Raw);
}

macro_rules! mix {
    ($($left:ident $right:ident $out:ident;)*) => {$(
        impl<T: Element> Mix<$right<T>> for $left<T> {
            type Elem = T;
            type Out = $out<T>;
            fn raws(self, right: $right<T>) -> (Raw, Raw) {
                (self.raw(), right.raw())
            }
        }
    )*};
    (right $($handle:ident)*) => {$(
        impl<T: Element, H: Operand<$handle<T>>> Mix<H> for $handle<T> {
            type Elem = T;
            type Out = $handle<T>;
            #[track_caller]
            fn raws(self, right: H) -> (Raw, Raw) {
                (self.raw(), super::host::constant::<T>(right))
            }
        }
    )*};
    (left $handle:ident $($class:ident: $($host:ty)*;)*) => {$($(
        impl<T: $class> Mix<$handle<T>> for $host {
            type Elem = T;
            type Out = $handle<T>;
            #[track_caller]
            fn raws(self, right: $handle<T>) -> (Raw, Raw) {
                (super::host::constant::<T>(self), right.raw())
            }
        }
    )*)*};
    (host $($host:ty => $elem:ty;)*) => {$(
        impl Mix<$host> for $host {
            type Elem = $elem;
            type Out = Scalar<$elem>;
            #[track_caller]
            fn raws(self, right: $host) -> (Raw, Raw) {
                (super::host::constant::<$elem>(self), super::host::constant::<$elem>(right))
            }
        }
    )*};
}
mix! { Tile Tile Tile; Tile Scalar Tile; Scalar Tile Tile; Scalar Scalar Scalar; }
mix! { right Tile Scalar }
mix! { left Tile Float: f32 f16 bf16; Int: i32 i64 u32 usize; }
mix! { left Scalar Float: f32 f16 bf16; Int: i32 i64 u32 usize; }
// One type of each kind of literal, so that two literals have a type at once.
mix! { host f32 => f32; i32 => i32; bool => bool; }

macro_rules! mix_bool {
    ($($handle:ident)*) => {$(
        impl Mix<$handle<bool>> for bool {
            type Elem = bool;
            type Out = $handle<bool>;
            #[track_caller]
            fn raws(self, right: $handle<bool>) -> (Raw, Raw) {
                (super::host::constant::<bool>(self), right.raw())
            }
        }
    )*};
}
mix_bool! { Tile Scalar }

/// An elementwise operation of any mix of sides.
#[track_caller]
pub(crate) fn mixed<A: Mix<B>, B>(op: BinaryOp, a: A, b: B) -> A::Out {
    let (a, b) = a.raws(b);
    super::handle::TileOrScalar::from_raw(binary(op, a, b))
}
