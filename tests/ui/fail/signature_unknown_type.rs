//! A parameter type that does not exist.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensr<f32, 1>, out: TensorMut<f32, 1>) {
    store(out, (0,), load(x, (0,), (16,)));
}

fn main() {}
