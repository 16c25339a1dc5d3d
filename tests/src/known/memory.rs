//! Loads and stores: padding, odd starts and pitches, partial tiles, nothing outside touched.

use tile_runtime::prelude::*;

use super::{result, tensor};

super::cases! { odd_slices padding_is_kept zero_padding last_elements pitches size_one_axes }

#[tile_kernel]
fn copy<T: Storable>(x: Tensor<T, 2>, out: TensorMut<T, 2>, columns: Const<usize>) {
    store(out, (bid(1), bid(0)), load(x, (bid(1), bid(0)), (16, columns)));
}

/// L01: starts and pitches that are no multiple of 16 bytes, read and written.
fn odd_slices(device: &Device) {
    fn check<T: Storable + HostElement>(device: &Device, width: usize, of: fn(f32) -> T) {
        let values: Vec<T> = (0..64 * width).map(|i| of((i % 251) as f32)).collect();
        let x = tensor(device, &[64, width], &values);
        let slice = x.slice(1, 1..65).expect("inside");
        let found = result(device, &[64, 64], (2, 4), |out, grid| copy(&slice, out, 32).launch(grid));
        let row = |i: usize| i / 64 * width + i % 64 + 1;
        assert_eq!(found, (0..64 * 64).map(|i| values[row(i)]).collect::<Vec<_>>());
        // Back into a slice of a tensor of another width; what lies beside it stays.
        let base = DeviceTensor::full(device, &[64, width + 1], of(-1.0)).expect("fits");
        let mut target = base.slice(1, 1..65).expect("inside");
        copy(&slice, &mut target, 32).launch((2, 4)).expect("valid");
        let found = base.to_vec().expect("copies");
        for (i, &y) in found.iter().enumerate() {
            let (r, c) = (i / (width + 1), i % (width + 1));
            let expected = if (1..65).contains(&c) { values[r * width + c] } else { of(-1.0) };
            assert_eq!(y, expected, "row {r}, column {c}");
        }
    }
    check::<f32>(device, 200, |x| x);
    check::<f32>(device, 101, |x| x);
    check::<bf16>(device, 200, bf16::from_f32);
    check::<bf16>(device, 101, bf16::from_f32);
}

#[tile_kernel]
fn tail(x: Tensor<f32, 1>, out: TensorMut<f32, 1>) {
    let mut most = f32::NEG_INFINITY + zeros::<f32>((64,));
    let mut product = ones::<f32>((64,));
    for k in 0..cdiv(x.dim(0), 64) {
        most = maximum(most, load_with(x, (k,), (64,), f32::NEG_INFINITY));
        product = product * load_with(x, (k,), (64,), 1.0);
    }
    store(out, (0,), most.max(0).item());
    store(out, (1,), product.extract((1,), (32,)).max(0).item());
}

/// L18: padding other than zero is kept in loops over a ragged tail.
fn padding_is_kept(device: &Device) {
    let x = tensor(device, &[100], &[-3.0; 100]);
    // Elements 32 to 35 of the last tile exist: 9; those after are padding: -3.
    assert_eq!(result(device, &[2], 1, |out, grid| tail(&x, out).launch(grid)), [-3.0, 9.0]);
}

#[tile_kernel]
fn padded_sum(x: Tensor<f32, 1>, out: TensorMut<f32, 1>) {
    store(out, (0,), load_with(x, (0,), (256,), 0.0).sum(0).item());
    store(out, (1,), load_with(x, (0,), (256,), -1.0).sum(0).item());
}

/// L57: padding of 0 is 0.
fn zero_padding(device: &Device) {
    let x = tensor(device, &[16], &[2.0; 16]);
    assert_eq!(result(device, &[2], 1, |out, grid| padded_sum(&x, out).launch(grid)), [32.0, 32.0 - 240.0]);
}

#[tile_kernel]
fn fill<T: Number>(out: TensorMut<T, 1>) {
    store(out, (bid(0),), ones::<T>((64,)));
}

/// L35: every element up to the last is written, and none after it.
fn last_elements(device: &Device) {
    fn check<T: Number + HostElement>(device: &Device, n: usize, one: T) {
        let memory = DeviceTensor::<T>::zeros(device, &[n + 9]).expect("fits");
        let mut out = memory.slice(0, 0..n).expect("inside");
        fill(&mut out).launch(n.div_ceil(64)).expect("valid");
        let found = memory.to_vec().expect("copies");
        assert!(found[..n].iter().all(|&y| y == one) && found[n..].iter().all(|&y| y == T::default()), "{n}");
    }
    for n in [1, 15, 63, 64, 65, 127] {
        check(device, n, 1.0_f32);
        check(device, n, bf16::ONE);
        check(device, n, 1_i64);
    }
}

/// L53: pitches, column-major sources, and one row for all.
fn pitches(device: &Device) {
    let values: Vec<f32> = (0..16 * 64).map(|i| i as f32).collect();
    let x = tensor(device, &[16, 64], &values);
    let part = x.slice(1, 0..48).expect("inside");
    let expected: Vec<f32> = (0..16 * 48).map(|i| values[i / 48 * 64 + i % 48]).collect();
    assert_eq!(result(device, &[16, 48], 1, |out, grid| copy(&part, out, 64).launch(grid)), expected);
    let turned = tensor(device, &[64, 16], &values).transpose(0, 1).expect("two axes");
    let expected: Vec<f32> = (0..16 * 64).map(|i| values[i % 64 * 16 + i / 64]).collect();
    assert_eq!(result(device, &[16, 64], 1, |out, grid| copy(&turned, out, 64).launch(grid)), expected);
    let row = x.slice(0, 3..4).and_then(|x| x.broadcast_to(&[16, 64])).expect("inside");
    let expected: Vec<f32> = (0..16 * 64).map(|i| values[3 * 64 + i % 64]).collect();
    assert_eq!(result(device, &[16, 64], 1, |out, grid| copy(&row, out, 64).launch(grid)), expected);
}

/// M24: the stride of an axis of one element is never used.
fn size_one_axes(device: &Device) {
    let values: Vec<f32> = (0..40).map(|i| i as f32).collect();
    let x = tensor(device, &[40], &values);
    for stride in [0, 1, 1_000_000_000] {
        let view = x.with_strides(&[1, 40], &[stride, 1], 0).expect("inside");
        assert_eq!(result(device, &[1, 40], 1, |out, grid| copy(&view, out, 64).launch(grid)), values);
    }
}
