//! A labelled `break` across a runtime loop.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel(x: Tensor<f32, 2>, out: TensorMut<f32, 2>, n: Scalar<i32>, m: Const<usize>) {
    let t = load(x, (n, m), (16, 16));
    'rows: for i in 0..n {
        for j in 0..i {
            if j > 3 {
                break 'rows;
            }
        }
    }
    store(out, (0, 0), t);
}

fn main() {}
