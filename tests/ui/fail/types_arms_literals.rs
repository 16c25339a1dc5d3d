//! Literal arms of different type under a run-time condition.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensor<f32, 2>, out: TensorMut<f32, 2>, n: Scalar<i32>, m: Const<usize>) {
    let t = load(x, (n, m), (16, 16));
    let q = if n > 3 { 1 } else { 2.0 };
    store(out, (0, 0), t);
}

fn main() {}
