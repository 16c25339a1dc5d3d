//! Measures what the first launch of a process costs: without the cache of linked code, with an empty cache, and with
//! what an earlier process kept; then what a launch costs once its kernel is in memory.
//!
//! Each measurement is a process of its own, in which the NVIDIA driver's own cache is off. One JSON line a process:
//!
//! | key | meaning |
//! |---|---|
//! | `cache` | `off`, `empty` (this process fills it) or `warm` |
//! | `open_ms` | opening the device |
//! | `little_ms` | first launch of a kernel that stores one number, until it has run |
//! | `forward_ms` | first forward pass, three kernels, until it has run; tensors exist already |
//! | `again_us` | a later forward pass, until it has run: median |
//! | `launch_us` | host time of one later launch of the little kernel: best of 5 bursts |
//! | `entries`, `bytes` | files of the cache when the process ends, and their size |

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Parser;
use half::bf16;
use mamba2::problem::{self, Shape};
use mamba2::{Inputs, Options, forward};
use tile_runtime::cache;
use tile_runtime::prelude::*;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Launches in a burst: few enough not to fill the launch queue of a GPU.
const BURST: u32 = 500;

/// Stores one number, for nine arguments. Grid: one block.
#[tile_kernel]
#[allow(unused_variables)]
fn little(
    a: Tensor<f32, 3>,
    b: Tensor<f32, 3>,
    c: Option<Tensor<f32, 3>>,
    d: Option<Tensor<f32, 3>>,
    factor: Scalar<f32>,
    rows: Const<usize>,
    columns: Const<usize>,
    ordered: Const<bool>,
    out: TensorMut<f32, 1>,
) {
    store(out, (0,), full((1,), factor));
}

/// Measures first launches with the cache of linked code off, empty and warm; a JSON line for each.
#[derive(Parser)]
struct Cli {
    /// Where to run: best, cpu, cuda or cuda:N
    #[arg(long, default_value = "best")]
    device: String,
    /// Named shape of the forward pass, in bf16
    #[arg(long, default_value = "m130m")]
    shape: String,
    /// How often all three are measured
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Measure this process alone, and call its cache so
    #[arg(long, hide = true)]
    measure: Option<String>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.measure {
        Some(label) => measure(&cli, label),
        None => (0..cli.rounds).try_for_each(|_| round(&cli)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Three processes, the last two of which share a folder that is new.
fn round(cli: &Cli) -> Result<()> {
    let folder = tempfile::tempdir()?;
    for label in ["off", "empty", "warm"] {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--device", &cli.device, "--shape", &cli.shape, "--measure", label]);
        command.env("CUDA_CACHE_DISABLE", "1").env_remove("TILE_CACHE").env("TILE_CACHE_DIR", folder.path());
        if label == "off" {
            command.env("TILE_CACHE", "off");
        }
        if !command.status()?.success() {
            return Err(format!("the process with cache {label} failed").into());
        }
    }
    Ok(())
}

fn measure(cli: &Cli, label: &str) -> Result<()> {
    let shape = problem::named(&cli.shape)?;
    let start = Instant::now();
    let device = if cli.device == "best" { Device::best() } else { Device::parse(&cli.device)? };
    let open_ms = ms(start);
    let little = Little::new(&device)?;
    let tensors = Tensors::new(&device, shape)?;
    device.synchronize()?;

    let start = Instant::now();
    little.launch()?;
    device.synchronize()?;
    let little_ms = ms(start);

    let start = Instant::now();
    tensors.forward(&device)?;
    let forward_ms = ms(start);

    let mut again: Vec<f64> = Vec::new();
    for _ in 0..if device.is_cuda() { 21 } else { 3 } {
        let start = Instant::now();
        tensors.forward(&device)?;
        again.push(ms(start) * 1e3);
    }
    again.sort_by(f64::total_cmp);

    let (entries, bytes) = cache::dir().map_or((0, 0), |folder| size(&folder));
    let line = serde_json::json!({
        "bench": "first_launch",
        "cache": label,
        "device": device.name(),
        "target": mamba2::target_name(&device),
        "shape": cli.shape,
        "open_ms": rounded(open_ms),
        "little_ms": rounded(little_ms),
        "forward_ms": rounded(forward_ms),
        "again_us": rounded(again[again.len() / 2]),
        "launch_us": rounded(little.best_us(&device)?),
        "entries": entries,
        "bytes": bytes,
    });
    println!("{line}");
    Ok(())
}

/// The arguments of the little kernel.
struct Little {
    inputs: [DeviceTensor<f32>; 3],
    out: std::cell::RefCell<DeviceTensor<f32>>,
}

impl Little {
    fn new(device: &Device) -> Result<Self> {
        let input = || DeviceTensor::zeros(device, &[4, 64, 32]);
        let out = DeviceTensor::zeros(device, &[1])?.into();
        Ok(Self { inputs: [input()?, input()?, input()?], out })
    }

    fn launch(&self) -> Result<()> {
        let [a, b, c] = &self.inputs;
        Ok(little(a, b, Some(c), None, 2.0, 64, 32, true, &mut self.out.borrow_mut()).launch(1)?)
    }

    /// Host time of a launch in microseconds.
    fn best_us(&self, device: &Device) -> Result<f64> {
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let start = Instant::now();
            for _ in 0..BURST {
                self.launch()?;
            }
            best = best.min(ms(start) * 1e3 / f64::from(BURST));
            device.synchronize()?;
        }
        Ok(best)
    }
}

/// The inputs of the forward pass. Their values do not change its time.
struct Tensors {
    x: DeviceTensor<bf16>,
    dt: DeviceTensor<f32>,
    a: DeviceTensor<f32>,
    b: DeviceTensor<bf16>,
    c: DeviceTensor<bf16>,
}

impl Tensors {
    fn new(device: &Device, shape: Shape) -> Result<Self> {
        let Shape { batch, tokens, groups, heads, head_dim, state } = shape;
        let value = bf16::from_f32(0.5);
        Ok(Self {
            x: DeviceTensor::full(device, &[batch, tokens, heads, head_dim], value)?,
            dt: DeviceTensor::full(device, &[batch, tokens, heads], 0.1)?,
            a: DeviceTensor::full(device, &[heads], -1.0)?,
            b: DeviceTensor::full(device, &[batch, tokens, groups, state], value)?,
            c: DeviceTensor::full(device, &[batch, tokens, groups, state], value)?,
        })
    }

    /// One forward pass, until it has run.
    fn forward(&self, device: &Device) -> Result<()> {
        let Self { x, dt, a, b, c } = self;
        let inputs = Inputs::new(x, dt, a, b, c);
        forward(&inputs, &Options::default())?;
        Ok(device.synchronize()?)
    }
}

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Number and bytes of the files of a folder; zeros if there is none.
fn size(folder: &Path) -> (usize, u64) {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes: Vec<u64> = files.filter_map(|file| Some(file.metadata().ok()?.len())).collect();
    (sizes.len(), sizes.iter().sum())
}
