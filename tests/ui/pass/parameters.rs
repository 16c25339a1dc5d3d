//! Parameters in every form: attributes, `cfg`, `mut`, `_`, patterns, options, raw names.

#![deny(warnings, unused)]
#![allow(unexpected_cfgs, reason = "a feature that does not exist")]

use tile_runtime::prelude::*;

#[tile_kernel]
pub(crate) fn forms(
    out: TensorMut<i32, 1>,
    #[cfg(feature = "absent")] gone: Tensor<Missing, 9>,
    #[cfg(not(feature = "absent"))] here: Scalar<i32>,
    #[allow(unused)] unused: Const<usize>,
    mut m: Const<i32>,
    _: Const<f32>,
    [a, b]: Const<[i32; 2]>,
    r#type: Scalar<i32>,
    bias: Option<Scalar<i32>>,
    _extra: Option<Tensor<f32, 1>>,
) {
    #[cfg(feature = "absent")]
    let here = gone;
    m += a * b;
    let sum = here + m + r#type;
    let sum = if let Some(bias) = bias { sum + bias } else { sum };
    store(out, (0,), full((1,), sum));
}

fn main() {
    let device = Device::cpu();
    let mut out = DeviceTensor::zeros(&device, &[1]).unwrap();
    forms(&mut out, 100, 0, 7, 0.0, [2, 3], 1000, None, None).launch(1).unwrap();
    assert_eq!(out.to_vec().unwrap(), [1113]);
    forms(&mut out, 100, 0, 7, 0.0, [2, 3], 1000, Some(10_000), None).launch(1).unwrap();
    assert_eq!(out.to_vec().unwrap(), [11113]);
}
