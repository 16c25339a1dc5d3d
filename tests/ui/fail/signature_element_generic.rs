//! A generic element type without its bound.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel<T>(x: Tensor<T, 1>) {
    let _ = load(x, (0,), (16,));
}

fn main() {}
