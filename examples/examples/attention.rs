//! Causal attention in one pass over the keys, with the softmax computed as they arrive.

use std::process::ExitCode;

use clap::Parser;
use examples::{Check, DeviceOption, Result, Value, compare, normal, to_f64};
use tile_runtime::prelude::*;

/// `out[i] = sum_{j <= i} softmax_j(scale q[i] . k[j]) v[j]` for each batch element and head. All are
/// `[batch, heads, tokens, head_dim]`, with any number of tokens. Grid: tiles of rows, heads, batch.
/// `block_d` is a power of two of at least 16 and `head_dim`; past the end, loads give zero.
///
/// Keys are taken `block_k` at a time up to the last row of the tile. Kept for each row are the largest score so far,
/// the sum of the weights relative to it, and the weighted sum of values; when a larger score appears, both sums are
/// scaled down. Scores are kept times log2(e), so that `exp` becomes `exp2`.
#[tile_kernel]
pub fn attention<T: MmaOperand + Storable>(
    q: Tensor<T, 4>,
    k: Tensor<T, 4>,
    v: Tensor<T, 4>,
    out: TensorMut<T, 4>,
    scale: Scalar<f32>,
    block_q: Const<usize>,
    block_k: Const<usize>,
    block_d: Const<usize>,
) {
    let (tile, head, batch) = (bid(0), bid(1), bid(2));
    let q = load(q, (batch, head, tile, 0), (1, 1, block_q, block_d)).reshape((block_q, block_d));
    let row = (tile * block_q + arange::<i32>(block_q)).expand_dims(1);

    let mut largest = full::<f32>((block_q, 1), f32::NEG_INFINITY);
    let mut total = zeros::<f32>((block_q, 1));
    let mut sum = zeros::<f32>((block_q, block_d));
    let tokens = minimum((tile + 1) * block_q, k.dim(2));
    for block in 0..cdiv(tokens, block_k) {
        let k = load(k, (batch, head, block, 0), (1, 1, block_k, block_d)).reshape((block_k, block_d));
        let v = load(v, (batch, head, block, 0), (1, 1, block_k, block_d)).reshape((block_k, block_d));
        let score = mma(q, k.transpose(), zeros::<f32>((block_q, block_k))) * (scale * LOG2_E);
        // The first block has a key for every row, so that `largest` is finite from then on.
        let column = (block * block_k + arange::<i32>(block_k)).expand_dims(0);
        let score = where_(row >= column, score, f32::NEG_INFINITY);

        let larger = maximum(largest, score.max_keepdims(1));
        let weight = exp2(score - larger);
        let shrink = exp2(largest - larger);
        total = total * shrink + weight.sum_keepdims(1);
        sum = mma(weight.cast::<T>(), v, sum * shrink);
        largest = larger;
    }
    let result = (sum / total).cast::<T>().reshape((1, 1, block_q, block_d));
    store(out, (batch, head, tile, 0), result);
}

/// Sizes of a problem.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Sequences.
    pub batch: usize,
    /// Heads of each.
    pub heads: usize,
    /// Tokens of each sequence.
    pub tokens: usize,
    /// Elements of a query, key or value.
    pub head_dim: usize,
}

/// Rows of a tile: 16 for each of four warps on a GPU.
pub const BLOCK_Q: usize = 64;
/// Keys of a tile.
pub const BLOCK_K: usize = 64;

/// The size of a tile that holds `head_dim` elements.
pub fn block_d(head_dim: usize) -> usize {
    head_dim.next_power_of_two().max(16)
}

/// Attention of random queries, keys and values.
pub fn check<T: Value>(device: &Device, shape: Shape) -> Result<Check> {
    let Shape { batch, heads, tokens, head_dim } = shape;
    let (shape, count) = ([batch, heads, tokens, head_dim], batch * heads * tokens * head_dim);
    let scale = 1.0 / (head_dim as f32).sqrt();
    let [host_q, host_k, host_v] = [1, 2, 3].map(|seed| normal::<T>(seed, count));
    let q = DeviceTensor::from_slice(device, &shape, &host_q)?;
    let k = DeviceTensor::from_slice(device, &shape, &host_k)?;
    let v = DeviceTensor::from_slice(device, &shape, &host_v)?;
    let mut out = DeviceTensor::<T>::zeros(device, &shape)?;
    let grid = (tokens.div_ceil(BLOCK_Q), heads, batch);
    attention(&q, &k, &v, &mut out, scale, BLOCK_Q, BLOCK_K, block_d(head_dim)).launch(grid)?;

    let [q, k, v] = [host_q, host_k, host_v].map(|x| to_f64(&x));
    let sequence = tokens * head_dim;
    let (mut want, mut largest) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for i in 0..batch * heads {
        let part = |x: &[f64]| x[i * sequence..][..sequence].to_vec();
        reference([&part(&q), &part(&k), &part(&v)], head_dim, f64::from(scale), &mut want, &mut largest);
    }
    // Relative to the weighted sum of |v|: weights and result round to `T`. Scores, below 16, have errors of
    // 16 * (head_dim + 8) * 2^-23 on tensor cores, which the exponential passes on to weight and total.
    let scores = 2.0 * 16.0 * (head_dim + 8) as f64 * 2.0 * f32::ROUNDING;
    // Each of the additions over the tokens rounds once.
    let sums = 2.0 * 2.0 * tokens as f64 * f32::ROUNDING;
    let tolerance = 2.0 * T::ROUNDING + scores + sums;
    let what = format!("{batch}x{heads}x{tokens}x{head_dim} {}", T::NAME);
    Ok(compare(what, &out.to_vec()?, &want, |i| largest[i], tolerance))
}

/// One head in float64: appends the results, and the same with |v| for v.
fn reference(
    [q, k, v]: [&[f64]; 3],
    head_dim: usize,
    scale: f64,
    want: &mut Vec<f64>,
    magnitude: &mut Vec<f64>,
) {
    for (i, q) in q.chunks(head_dim.max(1)).enumerate() {
        let keys = k.chunks(head_dim.max(1)).take(i + 1);
        let scores: Vec<f64> =
            keys.map(|k| scale * q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>()).collect();
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = scores.iter().map(|s| (s - max).exp()).sum();
        let (mut row, mut absolute) = (vec![0.0; head_dim], vec![0.0; head_dim]);
        for (score, v) in scores.iter().zip(v.chunks(head_dim.max(1))) {
            let weight = (score - max).exp() / total;
            for (d, v) in v.iter().enumerate() {
                row[d] += weight * v;
                absolute[d] += weight * v.abs();
            }
        }
        want.extend(row);
        magnitude.extend(absolute);
    }
}

/// Computes causal attention and checks it, for bf16 and f16.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    device: DeviceOption,
    /// Sequences
    #[arg(long, default_value_t = 2)]
    batch: usize,
    /// Heads of each sequence
    #[arg(long, default_value_t = 3)]
    heads: usize,
    /// Tokens of each sequence
    #[arg(long, default_value_t = 500)]
    tokens: usize,
    /// Elements of a query, key or value
    #[arg(long, default_value_t = 64)]
    head_dim: usize,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let shape = Shape { batch: cli.batch, heads: cli.heads, tokens: cli.tokens, head_dim: cli.head_dim };
    examples::run("attention", &cli.device, |device| {
        Ok(vec![check::<bf16>(device, shape)?, check::<f16>(device, shape)?])
    })
}
