//! A run-time `if` in a helper without the attribute.

use tile_runtime::prelude::*;

fn clip(n: Scalar<bool>, t: Tile<f32>) -> Tile<f32> {
    if n { t } else { t + 1.0 }
}

fn main() {}
