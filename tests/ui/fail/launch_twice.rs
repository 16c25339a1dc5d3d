//! A tensor that a kernel both reads and writes.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensor<f32, 1>, out: TensorMut<f32, 1>) {
    store(out, (0,), load(x, (0,), (16,)));
}

fn call(out: &mut DeviceTensor<f32>) {
    let launch = kernel(out, out);
    let _ = launch;
}

fn main() {}
