//! A sum of f16 in memory.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensor<f16, 1>, out: TensorMut<f16, 1>, n: Scalar<i32>) {
    atomic_add(out, (n,), load(x, (0,), (16,)));
}

fn main() {}
