//! Tests of CPU execution. Expected values come from plain loops in wider types or were worked out by hand.

mod basics;
mod casts;
mod control;
mod elementwise;
mod numbers;
mod product;
mod reductions;
mod shapes;
mod transfers;

use super::{Element, TileValue};
use crate::ir::{Elem, Type};
use crate::ops::eval::{Eval, EvalCx, Operand, Operands};
use crate::ops::{OpKind, TileOp};

/// Evaluates an operation and checks its result type against the type rule.
fn eval(op: impl Into<OpKind>, operands: Vec<TileValue>) -> TileValue {
    let op = op.into();
    let types: Vec<Type> = operands.iter().map(|x| Type::Tile(x.ty())).collect();
    let expected = op.infer(&types).unwrap();
    let operands = operands.into_iter().map(Operand::Tile).collect();
    let cx = EvalCx { block: [1, 2, 3], grid: [4, 5, 6] };
    let value = op.eval(cx, &mut Operands::new(operands)).unwrap();
    assert_eq!(vec![Type::Tile(value.ty())], expected);
    value
}

fn floats(elem: Elem, shape: &[usize], values: &[f32]) -> TileValue {
    TileValue::new(elem, shape, values.iter().map(|&x| super::round::value(elem, x)).collect())
}

fn f32s(shape: &[usize], values: &[f32]) -> TileValue {
    floats(Elem::F32, shape, values)
}

fn i32s(shape: &[usize], values: &[i32]) -> TileValue {
    TileValue::new(Elem::I32, shape, values.to_vec())
}

fn bools(shape: &[usize], values: &[bool]) -> TileValue {
    TileValue::new(Elem::Bool, shape, values.to_vec())
}

fn list<T: Element>(tile: &TileValue) -> Vec<T> {
    tile.to_vec().expect("the tile holds this type")
}

/// Numbers that look random, in -1..1; the same on every call.
fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Equal bits, where any NaN equals any other.
fn assert_same(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (at, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!(f.to_bits() == e.to_bits() || (f.is_nan() && e.is_nan()), "element {at}: {f} is not {e}");
    }
}
