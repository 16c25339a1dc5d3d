//! Matrix product: each block computes one tile of the result, with a loop over the inner dimension.

use std::process::ExitCode;

use clap::Parser;
use examples::{Check, DeviceOption, Result, Value, compare, median_us, normal};
use tile_runtime::prelude::*;

/// `c[i, j] = sum_k a[i, k] b[k, j]`: `a` is `[m, k]`, `b` `[k, n]`, `c` `[m, n]`, of any sizes. Grid: tiles of n, tiles
/// of m.
///
/// Products are added in f32 and the sum is rounded to `T` once. f16 and bf16 run on tensor cores, f32 is exact f32.
#[tile_kernel]
pub fn matmul<T: MmaOperand + Storable>(
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    c: TensorMut<T, 2>,
    block_m: Const<usize>,
    block_n: Const<usize>,
    block_k: Const<usize>,
) {
    let (column, row) = (bid(0), bid(1));
    let mut sum = zeros::<f32>((block_m, block_n));
    for k in 0..cdiv(a.dim(1), block_k) {
        let a = load(a, (row, k), (block_m, block_k));
        let b = load(b, (k, column), (block_k, block_n));
        sum = mma(a, b, sum);
    }
    store(c, (row, column), sum.cast::<T>());
}

/// Tile sizes m, n and k, and warps of a block on a GPU.
#[derive(Clone, Copy, Debug)]
pub struct Tiles(pub [usize; 3], pub usize);

/// Tiles for an element type: 16-bit operands feed tensor cores from large tiles, f32 ones take more room each.
pub fn tiles<T: Value>() -> Tiles {
    if size_of::<T>() == 2 { Tiles([128, 128, 64], 4) } else { Tiles([64, 64, 32], 4) }
}

/// The launch of the product in these tiles, with its grid.
pub fn product<'a, T: Value>(
    a: &'a DeviceTensor<T>,
    b: &'a DeviceTensor<T>,
    c: &'a mut DeviceTensor<T>,
    Tiles([m, n, k], warps): Tiles,
) -> (Launch<'a>, (usize, usize)) {
    let grid = (c.shape()[1].div_ceil(n), c.shape()[0].div_ceil(m));
    (matmul(a, b, c, m, n, k).config(Config { num_warps: Some(warps), ..Config::default() }), grid)
}

/// A product of random matrices on a device.
struct Problem<T> {
    shape: [usize; 3],
    host: [Vec<T>; 2],
    a: DeviceTensor<T>,
    b: DeviceTensor<T>,
    c: DeviceTensor<T>,
}

impl<T: Value> Problem<T> {
    fn new(device: &Device, [m, n, k]: [usize; 3]) -> Result<Self> {
        let host = [normal::<T>(1, m * k), normal::<T>(2, k * n)];
        let a = DeviceTensor::from_slice(device, &[m, k], &host[0])?;
        let b = DeviceTensor::from_slice(device, &[k, n], &host[1])?;
        let c = DeviceTensor::zeros(device, &[m, n])?;
        Ok(Self { shape: [m, n, k], host, a, b, c })
    }

    fn queue(&self, stream: &Stream, tiles: Tiles) -> tile_runtime::Result<()> {
        let mut c = self.c.clone();
        let (launch, grid) = product(&self.a, &self.b, &mut c, tiles);
        launch.on(stream).launch(grid)
    }

    /// Checks every `step`-th row of the result.
    fn check(&self, step: usize) -> Result<Check> {
        let [m, n, k] = self.shape;
        let all = self.c.to_vec()?;
        let (mut got, mut want, mut scale) = (Vec::new(), Vec::new(), Vec::new());
        for i in (0..m).step_by(step) {
            got.extend_from_slice(&all[i * n..][..n]);
            let (mut row, mut magnitude) = (vec![0.0; n], vec![0.0; n]);
            for (l, a) in self.host[0][i * k..][..k].iter().map(|a| a.to_f64()).enumerate() {
                for (j, b) in self.host[1][l * n..][..n].iter().map(|b| b.to_f64()).enumerate() {
                    row[j] += a * b;
                    magnitude[j] += (a * b).abs();
                }
            }
            want.extend(row);
            scale.extend(magnitude);
        }
        // Relative to sum_k |a b|: each of k additions rounds once, on tensor cores towards zero, which errs twice as
        // much; the result is rounded to `T` once.
        let tolerance = T::ROUNDING + 2.0 * f32::ROUNDING * k as f64;
        Ok(compare(format!("{m}x{n}x{k} {}", T::NAME), &got, &want, |i| scale[i], tolerance))
    }
}

/// Multiplies random matrices `[m, k]` and `[k, n]`.
pub fn check<T: Value>(device: &Device, shape: [usize; 3]) -> Result<Check> {
    let problem = Problem::<T>::new(device, shape)?;
    problem.queue(&device.default_stream(), tiles::<T>())?;
    problem.check(1)
}

/// Times the bf16 product of square matrices of size `n` on a GPU, and checks some rows.
fn bench(device: &Device, n: usize, tiles: Tiles) -> Result<Check> {
    anyhow::ensure!(device.is_cuda(), "--bench needs a GPU; write --device cuda");
    let problem = Problem::<bf16>::new(device, [n; 3])?;
    let us = median_us(device, |stream| problem.queue(stream, tiles))?;
    let tflops = 2.0 * (n as f64).powi(3) / us / 1e6;
    let Tiles(block, warps) = tiles;
    println!("matmul {n}x{n}x{n} bf16, tiles {block:?}, {warps} warps: {us:.1} us, {tflops:.1} TFLOP/s");
    println!(r#"{{"example":"matmul","shape":"{n}","us":{us:.2},"tflops":{tflops:.2}}}"#);
    problem.check(509)
}

/// Multiplies two matrices and checks the product, for bf16, f16 and f32.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    device: DeviceOption,
    /// Rows of the result
    #[arg(short, long, default_value_t = 300)]
    m: usize,
    /// Columns of the result
    #[arg(short, long, default_value_t = 201)]
    n: usize,
    /// Terms of each sum
    #[arg(short, long, default_value_t = 500)]
    k: usize,
    /// Time the bf16 product of square matrices instead; needs a GPU
    #[arg(long)]
    bench: bool,
    /// Size of the matrices that --bench multiplies
    #[arg(long, default_value_t = 4096)]
    size: usize,
    /// Tile sizes for --bench: powers of two
    #[arg(long, num_args = 3, value_names = ["M", "N", "K"])]
    block: Option<Vec<usize>>,
    /// Warps of a block for --bench
    #[arg(long)]
    warps: Option<usize>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let shape = [cli.m, cli.n, cli.k];
    examples::run("matmul", &cli.device, |device| {
        if cli.bench {
            let Tiles(block, warps) = tiles::<bf16>();
            let block = cli.block.as_deref().map_or(block, |b| [b[0], b[1], b[2]]);
            return Ok(vec![bench(device, cli.size, Tiles(block, cli.warps.unwrap_or(warps)))?]);
        }
        Ok(vec![check::<bf16>(device, shape)?, check::<f16>(device, shape)?, check::<f32>(device, shape)?])
    })
}
