//! Transposition of a matrix: each block moves one tile, reading and writing whole rows of it.

use std::process::ExitCode;

use clap::Parser;
use examples::{Bench, BenchOption, Check, DeviceOption, Result, Value, compare, large, normal, print_ptx};
use tile_runtime::prelude::*;

/// `out[j, i] = x[i, j]`: `x` is `[rows, columns]`, `out` `[columns, rows]`. Grid: tiles of columns, tiles of rows.
#[tile_kernel]
pub fn transpose_matrix<T: Storable>(x: Tensor<T, 2>, out: TensorMut<T, 2>, block: Const<usize>) {
    let (column, row) = (bid(0), bid(1));
    store(out, (column, row), load(x, (row, column), (block, block)).transpose());
}

/// Rows and columns of a tile.
pub const BLOCK: usize = 32;

/// Configuration of the code.
pub const CONFIG: Config = Config { num_warps: Some(1), occupancy: None, stages: None, allow_tma: None };

/// The launch, with its grid.
pub fn launch<'a, T: Value>(
    x: &'a DeviceTensor<T>,
    out: &'a mut DeviceTensor<T>,
    block: usize,
    config: Config,
) -> (Launch<'a>, (usize, usize)) {
    let [rows, columns] = [0, 1].map(|axis| x.shape()[axis]);
    (transpose_matrix(x, out, block).config(config), (columns.div_ceil(block), rows.div_ceil(block)))
}

/// Transposes a random matrix. Nothing is rounded.
pub fn check<T: Value>(
    device: &Device,
    rows: usize,
    columns: usize,
    block: usize,
    config: Config,
) -> Result<Check> {
    let host = normal::<T>(1, rows * columns);
    let x = DeviceTensor::from_slice(device, &[rows, columns], &host)?;
    let mut out = DeviceTensor::<T>::zeros(device, &[columns, rows])?;
    {
        let (launch, grid) = launch(&x, &mut out, block, config);
        launch.launch(grid)?;
    }

    let want: Vec<f64> = (0..columns)
        .flat_map(|j| (0..rows).map(move |i| (i, j)))
        .map(|(i, j)| host[i * columns + j].to_f64())
        .collect();
    Ok(compare(format!("{rows}x{columns} {}", T::NAME), &out.to_vec()?, &want, |_| 1.0, 0.0))
}

/// Times a bf16 matrix of 8192 rows and columns on a GPU, and checks a smaller one.
fn bench(device: &Device, block: usize, config: Config) -> Result<Check> {
    let (x, out) =
        (large::<bf16>(device, 1, &[8192, 8192])?, DeviceTensor::<bf16>::zeros(device, &[8192, 8192])?);
    let what = format!("block {block}, {} warps", config.num_warps.unwrap_or_default());
    let bench = Bench::time(device, "transpose", "8192x8192 bf16", what, |stream| {
        let mut out = out.clone();
        let (launch, grid) = launch(&x, &mut out, block, config);
        launch.on(stream).launch(grid)
    })?;
    bench.print_bytes(device, 2 * 2 * 8192 * 8192)?;
    check::<bf16>(device, 1024, 512, block, config)
}

/// Transposes a matrix and checks every element.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    device: DeviceOption,
    #[command(flatten)]
    bench: BenchOption,
    /// Rows and columns of a tile: a power of two
    #[arg(long, default_value_t = BLOCK)]
    block: usize,
    /// Rows of the matrix
    #[arg(long, default_value_t = 1000)]
    rows: usize,
    /// Columns of the matrix
    #[arg(long, default_value_t = 777)]
    columns: usize,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (block, config) = (cli.block, cli.bench.config(CONFIG));
    examples::run("transpose", &cli.device, |device| {
        if let Some(target) = &cli.bench.ptx {
            let x = DeviceTensor::<bf16>::meta(&[8192, 8192])?;
            print_ptx(&launch(&x, &mut DeviceTensor::meta(x.shape())?, block, config).0, target)?;
            return Ok(Vec::new());
        }
        if cli.bench.bench {
            return Ok(vec![bench(device, block, config)?]);
        }
        let Cli { rows, columns, .. } = cli;
        Ok(vec![
            check::<f32>(device, rows, columns, block, config)?,
            check::<bf16>(device, rows, columns, block, config)?,
        ])
    })
}
