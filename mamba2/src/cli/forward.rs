//! `mamba2 forward`: one forward pass with its figures.

use std::{path::PathBuf, time::Duration};

use mamba2::{
    case::{Case, Dtype},
    file, inputs, tolerance,
};

use super::{
    Result, accuracy,
    shape_args::{ShapeArgs, fits_memory},
    text,
};
use crate::engine::Engine;

/// The shape of a layer of a published model that a CPU finishes in a moment.
const DEFAULT_SHAPE: &str = "m130m";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to run: best, cpu, cuda, cuda:N, or ptx:sm_80 to execute the PTX on the CPU with checks for races and others
    #[arg(long, default_value = "best")]
    device: String,
    /// Compile for this target, such as sm_80, instead of the one that suits the device
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Element type of x, B, C and y: f32, f16 or bf16 [default: bf16]
    #[arg(long)]
    dtype: Option<Dtype>,
    /// Tokens of one chunk; chosen where not given
    #[arg(long, value_name = "N")]
    chunk: Option<usize>,
    /// Seed of the generated inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Read the inputs from a safetensors file instead of generating them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ShapeArgs", "dtype"])]
    input: Option<PathBuf>,
    /// Write y and state to a safetensors file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs and prints. False if an error is above its limit.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let (name, case) = problem(args)?;
    if case.step {
        return Err(format!(
            "{name} holds a decode step, not a forward pass; `mamba2 check` runs golden files of both"
        )
        .into());
    }
    let engine = Engine::open(&args.device)?.with_target(args.target.as_deref())?;
    let loaded = engine.load(&case, args.chunk.or(case.chunk))?;
    // The first run compiles; the second is the one that counts.
    let output = loaded.run()?;
    let time = loaded.time_once()?;
    println!("shape    {name}: {}, {}", case.shape, case.dtype);
    println!("device   {}", engine.device_name());
    println!("target   {}", engine.target_name());
    let choice = loaded.choice()?;
    println!("chunk    {}{}", choice.chunk, if choice.tuned { ", a result of tuning" } else { "" });
    println!("time     {}, {} tokens/s", text::time(time), tokens_per_second(&case, time));
    if let Some(path) = &args.output {
        file::write_outputs(path, case.shape, case.dtype, &output.y, &output.final_states)?;
    }
    let expected = accuracy::reference_heads(&case)?;
    let errors = accuracy::errors(&case, &expected, &output);
    let limits = tolerance::forward(case.dtype, None);
    let passed = errors.within(&limits);
    println!(
        "error    {} {}, all tokens of {} heads against float64",
        if passed { "ok:" } else { "TOO LARGE:" },
        text::errors(&errors, &limits),
        expected.len()
    );
    if let Some(counts) = engine.counts() {
        println!("\nof both runs together:\n{counts}");
    }
    Ok(passed)
}

fn problem(args: &Args) -> Result<(String, Case)> {
    if let Some(path) = &args.input {
        return Ok((path.display().to_string(), file::read_case(path)?));
    }
    let (name, shape) = args.shape.resolve(DEFAULT_SHAPE)?;
    fits_memory(&shape)?;
    Ok((name, inputs::generate(shape, args.dtype.unwrap_or(Dtype::BF16), args.seed)))
}

fn tokens_per_second(case: &Case, time: Duration) -> u64 {
    ((case.shape.batch * case.shape.tokens) as f64 / time.as_secs_f64().max(1e-9)) as u64
}
