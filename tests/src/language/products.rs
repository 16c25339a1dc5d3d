//! `mma` over all size combinations and element types, with operands from memory, transposed, computed.

use tile_runtime::prelude::*;

use super::{exact, plain, two};
use crate::held::Held;
use crate::input::Fill;
use crate::lab::Cases;
use crate::tolerance::Tolerance;

/// `out = 1 + x @ y`, or with the transposes of what is loaded; one product.
#[tile_kernel]
fn product<T: MmaOperand + Storable>(
    x: Tensor<T, 2>,
    y: Tensor<T, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    turned: [bool; 2],
) {
    let [m, n, k] = sizes;
    let a = if turned[0] {
        load(x, (bid(0), bid(1)), (k, m)).transpose()
    } else {
        load(x, (bid(1), bid(0)), (m, k))
    };
    let b = if turned[1] { load(y, (0, bid(0)), (n, k)).transpose() } else { load(y, (bid(0), 0), (k, n)) };
    store(out, (bid(1), 0), mma(a, b, ones((m, n))));
}

/// As [`product`], with operands rounded to tf32.
#[tile_kernel]
fn product_tf32(
    x: Tensor<f32, 2>,
    y: Tensor<f32, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    turned: [bool; 2],
) {
    let [m, n, k] = sizes;
    let a = if turned[0] {
        load(x, (bid(0), bid(1)), (k, m)).transpose()
    } else {
        load(x, (bid(1), bid(0)), (m, k))
    };
    let b = if turned[1] { load(y, (0, bid(0)), (n, k)).transpose() } else { load(y, (bid(0), 0), (k, n)) };
    store(out, (bid(1), 0), mma(a.cast::<tf32>(), b.cast::<tf32>(), ones((m, n))));
}

/// Operands out of registers: computed before the product; and the result used in several ways.
#[tile_kernel]
fn computed<T: MmaOperand + Float>(
    x: Tensor<T, 2>,
    y: Tensor<T, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    turned: [bool; 2],
) {
    let [m, n, k] = sizes;
    let a =
        if turned[0] { (load(x, (0, 0), (k, m)) + 1.0).transpose() } else { load(x, (0, 0), (m, k)) + 1.0 };
    let b =
        if turned[1] { (load(y, (0, 0), (n, k)) - 1.0).transpose() } else { load(y, (0, 0), (k, n)) - 1.0 };
    let bias = arange::<i32>(n).cast::<f32>();
    let p = mma(a, b, zeros((m, n))) + bias.expand_dims(0);
    store(out, (0, 0), p);
    store(out, (1, 0), p - sum_keepdims(p, 1));
    store(out, (2, 0), cumsum(p, 0));
}

/// A product over tiles of k in a loop, over ragged sizes.
#[tile_kernel]
fn looped<T: MmaOperand + Storable>(
    x: Tensor<T, 2>,
    y: Tensor<T, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    turned: [bool; 2],
) {
    let [m, n, k] = sizes;
    let _ = turned;
    let mut acc = zeros::<f32>((m, n));
    for i in 0..cdiv(x.dim(1), k) {
        acc = mma(load(x, (bid(1), i), (m, k)), load(y, (i, bid(0)), (k, n)), acc);
    }
    store(out, (bid(1), bid(0)), acc);
}

#[tile_kernel]
fn batched<T: MmaOperand + Storable>(
    x: Tensor<T, 3>,
    y: Tensor<T, 3>,
    out: TensorMut<f32, 3>,
    sizes: [usize; 4],
) {
    let [batch, m, n, k] = sizes;
    let a = load(x, (0, 0, 0), (batch, m, k));
    let b = load(y, (0, 0, 0), (batch, n, k)).permute((0, 2, 1));
    store(out, (0, 0, 0), mma(a, b, ones((batch, m, n))));
}

type Kernel<T> = for<'a> fn(
    &'a DeviceTensor<T>,
    &'a DeviceTensor<T>,
    &'a mut DeviceTensor<f32>,
    [usize; 3],
    [bool; 2],
) -> Launch<'a>;

const SIZES: [usize; 4] = [16, 32, 64, 128];

/// The sizes of products: all of them for `every`, else those with at most two sizes beside 64.
fn sizes(every: bool) -> Vec<[usize; 3]> {
    let all = SIZES.into_iter().flat_map(|m| SIZES.into_iter().flat_map(move |n| SIZES.map(|k| [m, n, k])));
    all.filter(|size| every || size.contains(&64)).collect()
}

fn largest([m, n, k]: [usize; 3]) -> usize {
    (m * n).max(m * k).max(n * k)
}

fn shaped<T: Held>(cases: &mut Cases, what: &str, every: bool, kernel: Kernel<T>) {
    for size in sizes(every) {
        let [m, n, k] = size;
        for turned in [[false, false], [true, false], [false, true], [true, true]] {
            if turned != [false, false]
                && !(m + n + k <= 128 || size == [64, 64, 64] || size == [128, 64, 32])
            {
                continue;
            }
            let x = if turned[0] { [k, m] } else { [m, k] };
            let y = if turned[1] { [n, k] } else { [k, n] };
            let how =
                exact(format!("{what} {m}x{n}x{k} turned {turned:?} {}", T::NAME), largest(size), [1, 1, 1]);
            let inputs = [plain(&x, Fill::Small), plain(&y, Fill::Small)];
            two::<T, f32>(cases, how, inputs, plain(&[m, n], Fill::Wide), move |x, y, out| {
                kernel(x, y, out, size, turned)
            });
        }
    }
}

fn used<T: Held + MmaOperand + Float>(cases: &mut Cases) {
    for size in [[16, 16, 16], [32, 64, 32], [64, 64, 64], [128, 32, 64], [32, 128, 16]] {
        let [m, n, k] = size;
        for turned in [[false, false], [true, false], [false, true], [true, true]] {
            let x = if turned[0] { [k, m] } else { [m, k] };
            let y = if turned[1] { [n, k] } else { [k, n] };
            let how = exact(
                format!("mma of computed {m}x{n}x{k} turned {turned:?} {}", T::NAME),
                largest(size),
                [1, 1, 1],
            );
            let inputs = [plain(&x, Fill::Small), plain(&y, Fill::Small)];
            two::<T, f32>(cases, how, inputs, plain(&[3 * m, n], Fill::Wide), move |x, y, out| {
                computed(x, y, out, size, turned)
            });
        }
    }
    for size in [[16, 16, 16], [64, 64, 32], [128, 64, 64], [128, 128, 32]] {
        let [m, n, k] = size;
        for depth in [0, 1, 3 * k - 5, 5 * k] {
            let shape = [m + 3, n + 5];
            let how = exact(
                format!("mma in a loop {m}x{n}x{k} over {depth} {}", T::NAME),
                largest(size),
                [2, 2, 1],
            );
            let inputs = [plain(&[shape[0], depth], Fill::Small), plain(&[depth, shape[1]], Fill::Small)];
            two::<T, f32>(cases, how, inputs, plain(&shape, Fill::Wide), move |x, y, out| {
                looped(x, y, out, size, [false; 2])
            });
        }
    }
    for sizes in [[2, 16, 16, 16], [4, 32, 16, 32], [2, 64, 32, 16], [1, 16, 32, 64]] {
        let [batch, m, n, k] = sizes;
        let how = exact(format!("mma batched {sizes:?} {}", T::NAME), batch * largest([m, n, k]), [1, 1, 1]);
        let inputs = [plain(&[batch, m, k], Fill::Small), plain(&[batch, n, k], Fill::Small)];
        two::<T, f32>(cases, how, inputs, plain(&[batch, m, n], Fill::Wide), move |x, y, out| {
            batched(x, y, out, sizes)
        });
    }
    for size in [[64, 64, 64], [16, 32, 128]] {
        let [m, n, k] = size;
        let mut how = exact(format!("mma of fractions {m}x{n}x{k} {}", T::NAME), largest(size), [1, 1, 1]);
        how.tolerance = Tolerance::sum(k, 4.0, 0.0);
        let inputs = [plain(&[m, k], Fill::Between(-2.0, 2.0)), plain(&[k, n], Fill::Between(-2.0, 2.0))];
        two::<T, f32>(cases, how, inputs, plain(&[m, n], Fill::Wide), move |x, y, out| {
            product(x, y, out, size, [false; 2])
        });
    }
}

/// Matrix products.
pub fn products() -> Cases {
    let mut cases = Cases::default();
    shaped::<bf16>(&mut cases, "mma", true, |x, y, out, sizes, turned| product(x, y, out, sizes, turned));
    shaped::<f16>(&mut cases, "mma", false, |x, y, out, sizes, turned| product(x, y, out, sizes, turned));
    shaped::<f32>(&mut cases, "mma", false, |x, y, out, sizes, turned| product(x, y, out, sizes, turned));
    shaped::<f32>(&mut cases, "mma tf32", false, |x, y, out, sizes, turned| {
        product_tf32(x, y, out, sizes, turned)
    });
    used::<bf16>(&mut cases);
    used::<f16>(&mut cases);
    used::<f32>(&mut cases);
    cases
}
