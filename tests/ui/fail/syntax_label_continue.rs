//! A labelled `continue` across a runtime loop.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensor<f32, 2>, out: TensorMut<f32, 2>, n: Scalar<i32>, m: Const<usize>) {
    let t = load(x, (n, m), (16, 16));
    'rows: for i in unroll(0..4) {
        for j in 0..n {
            if j > i {
                continue 'rows;
            }
        }
    }
    store(out, (0, 0), t);
}

fn main() {}
