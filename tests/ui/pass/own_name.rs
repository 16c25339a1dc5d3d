//! A parameter with the kernel's own name.

use tile_runtime::prelude::*;

/// Multiplies.
#[tile_kernel]
fn scale(x: Tensor<f32, 1>, out: TensorMut<f32, 1>, scale: Scalar<f32>) {
    store(out, (bid(0),), load(x, (bid(0),), (4,)) * scale);
}

fn main() {
    let device = Device::cpu();
    let x = DeviceTensor::from_slice(&device, &[4], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
    let mut out = DeviceTensor::zeros(&device, &[4]).unwrap();
    scale(&x, &mut out, 0.5).launch(1).unwrap();
    assert_eq!(out.to_vec().unwrap(), [0.5, 1.0, 1.5, 2.0]);
}
