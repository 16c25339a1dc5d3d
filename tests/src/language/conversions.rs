//! `cast` between all element types, and numbers made in kernels.

use tile_runtime::prelude::*;

use super::{exact, one, plain};
use crate::held::Held;
use crate::input::Fill;
use crate::lab::Cases;

#[tile_kernel]
fn cast_to<T: Storable, U: Storable>(x: Tensor<T, 1>, out: TensorMut<U, 1>, n: Const<usize>) {
    store(out, (bid(0),), load(x, (bid(0),), (n,)).cast::<U>());
}

/// There and back through a type of fewer bits.
#[tile_kernel]
fn rounded<T: Float, U: Element>(x: Tensor<T, 1>, out: TensorMut<T, 1>) {
    store(out, (bid(0),), load(x, (bid(0),), (256,)).cast::<U>().cast::<T>());
}

#[tile_kernel]
fn made<T: Int>(x: Tensor<T, 2>, out: TensorMut<T, 2>) {
    let (i, j) = (arange::<T>(8), arange::<T>(64));
    let blocks = (bid(0) + num_blocks(0) * (bid(1) + num_blocks(1) * bid(2))).cast::<T>();
    let extents = x.dim(0) * 1000 + x.dim(1);
    let t = i.expand_dims(1) * 64 + j.expand_dims(0) + blocks * 512 + extents.cast::<T>();
    store(out, (bid(1), bid(0)), t + full((8, 64), 3) * load_scalar(x, (bid(0), bid(1))));
}

fn casts<T: Held>(cases: &mut Cases) {
    fn to<T: Held, U: Held>(cases: &mut Cases) {
        for (fill, n) in
            [(Fill::Wide, 64), (Fill::Between(-9.0, 9.0), 512), (Fill::All(0.0), 64), (Fill::Wide, 1)]
        {
            let how = exact(
                format!("cast {} to {} {fill:?} {n}", T::NAME, U::NAME),
                n,
                [700_usize.div_ceil(n), 1, 1],
            );
            one::<T, U>(cases, how, plain(&[700], fill), plain(&[700], Fill::Wide), move |x, out| {
                cast_to(x, out, n)
            });
        }
    }
    to::<T, f32>(cases);
    to::<T, f16>(cases);
    to::<T, bf16>(cases);
    to::<T, i32>(cases);
    to::<T, i64>(cases);
    to::<T, u32>(cases);
    to::<T, bool>(cases);
}

/// Conversions.
pub fn conversions() -> Cases {
    let mut cases = Cases::default();
    casts::<f32>(&mut cases);
    casts::<f16>(&mut cases);
    casts::<bf16>(&mut cases);
    casts::<i32>(&mut cases);
    casts::<i64>(&mut cases);
    casts::<u32>(&mut cases);
    casts::<bool>(&mut cases);
    for (low, high) in [(-3.0, 3.0), (-100_000.0, 100_000.0)] {
        let fill = Fill::Between(low, high);
        let how = |to: &str| exact(format!("round f32 to {to} {fill:?}"), 256, [4, 1, 1]);
        let shapes = || (plain(&[1000], fill), plain(&[1000], Fill::Wide));
        let (x, out) = shapes();
        one::<f32, f32>(&mut cases, how("f16"), x, out, |x, out| rounded::<f32, f16>(x, out));
        let (x, out) = shapes();
        one::<f32, f32>(&mut cases, how("bf16"), x, out, |x, out| rounded::<f32, bf16>(x, out));
        let (x, out) = shapes();
        one::<f32, f32>(&mut cases, how("tf32"), x, out, |x, out| rounded::<f32, tf32>(x, out));
        let (x, out) = shapes();
        one::<f32, f32>(&mut cases, how("i32"), x, out, |x, out| rounded::<f32, i32>(x, out));
    }
    fn numbers<T: Held + Int>(cases: &mut Cases) {
        let how = exact(format!("numbers made in the kernel {}", T::NAME), 512, [3, 5, 1]);
        one::<T, T>(cases, how, plain(&[37, 150], Fill::Wide), plain(&[37, 150], Fill::Wide), |x, out| {
            made(x, out)
        });
    }
    numbers::<i32>(&mut cases);
    numbers::<i64>(&mut cases);
    numbers::<u32>(&mut cases);
    cases
}
