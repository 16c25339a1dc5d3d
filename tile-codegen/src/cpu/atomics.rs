//! Atomic updates of tensors' elements on the CPU: one word after the other, each in one step.

use super::indexed::Elements;
use super::value::TileValue;
use crate::ir::Elem;
use crate::ops::atomic::AtomicOp;

/// Updates elements; the old values, zero for those outside the tensor or masked.
pub(crate) fn update(
    elements: &Elements<'_>,
    op: AtomicOp,
    expected: Option<&TileValue>,
    value: &TileValue,
) -> TileValue {
    let elem = value.elem();
    let values = words(value);
    let expected = expected.map_or_else(|| vec![0; values.len()], words);
    let old: Vec<u64> = elements
        .each()
        .zip(values.iter().zip(&expected))
        .map(|(place, (&value, &expected))| {
            let change = |old| combine(op, elem, old, expected, value);
            place.map_or(0, |place| elements.memory().update(place, &change))
        })
        .collect();
    let shape = value.shape();
    match elem {
        Elem::I32 => TileValue::new(elem, shape, old.iter().map(|&word| word as i32).collect()),
        Elem::U32 => TileValue::new(elem, shape, old.iter().map(|&word| word as u32).collect()),
        Elem::I64 => TileValue::new(elem, shape, old.iter().map(|&word| word as i64).collect()),
        Elem::F32 | Elem::TF32 | Elem::F16 | Elem::BF16 | Elem::Bool => {
            TileValue::new(elem, shape, old.iter().map(|&word| f32::from_bits(word as u32)).collect())
        }
    }
}

/// The bits of a tile's elements in row-major order.
fn words(tile: &TileValue) -> Vec<u64> {
    macro_rules! words_of {
        ($ty:ty, |$x:ident| $word:expr) => {{
            let values = tile.to_vec::<$ty>().expect("the type rules fix the element type");
            values.into_iter().map(|$x| $word).collect()
        }};
    }
    match tile.elem() {
        Elem::I32 => words_of!(i32, |x| u64::from(x as u32)),
        Elem::U32 => words_of!(u32, |x| u64::from(x)),
        Elem::I64 => words_of!(i64, |x| x as u64),
        Elem::F32 | Elem::TF32 | Elem::F16 | Elem::BF16 | Elem::Bool => {
            words_of!(f32, |x| u64::from(x.to_bits()))
        }
    }
}

/// The new bits of an element.
fn combine(op: AtomicOp, elem: Elem, old: u64, expected: u64, value: u64) -> u64 {
    let smaller = match elem {
        Elem::I32 => (old as i32) < value as i32,
        Elem::U32 => (old as u32) < value as u32,
        Elem::I64 | Elem::F32 | Elem::TF32 | Elem::F16 | Elem::BF16 | Elem::Bool => {
            (old as i64) < value as i64
        }
    };
    let choose = |old_stays: bool| if old_stays { old } else { value };
    match op {
        AtomicOp::Add if elem.is_float() => {
            u64::from((f32::from_bits(old as u32) + f32::from_bits(value as u32)).to_bits())
        }
        AtomicOp::Add => old.wrapping_add(value),
        AtomicOp::Min => choose(smaller),
        AtomicOp::Max => choose(!smaller),
        AtomicOp::And => old & value,
        AtomicOp::Or => old | value,
        AtomicOp::Xor => old ^ value,
        AtomicOp::Xchg => value,
        AtomicOp::Cas => choose(old != expected),
    }
}
