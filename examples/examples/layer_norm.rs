//! Layer normalisation: each block holds one whole row.

use std::process::ExitCode;

use clap::Parser;
use examples::{Check, DeviceOption, Result, Value, compare, normal, to_f64};
use tile_runtime::prelude::*;

/// `out[i, j] = (x[i, j] - mean_i) / sqrt(variance_i + epsilon) * weight[j] + bias[j]`: `x` and `out` `[rows, columns]`,
/// `weight` and `bias` `[columns]`. Grid: rows.
///
/// `block` is a power of two of at least `columns`. The variance is the mean square of the differences to the mean,
/// which are set to 0 past the end of the row.
#[tile_kernel]
pub fn layer_norm<T: Float>(
    x: Tensor<T, 2>,
    weight: Tensor<f32, 1>,
    bias: Tensor<f32, 1>,
    out: TensorMut<T, 2>,
    epsilon: Scalar<f32>,
    block: Const<usize>,
) {
    let (row, columns) = (bid(0), x.dim(1));
    let count = columns.cast::<f32>();
    let x = load(x, (row, 0), (1, block)).cast::<f32>().reshape((block,));
    let mean = x.sum_keepdims(0) / count;
    let centred = where_(arange::<i32>(block) < columns, x - mean, 0.0);
    let variance = (centred * centred).sum_keepdims(0) / count;
    let y = centred * rsqrt(variance + epsilon) * load(weight, (0,), (block,)) + load(bias, (0,), (block,));
    store(out, (row, 0), y.cast::<T>().reshape((1, block)));
}

/// Added to the variance.
const EPSILON: f32 = 1e-5;

/// Normalises random rows with random weights.
pub fn check<T: Value>(device: &Device, rows: usize, columns: usize) -> Result<Check> {
    let (host, host_weight, host_bias) =
        (normal::<T>(1, rows * columns), normal::<f32>(2, columns), normal::<f32>(3, columns));
    let x = DeviceTensor::from_slice(device, &[rows, columns], &host)?;
    let weight = DeviceTensor::from_slice(device, &[columns], &host_weight)?;
    let bias = DeviceTensor::from_slice(device, &[columns], &host_bias)?;
    let mut out = DeviceTensor::<T>::zeros(device, &[rows, columns])?;
    layer_norm(&x, &weight, &bias, &mut out, EPSILON, columns.next_power_of_two()).launch(rows)?;

    let mut want = to_f64(&host);
    for row in want.chunks_mut(columns.max(1)) {
        let mean = row.iter().sum::<f64>() / columns as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / columns as f64;
        let scale = 1.0 / (variance + f64::from(EPSILON)).sqrt();
        for ((x, &weight), &bias) in row.iter_mut().zip(&host_weight).zip(&host_bias) {
            *x = (*x - mean) * scale * f64::from(weight) + f64::from(bias);
        }
    }
    // Normalised values are below 8, so that each of about ten f32 roundings is at most 8 * |weight| * 2^-24; the
    // result is rounded to `T` once.
    let tolerance = T::ROUNDING + 80.0 * f32::ROUNDING;
    let scale =
        |i: usize| want[i].abs() + f64::from(host_weight[i % columns].abs() + host_bias[i % columns].abs());
    let what = format!("{rows}x{columns} {}", T::NAME);
    Ok(compare(what, &out.to_vec()?, &want, scale, tolerance))
}

/// Normalises each row and checks the result.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    device: DeviceOption,
    /// Number of rows
    #[arg(long, default_value_t = 256)]
    rows: usize,
    /// Length of a row
    #[arg(long, default_value_t = 3000)]
    columns: usize,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    examples::run("layer_norm", &cli.device, |device| {
        Ok(vec![check::<f32>(device, cli.rows, cli.columns)?, check::<bf16>(device, cli.rows, cli.columns)?])
    })
}
