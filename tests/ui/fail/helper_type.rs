//! A helper that returns another type than it says.

use tile_runtime::prelude::*;

#[tile_fn]
fn relu(t: Tile<f32>) -> Tile<bf16> {
    where_(t > 0.0, t, 0.0)
}

fn main() {}
