//! Casts between element types, by the rules of Rust's `as`; floats round once, to nearest even.

use super::elementwise::Int;
use super::round;
use super::value::TileValue;
use crate::ir::Elem;

/// Whether every value of the first float type is one of the second.
fn holds_all(from: Elem, to: Elem) -> bool {
    from == to || to == Elem::F32 || (to == Elem::TF32 && matches!(from, Elem::F16 | Elem::BF16))
}

/// The tile with another element type.
pub(crate) fn cast(x: TileValue, to: Elem) -> TileValue {
    match x.elem() {
        from @ (Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32) => from_float(x, from, to),
        Elem::I32 => from_int::<i32>(x, to),
        Elem::I64 => from_int::<i64>(x, to),
        Elem::U32 => from_int::<u32>(x, to),
        Elem::Bool => from_bool(x, to),
    }
}

fn from_float(x: TileValue, from: Elem, to: Elem) -> TileValue {
    match to {
        Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 if holds_all(from, to) => x.with_elem(to),
        Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 => {
            x.map_in_place::<f32>(to, |values| round::slice(to, values))
        }
        Elem::I32 => x.map(to, |x: f32| x as i32),
        Elem::I64 => x.map(to, |x: f32| x as i64),
        Elem::U32 => x.map(to, |x: f32| x as u32),
        Elem::Bool => x.map(to, |x: f32| x != 0.0),
    }
}

fn from_int<T: Int>(x: TileValue, to: Elem) -> TileValue {
    match to {
        Elem::F32 => x.map(to, |x: T| x.wide() as f32),
        Elem::F16 | Elem::BF16 | Elem::TF32 => x.map(to, move |x: T| round::from_int(to, x.wide())),
        Elem::I32 => x.map(to, |x: T| x.wide() as i32),
        Elem::I64 => x.map(to, |x: T| x.wide()),
        Elem::U32 => x.map(to, |x: T| x.wide() as u32),
        Elem::Bool => x.map(to, |x: T| x.wide() != 0),
    }
}

fn from_bool(x: TileValue, to: Elem) -> TileValue {
    match to {
        Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 => x.map(to, |x: bool| f32::from(u8::from(x))),
        Elem::I32 => x.map(to, |x: bool| i32::from(x)),
        Elem::I64 => x.map(to, |x: bool| i64::from(x)),
        Elem::U32 => x.map(to, |x: bool| u32::from(x)),
        Elem::Bool => x,
    }
}
