//! Sums, extremes and prefix sums.

use super::{assert_same, bools, eval, f32s, floats, i32s, list, noise};
use crate::cpu::TileValue;
use crate::ir::{Elem, Type};
use crate::ops::TileOp;
use crate::ops::broadcast_to::BroadcastTo;
use crate::ops::cumsum::Cumsum;
use crate::ops::permute::Permute;
use crate::ops::reduce::{Reduce, ReduceKind};

fn reduce(kind: ReduceKind, axes: &[usize], propagate_nan: bool, x: TileValue) -> TileValue {
    eval(Reduce { kind, axes: axes.to_vec(), propagate_nan }, vec![x])
}

fn cumsum(axis: usize, reverse: bool, x: TileValue) -> TileValue {
    eval(Cumsum { axis, reverse }, vec![x])
}

#[test]
fn sums_over_any_axes_match_f64() {
    let shape = [4, 8, 32];
    let values = noise(1024, 5);
    for axes in [&[0][..], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]] {
        let found = list::<f32>(&reduce(ReduceKind::Sum, axes, false, f32s(&shape, &values)));
        let mut right = vec![0f64; found.len()];
        for (at, x) in values.iter().enumerate() {
            let index = [at / 256, at / 32 % 8, at % 32];
            let kept = (0..3).filter(|axis| !axes.contains(axis));
            right[kept.fold(0, |to, axis| to * shape[axis] + index[axis])] += f64::from(*x);
        }
        for (f, r) in found.iter().zip(&right) {
            assert!((f64::from(*f) - r).abs() < 1e-4, "axes {axes:?}: {f} is not {r}");
        }
    }
}

#[test]
fn reductions_see_through_views() {
    let x = || i32s(&[2, 4], &[0, 1, 2, 3, 4, 5, 6, 7]);
    let turned = eval(Permute { axes: vec![1, 0] }, vec![x()]);
    assert_eq!(list::<i32>(&reduce(ReduceKind::Sum, &[1], false, turned)), [4, 6, 8, 10]);
    let repeated = eval(BroadcastTo { shape: vec![4, 8] }, vec![i32s(&[4, 1], &[1, 2, 3, 4])]);
    assert_eq!(list::<i32>(&reduce(ReduceKind::Sum, &[0, 1], false, repeated)), [80]);
    assert_eq!(list::<i32>(&reduce(ReduceKind::Max, &[0], false, x())), [4, 5, 6, 7]);
    assert_eq!(list::<i32>(&reduce(ReduceKind::Min, &[1], false, x())), [0, 4]);
    let unsigned = TileValue::new(Elem::U32, &[2], vec![u32::MAX, 3]);
    assert_eq!(list::<u32>(&reduce(ReduceKind::Max, &[0], false, unsigned.clone())), [u32::MAX]);
    assert_eq!(list::<u32>(&reduce(ReduceKind::Sum, &[0], false, unsigned)), [2]);
}

#[test]
fn a_size_one_axis_reduces_to_the_input() {
    let values =
        [1.5, -0.0, f32::NEG_INFINITY, 4.0, -5.0, 6.0, 7.0, 8.0, 1e-40, 0.0, 2.0, 3.0, 9.0, 10.0, 11.0, 12.0];
    for kind in [ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min] {
        for nan in [false, true] {
            assert_same(&list::<f32>(&reduce(kind, &[1], nan, f32s(&[16, 1], &values))), &values);
            assert_same(&list::<f32>(&reduce(kind, &[0], nan, f32s(&[1, 16], &values))), &values);
            assert_same(&list::<f32>(&reduce(kind, &[0], nan, f32s(&[1], &[-3.0]))), &[-3.0]);
        }
    }
}

#[test]
fn extremes_treat_nan_as_told() {
    let mut values = vec![1.0; 64];
    values[37] = f32::NAN;
    values[50] = 9.0;
    for elem in [Elem::F32, Elem::F16, Elem::BF16] {
        let x = || floats(elem, &[64], &values);
        assert_same(&list::<f32>(&reduce(ReduceKind::Max, &[0], false, x())), &[9.0]);
        assert_same(&list::<f32>(&reduce(ReduceKind::Min, &[0], false, x())), &[1.0]);
        assert_same(&list::<f32>(&reduce(ReduceKind::Max, &[0], true, x())), &[f32::NAN]);
        assert_same(&list::<f32>(&reduce(ReduceKind::Min, &[0], true, x())), &[f32::NAN]);
        assert_same(&list::<f32>(&reduce(ReduceKind::Sum, &[0], false, x())), &[f32::NAN]);
        let low = || floats(elem, &[32], &[f32::NEG_INFINITY; 32]);
        assert_same(&list::<f32>(&reduce(ReduceKind::Max, &[0], false, low())), &[f32::NEG_INFINITY]);
        assert_same(&list::<f32>(&reduce(ReduceKind::Max, &[0], true, low())), &[f32::NEG_INFINITY]);
    }
}

#[test]
fn sixteen_bit_sums_accumulate_in_f32() {
    for elem in [Elem::F16, Elem::BF16] {
        let ones = || floats(elem, &[4096], &[1.0; 4096]);
        assert_eq!(list::<f32>(&reduce(ReduceKind::Sum, &[0], false, ones())), [4096.0]);
        assert_eq!(list::<f32>(&cumsum(0, false, ones()))[4095], 4096.0);
    }
    let column = floats(Elem::BF16, &[1024, 2], &[1.0; 2048]);
    assert_eq!(list::<f32>(&reduce(ReduceKind::Sum, &[0], false, column)), [1024.0, 1024.0]);
}

#[test]
fn prefix_sums_of_ones_count() {
    for n in [1, 2, 4, 8, 32] {
        let found = list::<i32>(&cumsum(0, false, i32s(&[n], &vec![1; n])));
        assert_eq!(found, (1..=n as i32).collect::<Vec<_>>());
    }
    for shape in [[32, 64], [64, 32], [1, 128], [128, 1]] {
        let ones = || i32s(&shape, &vec![1; shape[0] * shape[1]]);
        let down = list::<i32>(&cumsum(0, false, ones()));
        let along = list::<i32>(&cumsum(1, false, ones()));
        for at in 0..down.len() {
            assert_eq!(down[at] as usize, at / shape[1] + 1);
            assert_eq!(along[at] as usize, at % shape[1] + 1);
        }
    }
}

#[test]
fn prefix_sums_run_backwards_on_request() {
    let x = || i32s(&[2, 4], &[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(list::<i32>(&cumsum(1, true, x())), [10, 9, 7, 4, 26, 21, 15, 8]);
    assert_eq!(list::<i32>(&cumsum(0, true, x())), [6, 8, 10, 12, 5, 6, 7, 8]);
    let turned = eval(Permute { axes: vec![1, 0] }, vec![x()]);
    assert_eq!(list::<i32>(&cumsum(0, false, turned)), [1, 5, 3, 11, 6, 18, 10, 26]);
}

#[test]
fn prefix_sums_of_one_sign_never_turn_back() {
    for scale in [1e4f32, 1e8] {
        let dt = |i: usize| if i.is_multiple_of(3) { ((13 * i) % 509) as f32 / 509.0 } else { 1e-9 };
        let values: Vec<f32> = (0..256).map(|i| -scale * dt(i)).collect();
        let found = list::<f32>(&cumsum(0, false, f32s(&[256], &values)));
        let mut right = 0f64;
        for i in 0..256 {
            right += f64::from(values[i]);
            assert!((f64::from(found[i]) - right).abs() <= 256.0 * 6e-8 * right.abs());
            assert!(i == 0 || found[i] <= found[i - 1]);
        }
    }
}

#[test]
fn truth_values_are_neither_scanned_nor_reduced() {
    let ty = [Type::Tile(bools(&[4], &[true; 4]).ty())];
    assert!(Cumsum { axis: 0, reverse: false }.infer(&ty).is_err());
    assert!(Reduce { kind: ReduceKind::Sum, axes: vec![0], propagate_nan: false }.infer(&ty).is_err());
}
