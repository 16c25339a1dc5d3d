//! Products of products, with transposes, masks and decays between, as attention and state-space kernels have them.

use tile_runtime::prelude::*;

use super::{exact, plain, two};
use crate::held::Held;
use crate::input::Fill;
use crate::lab::Cases;
use crate::tolerance::Tolerance;

/// What stands between the two products.
const BETWEEN: [&str; 5] = ["nothing", "transpose", "mask", "mask and decay", "softmax"];

/// `(f(x y^T)) y`, where f is one of [`BETWEEN`]; x: [m, k], y: [n, k].
#[tile_kernel]
fn chain<T: MmaOperand + Float>(
    x: Tensor<T, 2>,
    y: Tensor<T, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    between: Const<usize>,
) {
    let [m, n, k] = sizes;
    let q = load(x, (bid(0), 0), (m, k));
    let d = load(y, (0, 0), (n, k));
    let scores = mma(q, d.transpose(), zeros((m, n)));
    let (i, j) = (arange::<i32>(m).expand_dims(1), arange::<i32>(n).expand_dims(0));
    let weights = match BETWEEN[between] {
        "nothing" => scores.cast::<T>(),
        "transpose" => scores.cast::<T>().transpose(),
        "mask" => where_(i >= j, scores, 0.0).cast::<T>(),
        "mask and decay" => {
            // Powers of two, so that every step is exact.
            let decay = exp2(minimum((j - i).cast::<f32>(), 0.0) * 0.25 - 0.0);
            where_(i >= j, scores * floor(decay * 8.0), 0.0).cast::<T>()
        }
        _ => {
            let e = exp(scores * 0.125 - max_keepdims(scores * 0.125, 1));
            (e / sum_keepdims(e, 1)).cast::<T>()
        }
    };
    store(out, (bid(0), 0), mma(weights, d, zeros((m, k))));
}

/// A carried state that is an accumulator and, rounded and transposed, an operand; x: [steps m, k], y: [steps m, n].
#[tile_kernel]
fn carried<T: MmaOperand + Float>(
    x: Tensor<T, 2>,
    y: Tensor<T, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    between: Const<usize>,
) {
    let [m, n, k] = sizes;
    let mut state = zeros::<f32>((k, n));
    for step in 0..cdiv(x.dim(0), m) {
        let (a, b) = (load(x, (step, 0), (m, k)), load(y, (step, 0), (m, n)));
        store(out, (step, 0), mma(a, state.cast::<T>(), zeros((m, n))));
        let kept = if between == 0 { state } else { where_(abs(state) < 64.0, state, 1.0) };
        state = mma(a.transpose(), b, kept);
    }
}

/// One operand in two products, in both orders.
#[tile_kernel]
fn shared<T: MmaOperand + Float>(
    x: Tensor<T, 2>,
    y: Tensor<T, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    between: Const<usize>,
) {
    let [m, n, k] = sizes;
    let _ = between;
    let (a, b) = (load(x, (0, 0), (m, k)), load(y, (0, 0), (n, k)));
    let first = mma(a, b.transpose(), zeros((m, n)));
    let second = mma(b, a.transpose(), zeros((n, m)));
    store(out, (0, 0), first + second.transpose() * 2.0);
}

type Kernel<T> = for<'a> fn(
    &'a DeviceTensor<T>,
    &'a DeviceTensor<T>,
    &'a mut DeviceTensor<f32>,
    [usize; 3],
    usize,
) -> Launch<'a>;

fn add<T: Held>(
    cases: &mut Cases,
    what: &str,
    [m, n, k]: [usize; 3],
    between: usize,
    shapes: [[usize; 2]; 3],
    kernel: Kernel<T>,
) {
    let tile = (m * n).max(m * k).max(n * k);
    let mut how = exact(format!("{what} {m}x{n}x{k} {} {}", BETWEEN[between], T::NAME), tile, [1, 1, 1]);
    if between == 4 {
        // Weights that round the other way differ by one unit: 2^-7 of at most 4 in bf16.
        how.tolerance =
            Tolerance::Within { relative: 1e-5 + 2.0 * T::ROUNDING, absolute: 1e-5 + 8.0 * T::ROUNDING };
    }
    let inputs = [plain(&shapes[0], Fill::Small), plain(&shapes[1], Fill::Small)];
    two::<T, f32>(cases, how, inputs, plain(&shapes[2], Fill::Wide), move |x, y, out| {
        kernel(x, y, out, [m, n, k], between)
    });
}

fn all<T: Held + MmaOperand + Float>(cases: &mut Cases) {
    for m in [16, 64, 128] {
        for n in [16, 64, 128] {
            for k in [16, 64, 128] {
                for between in 0..BETWEEN.len() {
                    let transposed = between == 1;
                    if transposed && m != n || T::NAME != "bf16" && ![m, n, k].contains(&64) {
                        continue;
                    }
                    // f32 products are slow to compile at large sizes; one is enough.
                    if T::NAME == "f32" && m * n * k > 64 * 64 * 64 {
                        continue;
                    }
                    add::<T>(
                        cases,
                        "chain",
                        [m, n, k],
                        between,
                        [[m, k], [n, k], [m, k]],
                        |x, y, out, s, b| chain(x, y, out, s, b),
                    );
                }
            }
        }
    }
    for size in [[16, 16, 16], [64, 32, 64], [64, 64, 128], [32, 128, 64]] {
        let [m, n, k] = size;
        for between in [0, 2] {
            let rows = 3 * m - 5;
            add::<T>(
                cases,
                "carried",
                size,
                between,
                [[rows, k], [rows, n], [rows, n]],
                |x, y, out, s, b| carried(x, y, out, s, b),
            );
        }
        add::<T>(cases, "shared operands", size, 0, [[m, k], [n, k], [m, n]], |x, y, out, s, b| {
            shared(x, y, out, s, b)
        });
    }
}

/// Chains of products.
pub fn chains() -> Cases {
    let mut cases = Cases::default();
    all::<bf16>(&mut cases);
    all::<f16>(&mut cases);
    all::<f32>(&mut cases);
    cases
}
