//! A kernel parameter of a type that is none.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(out: TensorMut<f32, 1>, _name: String) {
    store(out, (0,), 1.0);
}

fn main() {}
