//! Vector addition: each block adds one tile.

use std::process::ExitCode;

use clap::Parser;
use examples::{Bench, BenchOption, Check, DeviceOption, Result, Value, compare, large, normal, print_ptx};
use tile_runtime::prelude::*;

/// `out[i] = x[i] + y[i]`, all `[n]`. Grid: `ceil(n / block)`; the last tile may reach past the end, where loads give
/// zero and stores are dropped.
#[tile_kernel]
pub fn vector_add<T: Number>(x: Tensor<T, 1>, y: Tensor<T, 1>, out: TensorMut<T, 1>, block: Const<usize>) {
    let i = bid(0);
    store(out, (i,), load(x, (i,), (block,)) + load(y, (i,), (block,)));
}

/// Elements of a tile.
pub const BLOCK: usize = 1024;
/// Four 16-byte vectors of bf16 for each thread.
pub const CONFIG: Config = Config { num_warps: Some(1), occupancy: None, stages: None, allow_tma: None };

/// The launch, with its grid.
pub fn launch<'a, T: Value>(
    x: &'a DeviceTensor<T>,
    y: &'a DeviceTensor<T>,
    out: &'a mut DeviceTensor<T>,
    block: usize,
    config: Config,
) -> (Launch<'a>, usize) {
    let grid = out.numel().div_ceil(block);
    (vector_add(x, y, out, block).config(config), grid)
}

/// Adds random vectors of `n` elements. A sum is rounded once.
pub fn check<T: Value>(device: &Device, n: usize, block: usize, config: Config) -> Result<Check> {
    let (x, y) = (normal::<T>(1, n), normal::<T>(2, n));
    let out = {
        let (x, y) =
            (DeviceTensor::from_slice(device, &[n], &x)?, DeviceTensor::from_slice(device, &[n], &y)?);
        let mut out = DeviceTensor::zeros(device, &[n])?;
        let (launch, grid) = launch(&x, &y, &mut out, block, config);
        launch.launch(grid)?;
        drop(launch);
        out.to_vec()?
    };
    let want: Vec<f64> = x.iter().zip(&y).map(|(&x, &y)| x.to_f64() + y.to_f64()).collect();
    // bf16 operands are added in f32 first.
    let rounding = T::ROUNDING + f32::ROUNDING;
    Ok(compare(format!("{n} {}", T::NAME), &out, &want, |i| want[i].abs(), rounding))
}

/// Times the sum of bf16 vectors of 64 Mi elements on a GPU, and checks a shorter one.
fn bench(device: &Device, block: usize, config: Config) -> Result<Check> {
    const LENGTH: usize = 64 << 20;
    let (x, y) = (large::<bf16>(device, 1, &[LENGTH])?, large::<bf16>(device, 2, &[LENGTH])?);
    let out = DeviceTensor::<bf16>::zeros(device, &[LENGTH])?;
    let what = format!("block {block}, {} warps", config.num_warps.unwrap_or_default());
    let bench = Bench::time(device, "vector_add", "64Mi bf16", what, |stream| {
        let mut out = out.clone();
        let (launch, grid) = launch(&x, &y, &mut out, block, config);
        launch.on(stream).launch(grid)
    })?;
    bench.print_bytes(device, 3 * 2 * LENGTH)?;
    check::<bf16>(device, 1_000_003, block, config)
}

/// Adds two vectors and checks the sum.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    device: DeviceOption,
    #[command(flatten)]
    bench: BenchOption,
    /// Elements of each vector
    #[arg(long, default_value_t = 1_000_003)]
    length: usize,
    /// Elements of a tile: a power of two
    #[arg(long, default_value_t = BLOCK)]
    block: usize,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let config = cli.bench.config(CONFIG);
    examples::run("vector_add", &cli.device, |device| {
        if let Some(target) = &cli.bench.ptx {
            let x = DeviceTensor::<bf16>::meta(&[64 << 20])?;
            let mut out = DeviceTensor::meta(x.shape())?;
            print_ptx(&launch(&x, &x, &mut out, cli.block, config).0, target)?;
            return Ok(Vec::new());
        }
        if cli.bench.bench {
            return Ok(vec![bench(device, cli.block, config)?]);
        }
        Ok(vec![
            check::<f32>(device, cli.length, cli.block, config)?,
            check::<bf16>(device, cli.length, cli.block, config)?,
        ])
    })
}
