//! Arms of different type under a run-time condition.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensor<f32, 2>, y: Tensor<bf16, 2>, out: TensorMut<f32, 2>, n: Scalar<i32>, m: Const<usize>) {
    let t = load(x, (n, m), (16, 16));
    let b = load(y, (n, m), (16, 16));
    let q = if n > 3 {
        t
    } else {
        b
    };
    store(out, (0, 0), q);
}

fn main() {}
