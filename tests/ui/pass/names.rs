//! A crate without prelude, whose own names are those of the standard library, and a runtime crate of another name.

#![no_implicit_prelude]
#![allow(dead_code, reason = "the names are what is tested")]

extern crate tile_runtime as tk;

use ::std::assert_eq;
use tk::prelude::{Const, Scalar, Tensor, TensorMut, bid, exp2 as e2, load, store, tile_fn, tile_kernel, zeros};

mod core {}
mod std {}
struct Option;
struct Some;
struct None;
struct Result;
struct Ok;
struct Vec;
struct Tile;
struct Iterator;

/// Everything that expands to calls: loops, jumps, `if` with and without value, comparisons, logic, casts.
#[tile_kernel(crate = tk)]
pub(crate) fn everything(x: Tensor<f32, 1>, out: TensorMut<f32, 1>, n: Scalar<i32>, rows: Const<usize>) {
    let mut t = load(x, (bid(0),), (rows,));
    for i in 0..n {
        if i > 2 && i != 5 || i == 7 {
            continue;
        }
        t = t + e2(zeros((rows,)));
    }
    let factor = if n == 4 { 2.0 } else { 1.0 };
    store(out, (bid(0),), twice(t * factor, n));
}

#[tile_fn(crate = tk)]
fn twice(t: tk::prelude::Tile<f32>, n: Scalar<i32>) -> tk::prelude::Tile<f32> {
    if n > 100 {
        return t;
    }
    t * (n as f32) / 2.0
}

/// The runtime crate behind a re-export.
mod gpu {
    pub(crate) use crate::tk as runtime;
}

#[tile_kernel(crate = crate::gpu::runtime)]
fn through_reexport(out: TensorMut<f32, 1>, n: Scalar<i32>) {
    if n > 0 {
        store(out, (0,), 1.0);
    }
}

fn main() {
    let device = tk::Device::cpu();
    let x = tk::DeviceTensor::from_slice(&device, &[2], &[1.0f32, 2.0]).unwrap();
    let mut out = tk::DeviceTensor::zeros(&device, &[2]).unwrap();
    everything(&x, &mut out, 4, 2).launch(1).unwrap();
    // Three rounds add 1; then twice; then times 4 / 2.
    assert_eq!(out.to_vec().unwrap(), [16.0, 20.0]);
    through_reexport(&mut out, 1).launch(1).unwrap();
    assert_eq!(out.to_vec().unwrap(), [1.0, 20.0]);
}
