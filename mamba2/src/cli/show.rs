//! `mamba2 show`: what a kernel becomes.

use mamba2::case::Dtype;

use super::{Result, shape_args::ShapeArgs};
use crate::engine::{self, ShowRequest};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Kernel: chunk_cumsum, fwd_pass_state or compute_out
    kernel: String,
    /// Target, such as sm_80
    #[arg(long, default_value = "sm_80")]
    target: String,
    /// The pass after which to print the tile IR, or ptx
    #[arg(long, value_name = "PASS", default_value = "ptx")]
    stage: String,
    /// Print how long it takes from the staged kernel to PTX instead (median of 21)
    #[arg(long)]
    time: bool,
    /// Print which path each load, product and store takes instead, and why no faster one
    #[arg(long, conflicts_with_all = ["time", "stage"])]
    explain: bool,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Element type of x, B, C and y: f32, f16 or bf16
    #[arg(long, default_value_t = Dtype::BF16)]
    dtype: Dtype,
    /// Tokens of one chunk; chosen where not given
    #[arg(long, value_name = "N")]
    chunk: Option<usize>,
}

/// Prints the text (or the time) and nothing else.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let (_, shape) = args.shape.resolve("seed")?;
    let request = ShowRequest {
        kernel: &args.kernel,
        target: &args.target,
        stage: &args.stage,
        shape,
        dtype: args.dtype,
        chunk: args.chunk,
    };
    if args.time {
        let ms = engine::compile_time(&request)?.as_secs_f64() * 1e3;
        println!("{}: {ms:.2} ms from staged kernel to PTX for {}", args.kernel, args.target);
    } else if args.explain {
        print!("{}", engine::explain(&request)?);
    } else {
        print!("{}", engine::show(&request)?);
    }
    Ok(true)
}
