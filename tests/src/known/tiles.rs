//! Tiles: scans and reductions of odd sizes, transposes, permutations, negative axes, products of many warps.

use tile_runtime::prelude::*;

use super::{result, tensor};

super::cases! { scans_of_columns scans_of_few size_one_reductions permutations negative_axes tall_products chained_products }

#[tile_kernel]
fn both_ways(x: Tensor<f32, 2>, out: TensorMut<f32, 2>, rows: Const<usize>, columns: Const<usize>) {
    let t = load(x, (0, 0), (rows, columns));
    store(out, (0, 0), cumsum(t, 0));
    store(out, (1, 0), cumsum(t.transpose(), 1).transpose());
}

/// L08: column scans of tiles that are not square, and of the left columns of a wider tensor.
fn scans_of_columns(device: &Device) {
    for (rows, columns) in [(32, 64), (64, 32), (1, 128), (128, 1)] {
        let x = tensor(device, &[rows, columns], &vec![1.0; rows * columns]);
        let found = result(device, &[2 * rows, columns], 1, |out, grid| {
            both_ways(&x, out, rows, columns).launch(grid)
        });
        assert!(
            found.iter().enumerate().all(|(i, &y)| y == (i / columns % rows + 1) as f32),
            "{rows}x{columns}"
        );
    }
    let wide = tensor(device, &[32, 64], &[1.0; 2048]);
    let left = wide.slice(1, 0..48).expect("inside");
    let found = result(device, &[64, 48], 1, |out, grid| both_ways(&left, out, 32, 64).launch(grid));
    assert!(found.iter().enumerate().all(|(i, &y)| y == (i / 48 % 32 + 1) as f32));
}

#[tile_kernel]
fn few(out: TensorMut<f32, 1>, times: Scalar<i32>, n: Const<usize>) {
    let mut t = ones::<f32>((n,));
    for _ in 0..times {
        t = cumsum(t, 0);
    }
    store(out, (0,), t);
}

/// L10: tiles of fewer elements than the block has threads count each once.
fn scans_of_few(device: &Device) {
    for n in [1, 2, 4, 8, 32] {
        for warps in [4, 8] {
            let config = Config { num_warps: Some(warps), ..Config::default() };
            let found = result(device, &[n], 1, |out, grid| few(out, 1, n).config(config).launch(grid));
            assert_eq!(found, (1..=n).map(|i| i as f32).collect::<Vec<_>>(), "{warps} warps");
        }
    }
}

#[tile_kernel]
fn reduced(x: Tensor<f32, 2>, out: TensorMut<f32, 1>, shape: [usize; 2], axis: Const<usize>) {
    let t = load(x, (0, 0), shape);
    store(out, (0,), sum(t, axis));
    store(out, (1,), max(t, axis));
}

/// L38: reducing an axis of one element changes nothing.
fn size_one_reductions(device: &Device) {
    let values: Vec<f32> = (0..16).map(|i| i as f32 - 5.0).collect();
    let twice = [values.clone(), values.clone()].concat();
    let column = tensor(device, &[16, 1], &values);
    assert_eq!(result(device, &[32], 1, |out, grid| reduced(&column, out, [16, 1], 1).launch(grid)), twice);
    let row = tensor(device, &[1, 16], &values);
    assert_eq!(result(device, &[32], 1, |out, grid| reduced(&row, out, [1, 16], 0).launch(grid)), twice);
    let one = tensor(device, &[1, 1], &[7.5]);
    assert_eq!(result(device, &[2], 1, |out, grid| reduced(&one, out, [1, 1], 0).launch(grid)), [7.5, 7.5]);
}

#[tile_kernel]
fn permuted(x: Tensor<i32, 3>, out: TensorMut<i32, 3>, axes: [usize; 3]) {
    store(out, (0, 0, 0), load(x, (0, 0, 0), (2, 4, 4)).permute(axes));
}

/// L37: permutations of three axes, and stores of partial tiles in the new order.
fn permutations(device: &Device) {
    let shape = [2, 3, 4];
    let x = tensor(device, &shape, &(0..24).collect::<Vec<i32>>());
    for axes in [[0, 2, 1], [2, 0, 1], [1, 2, 0]] {
        let to = axes.map(|axis| shape[axis]);
        let found = result(device, &to, 1, |out, grid| permuted(&x, out, axes).launch(grid));
        for (i, &y) in found.iter().enumerate() {
            let at = [i / (to[1] * to[2]), i / to[2] % to[1], i % to[2]];
            let mut from = [0; 3];
            axes.iter().zip(at).for_each(|(&axis, index)| from[axis] = index);
            assert_eq!(y, (from[0] * 12 + from[1] * 4 + from[2]) as i32, "{axes:?} {at:?}");
        }
    }
}

#[tile_kernel]
fn from_the_last(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    let t = load(x, (0, 0), (4, 8));
    store(out, (0, 0), t.cumsum(-2) + t.sum_keepdims(-1) - t.permute((-1, 0)).transpose());
}

/// L47: negative axes count from the last.
fn negative_axes(device: &Device) {
    let x = tensor(device, &[4, 8], &[1.0; 32]);
    let found = result(device, &[4, 8], 1, |out, grid| from_the_last(&x, out).launch(grid));
    assert!(found.iter().enumerate().all(|(i, &y)| y == (i / 8 + 1) as f32 + 8.0 - 1.0));
}

#[tile_kernel]
fn tall(x: Tensor<bf16, 2>, y: Tensor<bf16, 2>, out: TensorMut<f32, 2>, m: Const<usize>) {
    let bias = arange::<i32>(64).cast::<f32>().expand_dims(0);
    let acc = mma(load(x, (0, 0), (m, 16)), load(y, (0, 0), (16, 64)), zeros((m, 64)));
    store(out, (0, 0), acc + bias);
    store(out, (1, 0), acc.sum_keepdims(1) + bias * 0.0);
}

/// L59: results of products over many warps, with a bias and a sum of rows.
fn tall_products(device: &Device) {
    for m in [64, 128, 256] {
        let x: Vec<bf16> = (0..m * 16).map(|i| bf16::from_f32((i % 5) as f32 - 2.0)).collect();
        let y: Vec<bf16> = (0..16 * 64).map(|i| bf16::from_f32((i % 7) as f32 - 3.0)).collect();
        let (a, b) = (tensor(device, &[m, 16], &x), tensor(device, &[16, 64], &y));
        let product = |i: usize, j: usize| -> f32 {
            (0..16).map(|k| x[i * 16 + k].to_f32() * y[k * 64 + j].to_f32()).sum()
        };
        for warps in [4, 8] {
            let config = Config { num_warps: Some(warps), ..Config::default() };
            let found =
                result(device, &[2 * m, 64], 1, |out, grid| tall(&a, &b, out, m).config(config).launch(grid));
            for i in 0..m {
                let total: f32 = (0..64).map(|j| product(i, j)).sum();
                for j in 0..64 {
                    assert_eq!(found[i * 64 + j], product(i, j) + j as f32, "{m} rows, {warps} warps");
                    assert_eq!(found[(m + i) * 64 + j], total, "{m} rows, {warps} warps");
                }
            }
        }
    }
}

#[tile_kernel]
fn chained(
    q: Tensor<bf16, 2>,
    k: Tensor<bf16, 2>,
    d: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    how: Const<usize>,
) {
    let scores = mma(load(q, (0, 0), (64, 64)), load(k, (0, 0), (64, 64)).transpose(), zeros((64, 64)));
    let i = arange::<i32>(64);
    let weights = match how {
        0 => scores.cast::<bf16>(),
        1 => scores.cast::<bf16>().transpose(),
        _ => where_(i.expand_dims(1) >= i.expand_dims(0), scores, 0.0).cast::<bf16>(),
    };
    store(out, (0, 0), mma(weights, load(d, (0, 0), (64, 64)), zeros((64, 64))));
}

/// L03: a product that feeds another, straight, transposed, or masked; against f64 with the same roundings.
fn chained_products(device: &Device) {
    let values = |seed: usize| -> Vec<bf16> {
        (0..4096).map(|i| bf16::from_f32(((i * 37 + seed * 11) % 101) as f32 / 50.0 - 1.0)).collect()
    };
    let (q, k, d) = (values(1), values(2), values(3));
    let at = |x: &[bf16], i: usize, j: usize| x[i * 64 + j].to_f64();
    let mut scores = vec![0.0; 4096];
    for (n, score) in scores.iter_mut().enumerate() {
        *score = (0..64).map(|c| at(&q, n / 64, c) * at(&k, n % 64, c)).sum::<f64>();
    }
    let [a, b, c] = [&q, &k, &d].map(|x| tensor(device, &[64, 64], x));
    for how in 0..3 {
        let weight = |i: usize, j: usize| {
            let score = match how {
                0 => scores[i * 64 + j],
                1 => scores[j * 64 + i],
                _ if i >= j => scores[i * 64 + j],
                _ => 0.0,
            };
            bf16::from_f64(score).to_f64()
        };
        let found = result(device, &[64, 64], 1, |out, grid| chained(&a, &b, &c, out, how).launch(grid));
        for (n, &y) in found.iter().enumerate() {
            let (i, j) = (n / 64, n % 64);
            let expected: f64 = (0..64).map(|l| weight(i, l) * at(&d, l, j)).sum();
            // A score beside a tie may round the other way: one unit of 2^-8 of at most 64, in a few of 64 terms.
            assert!(
                (f64::from(y) - expected).abs() <= 0.3 + 1e-3 * expected.abs(),
                "{how} [{i}, {j}] {y} {expected}"
            );
        }
    }
}
