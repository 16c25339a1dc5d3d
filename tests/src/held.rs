//! Element types that tensors hold, with one way to make values of each and to read them back.

use tile_runtime::prelude::*;

/// A value read back from a tensor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// Of an integer or truth value.
    Int(i64),
    /// Of a float.
    Float(f64),
}

/// An element type of tensors.
pub trait Held: HostElement + Storable {
    /// Its name in the language.
    const NAME: &'static str;
    /// Half the distance from 1 to the next value; 0 for types without fractions.
    const ROUNDING: f64;
    /// The value of this type that stands for a small whole number or fraction: integers of 64 bits use both halves,
    /// unsigned ones wrap.
    fn of(x: f64) -> Self;
    /// The value as it is compared.
    fn value(self) -> Value;
}

macro_rules! held {
    ($($ty:ty, $name:literal, $rounding:expr, |$x:ident| $of:expr, |$y:ident| $value:expr;)*) => {$(
        impl Held for $ty {
            const NAME: &'static str = $name;
            const ROUNDING: f64 = $rounding;
            fn of($x: f64) -> Self {
                $of
            }
            fn value(self) -> Value {
                let $y = self;
                $value
            }
        }
    )*};
}
held! {
    f32, "f32", 1.0 / 16_777_216.0, |x| x as f32, |y| Value::Float(y.into());
    f16, "f16", 1.0 / 2048.0, |x| f16::from_f64(x), |y| Value::Float(y.into());
    bf16, "bf16", 1.0 / 256.0, |x| bf16::from_f64(x), |y| Value::Float(y.into());
    i32, "i32", 0.0, |x| x as i32, |y| Value::Int(y.into());
    i64, "i64", 0.0, |x| (x as i64).wrapping_mul(4_294_967_299), |y| Value::Int(y);
    u32, "u32", 0.0, |x| x as i64 as u32, |y| Value::Int(y.into());
    bool, "bool", 0.0, |x| x > 0.0, |y| Value::Int(y.into());
}
