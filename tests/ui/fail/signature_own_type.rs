//! A kernel parameter of the author's own type that is no constant.

use tile_runtime::prelude::*;

#[derive(Clone, Copy)]
struct Shape {
    rows: usize,
}

#[tile_kernel]
fn kernel(out: TensorMut<f32, 1>, shape: Shape) {
    store(out, (0,), ones((shape.rows,)));
}

fn main() {}
