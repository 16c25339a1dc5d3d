//! Conversions between element types.

use super::{bools, eval, f32s, floats, i32s, list};
use crate::cpu::TileValue;
use crate::ir::Elem;
use crate::ops::binary::{Binary, BinaryOp};
use crate::ops::cast::Cast;

fn cast(x: TileValue, elem: Elem) -> TileValue {
    eval(Cast { elem }, vec![x])
}

#[test]
fn truth_values_become_zero_and_one() {
    let x = || bools(&[2], &[true, false]);
    assert_eq!(list::<i32>(&cast(x(), Elem::I32)), [1, 0]);
    assert_eq!(list::<i64>(&cast(x(), Elem::I64)), [1, 0]);
    assert_eq!(list::<u32>(&cast(x(), Elem::U32)), [1, 0]);
    for elem in [Elem::F32, Elem::F16, Elem::BF16, Elem::TF32] {
        assert_eq!(list::<f32>(&cast(x(), elem)), [1.0, 0.0]);
    }
    let five = eval(Binary { op: BinaryOp::Mul }, vec![cast(x(), Elem::I32), i32s(&[2], &[5, 5])]);
    assert_eq!(list::<i32>(&five), [5, 0]);
}

#[test]
fn numbers_are_true_unless_zero() {
    let x = f32s(&[8], &[0.0, -0.0, 1e-40, -3.0, f32::NAN, f32::INFINITY, 0.5, 2.0]);
    let expected = [false, false, true, true, true, true, true, true];
    assert_eq!(list::<bool>(&cast(x, Elem::Bool)), expected);
    assert_eq!(list::<bool>(&cast(i32s(&[4], &[0, -1, 256, 1]), Elem::Bool)), [false, true, true, true]);
}

#[test]
fn floats_truncate_and_saturate() {
    let x = || f32s(&[8], &[-1.9, 1.9, 3e9, -3e9, f32::NAN, f32::INFINITY, 1e20, -0.5]);
    let expected = [-1, 1, i32::MAX, i32::MIN, 0, i32::MAX, i32::MAX, 0];
    assert_eq!(list::<i32>(&cast(x(), Elem::I32)), expected);
    let expected = [-1, 1, 3_000_000_000, -3_000_000_000, 0, i64::MAX, i64::MAX, 0];
    assert_eq!(list::<i64>(&cast(x(), Elem::I64)), expected);
    let expected = [0, 1, 3_000_000_000, 0, 0, u32::MAX, u32::MAX, 0];
    assert_eq!(list::<u32>(&cast(x(), Elem::U32)), expected);
}

#[test]
fn integers_wrap_and_extend_by_their_own_sign() {
    assert_eq!(list::<u32>(&cast(i32s(&[1], &[-1]), Elem::U32)), [u32::MAX]);
    assert_eq!(list::<i64>(&cast(i32s(&[1], &[-1]), Elem::I64)), [-1]);
    let top = || TileValue::new(Elem::U32, &[1], vec![0x8000_0000u32]);
    assert_eq!(list::<i64>(&cast(top(), Elem::I64)), [2_147_483_648]);
    assert_eq!(list::<f32>(&cast(top(), Elem::F32)), [2_147_483_648.0]);
    let wide = TileValue::new(Elem::I64, &[2], vec![(1i64 << 32) + 7, -1]);
    assert_eq!(list::<i32>(&cast(wide, Elem::I32)), [7, -1]);
}

#[test]
fn integers_round_once_to_narrow_floats() {
    // 16777217 is no f32; 2^24 + 2^16 is a tie of bf16 that rounds to even, one more rounds up.
    assert_eq!(list::<f32>(&cast(i32s(&[1], &[16_777_217]), Elem::F32)), [16_777_216.0]);
    let tie = (1 << 24) + (1 << 16);
    let x = i32s(&[2], &[tie, tie + 1]);
    assert_eq!(list::<f32>(&cast(x, Elem::BF16)), [16_777_216.0, 16_908_288.0]);
    assert_eq!(list::<f32>(&cast(i32s(&[2], &[2049, 70_000]), Elem::F16)), [2048.0, f32::INFINITY]);
}

#[test]
fn long_integers_round_once_to_narrow_floats() {
    let cast_i64 = |x: i64, elem| list::<f32>(&cast(TileValue::new(Elem::I64, &[1], vec![x]), elem))[0];
    for (elem, bits) in [(Elem::BF16, 8), (Elem::TF32, 11)] {
        for top in [30, 40, 53, 54, 60, 62] {
            // Between two neighbours of the type, from the one at 2^top: a tie, and the integers beside it.
            let half = 1i64 << (top - bits);
            let (low, high) = ((1i64 << top) as f32, ((1i64 << top) + 2 * half) as f32);
            let tie = (1i64 << top) + half;
            // Ties of tf32 go away from zero, others to even.
            let at_tie = if elem == Elem::TF32 { high } else { low };
            for (x, expected) in [(tie - 1, low), (tie, at_tie), (tie + 1, high)] {
                assert_eq!(cast_i64(x, elem), expected, "{x} as {elem}");
                assert_eq!(cast_i64(-x, elem), -expected, "-{x} as {elem}");
            }
        }
        assert_eq!(cast_i64(i64::MIN, elem), -(2f32.powi(63)));
        assert_eq!(cast_i64(i64::MAX, elem), 2f32.powi(63));
    }
    assert_eq!(cast_i64(65_519, Elem::F16), 65_504.0);
    assert_eq!(cast_i64(i64::MIN, Elem::F16), f32::NEG_INFINITY);
}

#[test]
fn floats_convert_between_widths() {
    let x = || f32s(&[4], &[1.0 + 2f32.powi(-9), 65520.0, -1e-8, 1.0 + 2f32.powi(-11)]);
    assert_eq!(list::<f32>(&cast(x(), Elem::BF16)), [1.0, 65536.0, -172.0 / 128.0 * 2f32.powi(-27), 1.0]);
    assert_eq!(list::<f32>(&cast(x(), Elem::F16)), [1.0 + 2f32.powi(-9), f32::INFINITY, -0.0, 1.0]);
    assert_eq!(list::<f32>(&cast(x(), Elem::TF32))[3], 1.0 + 2f32.powi(-10));
    let narrow = floats(Elem::F16, &[1], &[65504.0]);
    assert_eq!(list::<f32>(&cast(narrow, Elem::BF16)), [65536.0]);
}
