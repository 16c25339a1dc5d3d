//! A kernel that is `async`.

use tile_runtime::prelude::*;

#[tile_kernel]
async fn kernel(out: TensorMut<f32, 1>) {
    store(out, (0,), 1.0);
}

fn main() {}
