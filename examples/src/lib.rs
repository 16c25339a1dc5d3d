//! What the examples share: their command line, random inputs, and the comparison with a float64 computation.
//!
//! Each example is one file of the folder `examples`, a kernel and a program that checks it:
//!
//! ```text
//! cargo run --release -p examples --example matmul -- --device cpu
//! ```

mod bench;
mod check;
mod timing;

pub use bench::{Bench, BenchOption, large, print_ptx};
pub use check::{Check, compare};
pub use timing::median_us;

use std::process::ExitCode;

use rand::{Rng, SeedableRng, rngs::StdRng};
use rand_distr::StandardNormal;
use tile_runtime::prelude::{Device, Float, HostElement, MmaOperand};

/// What an example returns.
pub type Result<T> = anyhow::Result<T>;

/// The option that every example has.
#[derive(Debug, Clone, clap::Args)]
pub struct DeviceOption {
    /// Where to run: best, cpu, cuda, cuda:N or ptx:sm_80
    #[arg(long, default_value = "best")]
    device: String,
}

impl DeviceOption {
    /// Opens the device.
    ///
    /// # Errors
    /// For a name that is none, and when the device cannot be used.
    pub fn open(&self) -> Result<Device> {
        match self.device.as_str() {
            "best" => Ok(Device::best()),
            "meta" => {
                anyhow::bail!("the meta device runs nothing; write best, cpu, cuda, cuda:N or ptx:sm_80")
            }
            name => Ok(Device::parse(name)?),
        }
    }
}

/// The body of an example's `main`: opens the device, runs the checks, prints a line for each. The exit code is 1 if
/// a check fails or cannot run.
pub fn run(
    name: &str,
    device: &DeviceOption,
    checks: impl FnOnce(&Device) -> Result<Vec<Check>>,
) -> ExitCode {
    let outcome = device.open().and_then(|device| Ok((checks(&device)?, device)));
    match outcome {
        Ok((checks, device)) => {
            for check in &checks {
                println!("{name} device={device} {check}");
            }
            ExitCode::from(u8::from(!checks.iter().all(Check::passed)))
        }
        Err(error) => {
            eprintln!("{name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A floating-point element type of tensors that matrix products take: f32, f16 and bf16.
pub trait Value: HostElement + Float + MmaOperand {
    /// Its name.
    const NAME: &str;
    /// Half the distance from 1 to the next number: the largest relative error of one rounding.
    const ROUNDING: f64;
    /// The nearest value.
    fn from_f32(x: f32) -> Self;
    /// The value, exactly.
    fn to_f64(self) -> f64;
}

macro_rules! value {
    ($ty:ty, $name:literal, $bits:literal, $from:expr) => {
        impl Value for $ty {
            const NAME: &str = $name;
            const ROUNDING: f64 = 1.0 / (1u64 << $bits) as f64;
            fn from_f32(x: f32) -> Self {
                $from(x)
            }
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
        }
    };
}
value!(f32, "f32", 24, std::convert::identity);
value!(half::f16, "f16", 11, half::f16::from_f32);
value!(half::bf16, "bf16", 8, half::bf16::from_f32);

/// `count` values of the standard normal distribution, rounded to `T`; the same ones for each `seed`.
pub fn normal<T: Value>(seed: u64, count: usize) -> Vec<T> {
    let rng = StdRng::seed_from_u64(seed);
    rng.sample_iter::<f32, _>(StandardNormal).take(count).map(T::from_f32).collect()
}

/// Values as f64.
pub fn to_f64<T: Value>(values: &[T]) -> Vec<f64> {
    values.iter().map(|&x| x.to_f64()).collect()
}
