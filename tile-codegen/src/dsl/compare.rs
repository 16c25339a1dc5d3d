//! Comparisons and `&&`, `||`: on host values as in Rust, on runtime values as operations.

use std::panic::Location;

use half::{bf16, f16};

use super::element::{Element, Float, Int, Number};
use super::handle::{Scalar, Tile};
use super::host::{Operand, constant};
use super::session::{self, Raw};
use crate::ops::binary::BinaryOp;
use crate::ops::compare::{Compare, CompareOp};

/// `==` and `!=`; with NaN, `!=` is true.
#[diagnostic::on_unimplemented(
    message = "cannot compare `{Self}` with `{R}`",
    label = "these two cannot be compared",
    note = "element types never convert silently: write `.cast::<f32>()` on one side; a literal is `2.0` beside floats and `2` beside integers"
)]
pub trait CmpEq<R: ?Sized> {
    /// `bool` for host values, else a runtime `bool`.
    type Out;
    /// `self == right`
    #[track_caller]
    fn eq(&self, right: &R) -> Self::Out;
    /// `self != right`
    #[track_caller]
    fn ne(&self, right: &R) -> Self::Out;
}

/// `<`, `<=`, `>` and `>=`; with NaN, all are false.
#[diagnostic::on_unimplemented(
    message = "cannot compare `{Self}` with `{R}`",
    label = "these two cannot be ordered",
    note = "element types never convert silently: write `.cast::<f32>()` on one side; a literal is `2.0` beside floats and `2` beside integers"
)]
pub trait CmpOrd<R: ?Sized> {
    /// `bool` for host values, else a runtime `bool`.
    type Out;
    /// `self < right`
    #[track_caller]
    fn lt(&self, right: &R) -> Self::Out;
    /// `self <= right`
    #[track_caller]
    fn le(&self, right: &R) -> Self::Out;
    /// `self > right`
    #[track_caller]
    fn gt(&self, right: &R) -> Self::Out;
    /// `self >= right`
    #[track_caller]
    fn ge(&self, right: &R) -> Self::Out;
}

impl<A: PartialEq + ?Sized> CmpEq<A> for A {
    type Out = bool;
    fn eq(&self, right: &A) -> bool {
        self == right
    }
    fn ne(&self, right: &A) -> bool {
        self != right
    }
}

impl<A: PartialOrd + ?Sized> CmpOrd<A> for A {
    type Out = bool;
    fn lt(&self, right: &A) -> bool {
        self < right
    }
    fn le(&self, right: &A) -> bool {
        self <= right
    }
    fn gt(&self, right: &A) -> bool {
        self > right
    }
    fn ge(&self, right: &A) -> bool {
        self >= right
    }
}

#[track_caller]
fn compare(op: CompareOp, a: Raw, b: Raw) -> Raw {
    let at = Location::caller();
    session::with(|s| {
        let operands = s.common([a, b], op.name(), at);
        s.op(Compare { op }, &operands, at)
    })
}

/// The methods of one trait for one pair of sides.
macro_rules! methods {
    ($right:ty, $out:ty, |$a:ident, $b:ident| $left_raw:expr, $right_raw:expr, $($f:ident $op:ident)*) => {
        type Out = $out;
        $(#[track_caller]
        fn $f(&self, right: &$right) -> $out {
            let ($a, $b) = (*self, *right);
            <$out>::new(compare(CompareOp::$op, $left_raw, $right_raw))
        })*
    };
}

macro_rules! comparisons {
    ($tr:ident $class:ident: $($f:ident $op:ident)*) => {
        impl<T: $class> $tr<Tile<T>> for Tile<T> {
            methods!(Tile<T>, Tile<bool>, |a, b| a.raw(), b.raw(), $($f $op)*);
        }
        impl<T: $class> $tr<Scalar<T>> for Tile<T> {
            methods!(Scalar<T>, Tile<bool>, |a, b| a.raw(), b.raw(), $($f $op)*);
        }
        impl<T: $class> $tr<Tile<T>> for Scalar<T> {
            methods!(Tile<T>, Tile<bool>, |a, b| a.raw(), b.raw(), $($f $op)*);
        }
        impl<T: $class> $tr<Scalar<T>> for Scalar<T> {
            methods!(Scalar<T>, Scalar<bool>, |a, b| a.raw(), b.raw(), $($f $op)*);
        }
        impl<T: $class, H: Operand<Tile<T>>> $tr<H> for Tile<T> {
            methods!(H, Tile<bool>, |a, b| a.raw(), constant::<T>(b), $($f $op)*);
        }
        impl<T: $class, H: Operand<Scalar<T>>> $tr<H> for Scalar<T> {
            methods!(H, Scalar<bool>, |a, b| a.raw(), constant::<T>(b), $($f $op)*);
        }
        comparisons!(@host $tr [$($f $op)*] Float: f32 f64 f16 bf16);
        comparisons!(@host $tr [$($f $op)*] Int: i32 i64 u32 usize);
    };
    (@host $tr:ident $list:tt $class:ident: $($host:ty)*) => {$(
        comparisons!(@left $tr $list $class $host);
    )*};
    (@left $tr:ident [$($f:ident $op:ident)*] $class:ident $host:ty) => {
        impl<T: $class> $tr<Tile<T>> for $host {
            methods!(Tile<T>, Tile<bool>, |a, b| constant::<T>(a), b.raw(), $($f $op)*);
        }
        impl<T: $class> $tr<Scalar<T>> for $host {
            methods!(Scalar<T>, Scalar<bool>, |a, b| constant::<T>(a), b.raw(), $($f $op)*);
        }
    };
}
comparisons! { CmpEq Element: eq Eq ne Ne }
comparisons! { CmpOrd Number: lt Lt le Le gt Gt ge Ge }

/// `&&` and `||`. On runtime values both sides are evaluated; a host value on the left decides as in Rust.
#[diagnostic::on_unimplemented(
    message = "`{Self}` and `{R}` cannot be combined with `&&` or `||`",
    label = "expected `bool`, `Scalar<bool>` or `Tile<bool>`"
)]
pub trait Logic<R>: Sized {
    /// `bool` for host values, else a runtime `bool`.
    type Out;
    /// `self && right`; the right side is `None` where a host value on the left decided.
    #[track_caller]
    fn and(self, right: Option<R>) -> Self::Out;
    /// `self || right`; the right side is `None` where a host value on the left decided.
    #[track_caller]
    fn or(self, right: Option<R>) -> Self::Out;
}

impl Logic<bool> for bool {
    type Out = bool;
    fn and(self, right: Option<bool>) -> bool {
        self && right.unwrap_or(true)
    }
    fn or(self, right: Option<bool>) -> bool {
        self || right.unwrap_or(false)
    }
}

macro_rules! host_logic {
    ($($handle:ident)*) => {$(
        impl Logic<$handle<bool>> for bool {
            type Out = $handle<bool>;
            #[track_caller]
            fn and(self, right: Option<$handle<bool>>) -> $handle<bool> {
                right.unwrap_or_else(|| $handle::new(constant::<bool>(self)))
            }
            #[track_caller]
            fn or(self, right: Option<$handle<bool>>) -> $handle<bool> {
                right.unwrap_or_else(|| $handle::new(constant::<bool>(self)))
            }
        }
        impl Logic<bool> for $handle<bool> {
            type Out = $handle<bool>;
            #[track_caller]
            fn and(self, right: Option<bool>) -> $handle<bool> {
                if right == Some(false) { self & false } else { self }
            }
            #[track_caller]
            fn or(self, right: Option<bool>) -> $handle<bool> {
                if right == Some(true) { self | true } else { self }
            }
        }
    )*};
}
host_logic! { Tile Scalar }

macro_rules! runtime_logic {
    ($($left:ident $right:ident $out:ident;)*) => {$(
        impl Logic<$right<bool>> for $left<bool> {
            type Out = $out<bool>;
            #[track_caller]
            fn and(self, right: Option<$right<bool>>) -> $out<bool> {
                combine(BinaryOp::And, self.raw(), right.map($right::raw), $out::new)
            }
            #[track_caller]
            fn or(self, right: Option<$right<bool>>) -> $out<bool> {
                combine(BinaryOp::Or, self.raw(), right.map($right::raw), $out::new)
            }
        }
    )*};
}
runtime_logic! { Tile Tile Tile; Tile Scalar Tile; Scalar Tile Tile; Scalar Scalar Scalar; }

#[track_caller]
fn combine<O>(op: BinaryOp, left: Raw, right: Option<Raw>, new: fn(Raw) -> O) -> O {
    let at = Location::caller();
    new(match right {
        Some(right) => session::with(|s| s.binary(op, left, right, at)),
        None => left,
    })
}

/// Whether the right side of `&&` or `||` must be evaluated.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand beside `&&` or `||`",
    label = "expected `bool`, `Scalar<bool>` or `Tile<bool>`"
)]
pub trait NeedsRight {
    /// For `&&`: unless a host value is false.
    fn and_needs_right(&self) -> bool;
    /// For `||`: unless a host value is true.
    fn or_needs_right(&self) -> bool;
}

impl NeedsRight for bool {
    fn and_needs_right(&self) -> bool {
        *self
    }
    fn or_needs_right(&self) -> bool {
        !*self
    }
}

/// Both sides of runtime values are evaluated. Other types are refused by [`Logic`].
impl<T> NeedsRight for Tile<T> {
    fn and_needs_right(&self) -> bool {
        true
    }
    fn or_needs_right(&self) -> bool {
        true
    }
}
impl<T> NeedsRight for Scalar<T> {
    fn and_needs_right(&self) -> bool {
        true
    }
    fn or_needs_right(&self) -> bool {
        true
    }
}

/// Whether the right side of `&&` must be evaluated: unless the host knows the left one to be false.
pub fn and_needs_right<L: NeedsRight>(left: &L) -> bool {
    left.and_needs_right()
}

/// Whether the right side of `||` must be evaluated: unless the host knows the left one to be true.
pub fn or_needs_right<L: NeedsRight>(left: &L) -> bool {
    left.or_needs_right()
}
