//! Row softmax: each block holds one whole row at a time.

use std::process::ExitCode;

use clap::Parser;
use examples::{
    Bench, BenchOption, Check, DeviceOption, Result, Value, compare, large, normal, print_ptx, to_f64,
};
use tile_runtime::prelude::*;

/// `out[i, j] = exp(x[i, j] - max_j x) / sum_j exp(x[i, j] - max_j x)`, both `[rows, columns]`. Grid: any number of
/// blocks; they share the rows, and load the next before this one is done.
///
/// `block` is a power of two of at least `columns`. What lies past the end of a row is loaded as -inf, which the maximum
/// ignores and whose exponential is 0. `exp` is `exp2` of the difference times log2(e).
#[tile_kernel]
pub fn softmax<T: Float>(x: Tensor<T, 2>, out: TensorMut<T, 2>, block: Const<usize>) {
    let rows = x.dim(0);
    let mut next = load_with(x, (bid(0), 0), (1, block), f32::NEG_INFINITY).reshape((block,));
    for row in (bid(0)..rows).step_by(num_blocks(0)) {
        let own = next.cast::<f32>();
        next = load_with(x, (row + num_blocks(0), 0), (1, block), f32::NEG_INFINITY).reshape((block,));
        let e = exp2(fma(own, scalar(LOG2_E), own.max_keepdims(0) * -LOG2_E));
        let y = e * (1.0 / e.sum_keepdims(0));
        store(out, (row, 0), y.cast::<T>().reshape((1, block)));
    }
}

/// The longest row that one block holds.
pub const MAX_COLUMNS: usize = 8192;

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
    blocks: 3,
    config: Config { num_warps: Some(8), occupancy: Some(3), stages: None, allow_tma: None },
};

/// The launch, with its grid: `blocks` for each multiprocessor.
pub fn launch<'a, T: Value>(
    x: &'a DeviceTensor<T>,
    out: &'a mut DeviceTensor<T>,
    tuning: Tuning,
) -> (Launch<'a>, usize) {
    let [rows, columns] = [0, 1].map(|axis| x.shape()[axis]);
    let launch = softmax(x, out, columns.next_power_of_two()).config(tuning.config);
    (launch, rows.min(tuning.blocks * x.device().multiprocessors()))
}

/// Softmax of random rows.
pub fn check<T: Value>(device: &Device, rows: usize, columns: usize, tuning: Tuning) -> Result<Check> {
    anyhow::ensure!(
        (1..=MAX_COLUMNS).contains(&columns),
        "rows of 1 to {MAX_COLUMNS} elements, not {columns}"
    );
    let host = normal::<T>(1, rows * columns);
    let x = DeviceTensor::from_slice(device, &[rows, columns], &host)?;
    let mut out = DeviceTensor::<T>::zeros(device, &[rows, columns])?;
    {
        let (launch, grid) = launch(&x, &mut out, tuning);
        launch.launch(grid)?;
    }

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

/// Times rows of 8192 bf16 elements on a GPU, and checks some.
fn bench(device: &Device, tuning: Tuning) -> Result<Check> {
    let (x, out) =
        (large::<bf16>(device, 1, &[8192, 8192])?, DeviceTensor::<bf16>::zeros(device, &[8192, 8192])?);
    let Tuning { blocks, config } = tuning;
    let what = format!("{blocks} blocks, {} warps", config.num_warps.unwrap_or_default());
    let bench = Bench::time(device, "softmax", "8192x8192 bf16", what, |stream| {
        let mut out = out.clone();
        let (launch, grid) = launch(&x, &mut out, tuning);
        launch.on(stream).launch(grid)
    })?;
    bench.print_bytes(device, 2 * 2 * 8192 * 8192)?;
    check::<bf16>(device, 1000, 8192, tuning)
}

/// Computes the softmax of each row and checks it.
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
    /// Length of a row, up to 8192
    #[arg(long, default_value_t = 5000)]
    columns: usize,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let tuning = Tuning { blocks: cli.blocks, config: cli.bench.config(TUNING.config) };
    examples::run("softmax", &cli.device, |device| {
        if let Some(target) = &cli.bench.ptx {
            let x = DeviceTensor::<bf16>::meta(&[8192, 8192])?;
            print_ptx(&launch(&x, &mut DeviceTensor::meta(x.shape())?, tuning).0, target)?;
            return Ok(Vec::new());
        }
        if cli.bench.bench {
            return Ok(vec![bench(device, tuning)?]);
        }
        let Cli { rows, columns, .. } = cli;
        Ok(vec![check::<f32>(device, rows, columns, tuning)?, check::<bf16>(device, rows, columns, tuning)?])
    })
}
