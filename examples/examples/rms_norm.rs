//! Root-mean-square normalisation: each block walks over one row, of any length, twice.

use std::process::ExitCode;

use clap::Parser;
use examples::{Check, DeviceOption, Result, Value, compare, normal, to_f64};
use tile_runtime::prelude::*;

/// `out[i, j] = x[i, j] / sqrt(mean_j x[i, j]^2 + epsilon) * weight[j]`: `x` and `out` `[rows, columns]`, `weight`
/// `[columns]`. Grid: rows. A row is taken `block` elements at a time.
#[tile_kernel]
pub fn rms_norm<T: Float>(
    x: Tensor<T, 2>,
    weight: Tensor<f32, 1>,
    out: TensorMut<T, 2>,
    epsilon: Scalar<f32>,
    block: Const<usize>,
) {
    let (row, columns) = (bid(0), x.dim(1));
    let mut squares = zeros::<f32>((1, block));
    for j in 0..cdiv(columns, block) {
        let x = load(x, (row, j), (1, block)).cast::<f32>();
        squares = squares + x * x;
    }
    let scale = rsqrt(squares.sum(ALL).item() / columns.cast::<f32>() + epsilon);
    for j in 0..cdiv(columns, block) {
        let x = load(x, (row, j), (1, block)).cast::<f32>();
        let weight = load(weight, (j,), (block,));
        store(out, (row, j), (x * scale * weight).cast::<T>());
    }
}

/// Elements of a row taken at a time.
pub const BLOCK: usize = 1024;
/// Added to the mean square.
const EPSILON: f32 = 1e-5;

/// Normalises random rows with random weights.
pub fn check<T: Value>(device: &Device, rows: usize, columns: usize) -> Result<Check> {
    let (host, host_weight) = (normal::<T>(1, rows * columns), normal::<f32>(2, columns));
    let x = DeviceTensor::from_slice(device, &[rows, columns], &host)?;
    let weight = DeviceTensor::from_slice(device, &[columns], &host_weight)?;
    let mut out = DeviceTensor::<T>::zeros(device, &[rows, columns])?;
    rms_norm(&x, &weight, &mut out, EPSILON, BLOCK).launch(rows)?;

    let mut want = to_f64(&host);
    for row in want.chunks_mut(columns.max(1)) {
        let mean = row.iter().map(|x| x * x).sum::<f64>() / columns as f64;
        let scale = 1.0 / (mean + f64::from(EPSILON)).sqrt();
        row.iter_mut().zip(&host_weight).for_each(|(x, &weight)| *x *= scale * f64::from(weight));
    }
    // Squares are positive, so that the sum's relative error is at most one rounding for each tile and each level of
    // the tree, and the square root halves it; a few more roundings follow, and one to `T`.
    let tolerance = T::ROUNDING + (columns.div_ceil(BLOCK) + 20) as f64 * f32::ROUNDING;
    let what = format!("{rows}x{columns} {}", T::NAME);
    // Below the smallest normal f16, rounding errors no longer shrink with the value.
    Ok(compare(what, &out.to_vec()?, &want, |i| want[i].abs().max(2f64.powi(-14)), tolerance))
}

/// Normalises each row and checks the result.
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
    examples::run("rms_norm", &cli.device, |device| {
        Ok(vec![check::<f32>(device, cli.rows, cli.columns)?, check::<bf16>(device, cli.rows, cli.columns)?])
    })
}
