//! An argument that the attribute does not have.

use tile_runtime::prelude::*;

#[tile_kernel(target = "sm_80")]
fn kernel(out: TensorMut<f32, 1>) {
    store(out, (0,), 1.0);
}

fn main() {}
