//! A tensor of what is no element type.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensor<f64, 1>) {
    let _ = x;
}

fn main() {}
