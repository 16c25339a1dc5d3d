//! Running sums along rows: each block walks over one row, of any length, and carries the sum so far.

use std::process::ExitCode;

use clap::Parser;
use examples::{Check, DeviceOption, Result, compare, normal};
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
pub const BLOCK: usize = 1024;

/// Running sums of random rows.
pub fn check(device: &Device, rows: usize, columns: usize) -> Result<Check> {
    let host = normal::<f32>(1, rows * columns);
    let x = DeviceTensor::from_slice(device, &[rows, columns], &host)?;
    let mut out = DeviceTensor::zeros(device, &[rows, columns])?;
    running_sum(&x, &mut out, BLOCK).launch(rows)?;

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
    let tolerance = (BLOCK.min(columns) + columns.div_ceil(BLOCK)) as f64 * 2f64.powi(-24);
    Ok(compare(format!("{rows}x{columns} f32"), &out.to_vec()?, &want, |i| magnitude[i], tolerance))
}

/// Computes running sums of each row and checks them.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    device: DeviceOption,
    /// Number of rows
    #[arg(long, default_value_t = 64)]
    rows: usize,
    /// Length of a row
    #[arg(long, default_value_t = 10_000)]
    columns: usize,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    examples::run("cumsum", &cli.device, |device| Ok(vec![check(device, cli.rows, cli.columns)?]))
}
