//! A launch with a shared tensor where the kernel writes.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(out: TensorMut<f32, 1>) {
    store(out, (0,), 1.0);
}

fn call(out: &DeviceTensor<f32>) {
    let _ = kernel(out);
}

fn main() {}
