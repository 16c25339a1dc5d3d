//! Matrix products against f64 loops.

use super::{eval, f32s, floats, list, noise};
use crate::cpu::TileValue;
use crate::ir::Elem;
use crate::ops::broadcast_to::BroadcastTo;
use crate::ops::extract::Extract;
use crate::ops::mma::Mma;
use crate::ops::permute::Permute;

fn right(a: &[f32], b: &[f32], acc: &[f32], [m, k, n]: [usize; 3]) -> Vec<f64> {
    (0..m * n)
        .map(|at| {
            let (i, j) = (at / n, at % n);
            let products = (0..k).map(|p| f64::from(a[i * k + p]) * f64::from(b[p * n + j]));
            f64::from(acc[at]) + products.sum::<f64>()
        })
        .collect()
}

fn assert_close(found: &TileValue, right: &[f64]) {
    for (f, r) in list::<f32>(found).iter().zip(right) {
        assert!((f64::from(*f) - r).abs() < 1e-4, "{f} is not {r}");
    }
}

#[test]
fn products_match_f64_in_every_shape() {
    for [m, k, n] in [[1, 1, 1], [16, 8, 4], [4, 64, 32], [64, 16, 1], [1, 32, 64], [64, 128, 64]] {
        for elem in [Elem::F32, Elem::BF16, Elem::F16, Elem::TF32] {
            let a = floats(elem, &[m, k], &noise(m * k, 1));
            let b = floats(elem, &[k, n], &noise(k * n, 2));
            let acc = noise(m * n, 3);
            let expected = right(&list(&a), &list(&b), &acc, [m, k, n]);
            assert_close(&eval(Mma, vec![a, b, f32s(&[m, n], &acc)]), &expected);
        }
    }
}

#[test]
fn accumulators_are_kept_for_every_placement_of_operands() {
    let ones = |shape: &[usize]| f32s(shape, &vec![1.0; shape.iter().product()]);
    let ways: [fn(TileValue) -> TileValue; 3] = [
        |x| x,
        |x| eval(Permute { axes: vec![1, 0] }, vec![x]),
        |x| {
            eval(
                BroadcastTo { shape: vec![64, 64] },
                vec![eval(Extract { index: vec![0, 0], shape: vec![1, 64] }, vec![x])],
            )
        },
    ];
    for a in ways {
        for b in ways {
            for start in [0.0, 1.0] {
                let acc = f32s(&[64, 64], &[start; 4096]);
                let kept = acc.clone();
                let found = eval(Mma, vec![a(ones(&[64, 64])), b(ones(&[64, 64])), acc]);
                assert_eq!(list::<f32>(&found), [64.0 + start; 4096]);
                assert_eq!(list::<f32>(&kept), [start; 4096]);
            }
        }
    }
}

#[test]
fn transposed_operands_are_read_through_their_strides() {
    let (a, b, acc) = (noise(32 * 16, 4), noise(8 * 32, 5), vec![0.0; 16 * 8]);
    let turn = |shape: &[usize], x: &[f32]| eval(Permute { axes: vec![1, 0] }, vec![f32s(shape, x)]);
    let (at, bt) = (turn(&[32, 16], &a), turn(&[8, 32], &b));
    let expected = right(&list(&at), &list(&bt), &acc, [16, 32, 8]);
    assert_close(&eval(Mma, vec![at, bt, f32s(&[16, 8], &acc)]), &expected);
}

#[test]
fn batches_are_independent() {
    let (a, b, acc) = (noise(2 * 8 * 4, 6), noise(2 * 4 * 16, 7), noise(2 * 8 * 16, 8));
    let mut expected = right(&a[..32], &b[..64], &acc[..128], [8, 4, 16]);
    expected.extend(right(&a[32..], &b[64..], &acc[128..], [8, 4, 16]));
    let (a, acc) = (f32s(&[2, 8, 4], &a), f32s(&[2, 8, 16], &acc));
    assert_close(&eval(Mma, vec![a.clone(), f32s(&[2, 4, 16], &b), acc.clone()]), &expected);
    // The batch axis innermost in what is held.
    let turned: Vec<f32> = (0..128).map(|at| b[at % 2 * 64 + at / 2]).collect();
    let b = eval(Permute { axes: vec![2, 0, 1] }, vec![f32s(&[4, 16, 2], &turned)]);
    assert_close(&eval(Mma, vec![a, b, acc]), &expected);
}
