//! Vector addition: each block adds one tile.

use std::process::ExitCode;

use clap::Parser;
use examples::{Check, DeviceOption, Result, compare, normal};
use tile_runtime::prelude::*;

/// `out[i] = x[i] + y[i]`, all `[n]`. Grid: `ceil(n / block)`; the last tile may reach past the end, where loads give
/// zero and stores are dropped.
#[tile_kernel]
pub fn vector_add(x: Tensor<f32, 1>, y: Tensor<f32, 1>, out: TensorMut<f32, 1>, block: Const<usize>) {
    let i = bid(0);
    store(out, (i,), load(x, (i,), (block,)) + load(y, (i,), (block,)));
}

/// Elements of a tile.
pub const BLOCK: usize = 1024;

/// Adds random vectors of `n` elements. An f32 sum is rounded once.
pub fn check(device: &Device, n: usize) -> Result<Check> {
    let (x, y) = (normal::<f32>(1, n), normal::<f32>(2, n));
    let out = {
        let (x, y) =
            (DeviceTensor::from_slice(device, &[n], &x)?, DeviceTensor::from_slice(device, &[n], &y)?);
        let mut out = DeviceTensor::zeros(device, &[n])?;
        vector_add(&x, &y, &mut out, BLOCK).launch(n.div_ceil(BLOCK))?;
        out.to_vec()?
    };
    let want: Vec<f64> = x.iter().zip(&y).map(|(&x, &y)| f64::from(x) + f64::from(y)).collect();
    let rounding = 2f64.powi(-24);
    Ok(compare(format!("{n} f32"), &out, &want, |i| want[i].abs(), rounding))
}

/// Adds two vectors and checks the sum.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    device: DeviceOption,
    /// Elements of each vector
    #[arg(long, default_value_t = 1_000_003)]
    length: usize,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    examples::run("vector_add", &cli.device, |device| Ok(vec![check(device, cli.length)?]))
}
