//! Loops, branches and jumps around tiles and scalars, decided at run time.

use tile_runtime::prelude::*;

use super::{exact, one, plain};
use crate::held::Held;
use crate::input::Fill;
use crate::lab::Cases;

#[tile_kernel]
fn sum_loop<T: Number>(x: Tensor<T, 2>, out: TensorMut<T, 2>, rows: Const<usize>, step: Scalar<i32>) {
    let mut acc = zeros::<T>((rows, 64));
    let mut other = ones::<T>((64, rows));
    for i in (0..cdiv(x.dim(1), 64)).step_by(step) {
        let t = load(x, (bid(0), i), (rows, 64));
        acc = acc + t;
        // The two change places, so that they cannot share registers.
        other = other - t.transpose();
    }
    store(out, (bid(0), 0), acc - other.transpose());
}

#[tile_kernel]
fn jumps(x: Tensor<i32, 1>, out: TensorMut<i32, 1>, stop: Scalar<i32>) {
    let mut s = 0;
    let mut t = arange::<i32>(64);
    for i in 0..10 {
        if i == 3 {
            continue;
        }
        if i == stop {
            break;
        }
        s += i;
        t = t + load(x, (i,), (64,));
        if i == 7 {
            t = t - 1;
        }
    }
    store(out, (0,), t + s);
}

#[tile_kernel]
fn branches(x: Tensor<f32, 2>, out: TensorMut<f32, 2>, choice: Scalar<i32>) {
    let t = load(x, (bid(0), 0), (16, 32));
    let y = if choice + bid(0) == 0 {
        t.transpose().cumsum(0).transpose()
    } else if choice == 1 {
        t * 2.0
    } else {
        sum_keepdims(t, 1).broadcast_to((16, 32))
    };
    let v = if bid(0) == 0 { 1.0 } else { 0.0 };
    store(out, (bid(0), 0), y + v);
}

/// The power of two at or above n, and steps of the Collatz sequence: `while` with scalars.
#[tile_kernel]
fn whiles(x: Tensor<i32, 1>, out: TensorMut<i32, 1>, n: Scalar<i32>) {
    let mut p = 1;
    while p < n {
        p *= 2;
    }
    let mut c = load_scalar(x, (bid(0),));
    let mut steps = 0;
    while c > 1 && steps < 50 {
        c = if c % 2 == 0 { c / 2 } else { 3 * c + 1 };
        steps += 1;
    }
    store(out, (bid(0),), full((1,), p * 1000 + steps));
}

/// Barriers inside branches and loops: transposes and scans need the other threads' elements.
#[tile_kernel]
fn exchanges(x: Tensor<f32, 2>, out: TensorMut<f32, 2>, n: Const<usize>, times: Scalar<i32>) {
    let t = load(x, (0, 0), (n, n));
    if times >= 0 {
        let mut y = cumsum(t, 0).transpose();
        for _ in 0..times {
            y = y + y.transpose();
        }
        store(out, (0, 0), y);
    } else {
        store(out, (0, 0), t.transpose());
    }
}

#[tile_kernel]
fn flags(x: Tensor<bool, 2>, out: TensorMut<bool, 2>) {
    let mut any = zeros::<bool>((8, 64));
    let mut odd = zeros::<bool>((8, 64));
    for i in 0..cdiv(x.dim(1), 64) {
        let t = load(x, (0, i), (8, 64));
        any = any | t;
        odd = odd ^ t;
    }
    store(out, (0, 0), any);
    store(out, (1, 0), odd);
}

/// The nearest larger prefix: `loop` left by `break` with a carried tile, in every block after another time.
#[tile_kernel]
fn endless(x: Tensor<i64, 1>, out: TensorMut<i64, 1>) {
    let mut t = load(x, (bid(0),), (32,));
    let mut i = 0;
    loop {
        if i > bid(0) {
            break;
        }
        t = t.cumsum(0) + 1;
        i += 1;
    }
    store(out, (bid(0),), t);
}

#[tile_kernel]
fn nested(x: Tensor<f32, 1>, out: TensorMut<f32, 1>, n: Scalar<i32>) {
    let mut acc = load(x, (0,), (128,));
    for i in 0..n {
        for j in i..n {
            if j == 2 {
                continue;
            }
            acc = acc + (i * 8 + j).cast::<f32>();
        }
        if i == 4 {
            break;
        }
    }
    store(out, (0,), acc);
}

fn loops<T: Held + Number>(cases: &mut Cases) {
    for rows in [1, 16, 128] {
        for (columns, step) in [(0, 1), (1, 1), (64, 1), (250, 1), (250, 2), (250, 3), (640, 7)] {
            let how = exact(
                format!("loop {rows} rows {columns} columns by {step} {}", T::NAME),
                rows * 64,
                [2, 1, 1],
            );
            let out = plain(&[2 * rows, 64], Fill::Wide);
            one::<T, T>(cases, how, plain(&[2 * rows - 1, columns], Fill::Small), out, move |x, out| {
                sum_loop(x, out, rows, step)
            });
        }
    }
}

/// Control flow.
pub fn control() -> Cases {
    let mut cases = Cases::default();
    loops::<f32>(&mut cases);
    loops::<bf16>(&mut cases);
    loops::<i64>(&mut cases);
    let cases_mut = &mut cases;
    for stop in [0, 2, 5, 99] {
        let how = exact(format!("continue and break at {stop}"), 64, [1, 1, 1]);
        one::<i32, i32>(
            cases_mut,
            how,
            plain(&[600], Fill::Wide),
            plain(&[64], Fill::Wide),
            move |x, out| jumps(x, out, stop),
        );
    }
    for choice in [0, 1, 2] {
        let how = exact(format!("branches {choice}"), 512, [3, 1, 1]);
        one::<f32, f32>(
            cases_mut,
            how,
            plain(&[45, 30], Fill::Small),
            plain(&[45, 30], Fill::Wide),
            move |x, out| branches(x, out, choice),
        );
    }
    for n in [0, 1, 2, 3, 1000] {
        let how = exact(format!("while up to {n}"), 1, [40, 1, 1]);
        one::<i32, i32>(cases_mut, how, plain(&[40], Fill::Wide), plain(&[40], Fill::Wide), move |x, out| {
            whiles(x, out, n)
        });
    }
    for n in [4, 32, 64] {
        for times in [-1, 0, 1, 3] {
            let how = exact(format!("exchanges {n} {times} times"), n * n, [1, 1, 1]);
            let size = [n - 1, n - 1];
            one::<f32, f32>(
                cases_mut,
                how,
                plain(&size, Fill::Small),
                plain(&size, Fill::Wide),
                move |x, out| exchanges(x, out, n, times),
            );
        }
    }
    for columns in [0, 100, 300] {
        let how = exact(format!("flags over {columns}"), 512, [1, 1, 1]);
        one::<bool, bool>(
            cases_mut,
            how,
            plain(&[8, columns], Fill::Wide),
            plain(&[16, 64], Fill::Flags),
            flags_launch,
        );
    }
    let how = exact("loop left by break".into(), 32, [5, 1, 1]);
    one::<i64, i64>(cases_mut, how, plain(&[150], Fill::Wide), plain(&[150], Fill::Wide), |x, out| {
        endless(x, out)
    });
    for n in [0, 1, 3, 8] {
        let how = exact(format!("nested loops {n}"), 128, [1, 1, 1]);
        one::<f32, f32>(
            cases_mut,
            how,
            plain(&[100], Fill::Wide),
            plain(&[100], Fill::Wide),
            move |x, out| nested(x, out, n),
        );
    }
    cases
}

fn flags_launch<'a>(x: &'a DeviceTensor<bool>, out: &'a mut DeviceTensor<bool>) -> Launch<'a> {
    flags(x, out)
}
