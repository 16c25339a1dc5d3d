//! A host value from an arm under a run-time condition.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensor<f32, 2>, out: TensorMut<f32, 2>, n: Scalar<i32>, m: Const<usize>) {
    let t = load(x, (n, m), (16, 16));
    let width = if n > 3 { 16usize } else { m };
    let t = load(x, (0, 0), (width, 16));
    store(out, (0, 0), t);
}

fn main() {}
