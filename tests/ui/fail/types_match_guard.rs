//! A run-time guard of a `match`.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensor<f32, 2>, out: TensorMut<f32, 2>, n: Scalar<i32>, m: Const<usize>) {
    let t = load(x, (n, m), (16, 16));
    let t = match m {
        4 if n > 2 => t + 1.0,
        _ => t,
    };
    store(out, (0, 0), t);
}

fn main() {}
