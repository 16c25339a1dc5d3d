//! Host numbers beside runtime values: a literal takes the element type of the value beside it.

use std::panic::Location;

use half::{bf16, f16};

use super::element::{Element, Float, Int};
use super::handle::{Scalar, Tile};
use super::session::{self, Raw, Session};
use crate::diag::{Code, OpError};
use crate::ops::Literal;

/// A number or truth value of the host.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a host number",
    label = "expected a number, a tile or a scalar"
)]
pub trait HostNumber: Copy {
    #[doc(hidden)]
    fn literal(self) -> Result<Literal, OpError>;
}

macro_rules! host_numbers {
    ($($ty:ty: |$x:ident| $literal:expr;)*) => {$(
        impl HostNumber for $ty {
            fn literal(self) -> Result<Literal, OpError> {
                let $x = self;
                $literal
            }
        }
    )*};
}
host_numbers! {
    f32: |x| Ok(Literal::float(f64::from(x)));
    f64: |x| Ok(Literal::float(x));
    f16: |x| Ok(Literal::float(f64::from(x)));
    bf16: |x| Ok(Literal::float(f64::from(x)));
    i32: |x| Ok(Literal::Int(i64::from(x)));
    i64: |x| Ok(Literal::Int(x));
    u32: |x| Ok(Literal::Int(i64::from(x)));
    usize: |x| i64::try_from(x).map(Literal::Int).map_err(|_| {
        OpError::new(Code::Literal, format!("the number `{x}` fits no element type"))
            .help("the largest integer is `i64::MAX`")
    });
    bool: |x| Ok(Literal::Bool(x));
}

/// A host number that can stand beside an `L`: floats beside floats, integers beside integers.
#[diagnostic::on_unimplemented(
    message = "`{L}` and `{Self}` cannot be combined",
    label = "`{Self}` beside `{L}`",
    note = "element types never convert silently: write `.cast::<f32>()` on one side; a literal is `2.0` beside floats and `2` beside integers"
)]
pub trait Operand<L>: HostNumber {}

macro_rules! operands {
    ($($class:ident: $($host:ty)*;)*) => {$($(
        impl<T: $class> Operand<Tile<T>> for $host {}
        impl<T: $class> Operand<Scalar<T>> for $host {}
    )*)*};
}
operands! { Float: f32 f64 f16 bf16; Int: i32 i64 u32 usize; }
impl Operand<Tile<bool>> for bool {}
impl Operand<Scalar<bool>> for bool {}

/// A literal on the left of an operator; the right side gives its type. Made by the kernel attribute.
#[derive(Clone, Copy, Debug)]
pub struct Lit<L>(pub L);

impl<L: std::ops::Neg> std::ops::Neg for Lit<L> {
    type Output = Lit<L::Output>;
    fn neg(self) -> Self::Output {
        Lit(-self.0)
    }
}

impl Session {
    /// A constant of element type `T`; a fault if the number is no value of it.
    pub(crate) fn host<T: Element>(&mut self, x: impl HostNumber, at: &'static Location<'static>) -> Raw {
        match x.literal() {
            Ok(literal) => self.constant(literal, T::ELEM, at),
            Err(error) => self.fault(error, at),
        }
    }
}

/// A constant of element type `T` at the caller.
#[track_caller]
pub(crate) fn constant<T: Element>(x: impl HostNumber) -> Raw {
    let at = Location::caller();
    session::with(|s| s.host::<T>(x, at))
}

/// A runtime value of a host number: `let mut best = scalar(0.0);`. The element type is the number's own.
#[track_caller]
pub fn scalar<T: Element + HostNumber>(x: T) -> Scalar<T> {
    Scalar::new(constant::<T>(x))
}

/// A single value: a scalar, or a host number that becomes one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a scalar of element type `{T}`",
    label = "expected a number or a `Scalar<{T}>`",
    note = "a literal is `2.0` for floats and `2` for integers; element types never convert silently"
)]
pub trait ScalarValue<T: Element> {
    #[doc(hidden)]
    #[track_caller]
    fn scalar_raw(self) -> Raw;
}

impl<T: Element> ScalarValue<T> for Scalar<T> {
    fn scalar_raw(self) -> Raw {
        self.raw()
    }
}

impl<T: Element, H: Operand<Scalar<T>>> ScalarValue<T> for H {
    #[track_caller]
    fn scalar_raw(self) -> Raw {
        constant::<T>(self)
    }
}
