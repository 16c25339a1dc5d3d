//! A generic parameter of which nothing says that it is a constant.

use tile_runtime::prelude::*;

#[tile_kernel]
fn kernel<C>(out: TensorMut<f32, 1>, _rows: C) {
    store(out, (0,), 1.0);
}

fn call(out: &mut DeviceTensor<f32>) {
    let _ = kernel(out, String::new());
}

fn main() {}
