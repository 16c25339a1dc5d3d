//! Launches on the CPU: arguments of every kind, what is refused and in which words, looking at PTX without data.

use tile_runtime::prelude::*;

#[tile_kernel]
fn add(x: Tensor<f32, 1>, y: Tensor<f32, 1>, out: TensorMut<f32, 1>, block: Const<usize>) {
    let i = bid(0);
    let sum = load(x, (i,), (block,)) + load(y, (i,), (block,));
    store(out, (i,), sum);
}

fn iota(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32).collect()
}

fn cpu(values: &[f32]) -> DeviceTensor<f32> {
    DeviceTensor::from_slice(&Device::cpu(), &[values.len()], values).expect("one value an element")
}

fn zeros(n: usize) -> DeviceTensor<f32> {
    DeviceTensor::zeros(&Device::cpu(), &[n]).expect("fits")
}

#[test]
fn adds_vectors_with_a_partial_last_block() {
    let (x, y, mut out) = (cpu(&iota(1000)), cpu(&[0.5; 1000]), zeros(1000));
    add(&x, &y, &mut out, 64).launch(1000_usize.div_ceil(64)).expect("valid");
    let expected: Vec<f32> = (0..1000).map(|i| i as f32 + 0.5).collect();
    assert_eq!(out.to_vec().expect("host memory"), expected);
}
