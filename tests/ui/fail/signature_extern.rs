//! A kernel that is `extern`.

use tile_runtime::prelude::*;

#[tile_kernel]
extern "C" fn kernel(out: TensorMut<f32, 1>) {
    store(out, (0,), 1.0);
}

fn main() {}
