//! `--bench` and `--ptx`: how fast an example is on a GPU, and the code that it becomes.

use tile_runtime::prelude::*;

use crate::{Result, Value, median_us, normal};

/// The options of an example that has a benchmark.
#[derive(Debug, Clone, clap::Args)]
pub struct BenchOption {
    /// Time the kernel on large tensors instead; needs a GPU
    #[arg(long)]
    pub bench: bool,
    /// Print the PTX of the kernel that --bench times instead, for a target such as sm_80 or sm_90a
    #[arg(long, value_name = "TARGET")]
    pub ptx: Option<String>,
    /// Warps of a block for --bench and --ptx
    #[arg(long)]
    pub warps: Option<usize>,
    /// Blocks that share a multiprocessor for --bench and --ptx
    #[arg(long)]
    pub occupancy: Option<u32>,
    /// Stages of each channel or ring for --bench and --ptx; 1: no rings
    #[arg(long)]
    pub stages: Option<usize>,
}

impl BenchOption {
    /// `default`, with what the command line says instead.
    pub fn config(&self, default: Config) -> Config {
        Config {
            num_warps: self.warps.or(default.num_warps),
            occupancy: self.occupancy.or(default.occupancy),
            stages: self.stages.or(default.stages),
            ..default
        }
    }
}

/// Prints the PTX of a launch.
///
/// # Errors
/// For an unknown target, and if the kernel does not compile for it.
pub fn print_ptx(launch: &Launch<'_>, target: &str) -> Result<()> {
    let known = Target::by_name(target);
    let target = known.ok_or_else(|| anyhow::anyhow!("no target `{target}`; write sm_80 or sm_90a"))?;
    print!("{}", launch.ptx(&target)?);
    Ok(())
}

/// One measurement, printed as a line of JSON.
#[derive(Debug, Clone)]
pub struct Bench {
    /// The example.
    pub example: &'static str,
    /// Sizes and element type.
    pub shape: String,
    /// What was chosen: tiles, warps and so on.
    pub config: String,
    /// Median time in microseconds.
    pub us: f64,
}

impl Bench {
    /// Times what `work` queues. Needs a GPU.
    ///
    /// # Errors
    /// On the CPU, and what `work` returns.
    pub fn time(
        device: &Device,
        example: &'static str,
        shape: impl Into<String>,
        config: impl Into<String>,
        work: impl Fn(&Stream) -> tile_runtime::Result<()>,
    ) -> Result<Self> {
        anyhow::ensure!(device.is_cuda(), "--bench needs a GPU; write --device cuda");
        let us = median_us(device, work)?;
        Ok(Self { example, shape: shape.into(), config: config.into(), us })
    }

    /// Prints the time and the rate of `flops` operations.
    pub fn print_flops(&self, flops: f64) {
        let Self { example, shape, config, us } = self;
        let tflops = flops / us / 1e6;
        println!(
            r#"{{"example":"{example}","shape":"{shape}","config":"{config}","us":{us:.2},"tflops":{tflops:.1}}}"#
        );
    }

    /// Prints the time and the rate of `bytes` that have to be read or written, beside the rate at which this device
    /// copies as many.
    ///
    /// # Errors
    /// If the copy cannot run.
    pub fn print_bytes(&self, device: &Device, bytes: usize) -> Result<()> {
        let Self { example, shape, config, us } = self;
        let rate = bytes as f64 / us / 1e3;
        let copied = bytes as f64 / copy_us(device, bytes)? / 1e3;
        println!(
            r#"{{"example":"{example}","shape":"{shape}","config":"{config}","us":{us:.2},"gbps":{rate:.0},"copy_gbps":{copied:.0},"of_copy":{:.3}}}"#,
            rate / copied
        );
        Ok(())
    }
}

/// `out[i] = x[i]`, both `[n]`. Grid: tiles.
#[tile_kernel]
fn copy(x: Tensor<u32, 1>, out: TensorMut<u32, 1>, block: Const<usize>) {
    store(out, (bid(0),), load(x, (bid(0),), (block,)));
}

/// Time in microseconds of a copy that reads and writes `bytes` together.
fn copy_us(device: &Device, bytes: usize) -> Result<f64> {
    const BLOCK: usize = 2048;
    let n = bytes / 2 / size_of::<u32>();
    let x = DeviceTensor::<u32>::zeros(device, &[n])?;
    let out = DeviceTensor::<u32>::zeros(device, &[n])?;
    median_us(device, |stream| {
        let mut out = out.clone();
        let config = Config { num_warps: Some(4), ..Config::default() };
        copy(&x, &mut out, BLOCK).config(config).on(stream).launch(n.div_ceil(BLOCK))
    })
}

/// A large tensor: values of the standard normal distribution that repeat after about a million.
///
/// # Errors
/// If the device has no room.
pub fn large<T: Value>(device: &Device, seed: u64, shape: &[usize]) -> Result<DeviceTensor<T>> {
    // A prime: rows differ.
    const PERIOD: usize = 1_000_003;
    let period = normal::<T>(seed, PERIOD);
    let values: Vec<T> = period.into_iter().cycle().take(shape.iter().product()).collect();
    Ok(DeviceTensor::from_slice(device, shape, &values)?)
}
