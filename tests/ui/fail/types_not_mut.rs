//! An assignment in a loop to a variable that is not `mut`.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensor<f32, 2>, out: TensorMut<f32, 2>, n: Scalar<i32>, m: Const<usize>) {
    let t = load(x, (n, m), (16, 16));
    let sum = t;
    for i in 0..n {
        sum = sum + t;
        store(out, (i, 0), sum);
    }
    store(out, (0, 0), t);
}

fn main() {}
