//! `mamba2 layer`: a whole mixer from a file of weights, over random tokens and then some steps of decoding.

use std::{path::PathBuf, time::Instant};

use half::{bf16, f16};
use mamba2::{
    Mixer, MixerOptions, MixerWeights,
    case::Dtype,
    inputs,
    mixer::reference::{self, MixerReference},
    problem::Shape,
    resident::HostFloat,
    tolerance::{self, Limits, relative_l2},
};
use tile_runtime::{Device, DeviceTensor};

use super::{Result, text};
use crate::engine::open_device;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Safetensors file with the tensors in_proj.weight, conv1d.weight, conv1d.bias, dt_bias, A_log, D, norm.weight and
    /// out_proj.weight, and in_proj.bias and out_proj.bias where the layer has them
    #[arg(long, value_name = "FILE")]
    weights: PathBuf,
    /// What their names begin with, such as backbone.layers.0.mixer.
    #[arg(long, value_name = "TEXT", default_value = "")]
    prefix: String,
    /// Groups of heads that share B and C
    #[arg(long, value_name = "N", default_value_t = 1)]
    groups: usize,
    /// The norm comes before the gate
    #[arg(long)]
    norm_before_gate: bool,
    /// Added to the mean square
    #[arg(long, value_name = "X", default_value_t = 1e-5)]
    epsilon: f32,
    /// Where to run: best, cpu, cuda, cuda:N, or ptx:sm_80 to execute the PTX on the CPU with checks for races and others
    #[arg(long, default_value = "best")]
    device: String,
    /// Element type of activations and projections: f32, f16 or bf16
    #[arg(long, default_value = "bf16")]
    dtype: Dtype,
    /// Number of independent rows
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: usize,
    /// Tokens of each row in one forward pass
    #[arg(long, value_name = "N", default_value_t = 64)]
    tokens: usize,
    /// Tokens that are decoded after it, one at a time
    #[arg(long, value_name = "N", default_value_t = 4)]
    steps: usize,
    /// Tokens in a chunk; chosen where not given
    #[arg(long, value_name = "N")]
    chunk: Option<usize>,
    /// Seed of the tokens
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Runs and prints. False if an error is above its limit.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let options = MixerOptions {
        groups: args.groups,
        norm_before_gate: args.norm_before_gate,
        epsilon: args.epsilon,
        chunk: args.chunk,
        ..MixerOptions::default()
    };
    let weights = MixerWeights::read(&args.weights, &args.prefix, &options)?;
    let rounded = weights.rounded(args.dtype);
    let device = open_device(&args.device)?;
    match args.dtype {
        Dtype::F32 => layer::<f32>(args, &device, &rounded, options),
        Dtype::F16 => layer::<f16>(args, &device, &rounded, options),
        Dtype::BF16 => layer::<bf16>(args, &device, &rounded, options),
    }
}

fn layer<T: HostFloat>(
    args: &Args,
    device: &Device,
    weights: &MixerWeights,
    options: MixerOptions,
) -> Result<bool> {
    let sizes = weights.sizes;
    let (batch, tokens) = (args.batch, args.tokens);
    let all = tokens.checked_add(args.steps).ok_or("so many tokens and steps cannot be counted")?;
    let shape = Shape { batch, tokens: all, groups: 1, heads: 1, head_dim: sizes.model, state: 1 };
    shape.check()?;
    super::shape_args::fits_memory(&shape)?;
    let host = inputs::generate(shape, args.dtype, args.seed).x;
    let values: Vec<T> = host.iter().map(|&v| T::from_f32(v)).collect();
    let u = DeviceTensor::from_slice(device, &[batch, all, sizes.model], &values)?;
    let mixer = Mixer::<T>::new(device, weights, options)?;

    let prompt = u.slice(1, 0..tokens)?;
    // The first run compiles; the second is the one that counts.
    mixer.forward(&prompt, None, None, None)?;
    device.synchronize()?;
    let start = Instant::now();
    let outputs = mixer.forward(&prompt, None, None, None)?;
    device.synchronize()?;
    let prefill = start.elapsed();
    let mut pieces = vec![outputs.out];
    let mut state = outputs.state;
    let start = Instant::now();
    for token in tokens..all {
        pieces.push(mixer.step(&u.slice(1, token..token + 1)?, &mut state, None, None)?);
    }
    device.synchronize()?;
    let decode = start.elapsed();

    println!(
        "layer    model {}, heads {}, head_dim {}, groups {}, state {}, width {}, {}",
        sizes.model, sizes.heads, sizes.head_dim, sizes.groups, sizes.state, sizes.width, args.dtype
    );
    println!("device   {} ({device}), target {}", device.name(), mamba2::target_name(device));
    println!("prefill  {batch} x {tokens} tokens: {}", text::time(prefill));
    if args.steps > 0 {
        println!("decode   {} steps: {}, the first with its compilation", args.steps, text::time(decode));
    }
    let wide: Vec<f64> = host.iter().map(|&v| v.into()).collect();
    let expected = reference::mixer(weights, &options, (batch, all), &wide, None)?;
    let ssm = relative_l2(&state.ssm.to_vec()?, &expected.ssm_state);
    Ok(judge(&pieces, (batch, sizes.model), ssm, &expected, tolerance::layer(args.dtype)))
}

/// Prints the errors beside their limits.
fn judge<T: HostFloat>(
    pieces: &[DeviceTensor<T>],
    (batch, model): (usize, usize),
    state: f64,
    expected: &MixerReference,
    limits: Limits,
) -> bool {
    let mut out: Vec<Vec<f32>> = vec![Vec::new(); batch];
    for piece in pieces {
        let Ok(values) = piece.to_vec() else { return false };
        let row = piece.shape()[1] * model;
        for (out, values) in out.iter_mut().zip(values.chunks(row.max(1))) {
            out.extend(values.iter().map(|&v| v.to_f32()));
        }
    }
    let errors = mamba2::golden::Errors { y: relative_l2(&out.concat(), &expected.out), state };
    let passed = errors.within(&limits);
    let word = if passed { "ok:" } else { "TOO LARGE:" };
    println!("error    {word} {}, all tokens against float64", text::errors(&errors, &limits));
    passed
}
