//! Layer normalisation: each block holds the weights, and one whole row at a time.

use std::process::ExitCode;

use clap::Parser;
use examples::{
    Bench, BenchOption, Check, DeviceOption, Result, Value, compare, large, normal, print_ptx, to_f64,
};
use tile_runtime::prelude::*;

/// `out[i, j] = (x[i, j] - mean_i) / sqrt(variance_i + epsilon) * weight[j] + bias[j]`: `x` and `out` `[rows, columns]`,
/// `weight` and `bias` `[columns]`. Grid: any number of
/// blocks; they share the rows, so that weights are read once for many. The next row is loaded before this one is done.
///
/// `block` is a power of two of at least `columns`. The variance is the mean square of the differences to the mean,
/// which are set to 0 past the end of the row.
#[tile_kernel]
pub fn layer_norm<T: Float>(
    x: Tensor<T, 2>,
    weight: Tensor<T, 1>,
    bias: Tensor<T, 1>,
    out: TensorMut<T, 2>,
    epsilon: Scalar<f32>,
    block: Const<usize>,
) {
    let (rows, columns) = (x.dim(0), x.dim(1));
    let count = columns.cast::<f32>();
    let inside = arange::<i32>(block) < columns;
    let weight = load(weight, (0,), (block,));
    let bias = load(bias, (0,), (block,));
    let mut next = load(x, (bid(0), 0), (1, block)).reshape((block,));
    for row in (bid(0)..rows).step_by(num_blocks(0)) {
        let own = next.cast::<f32>();
        next = load(x, (row + num_blocks(0), 0), (1, block)).reshape((block,));
        let mean = own.sum_keepdims(0) / count;
        let centred = where_(inside, own - mean, 0.0);
        let variance = (centred * centred).sum_keepdims(0) / count;
        let scale = rsqrt(variance + epsilon);
        let y = fma(centred * scale, weight.cast::<f32>(), bias.cast::<f32>());
        store(out, (row, 0), y.cast::<T>().reshape((1, block)));
    }
}

/// Added to the variance.
const EPSILON: f32 = 1e-5;

/// How a kernel is launched: blocks for each multiprocessor, and the code's configuration.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Blocks for each multiprocessor.
    pub blocks: usize,
    /// Configuration of the code.
    pub config: Config,
}

/// Blocks and warps that rows of 8192 elements need.
pub const TUNING: Tuning = Tuning {
    blocks: 2,
    config: Config { num_warps: Some(16), occupancy: Some(2), stages: None, allow_tma: None },
};

/// The launch, with its grid: `blocks` for each multiprocessor.
pub fn launch<'a, T: Value>(
    x: &'a DeviceTensor<T>,
    [weight, bias]: [&'a DeviceTensor<T>; 2],
    out: &'a mut DeviceTensor<T>,
    tuning: Tuning,
) -> (Launch<'a>, usize) {
    let [rows, columns] = [0, 1].map(|axis| x.shape()[axis]);
    let launch = layer_norm(x, weight, bias, out, EPSILON, columns.next_power_of_two());
    (launch.config(tuning.config), rows.min(tuning.blocks * x.device().multiprocessors()))
}

/// Normalises random rows with random weights.
pub fn check<T: Value>(device: &Device, rows: usize, columns: usize, tuning: Tuning) -> Result<Check> {
    let (host, host_weight, host_bias) =
        (normal::<T>(1, rows * columns), normal::<T>(2, columns), normal::<T>(3, columns));
    let x = DeviceTensor::from_slice(device, &[rows, columns], &host)?;
    let weight = DeviceTensor::<T>::from_slice(device, &[columns], &host_weight)?;
    let bias = DeviceTensor::from_slice(device, &[columns], &host_bias)?;
    let mut out = DeviceTensor::<T>::zeros(device, &[rows, columns])?;
    {
        let (launch, grid) = launch(&x, [&weight, &bias], &mut out, tuning);
        launch.launch(grid)?;
    }

    let mut want = to_f64(&host);
    for row in want.chunks_mut(columns.max(1)) {
        let mean = row.iter().sum::<f64>() / columns as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / columns as f64;
        let scale = 1.0 / (variance + f64::from(EPSILON)).sqrt();
        for ((x, &weight), &bias) in row.iter_mut().zip(&host_weight).zip(&host_bias) {
            *x = (*x - mean) * scale * weight.to_f64() + bias.to_f64();
        }
    }
    // Normalised values are below 8, so that each of about ten f32 roundings is at most 8 * |weight| * 2^-24; the
    // result is rounded to `T` once.
    let tolerance = T::ROUNDING + 80.0 * f32::ROUNDING;
    let scale = |i: usize| {
        want[i].abs() + host_weight[i % columns].to_f64().abs() + host_bias[i % columns].to_f64().abs()
    };
    let what = format!("{rows}x{columns} {}", T::NAME);
    Ok(compare(what, &out.to_vec()?, &want, scale, tolerance))
}

/// Times rows of 8192 bf16 elements on a GPU, and checks some.
fn bench(device: &Device, tuning: Tuning) -> Result<Check> {
    let (x, out) =
        (large::<bf16>(device, 1, &[8192, 8192])?, DeviceTensor::<bf16>::zeros(device, &[8192, 8192])?);
    let weight = large::<bf16>(device, 2, &[8192])?;
    let Tuning { blocks, config } = tuning;
    let what = format!("{blocks} blocks, {} warps", config.num_warps.unwrap_or_default());
    let bench = Bench::time(device, "layer_norm", "8192x8192 bf16", what, |stream| {
        let mut out = out.clone();
        let (launch, grid) = launch(&x, [&weight, &weight], &mut out, tuning);
        launch.on(stream).launch(grid)
    })?;
    bench.print_bytes(device, 2 * 2 * 8192 * 8192)?;
    check::<bf16>(device, 1000, 8192, tuning)
}

/// Normalises each row and checks the result.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    device: DeviceOption,
    #[command(flatten)]
    bench: BenchOption,
    /// Blocks for each multiprocessor for --bench
    #[arg(long, default_value_t = TUNING.blocks)]
    blocks: usize,
    /// Number of rows
    #[arg(long, default_value_t = 256)]
    rows: usize,
    /// Length of a row
    #[arg(long, default_value_t = 3000)]
    columns: usize,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let tuning = Tuning { blocks: cli.blocks, config: cli.bench.config(TUNING.config) };
    examples::run("layer_norm", &cli.device, |device| {
        if let Some(target) = &cli.bench.ptx {
            let (x, weight) = (DeviceTensor::<bf16>::meta(&[8192, 8192])?, DeviceTensor::meta(&[8192])?);
            print_ptx(
                &launch(&x, [&weight, &weight], &mut DeviceTensor::meta(x.shape())?, tuning).0,
                target,
            )?;
            return Ok(Vec::new());
        }
        if cli.bench.bench {
            return Ok(vec![bench(device, tuning)?]);
        }
        let Cli { rows, columns, .. } = cli;
        Ok(vec![check::<f32>(device, rows, columns, tuning)?, check::<bf16>(device, rows, columns, tuning)?])
    })
}
