//! A kernel with a return type.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensor<f32, 1>) -> Tile<f32> {
    load(x, (0,), (16,))
}

fn main() {}
