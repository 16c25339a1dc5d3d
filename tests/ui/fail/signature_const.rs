//! A kernel that is `const`.

use tile_runtime::prelude::*;

#[tile_kernel]
const fn kernel(out: TensorMut<f32, 1>) {
    store(out, (0,), 1.0);
}

fn main() {}
