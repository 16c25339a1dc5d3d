//! A kernel that is `unsafe`.

use tile_runtime::prelude::*;

#[tile_kernel]
unsafe fn kernel(out: TensorMut<f32, 1>) {
    store(out, (0,), 1.0);
}

fn main() {}
