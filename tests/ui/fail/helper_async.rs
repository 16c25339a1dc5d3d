//! A helper that is `async`.

use tile_runtime::prelude::*;

#[tile_fn]
async fn relu(t: Tile<f32>) -> Tile<f32> {
    t
}

fn main() {}
