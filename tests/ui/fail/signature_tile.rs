//! A tile as a kernel parameter.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(out: TensorMut<f32, 1>, t: Tile<f32>) {
    store(out, (0,), t);
}

fn main() {}
