//! `mamba2 show`: what a kernel becomes.

use mamba2::{Variant, With, case::Dtype, problem::Shape};

use super::{Result, shape_args::ShapeArgs};

/// Compilations of which `--time` prints the median.
const COMPILATIONS: usize = 21;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Kernel: chunk_cumsum, fwd_pass_state, compute_out, or step, which has one token unless --tokens says otherwise
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
    /// Optional inputs that the kernel has, separated by commas: bias, softplus, limit (run-time values: the same code),
    /// d-per-channel, z, seq-idx, cu-seqlens (of one batch element), initial, f32-states (between chunks), slots (of step)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    with: Vec<With>,
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
    let tokens = if args.kernel == "step" { args.shape.tokens.unwrap_or(1) } else { shape.tokens };
    let variant = Variant {
        kernel: &args.kernel,
        target: &args.target,
        shape: Shape { tokens, ..shape },
        dtype: args.dtype,
        chunk: args.chunk,
        with: &args.with,
    };
    if args.time {
        let ms = variant.compile_time(COMPILATIONS)?.as_secs_f64() * 1e3;
        println!("{}: {ms:.2} ms from staged kernel to PTX for {}", args.kernel, args.target);
    } else if args.explain {
        print!("{}", variant.explain()?);
    } else {
        print!("{}", variant.show(&args.stage)?);
    }
    Ok(true)
}
