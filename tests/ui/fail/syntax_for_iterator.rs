//! A `for` over an iterator, without `unroll`.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensor<f32, 2>, out: TensorMut<f32, 2>, n: Scalar<i32>, m: Const<usize>) {
    let t = load(x, (n, m), (16, 16));
    let tiles = vec![t, t + 1.0];
    for tile in tiles.iter() {
        store(out, (0, 0), *tile);
    }
    store(out, (0, 0), t);
}

fn main() {}
