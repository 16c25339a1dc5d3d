//! Products in loops of every kind: nested, left early, skipped, without a trip, with loads under conditions.

use tile_runtime::prelude::*;

use super::{Lab, Path, config};
use crate::input::{Fill, View, tensor};
use crate::lab::Report;

/// An inner loop for each step of an outer one; a tile of the outer loop is used in the inner one.
#[tile_kernel]
fn nested(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    for i in 0..n {
        let a = load(x, (0, i), (rows, k));
        for j in 0..p {
            acc = mma(a, load(y, (j, 0), (k, columns)), acc);
        }
        acc = mma(a, load(y, (i, 0), (k, columns)), acc);
        if i == 1 {
            acc = acc * 2.0;
        }
    }
    store(out, (0, 0), acc);
}

/// The inner loop starts from zeros each time.
#[tile_kernel]
fn nested_fresh(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut total = ones::<f32>((rows, columns));
    for i in 0..n {
        let mut acc = zeros::<f32>((rows, columns));
        for j in i..p {
            acc = mma(load(x, (0, j), (rows, k)), load(y, (j, 0), (k, columns)), acc);
        }
        total = total + acc * 2.0;
    }
    store(out, (0, 0), total);
}

#[tile_kernel]
fn two_products(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    for i in 0..n {
        acc = mma(load(x, (0, i), (rows, k)), load(y, (i, 0), (k, columns)), acc);
        acc = mma(load(x, (0, p), (rows, k)), load(y, (p, 0), (k, columns)), acc);
    }
    store(out, (0, 0), acc);
}

/// Two accumulators of one operand.
#[tile_kernel]
fn two_sums(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    let mut other = ones::<f32>((rows, columns));
    for i in 0..n {
        let a = load(x, (0, i), (rows, k));
        acc = mma(a, load(y, (i, 0), (k, columns)), acc);
        other = mma(a, load(y, (p, 0), (k, columns)), other);
    }
    store(out, (0, 0), acc - other * 2.0);
}

/// A tile times its own transpose.
#[tile_kernel]
fn square(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((columns, columns));
    for i in 0..n {
        let t = load(y, (i + p, 0), (k, columns));
        acc = mma(t.transpose(), t, acc);
    }
    store(out, (0, 0), acc);
    let _ = (x, rows);
}

/// The result of a product is an operand of the next, as in attention.
#[tile_kernel]
fn chained(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    let q = load(x, (0, p), (rows, k));
    for i in 0..n {
        let t = load(y, (i, 0), (k, columns));
        // rows x columns, then rows x k, then rows x columns.
        let s = mma(q, t, zeros((rows, columns)));
        let back = mma((s * 0.0625).cast::<bf16>(), t.transpose(), zeros((rows, k)));
        acc = mma((back * 0.00390625).cast::<bf16>(), t, acc);
    }
    store(out, (0, 0), acc.floor());
}

/// The accumulator is rescaled between products, by what depends on the product before.
#[tile_kernel]
fn rescaled(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    let mut most = full((rows,), -1000.0_f32);
    for i in 0..n {
        let s = mma(load(x, (0, p), (rows, k)), load(y, (i, 0), (k, columns)), zeros((rows, columns)));
        let new = most.maximum(s.max(1));
        acc = where_((new - most).expand_dims(1) > 16.0, acc * 0.5, acc);
        most = new;
        acc = mma(load(x, (0, i), (rows, k)), load(y, (p, 0), (k, columns)), acc);
    }
    store(out, (0, 0), acc + most.expand_dims(1));
}

/// Loads and products under a condition.
#[tile_kernel]
fn conditional(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    for i in 0..n {
        if i % 2 == p {
            acc = mma(load(x, (0, i), (rows, k)), load(y, (i, 0), (k, columns)), acc);
        } else {
            acc = acc + 1.0;
        }
    }
    store(out, (0, 0), acc);
}

/// The loads before, the product under the condition.
#[tile_kernel]
fn conditional_use(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    for i in 0..n {
        let (a, b) = (load(x, (0, i), (rows, k)), load(y, (i, 0), (k, columns)));
        if i != p {
            acc = mma(a, b, acc);
        }
    }
    store(out, (0, 0), acc);
}

/// One operand or the other.
#[tile_kernel]
fn either(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    for i in 0..n {
        let b = if i == p { load(y, (0, 0), (k, columns)) } else { load(y, (i, 0), (k, columns)) };
        acc = mma(load(x, (0, i), (rows, k)), b, acc);
    }
    store(out, (0, 0), acc);
}

/// A step that is skipped after its loads.
#[tile_kernel]
fn skipped(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    for i in 0..n {
        let (a, b) = (load(x, (0, i), (rows, k)), load(y, (i, 0), (k, columns)));
        let both = mma(a, b, ones((rows, columns)));
        if i >= p {
            continue;
        }
        acc = mma(a, b, acc) + both;
    }
    store(out, (0, 0), acc);
}

/// A step that is skipped before its loads.
#[tile_kernel]
fn skipped_early(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    for i in 0..n {
        if i == p {
            continue;
        }
        acc = mma(load(x, (0, i), (rows, k)), load(y, (i, 0), (k, columns)), acc);
    }
    store(out, (0, 0), acc);
}

/// An accumulator that another value replaces by `continue`, before any product has filled it.
#[tile_kernel]
fn replaced(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    for i in 0..n {
        if i == p {
            acc = ones((rows, columns));
            continue;
        }
        acc = mma(load(x, (0, i), (rows, k)), load(y, (i, 0), (k, columns)), acc);
    }
    store(out, (0, 0), acc);
}

/// A loop left after its loads, twice.
#[tile_kernel]
fn left(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    for _ in 0..3 {
        for i in 0..n {
            let (a, b) = (load(x, (0, i), (rows, k)), load(y, (i, 0), (k, columns)));
            if i == p {
                break;
            }
            acc = mma(a, b, acc);
        }
    }
    store(out, (0, 0), acc);
}

/// A loop left after its product.
#[tile_kernel]
fn left_late(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    for i in 0..n {
        acc = mma(load(x, (0, i), (rows, k)), load(y, (i, 0), (k, columns)), acc);
        if i == p {
            break;
        }
    }
    store(out, (0, 0), acc);
}

#[tile_kernel]
fn whiles(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    let mut i = 0;
    while i < n {
        acc = mma(load(x, (0, i), (rows, k)), load(y, (i, 0), (k, columns)), acc);
        i += 1 + p;
    }
    store(out, (0, 0), acc);
}

/// The names and kernels of this file.
#[rustfmt::skip]
pub(super) const KERNELS: [(&str, Kernel); 16] = [
    ("nested", |x, y, out, sizes, n, p| nested(x, y, out, sizes, n, p)),
    ("nested_fresh", |x, y, out, sizes, n, p| nested_fresh(x, y, out, sizes, n, p)),
    ("two_products", |x, y, out, sizes, n, p| two_products(x, y, out, sizes, n, p)),
    ("two_sums", |x, y, out, sizes, n, p| two_sums(x, y, out, sizes, n, p)),
    ("square", |x, y, out, sizes, n, p| square(x, y, out, sizes, n, p)),
    ("chained", |x, y, out, sizes, n, p| chained(x, y, out, sizes, n, p)),
    ("rescaled", |x, y, out, sizes, n, p| rescaled(x, y, out, sizes, n, p)),
    ("conditional", |x, y, out, sizes, n, p| conditional(x, y, out, sizes, n, p)),
    ("conditional_use", |x, y, out, sizes, n, p| conditional_use(x, y, out, sizes, n, p)),
    ("either", |x, y, out, sizes, n, p| either(x, y, out, sizes, n, p)),
    ("skipped", |x, y, out, sizes, n, p| skipped(x, y, out, sizes, n, p)),
    ("skipped_early", |x, y, out, sizes, n, p| skipped_early(x, y, out, sizes, n, p)),
    ("replaced", |x, y, out, sizes, n, p| replaced(x, y, out, sizes, n, p)),
    ("left", |x, y, out, sizes, n, p| left(x, y, out, sizes, n, p)),
    ("left_late", |x, y, out, sizes, n, p| left_late(x, y, out, sizes, n, p)),
    ("whiles", |x, y, out, sizes, n, p| whiles(x, y, out, sizes, n, p)),
];

/// Kernels whose loads depend on the elements of tiles, so that one thread cannot issue them.
const ANY: [&str; 2] = ["counted", "gathered"];

/// A kernel of two inputs of `[rows, k * n]` and `[k * n, columns]`, tile sizes and two numbers.
pub(super) type Kernel = for<'a> fn(
    &'a DeviceTensor<bf16>,
    &'a DeviceTensor<bf16>,
    &'a mut DeviceTensor<f32>,
    [usize; 3],
    i32,
    i32,
) -> Launch<'a>;

/// Runs kernels in every size, with every trip count, number of warps and stages; every `step`-th of all that.
pub(super) fn all(kernels: &[(&str, Kernel)], step: usize) -> Report {
    let mut lab = Lab::new(3);
    run(&mut lab, kernels, step);
    lab.report
}

/// As [`all`], in a lab.
pub(super) fn run(lab: &mut Lab, kernels: &[(&str, Kernel)], step: usize) {
    let room = lab.target.max_shared_bytes - (27 << 10);
    let mut number = 0;
    for (name, kernel) in kernels {
        for (sizes, warps) in [
            ([64, 64, 64], 4),
            ([128, 64, 32], 4),
            ([64, 128, 64], 4),
            ([128, 128, 64], 8),
            ([32, 64, 64], 4),
        ] {
            for (n, p) in [(0, 0), (1, 0), (2, 1), (3, 0), (4, 2), (5, 1), (3, 7)] {
                for stages in [1, 2, 3, 8] {
                    number += 1;
                    let big = stages * (sizes[0] + sizes[1]) * sizes[2] * 4 > room;
                    if number % step != 0 || big {
                        continue;
                    }
                    one(lab, name, *kernel, sizes, [n, p], config(warps, stages));
                }
            }
        }
    }
}

fn one(lab: &mut Lab, name: &str, kernel: Kernel, sizes: [usize; 3], [n, p]: [i32; 2], config: Config) {
    let path = if ANY.contains(&name) || sizes[0] < 64 { Path::Any } else { Path::Wide };
    let name = format!("{name} {sizes:?}, n {n}, p {p}");
    lab.check(&name, path, &[config], None, |run| {
        let depth = sizes[2] * n as usize;
        let (_, x) = tensor::<bf16>(run.device(), &[sizes[0], depth], View::Plain, Fill::Small, 1)?;
        let (_, y) = tensor::<bf16>(run.device(), &[depth, sizes[1]], View::Plain, Fill::Small, 3)?;
        let (_, mut out) = tensor::<f32>(run.device(), &[128, 128], View::Plain, Fill::Wide, 2)?;
        run.launch(kernel(&x, &y, &mut out, sizes, n, p), 1)?;
        out.to_vec()
    });
}

/// Runs the kernels of this file; every `step`-th case.
pub fn control(step: usize) -> Report {
    all(&KERNELS, step)
}
