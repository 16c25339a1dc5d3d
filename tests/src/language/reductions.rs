//! Reductions over every axis, of every size, in every element type.

use tile_runtime::prelude::*;

use super::{exact, one, plain};
use crate::held::Held;
use crate::input::Fill;
use crate::lab::Cases;
use crate::tolerance::Tolerance;

const KINDS: [&str; 5] = ["sum", "max", "min", "max_nan", "min_nan"];

fn reduce<T: Number>(kind: &str, t: Tile<T>, axis: usize) -> Tile<T> {
    match kind {
        "sum" => sum(t, axis),
        "max" => max(t, axis),
        "min" => min(t, axis),
        "max_nan" => max_nan(t, axis),
        _ => min_nan(t, axis),
    }
}

#[tile_kernel]
fn matrix<T: Number>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 1>,
    shape: [usize; 2],
    axis: Const<usize>,
    kind: Const<usize>,
) {
    store(out, (0,), reduce(KINDS[kind], load(x, (0, 0), shape), axis));
}

#[tile_kernel]
fn whole<T: Number>(x: Tensor<T, 2>, out: TensorMut<T, 1>, shape: [usize; 2], kind: Const<usize>) {
    let t = load(x, (0, 0), shape);
    let all = match KINDS[kind] {
        "sum" => sum(t, ALL),
        "max" => max(t, ALL),
        _ => min(t, ALL),
    };
    // Also spread over a tile again.
    store(out, (0,), all.broadcast_to((64,)) - arange::<i32>(64).cast::<T>());
}

#[tile_kernel]
fn cube<T: Number>(x: Tensor<T, 3>, out: TensorMut<T, 3>, shape: [usize; 3], axes: [usize; 2]) {
    let t = load(x, (0, 0, 0), shape);
    store(out, (0, 0, 0), t - sum_keepdims(t, axes) + max_keepdims(t, axes[0]));
}

#[tile_kernel]
fn softmax<T: Float>(x: Tensor<T, 2>, out: TensorMut<T, 2>, shape: [usize; 2]) {
    let t = load_with(x, (bid(0), 0), shape, f32::NEG_INFINITY).cast::<f32>();
    let e = exp(t - max_keepdims(t, 1));
    store(out, (bid(0), 0), (e / sum_keepdims(e, 1)).cast::<T>());
}

fn exact_ones<T: Held + Number>(cases: &mut Cases) {
    let few = T::NAME != "f32" && T::NAME != "i32";
    for (rows, columns) in [
        (1, 1),
        (16, 1),
        (1, 16),
        (2, 2),
        (32, 64),
        (64, 32),
        (1, 128),
        (128, 1),
        (8, 256),
        (128, 128),
        (4, 2048),
    ] {
        if few && rows * columns > 4096 {
            continue;
        }
        let tile = rows * columns;
        for (kind, name) in KINDS.into_iter().enumerate() {
            for axis in 0..2 {
                let how = exact(format!("{name} {rows}x{columns} axis {axis} {}", T::NAME), tile, [1, 1, 1]);
                let out = [[columns, rows][axis]];
                one::<T, T>(
                    cases,
                    how,
                    plain(&[rows, columns], Fill::Small),
                    plain(&out, Fill::Wide),
                    move |x, out| matrix(x, out, [rows, columns], axis, kind),
                );
            }
            if kind < 3 {
                let how = exact(format!("{name} {rows}x{columns} all {}", T::NAME), tile, [1, 1, 1]);
                one::<T, T>(
                    cases,
                    how,
                    plain(&[rows, columns], Fill::Small),
                    plain(&[64], Fill::Wide),
                    move |x, out| whole(x, out, [rows, columns], kind),
                );
            }
        }
    }
    for shape in [[2, 4, 8], [8, 16, 16], [1, 32, 4], [64, 1, 2]] {
        for axes in [[0, 1], [1, 2], [0, 2]] {
            let how =
                exact(format!("sum {shape:?} axes {axes:?} {}", T::NAME), shape.iter().product(), [1, 1, 1]);
            one::<T, T>(cases, how, plain(&shape, Fill::Small), plain(&shape, Fill::Wide), move |x, out| {
                cube(x, out, shape, axes)
            });
        }
    }
}

fn floats<T: Held + Float>(cases: &mut Cases) {
    for (rows, columns) in [(1, 32), (4, 128), (8, 1024), (64, 64)] {
        let mut how = exact(format!("softmax {rows}x{columns} {}", T::NAME), rows * columns, [3, 1, 1]);
        how.tolerance = Tolerance::Within { relative: 6e-6 + 2.0 * T::ROUNDING, absolute: 1e-7 };
        let shape = [3 * rows - 1, columns - 3];
        one::<T, T>(
            cases,
            how,
            plain(&shape, Fill::Between(-5.0, 5.0)),
            plain(&shape, Fill::Wide),
            move |x, out| softmax(x, out, [rows, columns]),
        );
    }
    for (rows, columns) in [(32, 64), (4, 1024)] {
        for axis in 0..2 {
            let mut how = exact(
                format!("sum of fractions {rows}x{columns} axis {axis} {}", T::NAME),
                rows * columns,
                [1, 1, 1],
            );
            how.tolerance = Tolerance::sum([rows, columns][axis], 3.0, T::ROUNDING);
            let out = [[columns, rows][axis]];
            one::<T, T>(
                cases,
                how,
                plain(&[rows, columns], Fill::Between(-3.0, 3.0)),
                plain(&out, Fill::Wide),
                move |x, out| matrix(x, out, [rows, columns], axis, 0),
            );
        }
    }
    // 4096 ones: 2048 or 256 is the mark of accumulation in 16 bits.
    let how = exact(format!("sum of 4096 ones {}", T::NAME), 4096, [1, 1, 1]);
    one::<T, T>(cases, how, plain(&[1, 4096], Fill::All(1.0)), plain(&[1], Fill::Wide), |x, out| {
        matrix(x, out, [1, 4096], 1, 0)
    });
}

/// Reductions.
pub fn reductions() -> Cases {
    let mut cases = Cases::default();
    exact_ones::<f32>(&mut cases);
    exact_ones::<f16>(&mut cases);
    exact_ones::<bf16>(&mut cases);
    exact_ones::<i32>(&mut cases);
    exact_ones::<i64>(&mut cases);
    exact_ones::<u32>(&mut cases);
    floats::<f32>(&mut cases);
    floats::<f16>(&mut cases);
    floats::<bf16>(&mut cases);
    cases
}
