//! A kernel with a lifetime.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel<'a>(x: Tensor<f32, 1>, out: TensorMut<f32, 1>) {
    store(out, (0,), load(x, (0,), (16,)));
}

fn main() {}
