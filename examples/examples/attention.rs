//! Attention in one pass over the keys, causal or not, with the softmax computed as they arrive.

use std::process::ExitCode;

use clap::Parser;
use examples::{
    Bench, BenchOption, Check, DeviceOption, Result, Value, compare, large, normal, print_ptx, to_f64,
};
use tile_runtime::prelude::*;
use tile_runtime::target_of;

/// `out[i] = sum_j softmax_j(scale q[i] . k[j]) v[j]` for each batch element and head, over all keys j, or over j <= i if
/// `causal`. All are `[batch, heads, tokens, head_dim]`, with any number of tokens; `scale` is positive. Grid: tiles of
/// rows, heads, batch. `block_d` is a power of two of at least 16 and `head_dim`; past the end, loads give zero.
///
/// Keys are taken `block_k` at a time, as far as the tile's rows see. Kept for each row are the largest score so far,
/// the sum of the weights relative to it, and the weighted sum of values; when a larger score appears, both sums are
/// scaled down. `exp` is `exp2` of a score times log2(e), which goes into the factor that scores are scaled with.
#[tile_kernel]
pub fn attention<T: MmaOperand + Storable>(
    q: Tensor<T, 4>,
    k: Tensor<T, 4>,
    v: Tensor<T, 4>,
    out: TensorMut<T, 4>,
    scale: Scalar<f32>,
    causal: Const<bool>,
    block_q: Const<usize>,
    block_k: Const<usize>,
    block_d: Const<usize>,
) {
    // The last rows see the most keys if causal: they begin first, so that the short ones fill up the end.
    let (tile, head, batch) = (num_blocks(0) - 1 - bid(0), bid(1), bid(2));
    let q = load(q, (batch, head, tile, 0), (1, 1, block_q, block_d)).reshape((block_q, block_d));
    let row = (tile * block_q + arange::<i32>(block_q)).expand_dims(1);
    let factor = scale * LOG2_E;

    // All rows see all keys of the first `whole` blocks.
    let tokens = k.dim(2);
    let seen = if causal { minimum((tile + 1) * block_q, tokens) } else { tokens };
    let whole = if causal { tile * block_q / block_k } else { tokens / block_k };
    let blocks = cdiv(seen, block_k);

    let mut largest = full::<f32>((block_q, 1), f32::NEG_INFINITY);
    let mut total = zeros::<f32>((block_q, 1));
    let mut sum = zeros::<f32>((block_q, block_d));
    for block in 0..blocks {
        let k = load(k, (batch, head, block, 0), (1, 1, block_k, block_d)).reshape((block_k, block_d));
        let v = load(v, (batch, head, block, 0), (1, 1, block_k, block_d)).reshape((block_k, block_d));
        let mut score = mma(q, k.transpose(), zeros::<f32>((block_q, block_k)));
        if block >= whole {
            let column = (block * block_k + arange::<i32>(block_k)).expand_dims(0);
            let visible =
                if causal { row >= column } else { (column < tokens).broadcast_to((block_q, block_k)) };
            score = where_(visible, score, f32::NEG_INFINITY);
        }
        // The first block has a key for every row, so that `largest` is finite from then on.
        let larger = maximum(largest, score.max_keepdims(1) * factor);
        let weight = exp2(fma(score, factor, -larger));
        let shrink = exp2(largest - larger);
        total = fma(total, shrink, weight.sum_keepdims(1));
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

/// How a kernel is launched: rows and keys of a tile, and the code's configuration.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Rows of a tile.
    pub rows: usize,
    /// Keys of a tile.
    pub keys: usize,
    /// Configuration of the code.
    pub config: Config,
}

/// Tiles for a target: Hopper's warpgroups multiply 64 rows each; elsewhere each of four warps has 16.
pub fn tuning(target: Option<Target>) -> Tuning {
    let (rows, keys, warps) = if target == Some(Target::SM_90A) { (128, 128, 8) } else { (64, 64, 4) };
    Tuning { rows, keys, config: Config { num_warps: Some(warps), ..Config::default() } }
}

/// The launch for q, k and v, with its grid.
pub fn launch<'a, T: Value>(
    [q, k, v]: [&'a DeviceTensor<T>; 3],
    out: &'a mut DeviceTensor<T>,
    causal: bool,
    tuning: Tuning,
) -> (Launch<'a>, (usize, usize, usize)) {
    let [batch, heads, tokens, head_dim] = [0, 1, 2, 3].map(|axis| q.shape()[axis]);
    let scale = 1.0 / (head_dim as f32).sqrt();
    let block_d = head_dim.next_power_of_two().max(16);
    let launch = attention(q, k, v, out, scale, causal, tuning.rows, tuning.keys, block_d);
    (launch.config(tuning.config), (tokens.div_ceil(tuning.rows), heads, batch))
}

/// Attention of random queries, keys and values.
pub fn check<T: Value>(device: &Device, shape: Shape, causal: bool, tuning: Tuning) -> Result<Check> {
    let Shape { batch, heads, tokens, head_dim } = shape;
    let (shape, count) = ([batch, heads, tokens, head_dim], batch * heads * tokens * head_dim);
    let scale = 1.0 / (head_dim as f32).sqrt();
    let [host_q, host_k, host_v] = [1, 2, 3].map(|seed| normal::<T>(seed, count));
    let q = DeviceTensor::from_slice(device, &shape, &host_q)?;
    let k = DeviceTensor::from_slice(device, &shape, &host_k)?;
    let v = DeviceTensor::from_slice(device, &shape, &host_v)?;
    let mut out = DeviceTensor::<T>::zeros(device, &shape)?;
    {
        let (launch, grid) = launch([&q, &k, &v], &mut out, causal, tuning);
        launch.launch(grid)?;
    }

    let [q, k, v] = [host_q, host_k, host_v].map(|x| to_f64(&x));
    let sequence = tokens * head_dim;
    let (mut want, mut largest) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for i in 0..batch * heads {
        let parts = [&q, &k, &v].map(|x| &x[i * sequence..][..sequence]);
        reference(parts, head_dim, f64::from(scale), causal, &mut want, &mut largest);
    }
    // Relative to the weighted sum of |v|: weights and result round to `T`. Scores, below 16, have errors of
    // 16 * (head_dim + 8) * 2^-23 on tensor cores, which the exponential passes on to weight and total.
    let scores = 2.0 * 16.0 * (head_dim + 8) as f64 * 2.0 * f32::ROUNDING;
    // Each of the additions over the tokens rounds once.
    let sums = 2.0 * 2.0 * tokens as f64 * f32::ROUNDING;
    let tolerance = 2.0 * T::ROUNDING + scores + sums;
    let kind = if causal { "causal" } else { "full" };
    let what = format!("{batch}x{heads}x{tokens}x{head_dim} {} {kind}", T::NAME);
    Ok(compare(what, &out.to_vec()?, &want, |i| largest[i], tolerance))
}

/// Times bf16 attention of two sequences of 8192 tokens with 16 heads of 128, and checks a smaller one.
fn bench(device: &Device, causal: bool, tuning: Tuning) -> Result<Check> {
    let (shape, kind) = ([2, 16, 8192, 128], if causal { "causal" } else { "full" });
    let [q, k, v] = [1, 2, 3].map(|seed| large::<bf16>(device, seed, &shape));
    let (q, k, v, out) = (q?, k?, v?, DeviceTensor::<bf16>::zeros(device, &shape)?);
    let Tuning { rows, keys, config } = tuning;
    let config = format!("{rows}x{keys}, {} warps", config.num_warps.unwrap_or_default());
    let bench = Bench::time(device, "attention", format!("2x16x8192x128 bf16 {kind}"), config, |stream| {
        let mut out = out.clone();
        let (launch, grid) = launch([&q, &k, &v], &mut out, causal, tuning);
        launch.on(stream).launch(grid)
    })?;
    let flops = 4.0 * 2.0 * 16.0 * 8192.0 * 8192.0 * 128.0;
    bench.print_flops(if causal { flops / 2.0 } else { flops });
    check::<bf16>(device, Shape { batch: 1, heads: 2, tokens: 1000, head_dim: 128 }, causal, tuning)
}

/// One head in float64: appends the results, and the same with |v| for v.
fn reference(
    [q, k, v]: [&[f64]; 3],
    head_dim: usize,
    scale: f64,
    causal: bool,
    want: &mut Vec<f64>,
    magnitude: &mut Vec<f64>,
) {
    for (i, q) in q.chunks(head_dim.max(1)).enumerate() {
        let keys = k.chunks(head_dim.max(1)).take(if causal { i + 1 } else { usize::MAX });
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

/// Computes attention and checks it, for bf16 and f16, causal and full.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    device: DeviceOption,
    #[command(flatten)]
    bench: BenchOption,
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
    /// For --bench and --ptx: causal attention
    #[arg(long)]
    causal: bool,
    /// Rows and keys of a tile: powers of two
    #[arg(long, num_args = 2, value_names = ["ROWS", "KEYS"])]
    block: Option<Vec<usize>>,
}

impl Cli {
    fn tuning(&self, target: Option<Target>) -> Tuning {
        let Tuning { rows, keys, config } = tuning(target);
        let [rows, keys] = self.block.as_deref().map_or([rows, keys], |b| [b[0], b[1]]);
        Tuning { rows, keys, config: self.bench.config(config) }
    }

    fn print_ptx(&self, target: &str) -> Result<()> {
        let tensor = || DeviceTensor::<bf16>::meta(&[2, 16, 8192, 128]);
        let (q, k, v, mut out) = (tensor()?, tensor()?, tensor()?, tensor()?);
        let tuning = self.tuning(Target::by_name(target));
        print_ptx(&launch([&q, &k, &v], &mut out, self.causal, tuning).0, target)
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let shape = Shape { batch: cli.batch, heads: cli.heads, tokens: cli.tokens, head_dim: cli.head_dim };
    examples::run("attention", &cli.device, |device| {
        if let Some(target) = &cli.bench.ptx {
            cli.print_ptx(target)?;
            return Ok(Vec::new());
        }
        let tuning = cli.tuning(target_of(device));
        if cli.bench.bench {
            return Ok(vec![bench(device, cli.causal, tuning)?]);
        }
        Ok(vec![
            check::<bf16>(device, shape, true, tuning)?,
            check::<bf16>(device, shape, false, tuning)?,
            check::<f16>(device, shape, true, tuning)?,
            check::<f16>(device, shape, false, tuning)?,
        ])
    })
}
