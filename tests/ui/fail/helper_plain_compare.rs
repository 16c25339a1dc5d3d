//! A comparison in a helper without the attribute.

use tile_runtime::prelude::*;

fn positive(t: Tile<f32>) -> Tile<bool> {
    t > 0.0
}

fn main() {}
