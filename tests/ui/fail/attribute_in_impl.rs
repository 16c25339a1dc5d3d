//! A method as a kernel.

use tile_runtime::prelude::*;

struct Model;

impl Model {
    #[tile_kernel]
    fn kernel(&self, out: TensorMut<f32, 1>) {
        store(out, (0,), 1.0);
    }
}

fn main() {}
