//! A runtime `for` over `a..=b`.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensor<f32, 2>, out: TensorMut<f32, 2>, n: Scalar<i32>, m: Const<usize>) {
    let t = load(x, (n, m), (16, 16));
    let mut t = t;
    for i in 0..=n {
        t = t + i;
    }
    store(out, (0, 0), t);
}

fn main() {}
