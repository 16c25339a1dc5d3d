//! An index tile of floats.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensor<f32, 1>, out: TensorMut<f32, 1>, n: Scalar<i32>) {
    let t = gather(x, (load(x, (n,), (16,)),));
    store(out, (0,), t);
}

fn main() {}
