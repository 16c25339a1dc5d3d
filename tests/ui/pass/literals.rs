//! Numbers in every form that Rust has for them.

#![deny(warnings, unused)]

use tile_runtime::prelude::*;

#[tile_kernel]
fn floats(out: TensorMut<f32, 1>, x: Scalar<f32>) {
    let t = full((1,), -1.0);
    store(out, (0,), t * x);
    store(out, (1,), full((1,), 1e-3));
    store(out, (2,), full::<f32>((1,), f32::NEG_INFINITY));
    store(out, (3,), t * -x + core::f32::consts::LOG2_E);
    store(out, (4,), 2.0 * t - 1.5f32);
    store(out, (5,), 3.0 - t * 2.0f64);
    store(out, (6,), where_(!(t > 0.0), t, 0.0));
    let half = if x > 1.0 { -0.5 } else { 0.5 };
    store(out, (7,), t * half);
}

#[tile_kernel]
fn integers(out: TensorMut<i32, 1>, n: Scalar<i32>, m: Const<usize>) {
    store(out, (0,), full((1,), n + 0xFF));
    store(out, (1,), full((1,), 2 * n + 1_000));
    store(out, (2,), full((1,), n - 1i32));
    store(out, (3,), full((1,), n + 1usize));
    store(out, (4,), full((1,), i32::MAX));
    store(out, (5,), full((1,), -n));
    store(out, (6,), full((1,), !n));
    store(out, (7,), full((1,), m as i32 * -2));
    store(out, (8,), full((1,), 0b101 % n));
    let truth = n == 3 && true;
    store(out, (9,), full((1,), truth as i32));
    let wide = n as i64 * 4_000_000_000i64 / 1_000_000_000i64;
    store(out, (10,), full((1,), wide as i32));
    let (mut low, mut found) = (0, false);
    for i in 0..10 {
        if i == n {
            found = true;
            low = i;
        }
    }
    store(out, (11,), full((1,), if found { low } else { -1 }));
}

fn main() {
    let device = Device::cpu();
    let mut out = DeviceTensor::zeros(&device, &[8]).unwrap();
    floats(&mut out, 2.0).launch(1).unwrap();
    let log2_e = core::f32::consts::LOG2_E;
    let expected = [-2.0, 1e-3, f32::NEG_INFINITY, 2.0 + log2_e, -3.5, 5.0, -1.0, 0.5];
    assert_eq!(out.to_vec().unwrap(), expected);
    let mut out = DeviceTensor::zeros(&device, &[12]).unwrap();
    integers(&mut out, 3, 5).launch(1).unwrap();
    assert_eq!(out.to_vec().unwrap(), [258, 1006, 2, 4, i32::MAX, -3, -4, -10, 2, 1, 12, 3]);
}
