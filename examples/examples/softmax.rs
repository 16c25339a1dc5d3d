//! Row softmax: each block holds one whole row.

use std::process::ExitCode;

use clap::Parser;
use examples::{Check, DeviceOption, Result, Value, compare, normal, to_f64};
use tile_runtime::prelude::*;

/// `out[i, j] = exp(x[i, j] - max_j x) / sum_j exp(x[i, j] - max_j x)`, both `[rows, columns]`. Grid: rows.
///
/// `block` is a power of two of at least `columns`. What lies past the end of a row is loaded as -inf, which the maximum
/// ignores and whose exponential is 0.
#[tile_kernel]
pub fn softmax<T: Float>(x: Tensor<T, 2>, out: TensorMut<T, 2>, block: Const<usize>) {
    let row = bid(0);
    let x = load_with(x, (row, 0), (1, block), f32::NEG_INFINITY).cast::<f32>();
    let e = exp(x - x.max_keepdims(1));
    store(out, (row, 0), (e / e.sum_keepdims(1)).cast::<T>());
}

/// The longest row that one block holds.
pub const MAX_COLUMNS: usize = 8192;

/// Softmax of random rows.
pub fn check<T: Value>(device: &Device, rows: usize, columns: usize) -> Result<Check> {
    anyhow::ensure!(
        (1..=MAX_COLUMNS).contains(&columns),
        "rows of 1 to {MAX_COLUMNS} elements, not {columns}"
    );
    let host = normal::<T>(1, rows * columns);
    let x = DeviceTensor::from_slice(device, &[rows, columns], &host)?;
    let mut out = DeviceTensor::<T>::zeros(device, &[rows, columns])?;
    softmax(&x, &mut out, columns.next_power_of_two()).launch(rows)?;

    let mut want = to_f64(&host);
    for row in want.chunks_mut(columns) {
        let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|x| (x - max).exp()).sum();
        row.iter_mut().for_each(|x| *x = (*x - max).exp() / sum);
    }
    // The difference to the maximum is at most about 12. It, its product with log2(e) and that constant each round by
    // 12 * 2^-24, which the exponential passes on as a relative error; exponential, sum and quotient add a few
    // roundings each. The result is rounded to `T` once.
    let tolerance = T::ROUNDING + 50.0 * f32::ROUNDING;
    let what = format!("{rows}x{columns} {}", T::NAME);
    // Below the smallest normal f16, rounding errors no longer shrink with the value.
    Ok(compare(what, &out.to_vec()?, &want, |i| want[i].max(2f64.powi(-14)), tolerance))
}

/// Computes the softmax of each row and checks it.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    device: DeviceOption,
    /// Number of rows
    #[arg(long, default_value_t = 256)]
    rows: usize,
    /// Length of a row, up to 8192
    #[arg(long, default_value_t = 5000)]
    columns: usize,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    examples::run("softmax", &cli.device, |device| {
        Ok(vec![check::<f32>(device, cli.rows, cli.columns)?, check::<bf16>(device, cli.rows, cli.columns)?])
    })
}
