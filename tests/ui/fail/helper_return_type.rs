//! A helper whose early `return` gives another type than it says.

use tile_runtime::prelude::*;

#[tile_fn]
fn relu(n: Scalar<i32>, t: Tile<f32>) -> Tile<f32> {
    if n > 3 {
        return n;
    }
    t
}

fn main() {}
