//! Values that flow in unusual ways around products: carried tiles, results in use, paths that depend on loaded data.

use tile_runtime::prelude::*;

use super::control::{Kernel, all};
use crate::lab::Report;

/// Tiles loaded one step ahead, by hand.
#[tile_kernel]
fn ahead(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    let mut a = load(x, (0, p), (rows, k));
    for i in 0..n {
        let next = load(x, (0, i + 1), (rows, k));
        acc = mma(a, load(y, (i, 0), (k, columns)), acc);
        a = next;
    }
    store(out, (0, 0), acc);
}

/// Each partial sum is used.
#[tile_kernel]
fn partial(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    let mut total = zeros::<f32>((rows, columns));
    for i in 0..n {
        let before = acc;
        acc = mma(load(x, (0, i), (rows, k)), load(y, (i, 0), (k, columns)), acc);
        total = total + acc - before * 2.0;
        if i == p {
            store(out, (0, 0), acc);
        }
    }
    store(out, (0, 0), total + acc);
}

/// Tiles that a product and others read.
#[tile_kernel]
fn shared(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    let mut sums = zeros::<f32>((rows,));
    for i in 0..n {
        let (a, b) = (load(x, (0, i), (rows, k)), load(y, (i, 0), (k, columns)));
        acc = mma(a, b, acc);
        sums = sums + a.cast::<f32>().sum(1);
        acc = acc + b.cast::<f32>().sum(0).expand_dims(0);
    }
    store(out, (0, 0), acc + sums.expand_dims(1) + p.cast::<f32>());
}

/// The number of steps is the maximum of a loaded tile.
#[tile_kernel]
fn counted(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    let most = load(x, (0, 0), (rows, k)).cast::<f32>().max(ALL).item().cast::<i32>();
    for i in p..most.minimum(n) {
        acc = mma(load(x, (0, i), (rows, k)), load(y, (i, 0), (k, columns)), acc);
    }
    store(out, (0, 0), acc);
}

/// Which tile is loaded depends on a loaded tile.
#[tile_kernel]
fn gathered(
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
        let at = a.cast::<f32>().sum(ALL).item().cast::<i32>() & 3;
        acc = mma(a, load(y, (at + p, 0), (k, columns)), acc);
    }
    store(out, (0, 0), acc);
}

/// A condition that depends on a product.
#[tile_kernel]
fn decided(
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
        if acc.max(ALL).item() > 100.0 * p.cast::<f32>() {
            acc = acc * 0.5;
        }
    }
    store(out, (0, 0), acc);
}

/// A block that leaves before its products.
#[tile_kernel]
fn returned(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = ones::<f32>((rows, columns));
    if n == 2 {
        store(out, (0, 0), acc);
        return;
    }
    for i in 0..n {
        acc = mma(load(x, (0, i), (rows, k)), load(y, (i, 0), (k, columns)), acc);
        if i == p {
            break;
        }
    }
    store(out, (0, 0), acc);
}

/// An accumulator that starts from a loaded tile, and one result stored in each step.
#[tile_kernel]
fn stored(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = load(y, (0, 0), (rows, columns)).cast::<f32>();
    for i in 0..n {
        acc = mma(load(x, (0, i), (rows, k)), load(y, (i, 0), (k, columns)), acc);
        store(out, (i % (p + 1), 0), acc);
    }
}

/// Computed operands on both sides.
#[tile_kernel]
fn both_computed(
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
        let b = load(y, (i, 0), (k, columns));
        acc = mma(a, b, acc);
        acc = mma(a + 1.0, b - 1.0, acc);
        acc = mma(a * 2.0, b, acc);
        acc = mma(a, b + p.cast::<bf16>(), acc);
    }
    store(out, (0, 0), acc);
}

/// A product of warpgroups beside one of a batch and one too small for tensor cores.
#[tile_kernel]
fn mixed(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut acc = zeros::<f32>((rows, columns));
    let mut small = ones::<f32>((8, 8));
    let mut batch = ones::<f32>((2, rows, rows));
    for i in 0..n {
        let a = load(x, (0, i), (rows, k));
        acc = mma(a, load(y, (i, 0), (k, columns)), acc);
        let t = load(x, (0, i), (8, k));
        small = mma(t, t.transpose(), small);
        let halves = a.reshape((rows, 2, k / 2)).permute((1, 0, 2));
        batch = mma(halves, halves.permute((0, 2, 1)), batch);
    }
    store(out, (0, 0), acc + small.sum(ALL) + batch.sum(0).sum(1).expand_dims(1) + p.cast::<f32>());
}

/// Two loops, one after the other, over the same tensors.
#[tile_kernel]
fn twice(
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
    }
    for i in 0..p {
        acc = mma(load(x, (0, i), (rows, k)), load(y, (i, 0), (k, columns)), acc);
    }
    store(out, (0, 0), acc);
}

/// Sums that change places, so that they cannot share registers.
#[tile_kernel]
fn swapped(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    n: Scalar<i32>,
    p: Scalar<i32>,
) {
    let [rows, columns, k] = sizes;
    let mut one = zeros::<f32>((rows, columns));
    let mut other = ones::<f32>((rows, columns));
    for i in 0..n {
        let (a, b) = (load(x, (0, i), (rows, k)), load(y, (i, 0), (k, columns)));
        let sum = mma(a, b, one);
        one = other;
        other = sum;
        if i == p {
            other = mma(a, b, other);
        }
    }
    store(out, (0, 0), one - other * 2.0);
}

#[rustfmt::skip]
pub(super) const KERNELS: [(&str, Kernel); 12] = [
    ("ahead", |x, y, out, sizes, n, p| ahead(x, y, out, sizes, n, p)),
    ("partial", |x, y, out, sizes, n, p| partial(x, y, out, sizes, n, p)),
    ("shared", |x, y, out, sizes, n, p| shared(x, y, out, sizes, n, p)),
    ("counted", |x, y, out, sizes, n, p| counted(x, y, out, sizes, n, p)),
    ("gathered", |x, y, out, sizes, n, p| gathered(x, y, out, sizes, n, p)),
    ("decided", |x, y, out, sizes, n, p| decided(x, y, out, sizes, n, p)),
    ("returned", |x, y, out, sizes, n, p| returned(x, y, out, sizes, n, p)),
    ("stored", |x, y, out, sizes, n, p| stored(x, y, out, sizes, n, p)),
    ("both_computed", |x, y, out, sizes, n, p| both_computed(x, y, out, sizes, n, p)),
    ("mixed", |x, y, out, sizes, n, p| mixed(x, y, out, sizes, n, p)),
    ("twice", |x, y, out, sizes, n, p| twice(x, y, out, sizes, n, p)),
    ("swapped", |x, y, out, sizes, n, p| swapped(x, y, out, sizes, n, p)),
];

/// Runs the kernels of this file; every `step`-th case.
pub fn flow(step: usize) -> Report {
    all(&KERNELS, step)
}
