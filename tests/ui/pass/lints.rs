//! No lint, of rustc or clippy, sees the rewrite: kernels with every construct under lints that are denied.

#![deny(
    warnings,
    clippy::all,
    clippy::pedantic,
    unused,
    nonstandard_style,
    rust_2018_idioms,
    keyword_idents,
    let_underscore,
    missing_docs,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    unsafe_code,
    unused_import_braces,
    unused_lifetimes,
    unused_qualifications
)]

use tile_runtime::prelude::*;

/// Loops: carried variables, jumps, nested, with steps.
#[tile_kernel]
pub(crate) fn loops(out: TensorMut<i32, 1>, n: Scalar<i32>, bound: Const<usize>) {
    let mut sum = 0;
    for i in 0..10 {
        if i == 3 {
            continue;
        }
        if i == n {
            break;
        }
        sum += i;
    }
    store(out, (0,), full((1,), sum));
    let (mut a, mut b) = (scalar(0), scalar(1));
    for _ in (0..n).step_by(2) {
        (a, b) = (b, a + b);
    }
    store(out, (1,), full((1,), a + b));
    let mut rounds = 0;
    let mut left = n;
    while left > 0 && rounds < 100 {
        left /= 2;
        rounds += 1;
    }
    store(out, (2,), full((1,), rounds));
    let mut last = 0;
    loop {
        last += 1;
        if last * last > n {
            break;
        }
    }
    store(out, (3,), full((1,), last));
    let mut total = zeros::<i32>((1,));
    for i in unroll(0..bound) {
        if i == 2 {
            continue;
        }
        for j in 0..i {
            total += j;
        }
    }
    store(out, (4,), total);
}

/// Branches: with and without values, chained, under host and run-time conditions, with jumps.
#[tile_kernel]
pub(crate) fn branches(out: TensorMut<f32, 1>, n: Scalar<i32>, m: Const<usize>, bias: Option<Scalar<f32>>) {
    let mut t = zeros::<f32>((1,));
    if n > 2 {
        t += 1.0;
    } else if n == 1 {
        t += 2.0;
    }
    if m > 3 {
        t += 4.0;
    } else {
        t += 8.0;
    }
    if let Some(bias) = bias
        && m != 7
    {
        t += bias;
    }
    let factor = if n < 0 || n > 100 { 0.0 } else { 2.0 };
    let (first, second) = if !(n == 5) { (t, t * 2.0) } else { (t * 3.0, t) };
    let name = match m {
        0 => "none",
        x if x < 4 => "few",
        _ => "many",
    };
    if name == "none" {
        return;
    }
    if n == 77 {
        return;
    }
    store(out, (0,), first * factor);
    store(out, (1,), second);
    store(out, (2,), choose(t, n as f32, m >= 4));
}

/// Chooses, and returns early.
#[tile_fn]
pub(crate) fn choose(t: Tile<f32>, x: Scalar<f32>, host: bool) -> Tile<f32> {
    if host {
        return t + x;
    }
    if x > 2.0 {
        return t - x;
    }
    let mask = (t >= 0.0) & (t < 1e3);
    where_(mask && t != 5.0, -t, t)
}

/// No parameters that anything is done with.
#[tile_kernel]
pub(crate) fn empty() {}

/// Also a test of its own, so that clippy sees the kernels.
pub(crate) fn main() {
    let device = Device::cpu();
    let mut out = DeviceTensor::zeros(&device, &[5]).unwrap();
    // n = 5: 0 + 1 + 2 + 4; three steps from (0, 1) to (2, 3); 5, 2, 1; 3 * 3 > 5; 0 + (0 + 1 + 2).
    loops(&mut out, 5, 4).launch(1).unwrap();
    assert_eq!(out.to_vec().unwrap(), [7, 5, 3, 3, 3]);
    loops(&mut out, 99, 2).launch(1).unwrap();
    assert_eq!(out.to_vec().unwrap()[0], 42);
    let mut out = DeviceTensor::zeros(&device, &[3]).unwrap();
    // 1 + 4 + 0.5
    branches(&mut out, 3, 5, Some(0.5)).launch(1).unwrap();
    assert_eq!(out.to_vec().unwrap(), [11.0, 11.0, 8.5]);
    // 1 + 8
    branches(&mut out, 5, 2, None).launch(1).unwrap();
    assert_eq!(out.to_vec().unwrap(), [54.0, 9.0, 4.0]);
    branches(&mut out, 77, 5, None).launch(1).unwrap();
    assert_eq!(out.to_vec().unwrap(), [54.0, 9.0, 4.0]);
    empty().stage().unwrap();
}
