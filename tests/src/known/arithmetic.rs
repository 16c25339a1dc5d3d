//! Numbers: division, overflow, NaN, exponentials, truth values, rounding.

use tile_runtime::prelude::*;

use super::{result, tensor};

super::cases! {
    bool_scans bool_casts nan_rules exponentials exp2_at_the_edges division_i32 division_i64 division_u32 wrapping
    sixteen_bit_sums accumulators
}

#[tile_kernel]
fn counted(x: Tensor<i32, 1>, out: TensorMut<i32, 1>, n: Const<usize>) {
    let flags = load(x, (0,), (n,)) >= 0;
    store(out, (0,), flags.cast::<i32>().cumsum(0));
    store(out, (1,), full((n,), flags.cast::<i32>().sum(ALL).item()));
}

/// L11: truth values are counted as numbers; sums of `bool` do not exist.
fn bool_scans(device: &Device) {
    let x = tensor(device, &[4], &[3, 1, 7, 12]);
    assert_eq!(
        result(device, &[8], 1, |out, grid| counted(&x, out, 4).launch(grid)),
        [1, 2, 3, 4, 4, 4, 4, 4]
    );
    let x = tensor(device, &[64], &[1; 64]);
    assert_eq!(result(device, &[128], 1, |out, grid| counted(&x, out, 64).launch(grid))[127], 64);
}

#[tile_kernel]
fn truths(
    x: Tensor<i32, 1>,
    i: TensorMut<i32, 1>,
    l: TensorMut<i64, 1>,
    f: TensorMut<f32, 1>,
    b: TensorMut<bool, 1>,
) {
    let positive = load(x, (0,), (4,)) > 0;
    store(i, (0,), positive.cast::<i32>());
    store(i, (1,), positive.cast::<i32>() * 5);
    store(l, (0,), positive.cast::<i64>());
    store(f, (0,), positive.cast::<f32>());
    store(b, (0,), load(x, (0,), (4,)).cast::<bool>());
}

/// L12: true is 1 in every type, and every number but 0 is true.
fn bool_casts(device: &Device) {
    let x = tensor(device, &[4], &[2, 0, -1, 256]);
    let mut i = DeviceTensor::zeros(device, &[8]).expect("fits");
    let mut l = DeviceTensor::zeros(device, &[4]).expect("fits");
    let mut f = DeviceTensor::zeros(device, &[4]).expect("fits");
    let mut b = DeviceTensor::zeros(device, &[4]).expect("fits");
    truths(&x, &mut i, &mut l, &mut f, &mut b).launch(1).expect("valid");
    assert_eq!(i.to_vec().expect("copies"), [1, 0, 0, 1, 5, 0, 0, 5]);
    assert_eq!(l.to_vec().expect("copies"), [1, 0, 0, 1]);
    assert_eq!(f.to_vec().expect("copies"), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(b.to_vec().expect("copies"), [true, false, true, true]);
}

#[tile_kernel]
fn nans<T: Float>(x: Tensor<T, 1>, out: TensorMut<f32, 1>) {
    let t = load(x, (0,), (4,));
    let (ignoring, winning) = (max(t, 0), max_nan(t, 0));
    let least = min(t, 0);
    store(out, (1,), maximum(t, 2.0).cast::<f32>());
    store(out, (2,), maximum(full((4,), 2.0), t).cast::<f32>());
    store(out, (3,), where_(t != t, 1.0, 0.0));
    store(out, (4,), where_(maximum_nan(t, 2.0) != maximum_nan(t, 2.0), 1.0, 0.0));
    store(out, (20,), ignoring.cast::<f32>().item());
    store(out, (21,), where_(winning.item() != winning.item(), 1.0, 0.0));
    store(out, (22,), least.cast::<f32>().item());
}

/// L19: `max`, `min`, `maximum` ignore NaN in either operand, the forms with `_nan` do not; NaN != NaN.
fn nan_rules(device: &Device) {
    fn check<T: Float + HostElement>(device: &Device, of: fn(f32) -> T) {
        let x = tensor(device, &[4], &[f32::NAN, 1.0, f32::INFINITY, -3.0].map(of));
        let found = result(device, &[23], 1, |out, grid| nans(&x, out).launch(grid));
        assert_eq!(found[4..8], [2.0, 2.0, f32::INFINITY, 2.0]);
        assert_eq!(found[8..12], [2.0, 2.0, f32::INFINITY, 2.0]);
        assert_eq!(found[12..16], [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(found[16..20], [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(found[20..], [f32::INFINITY, 1.0, -3.0]);
        let x = tensor(device, &[4], &[f32::NEG_INFINITY; 4].map(of));
        assert_eq!(result(device, &[23], 1, |out, grid| nans(&x, out).launch(grid))[20], f32::NEG_INFINITY);
    }
    check::<f32>(device, |x| x);
    check::<f16>(device, f16::from_f32);
    check::<bf16>(device, bf16::from_f32);
}

#[tile_kernel]
fn powers(x: Tensor<f32, 1>, out: TensorMut<f32, 1>, n: Const<usize>) {
    let t = load(x, (0,), (n,));
    store(out, (0,), exp(t));
    store(out, (1,), exp2(t * LOG2_E));
    store(out, (2,), exp2(t));
}

/// L27: exp is base e, exp2 base 2; exp within 2e-6 relative, `exp2(x log2 e)` within 5e-6 down to where f32 ends.
fn exponentials(device: &Device) {
    let x: Vec<f32> = (0..1024).map(|i| 1.0 - i as f32 * 0.086).collect();
    let found =
        result(device, &[3072], 1, |out, grid| powers(&tensor(device, &[1024], &x), out, 1024).launch(grid));
    for (i, &x) in x.iter().enumerate() {
        let e = f64::from(x).exp();
        let two = f64::from(x).exp2();
        let near = |found: f32, expected: f64, relative: f64| {
            let error = (f64::from(found) - expected).abs();
            assert!(error <= relative * expected + 1.2e-38, "{found} for {expected} at {x}");
        };
        near(found[i], e, 2e-6);
        near(found[1024 + i], e, 5e-6);
        near(found[2048 + i], two, 1e-6);
    }
}

/// L28: 0 for -inf and far below, infinite from 128 on, NaN for NaN; results below 2^-126 are kept or flushed to zero.
fn exp2_at_the_edges(device: &Device) {
    let x =
        [-126.0, -127.0, -149.0, -150.5, -200.0, 127.5, 128.0, f32::NEG_INFINITY, f32::NAN, 0.0, 1.0, -1.0];
    let x: Vec<f32> = x.into_iter().chain([f32::INFINITY, 10.0, -10.0, 0.5]).collect();
    let found =
        result(device, &[48], 1, |out, grid| powers(&tensor(device, &[16], &x), out, 16).launch(grid));
    let found = &found[32..];
    assert_eq!(found[0], f32::MIN_POSITIVE);
    for (i, exact) in [(1, 2_f32.powi(-127)), (2, f32::from_bits(1)), (3, 0.0), (4, 0.0)] {
        assert!(found[i] == exact || found[i] == 0.0, "{} at {}", found[i], x[i]);
    }
    assert!((f64::from(found[5]) / 127.5_f64.exp2() - 1.0).abs() < 1e-6);
    assert_eq!((found[6], found[7]), (f32::INFINITY, 0.0));
    assert!(found[8].is_nan());
    assert_eq!(found[9..13], [1.0, 2.0, 0.5, f32::INFINITY]);
}

#[tile_kernel]
fn divisions<T: Int>(x: Tensor<T, 1>, y: Tensor<T, 1>, out: TensorMut<T, 1>, a: Scalar<T>, b: Scalar<T>) {
    let (s, t) = (load(x, (0,), (8,)), load(y, (0,), (8,)));
    store(out, (0,), s / t);
    store(out, (1,), s % t);
    store(out, (16,), a / b);
    store(out, (17,), a % b);
    store(out, (18,), cdiv(a, b));
}

/// L23: the quotient truncates and the remainder has the dividend's sign; a zero divisor gives 0 and the dividend.
fn division_i32(device: &Device) {
    let x = tensor(device, &[8], &[-7, -7, 7, 7, -36, 5, i32::MIN, -1]);
    let y = tensor(device, &[8], &[2, -2, -2, 2, 5, 0, -1, 3]);
    let found = result(device, &[19], 1, |out, grid| divisions(&x, &y, out, -36, 5).launch(grid));
    assert_eq!(found[..8], [-3, 3, -3, 3, -7, 0, i32::MIN, 0]);
    assert_eq!(found[8..16], [-1, -1, 1, 1, -1, 5, 0, -1]);
    assert_eq!(found[16..], [-7, -1, -7]);
    assert_eq!(
        result(device, &[19], 1, |out, grid| divisions(&x, &y, out, 36, 5).launch(grid))[16..],
        [7, 1, 8]
    );
}

/// L23 in 64 bits.
fn division_i64(device: &Device) {
    const BIG: i64 = 10_000_000_000;
    let x = tensor(device, &[8], &[-7, -7, 7, BIG, -BIG, 5, i64::MIN, -1]);
    let y = tensor(device, &[8], &[2, -2, -2, 3, 7, 0, -1, BIG]);
    let found = result(device, &[19], 1, |out, grid| divisions(&x, &y, out, BIG, -3).launch(grid));
    assert_eq!(found[..8], [-3, 3, -3, 3_333_333_333, -1_428_571_428, 0, i64::MIN, 0]);
    assert_eq!(found[8..16], [-1, -1, 1, 1, -4, 5, 0, -1]);
    assert_eq!(found[16..], [-3_333_333_333, 1, -3_333_333_333]);
}

/// L23 without a sign: the top bit is a digit.
fn division_u32(device: &Device) {
    let x = tensor(device, &[8], &[u32::MAX, 1 << 31, 7, 0, 4_000_000_000, 5, 1, u32::MAX]);
    let y = tensor(device, &[8], &[2, 3, 8, 9, 3_000_000_000, 0, 1, u32::MAX]);
    let found = result(device, &[19], 1, |out, grid| divisions(&x, &y, out, u32::MAX, 10).launch(grid));
    assert_eq!(found[..8], [2_147_483_647, 715_827_882, 0, 0, 1, 0, 1, 1]);
    assert_eq!(found[8..16], [1, 2, 7, 0, 1_000_000_000, 5, 0, 0]);
    assert_eq!(found[16..], [429_496_729, 5, 429_496_730]);
}

#[tile_kernel]
fn overflows(out: TensorMut<i32, 1>, x: Scalar<i32>) {
    let two_billion = scalar(2_000_000_000);
    store(out, (0,), (x + 2_000_000_000) + 2_000_000_000);
    store(out, (1,), two_billion + two_billion);
    store(out, (2,), scalar(1) << 31);
    store(out, (3,), two_billion * two_billion);
    store(out, (4,), (x << 31) >> 31);
}

/// L25: 32-bit integers wrap, folded or not.
fn wrapping(device: &Device) {
    let found = result(device, &[5], 1, |out, grid| overflows(out, 1).launch(grid));
    // 4e18 modulo 2^32, as a signed number.
    assert_eq!(found, [-294_967_295, -294_967_296, i32::MIN, (4_000_000_000_000_000_000_i64) as i32, -1]);
}

#[tile_kernel]
fn ones_summed<T: Float>(scan: TensorMut<T, 1>, total: TensorMut<T, 1>) {
    let t = ones::<T>((4096,));
    store(scan, (0,), cumsum(t, 0));
    store(total, (0,), sum(t, 0).item());
}

/// L42: 16-bit sums and scans accumulate in f32.
fn sixteen_bit_sums(device: &Device) {
    fn check<T: Float + HostElement>(device: &Device, of: fn(f32) -> T) {
        let mut scan = DeviceTensor::<T>::zeros(device, &[4096]).expect("fits");
        let mut total = DeviceTensor::<T>::zeros(device, &[1]).expect("fits");
        ones_summed(&mut scan, &mut total).launch(1).expect("valid");
        assert_eq!(total.to_vec().expect("copies"), [of(4096.0)]);
        let expected: Vec<T> = (1..=4096).map(|i| of(i as f32)).collect();
        assert_eq!(scan.to_vec().expect("copies"), expected);
    }
    check::<f16>(device, f16::from_f32);
    check::<bf16>(device, bf16::from_f32);
}

#[tile_kernel]
fn accumulated(
    x: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    acc: Const<f32>,
    left: Const<usize>,
    right: Const<usize>,
) {
    let operand = |how| match how {
        0 => load(x, (0, 0), (64, 64)),
        1 => ones((64, 64)),
        2 => load(x, (0, 0), (64, 64)).transpose(),
        _ => load(x, (0, 0), (64, 64)) * 1.0,
    };
    store(out, (0, 0), mma(operand(left), operand(right), full((64, 64), acc)));
}

/// L43: the accumulator counts once wherever the operands come from.
fn accumulators(device: &Device) {
    let x = tensor(device, &[64, 64], &[bf16::ONE; 64 * 64]);
    for left in 0..4 {
        for right in 0..4 {
            for acc in [0.0, 1.0] {
                let found = result(device, &[64, 64], 1, |out, grid| {
                    accumulated(&x, out, acc, left, right).launch(grid)
                });
                assert!(found.iter().all(|&y| y == 64.0 + acc), "{left} {right} {acc}");
            }
        }
    }
}
