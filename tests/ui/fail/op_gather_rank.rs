//! One index tile for a tensor of two axes.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensor<f32, 2>, out: TensorMut<f32, 1>, n: Scalar<i32>) {
    let t = gather(x, (arange::<i32>(16) + n,));
    store(out, (0,), t);
}

fn main() {}
