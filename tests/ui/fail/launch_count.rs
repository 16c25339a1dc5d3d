//! A launch with an argument too few.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(out: TensorMut<f32, 1>, n: Scalar<i32>) {
    store(out, (n,), 1.0);
}

fn call(out: &mut DeviceTensor<f32>) {
    let _ = kernel(out);
}

fn main() {}
