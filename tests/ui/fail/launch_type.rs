//! A launch with a tensor of another element type.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(out: TensorMut<f32, 1>) {
    store(out, (0,), 1.0);
}

fn call(out: &mut DeviceTensor<i32>) {
    let _ = kernel(out);
}

fn main() {}
