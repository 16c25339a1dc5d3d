//! `cumsum` along every axis, of every size, forwards and backwards.

use tile_runtime::prelude::*;

use super::{exact, one, plain};
use crate::held::Held;
use crate::input::Fill;
use crate::lab::Cases;
use crate::tolerance::Tolerance;

#[tile_kernel]
fn line<T: Number>(x: Tensor<T, 1>, out: TensorMut<T, 1>, n: Const<usize>, reverse: Const<bool>) {
    let t = load(x, (bid(0),), (n,));
    store(out, (bid(0),), if reverse { cumsum_reverse(t, 0) } else { cumsum(t, 0) });
}

#[tile_kernel]
fn matrix<T: Number>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
    shape: [usize; 2],
    axis: Const<usize>,
    reverse: Const<bool>,
) {
    let t = load(x, (bid(1), bid(0)), shape);
    store(out, (bid(1), bid(0)), if reverse { cumsum_reverse(t, axis) } else { cumsum(t, axis) });
}

#[tile_kernel]
fn cube<T: Number>(x: Tensor<T, 3>, out: TensorMut<T, 3>, shape: [usize; 3], axis: Const<usize>) {
    store(out, (0, 0, 0), load(x, (0, 0, 0), shape).cumsum(axis));
}

/// Inside a loop whose number of iterations is known at run time only.
#[tile_kernel]
fn repeated<T: Number>(x: Tensor<T, 1>, out: TensorMut<T, 1>, times: Scalar<i32>, n: Const<usize>) {
    let mut t = load(x, (0,), (n,));
    for _ in 0..times {
        t = cumsum(t, 0);
    }
    store(out, (0,), t);
}

fn whole_numbers<T: Held + Number>(cases: &mut Cases) {
    for log in 0..=12 {
        let n = 1_usize << log;
        for reverse in [false, true] {
            let how = exact(format!("cumsum {n} reverse {reverse} {}", T::NAME), n, [2, 1, 1]);
            let len = (2 * n).max(2) - 1;
            one::<T, T>(cases, how, plain(&[len], Fill::Small), plain(&[len], Fill::Wide), move |x, out| {
                line(x, out, n, reverse)
            });
        }
    }
    for shape in
        [[32, 64], [64, 32], [1, 128], [128, 1], [4, 32], [2, 2], [16, 256], [256, 16], [128, 128], [8, 1024]]
    {
        if T::NAME != "f32" && shape[0] * shape[1] > 4096 {
            continue;
        }
        for axis in 0..2 {
            for reverse in [false, true] {
                let name = format!("cumsum {shape:?} axis {axis} reverse {reverse} {}", T::NAME);
                let size = [shape[0] + 3, shape[1] + 5];
                let how = exact(
                    name,
                    shape[0] * shape[1],
                    [size[1].div_ceil(shape[1]), size[0].div_ceil(shape[0]), 1],
                );
                one::<T, T>(
                    cases,
                    how,
                    plain(&size, Fill::Small),
                    plain(&size, Fill::Wide),
                    move |x, out| matrix(x, out, shape, axis, reverse),
                );
            }
        }
    }
    for shape in [[2, 4, 8], [1, 64, 8], [8, 1, 32], [16, 16, 16]] {
        for axis in 0..3 {
            let how =
                exact(format!("cumsum {shape:?} axis {axis} {}", T::NAME), shape.iter().product(), [1, 1, 1]);
            one::<T, T>(cases, how, plain(&shape, Fill::Small), plain(&shape, Fill::Wide), move |x, out| {
                cube(x, out, shape, axis)
            });
        }
    }
    for n in [1, 2, 4, 8, 32, 128] {
        for times in [0, 1, 2] {
            let how = exact(format!("cumsum {n} in a loop of {times} {}", T::NAME), n, [1, 1, 1]);
            one::<T, T>(cases, how, plain(&[n], Fill::All(1.0)), plain(&[n], Fill::Wide), move |x, out| {
                repeated(x, out, times, n)
            });
        }
    }
}

fn floats<T: Held + Float>(cases: &mut Cases) {
    for shape in [[4, 1024], [64, 64], [512, 8]] {
        for axis in 0..2 {
            let mut how = exact(
                format!("cumsum of fractions {shape:?} axis {axis} {}", T::NAME),
                shape[0] * shape[1],
                [1, 1, 1],
            );
            how.tolerance = Tolerance::sum(shape[axis], 3.0, T::ROUNDING);
            one::<T, T>(
                cases,
                how,
                plain(&shape, Fill::Between(-1.0, 3.0)),
                plain(&shape, Fill::Wide),
                move |x, out| matrix(x, out, shape, axis, false),
            );
        }
    }
    let how = exact(format!("cumsum of 4096 ones {}", T::NAME), 4096, [1, 1, 1]);
    one::<T, T>(cases, how, plain(&[4096], Fill::All(1.0)), plain(&[4096], Fill::Wide), |x, out| {
        line(x, out, 4096, false)
    });
}

/// Scans.
pub fn scans() -> Cases {
    let mut cases = Cases::default();
    whole_numbers::<f32>(&mut cases);
    whole_numbers::<bf16>(&mut cases);
    whole_numbers::<i32>(&mut cases);
    whole_numbers::<i64>(&mut cases);
    floats::<f32>(&mut cases);
    floats::<f16>(&mut cases);
    floats::<bf16>(&mut cases);
    cases
}
