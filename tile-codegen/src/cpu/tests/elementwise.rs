//! Elementwise operations, in every way that operands are held: dense, shared, repeated, reordered.

use super::{assert_same, bools, eval, f32s, floats, i32s, list, noise};
use crate::cpu::TileValue;
use crate::ir::Elem;
use crate::ops::binary::{Binary, BinaryOp};
use crate::ops::broadcast_to::BroadcastTo;
use crate::ops::compare::{Compare, CompareOp};
use crate::ops::permute::Permute;
use crate::ops::unary::{Unary, UnaryOp};
use crate::ops::where_::Where;

/// An operation and its meaning in f64.
type Meaning = (UnaryOp, fn(f64) -> f64);

fn binary(op: BinaryOp, a: TileValue, b: TileValue) -> TileValue {
    eval(Binary { op }, vec![a, b])
}

fn unary(op: UnaryOp, x: TileValue) -> TileValue {
    eval(Unary { op }, vec![x])
}

fn i64s(values: &[i64]) -> TileValue {
    TileValue::new(Elem::I64, &[values.len()], values.to_vec())
}

fn u32s(values: &[u32]) -> TileValue {
    TileValue::new(Elem::U32, &[values.len()], values.to_vec())
}

#[test]
fn division_and_remainder_follow_rust() {
    let (a, b) = ([-7, 7, 5, i32::MIN], [2, -2, 0, -1]);
    let div = binary(BinaryOp::Div, i32s(&[4], &a), i32s(&[4], &b));
    assert_eq!(list::<i32>(&div), [-3, -3, 0, i32::MIN]);
    let rem = binary(BinaryOp::Rem, i32s(&[4], &a), i32s(&[4], &b));
    assert_eq!(list::<i32>(&rem), [-1, 1, 5, 0]);
    let div = binary(BinaryOp::Div, i64s(&[-7, i64::MIN]), i64s(&[2, -1]));
    assert_eq!(list::<i64>(&div), [-3, i64::MIN]);
    let div = binary(BinaryOp::Div, u32s(&[0x8000_0000, u32::MAX]), u32s(&[2, 10]));
    assert_eq!(list::<u32>(&div), [0x4000_0000, 429_496_729]);
    let rem = binary(BinaryOp::Rem, u32s(&[u32::MAX, 9]), u32s(&[10, 0]));
    assert_eq!(list::<u32>(&rem), [5, 9]);
}

#[test]
fn integers_wrap_at_their_width() {
    let billion = || i32s(&[1], &[2_000_000_000]);
    let sum = binary(BinaryOp::Add, binary(BinaryOp::Add, i32s(&[1], &[5]), billion()), billion());
    assert_eq!(list::<i32>(&sum), [-294_967_296 + 5]);
    let shifted = binary(BinaryOp::Shl, i32s(&[2], &[1, 1]), i32s(&[2], &[31, 32]));
    assert_eq!(list::<i32>(&shifted), [i32::MIN, 1]);
    let product = binary(BinaryOp::Mul, u32s(&[0x1_0001]), u32s(&[0x1_0001]));
    assert_eq!(list::<u32>(&product), [0x0002_0001]);
    assert_eq!(list::<u32>(&binary(BinaryOp::Sub, u32s(&[0]), u32s(&[1]))), [u32::MAX]);
    let right = binary(BinaryOp::Shr, i32s(&[1], &[-8]), i32s(&[1], &[1]));
    assert_eq!(list::<i32>(&right), [-4]);
    assert_eq!(list::<u32>(&binary(BinaryOp::Shr, u32s(&[0xffff_fff8]), u32s(&[1]))), [0x7fff_fffc]);
    assert_eq!(list::<i32>(&unary(UnaryOp::Neg, i32s(&[1], &[i32::MIN]))), [i32::MIN]);
    assert_eq!(list::<i32>(&unary(UnaryOp::Abs, i32s(&[2], &[i32::MIN, -3]))), [i32::MIN, 3]);
    assert_eq!(list::<u32>(&unary(UnaryOp::Not, u32s(&[5]))), [!5u32]);
}

#[test]
fn order_of_unsigned_integers_is_unsigned() {
    let (a, b) = (|| u32s(&[0x8000_0000, 1]), || u32s(&[1, 0xffff_ffff]));
    assert_eq!(list::<u32>(&binary(BinaryOp::Maximum, a(), b())), [0x8000_0000, 0xffff_ffff]);
    assert_eq!(list::<u32>(&binary(BinaryOp::Minimum, a(), b())), [1, 1]);
    assert_eq!(list::<bool>(&eval(Compare { op: CompareOp::Gt }, vec![a(), b()])), [true, false]);
}

#[test]
fn nan_follows_the_documented_rules_in_both_operand_orders() {
    for elem in [Elem::F32, Elem::F16, Elem::BF16, Elem::TF32] {
        let a = || floats(elem, &[4], &[f32::NAN, 1.0, f32::NAN, f32::NEG_INFINITY]);
        let b = || floats(elem, &[4], &[1.0, f32::NAN, f32::NAN, f32::NEG_INFINITY]);
        for (x, y) in [(a(), b()), (b(), a())] {
            for op in [BinaryOp::Minimum, BinaryOp::Maximum] {
                let found = list::<f32>(&binary(op, x.clone(), y.clone()));
                assert_same(&found, &[1.0, 1.0, f32::NAN, f32::NEG_INFINITY]);
            }
            for op in [BinaryOp::MinimumNan, BinaryOp::MaximumNan] {
                let found = list::<f32>(&binary(op, x.clone(), y.clone()));
                assert_same(&found, &[f32::NAN, f32::NAN, f32::NAN, f32::NEG_INFINITY]);
            }
            for op in CompareOp::ALL {
                let found = list::<bool>(&eval(Compare { op }, vec![x.clone(), y.clone()]));
                assert_eq!(found[..3], [op == CompareOp::Ne; 3], "{op:?}");
            }
        }
    }
}

#[test]
fn negative_zero_is_below_positive_zero() {
    let (negative, positive) = (floats(Elem::F32, &[1], &[-0.0]), floats(Elem::F32, &[1], &[0.0]));
    for (x, y) in [(&negative, &positive), (&positive, &negative)] {
        let bits = |op: BinaryOp| list::<f32>(&binary(op, x.clone(), y.clone()))[0].to_bits();
        for (least, most) in
            [(BinaryOp::Minimum, BinaryOp::Maximum), (BinaryOp::MinimumNan, BinaryOp::MaximumNan)]
        {
            assert_eq!((bits(least), bits(most)), (0x8000_0000, 0));
        }
    }
}

#[test]
fn comparisons_hold_as_in_rust() {
    let (a, b) = ([1, 2, 3, -4], [1, 3, 2, 4]);
    for op in CompareOp::ALL {
        let found = list::<bool>(&eval(Compare { op }, vec![i32s(&[4], &a), i32s(&[4], &b)]));
        let expected: Vec<bool> = (0..4)
            .map(|i| match op {
                CompareOp::Eq => a[i] == b[i],
                CompareOp::Ne => a[i] != b[i],
                CompareOp::Lt => a[i] < b[i],
                CompareOp::Le => a[i] <= b[i],
                CompareOp::Gt => a[i] > b[i],
                CompareOp::Ge => a[i] >= b[i],
            })
            .collect();
        assert_eq!(found, expected, "{op:?}");
    }
}

#[test]
fn logic_on_truth_values() {
    let (a, b) = (|| bools(&[4], &[false, false, true, true]), || bools(&[4], &[false, true, false, true]));
    assert_eq!(list::<bool>(&binary(BinaryOp::And, a(), b())), [false, false, false, true]);
    assert_eq!(list::<bool>(&binary(BinaryOp::Or, a(), b())), [false, true, true, true]);
    assert_eq!(list::<bool>(&binary(BinaryOp::Xor, a(), b())), [false, true, true, false]);
    assert_eq!(list::<bool>(&unary(UnaryOp::Not, a())), [true, true, false, false]);
}

#[test]
fn selection_ignores_the_other_side() {
    let cond = bools(&[4], &[true, false, true, false]);
    let a = || f32s(&[4], &[1.0, f32::NAN, 3.0, f32::INFINITY]);
    let b = || f32s(&[4], &[f32::NAN, 2.0, f32::INFINITY, 4.0]);
    let (kept_a, kept_b) = (a(), b());
    for (a, b) in [(a(), b()), (kept_a.clone(), b()), (a(), kept_b.clone()), (kept_a.clone(), kept_b.clone())]
    {
        assert_eq!(list::<f32>(&eval(Where, vec![cond.clone(), a, b])), [1.0, 2.0, 3.0, 4.0]);
    }
    assert_same(&list::<f32>(&kept_a), &[1.0, f32::NAN, 3.0, f32::INFINITY]);
}

#[test]
fn narrow_floats_round_after_each_operation() {
    let a = floats(Elem::BF16, &[1], &[256.0]);
    let sum = binary(BinaryOp::Add, a, floats(Elem::BF16, &[1], &[1.0]));
    assert_eq!(list::<f32>(&sum), [256.0]);
    let a = floats(Elem::F16, &[1], &[60000.0]);
    let sum = binary(BinaryOp::Add, a.clone(), a);
    assert_eq!(list::<f32>(&sum), [f32::INFINITY]);
    let root = unary(UnaryOp::Sqrt, floats(Elem::BF16, &[1], &[2.0]));
    assert_eq!(list::<f32>(&root), [1.4140625]);
}

#[test]
fn unary_functions_match_f64() {
    let x: Vec<f32> = noise(256, 3).iter().map(|x| x * 30.0).collect();
    let functions: [Meaning; 8] = [
        (UnaryOp::Exp, f64::exp),
        (UnaryOp::Exp2, f64::exp2),
        (UnaryOp::Tanh, f64::tanh),
        (UnaryOp::Floor, f64::floor),
        (UnaryOp::Ceil, f64::ceil),
        (UnaryOp::Abs, f64::abs),
        (UnaryOp::Sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        (UnaryOp::Softplus, |x| x.exp().ln_1p()),
    ];
    for (op, f) in functions {
        for (&x, y) in x.iter().zip(list::<f32>(&unary(op, f32s(&[16, 16], &x)))) {
            let right = f(f64::from(x));
            assert!((f64::from(y) - right).abs() <= 1e-6 * right.abs(), "{op:?}({x}) = {y}, not {right}");
        }
    }
    let positive = [0.25f32, 1.0, 7.5, 1e30];
    let functions: [Meaning; 4] = [
        (UnaryOp::Log, f64::ln),
        (UnaryOp::Log2, f64::log2),
        (UnaryOp::Sqrt, f64::sqrt),
        (UnaryOp::Rsqrt, |x| 1.0 / x.sqrt()),
    ];
    for (op, f) in functions {
        for (&x, y) in positive.iter().zip(list::<f32>(&unary(op, f32s(&[4], &positive)))) {
            let right = f(f64::from(x));
            assert!((f64::from(y) - right).abs() <= 1e-6 * right.abs(), "{op:?}({x}) = {y}, not {right}");
        }
    }
}

#[test]
fn softplus_survives_both_ends() {
    let found = list::<f32>(&unary(UnaryOp::Softplus, f32s(&[4], &[-30.0, 0.0, 89.0, 200.0])));
    assert!((found[0] / 9.3576e-14 - 1.0).abs() < 1e-4 && (found[1] - std::f32::consts::LN_2).abs() < 1e-6);
    assert_eq!(found[2..], [89.0, 200.0]);
}

/// Views of an 8 x 4 tile whose element (i, j) is `values[i][j]`, held in different ways.
fn views(values: &dyn Fn(usize, usize) -> f32) -> Vec<TileValue> {
    let dense: Vec<f32> = (0..32).map(|k| values(k / 4, k % 4)).collect();
    let turned: Vec<f32> = (0..32).map(|k| values(k % 8, k / 8)).collect();
    let turned = eval(Permute { axes: vec![1, 0] }, vec![f32s(&[4, 8], &turned)]);
    vec![f32s(&[8, 4], &dense), turned]
}

#[test]
fn every_way_of_holding_operands_gives_the_same_result() {
    let (a, b) = (|i: usize, j: usize| (i * 4 + j) as f32, |i: usize, j: usize| (i as f32) * 0.5 - j as f32);
    let right: Vec<f32> = (0..32).map(|k| a(k / 4, k % 4) - b(k / 4, k % 4)).collect();
    for x in views(&a) {
        for y in views(&b) {
            let mut keep = Vec::new();
            for (keep_x, keep_y) in [(false, false), (true, false), (false, true), (true, true)] {
                let fresh = |v: &TileValue| {
                    let values = list::<f32>(v);
                    if v.strides()[1] == 1 { f32s(&[8, 4], &values) } else { v.clone() }
                };
                let (p, q) = (fresh(&x), fresh(&y));
                keep.extend(keep_x.then(|| p.clone()));
                keep.extend(keep_y.then(|| q.clone()));
                assert_eq!(list::<f32>(&binary(BinaryOp::Sub, p, q)), right);
            }
            assert!(keep.iter().all(|v| [list::<f32>(&x), list::<f32>(&y)].contains(&list::<f32>(v))));
        }
    }
}

#[test]
fn repeated_operands_count_as_their_copies() {
    let to = |x: TileValue| eval(BroadcastTo { shape: vec![4, 2] }, vec![x]);
    let column = || to(f32s(&[4, 1], &[1.0, 2.0, 3.0, 4.0]));
    let row = || to(f32s(&[2], &[10.0, 20.0]));
    let scalar = || to(f32s(&[], &[100.0]));
    let sum = binary(BinaryOp::Add, column(), row());
    assert_eq!(list::<f32>(&sum), [11.0, 21.0, 12.0, 22.0, 13.0, 23.0, 14.0, 24.0]);
    assert_eq!(list::<f32>(&binary(BinaryOp::Sub, scalar(), sum))[..3], [89.0, 79.0, 88.0]);
    assert_eq!(list::<f32>(&binary(BinaryOp::Mul, row(), row())), [100.0, 400.0].repeat(4));
    assert_eq!(list::<f32>(&unary(UnaryOp::Neg, column()))[6..], [-4.0, -4.0]);
    let mask = eval(Compare { op: CompareOp::Ge }, vec![column(), to(f32s(&[2], &[2.0, 3.0]))]);
    assert_eq!(list::<bool>(&mask), [false, false, true, false, true, true, true, true]);
    let chosen = eval(Where, vec![mask, column(), row()]);
    assert_eq!(list::<f32>(&chosen), [10.0, 20.0, 2.0, 20.0, 3.0, 3.0, 4.0, 4.0]);
}
