//! Running sums along rows: each block walks over one row, of any length, and carries the sum so far.

use std::process::ExitCode;

use clap::Parser;
use examples::{Bench, BenchOption, Check, DeviceOption, Result, compare, large, normal, print_ptx};
use tile_runtime::prelude::*;

/// `out[i, j] = sum_{l <= j} x[i, l]`, both `[rows, columns]`. Grid: rows. A row is taken `block` elements at a time.
#[tile_kernel]
pub fn running_sum(x: Tensor<f32, 2>, out: TensorMut<f32, 2>, block: Const<usize>) {
    let row = bid(0);
    let mut carry = zeros::<f32>((1, 1));
    for j in 0..cdiv(x.dim(1), block) {
        let x = load(x, (row, j), (1, block));
        store(out, (row, j), carry + x.cumsum(1));
        carry = carry + x.sum_keepdims(1);
    }
}

/// Elements of a row taken at a time.
pub const BLOCK: usize = 8192;

/// Configuration of the code.
pub const CONFIG: Config = Config { num_warps: Some(4), occupancy: None, stages: None, allow_tma: None };

/// The launch, with its grid.
pub fn launch<'a>(
    x: &'a DeviceTensor<f32>,
    out: &'a mut DeviceTensor<f32>,
    block: usize,
    config: Config,
) -> (Launch<'a>, usize) {
    let rows = x.shape()[0];
    (running_sum(x, out, block).config(config), rows)
}

/// Running sums of random rows.
pub fn check(device: &Device, rows: usize, columns: usize, block: usize, config: Config) -> Result<Check> {
    let host = normal::<f32>(1, rows * columns);
    let x = DeviceTensor::from_slice(device, &[rows, columns], &host)?;
    let mut out = DeviceTensor::zeros(device, &[rows, columns])?;
    {
        let (launch, grid) = launch(&x, &mut out, block, config);
        launch.launch(grid)?;
    }

    let (mut want, mut magnitude) = (Vec::new(), Vec::new());
    for row in host.chunks(columns.max(1)) {
        let (mut sum, mut absolute) = (0.0, 0.0);
        for &x in row {
            sum += f64::from(x);
            absolute += f64::from(x.abs());
            want.push(sum);
            magnitude.push(absolute);
        }
    }
    // Relative to sum_l |x|: a value goes through at most as many additions as a tile has levels, or elements where
    // they are added one by one, and one for each tile.
    let tolerance = (block.min(columns) + columns.div_ceil(block)) as f64 * 2f64.powi(-24);
    Ok(compare(format!("{rows}x{columns} f32"), &out.to_vec()?, &want, |i| magnitude[i], tolerance))
}

/// Times rows of 8192 f32 elements on a GPU, and checks some.
fn bench(device: &Device, block: usize, config: Config) -> Result<Check> {
    let (x, out) =
        (large::<f32>(device, 1, &[8192, 8192])?, DeviceTensor::<f32>::zeros(device, &[8192, 8192])?);
    let what = format!("block {block}, {} warps", config.num_warps.unwrap_or_default());
    let bench = Bench::time(device, "cumsum", "8192x8192 f32", what, |stream| {
        let mut out = out.clone();
        let (launch, grid) = launch(&x, &mut out, block, config);
        launch.on(stream).launch(grid)
    })?;
    bench.print_bytes(device, 2 * 4 * 8192 * 8192)?;
    check(device, 64, 8192, block, config)
}

/// Computes running sums of each row and checks them.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    device: DeviceOption,
    #[command(flatten)]
    bench: BenchOption,
    /// Elements of a row taken at a time: a power of two
    #[arg(long, default_value_t = BLOCK)]
    block: usize,
    /// Number of rows
    #[arg(long, default_value_t = 64)]
    rows: usize,
    /// Length of a row
    #[arg(long, default_value_t = 10_000)]
    columns: usize,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (block, config) = (cli.block, cli.bench.config(CONFIG));
    examples::run("cumsum", &cli.device, |device| {
        if let Some(target) = &cli.bench.ptx {
            let x = DeviceTensor::<f32>::meta(&[8192, 8192])?;
            print_ptx(&launch(&x, &mut DeviceTensor::meta(x.shape())?, block, config).0, target)?;
            return Ok(Vec::new());
        }
        if cli.bench.bench {
            return Ok(vec![bench(device, block, config)?]);
        }
        Ok(vec![check(device, cli.rows, cli.columns, block, config)?])
    })
}
