//! The bounds and the step of a `for` loop.

use std::panic::Location;

use crate::diag::{Code, OpError};
use crate::dsl::element::Int;
use crate::dsl::handle::Scalar;
use crate::dsl::host::{HostNumber, Lit, Operand};
use crate::dsl::session::{Raw, Session};

/// The two ends of a runtime loop's range; runtime integers of one type, or host integers.
#[diagnostic::on_unimplemented(
    message = "a runtime loop cannot count between these bounds",
    label = "bounds are integers of one type: host (`usize`, `i32`) or `Scalar`"
)]
pub trait Bounds<Z> {
    /// The element type of the loop variable: that of a runtime bound; for host numbers their own, i32 for `usize`.
    type Var: Int;
    #[doc(hidden)]
    fn raws(self, end: Z, s: &mut Session, at: &'static Location<'static>) -> (Raw, Raw);
}

impl<T: Int> Bounds<Scalar<T>> for Scalar<T> {
    type Var = T;
    fn raws(self, end: Scalar<T>, _: &mut Session, _: &'static Location<'static>) -> (Raw, Raw) {
        (self.raw(), end.raw())
    }
}

impl<T: Int, H: Operand<Scalar<T>>> Bounds<H> for Scalar<T> {
    type Var = T;
    fn raws(self, end: H, s: &mut Session, at: &'static Location<'static>) -> (Raw, Raw) {
        (self.raw(), s.host::<T>(end, at))
    }
}

impl<T: Int, L: Operand<Scalar<T>>> Bounds<Scalar<T>> for Lit<L> {
    type Var = T;
    fn raws(self, end: Scalar<T>, s: &mut Session, at: &'static Location<'static>) -> (Raw, Raw) {
        (s.host::<T>(self.0, at), end.raw())
    }
}

impl Bounds<Lit<i32>> for Lit<i32> {
    type Var = i32;
    fn raws(self, end: Lit<i32>, s: &mut Session, at: &'static Location<'static>) -> (Raw, Raw) {
        (s.host::<i32>(self.0, at), s.host::<i32>(end.0, at))
    }
}

macro_rules! host_bounds {
    ($($host:ty => $var:ty;)*) => {$(
        impl Bounds<$host> for Lit<$host> {
            type Var = $var;
            fn raws(self, end: $host, s: &mut Session, at: &'static Location<'static>) -> (Raw, Raw) {
                (s.host::<$var>(self.0, at), s.host::<$var>(end, at))
            }
        }
        impl Bounds<$host> for $host {
            type Var = $var;
            fn raws(self, end: $host, s: &mut Session, at: &'static Location<'static>) -> (Raw, Raw) {
                (s.host::<$var>(self, at), s.host::<$var>(end, at))
            }
        }
        impl<T: Int> Bounds<Scalar<T>> for $host {
            type Var = T;
            fn raws(self, end: Scalar<T>, s: &mut Session, at: &'static Location<'static>) -> (Raw, Raw) {
                (s.host::<T>(self, at), end.raw())
            }
        }
    )*};
}
host_bounds! { i32 => i32; usize => i32; i64 => i64; u32 => u32; }

/// The step of a runtime loop whose variable is a `T`: a positive host integer, or a runtime integer, which must be
/// positive at run time.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the step of a loop over `{T}`",
    label = "expected a positive host integer or a `Scalar<{T}>`"
)]
pub trait Step<T: Int> {
    #[doc(hidden)]
    fn step_raw(self, s: &mut Session, at: &'static Location<'static>) -> Raw;
}

impl<T: Int> Step<T> for Scalar<T> {
    fn step_raw(self, _: &mut Session, _: &'static Location<'static>) -> Raw {
        self.raw()
    }
}

impl<T: Int, H: Operand<Scalar<T>>> Step<T> for H {
    fn step_raw(self, s: &mut Session, at: &'static Location<'static>) -> Raw {
        match HostNumber::literal(self) {
            Ok(step) if step.as_f64() < 1.0 => {
                let error = OpError::new(
                    Code::Staging,
                    format!("a loop counts upwards by its step, found {}", step.as_f64()),
                )
                .help("count upwards and compute the index from the loop variable: `n - 1 - i`");
                s.fault(error, at)
            }
            _ => s.host::<T>(self, at),
        }
    }
}
