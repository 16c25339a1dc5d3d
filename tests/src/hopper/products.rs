//! One product in a loop: all sizes, operands as loaded, transposed and computed, each with every number of warps.

use tile_runtime::prelude::*;

use super::{Lab, Path, config};
use crate::held::Held;
use crate::input::{Fill, View, tensor};
use crate::lab::Report;

/// How an operand comes to be, 0 being as loaded: the transpose of what is loaded.
const TURNED: usize = 1;
/// Computed from what is loaded.
const COMPUTED: usize = 2;
/// The transpose of what was computed.
const BOTH: usize = 3;

#[tile_fn]
fn operand<T: MmaOperand + Float>(
    t: Tensor<T, 2>,
    i: Scalar<i32>,
    j: Scalar<i32>,
    shape: [usize; 2],
    source: usize,
) -> Tile<T> {
    let [rows, columns] = shape;
    match source {
        TURNED => load(t, (j, i), (columns, rows)).transpose(),
        COMPUTED => load(t, (i, j), (rows, columns)) + 1.0,
        BOTH => (load(t, (j, i), (columns, rows)) + 1.0).transpose(),
        _ => load(t, (i, j), (rows, columns)),
    }
}

#[tile_kernel]
fn product<T: MmaOperand + Float>(
    x: Tensor<T, 2>,
    y: Tensor<T, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    sources: [usize; 2],
    steps: Scalar<i32>,
) {
    let [m, n, k] = sizes;
    let mut acc = zeros::<f32>((m, n));
    for i in 0..steps {
        let a = operand(x, bid(1), i, [m, k], sources[0]);
        let b = operand(y, i, bid(0), [k, n], sources[1]);
        acc = mma(a, b, acc);
    }
    store(out, (bid(1), bid(0)), acc);
}

/// The product without a loop.
#[tile_kernel]
fn single<T: MmaOperand + Float>(
    x: Tensor<T, 2>,
    y: Tensor<T, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    sources: [usize; 2],
) {
    let [m, n, k] = sizes;
    let a = operand(x, bid(0), bid(1), [m, k], sources[0]);
    let b = operand(y, bid(0), bid(1), [k, n], sources[1]);
    store(out, (0, 0), mma(a, b, ones((m, n))));
}

/// Element (i, j) of an operand of the given extents, in whole numbers; outside of the tensor it is made of zeros.
fn element(extents: [usize; 2], source: usize, seed: u64, i: usize, j: usize) -> i64 {
    let inside = i < extents[0] && j < extents[1];
    let flat = if source % 2 == TURNED { j * extents[0] + i } else { i * extents[1] + j };
    let loaded = if inside { Fill::Small.at(seed, flat) as i64 } else { 0 };
    loaded + i64::from(source >= COMPUTED)
}

/// `start + x y`, with tiles of depth `padded` in all.
fn reference(extents: [usize; 3], padded: usize, sources: [usize; 2], start: i64) -> Vec<f32> {
    let [m, n, depth] = extents;
    let a: Vec<i64> =
        (0..m * padded).map(|at| element([m, depth], sources[0], 1, at / padded, at % padded)).collect();
    let b: Vec<i64> = (0..padded * n).map(|at| element([depth, n], sources[1], 3, at / n, at % n)).collect();
    let sum = |i: usize, j: usize| (0..padded).map(|k| a[i * padded + k] * b[k * n + j]).sum::<i64>();
    (0..m * n).map(|at| (start + sum(at / n, at % n)) as f32).collect()
}

fn one<T: Held + MmaOperand + Float>(
    lab: &mut Lab,
    sizes: [usize; 3],
    sources: [usize; 2],
    configs: &[Config],
    steps: Option<usize>,
) {
    let [m, n, k] = sizes;
    // With ragged edges where tiles are loaded more than once; rows stay multiples of 16 bytes.
    let extents = match steps {
        Some(steps) => [m + 8, n + 8, (steps * k).saturating_sub(8)],
        None => sizes,
    };
    let expected = reference(extents, steps.unwrap_or(1) * k, sources, i64::from(steps.is_none()));
    let name = format!("{} {m}x{n}x{k}, operands {sources:?}, {steps:?} steps", T::NAME);
    lab.check(&name, Path::Any, configs, Some(&expected), |run| {
        let shape = |rows: usize, columns: usize, source: usize| match source % 2 {
            TURNED => [columns, rows],
            _ => [rows, columns],
        };
        let x = shape(extents[0], extents[2], sources[0]);
        let y = shape(extents[2], extents[1], sources[1]);
        let (_, x) = tensor::<T>(run.device(), &x, View::Plain, Fill::Small, 1)?;
        let (_, y) = tensor::<T>(run.device(), &y, View::Plain, Fill::Small, 3)?;
        let (_, mut out) = tensor::<f32>(run.device(), &extents[..2], View::Plain, Fill::Wide, 2)?;
        match steps {
            Some(steps) => run.launch(product(&x, &y, &mut out, sizes, sources, steps as i32), (2, 2))?,
            None => run.launch(single(&x, &y, &mut out, sizes, sources), 1)?,
        }
        out.to_vec()
    });
}

/// Products of all sizes, sources, warps and stages, of which every `step`-th runs.
pub fn products(step: usize) -> Report {
    let mut lab = Lab::new(2);
    let mut number = 0;
    for m in SIZES {
        for n in SIZES {
            for k in SIZES {
                for sources in (0..16).map(|s| [s / 4, s % 4]) {
                    for (warps, stages) in [(4, 1), (8, 2), (16, 3), (4, 8), (0, 0)] {
                        number += 1;
                        if number % step != 0 || m * n > 32768 {
                            continue;
                        }
                        let configs = [config(warps, stages)];
                        let steps = [None, Some(0), Some(1), Some(2), Some(4)][number / step % 5];
                        // Stages, an operand written back, and sums that are stored must fit.
                        if 2 * k * (stages * (m + n) + m.max(n)) + 4 * m * n > 220 << 10 {
                            continue;
                        }
                        match number / step % 2 {
                            0 => one::<bf16>(&mut lab, [m, n, k], sources, &configs, steps),
                            _ => one::<f16>(&mut lab, [m, n, k], sources, &configs, steps),
                        }
                    }
                }
            }
        }
    }
    lab.report
}

/// The smallest are below what any tensor core takes.
const SIZES: [usize; 6] = [8, 16, 32, 64, 128, 256];
