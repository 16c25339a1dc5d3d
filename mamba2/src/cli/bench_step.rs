//! `mamba2 bench-step`: the time of one decode step beside that of a copy, on a GPU; checked before it is timed.

use std::time::Duration;

use half::bf16;
use mamba2::case::{Case, Dtype};
use mamba2::{
    Inputs, StepOptions, inputs, problem::Shape, reference, resident::Resident, step, step_into, tolerance,
    tolerance::relative_l2,
};
use serde::Serialize;
use tile_runtime::prelude::*;
use tile_runtime::timing::measure;

use super::Result;
use crate::engine::open_device;

/// Elements that a block copies.
const COPY_BLOCK: usize = 8192;
/// Values of the copy that sets the measure: 512 MiB read and as much written.
const COPY_VALUES: usize = 128 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to run: best, cuda or cuda:N
    #[arg(long, default_value = "best")]
    device: String,
    /// Batch elements
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "256")]
    batch: Vec<usize>,
    /// Tokens of each
    #[arg(long, value_name = "N", default_value_t = 1)]
    tokens: usize,
    /// Heads
    #[arg(long, value_name = "N", default_value_t = 80)]
    heads: usize,
    /// Groups of heads that share B and C
    #[arg(long, value_name = "N", default_value_t = 1)]
    groups: usize,
    /// Channels of one head
    #[arg(long, value_name = "N", default_value_t = 64)]
    head_dim: usize,
    /// State values of one channel
    #[arg(long, value_name = "N", default_value_t = 128)]
    state: usize,
}

/// One JSON line.
#[derive(Debug, Serialize)]
struct Row {
    step: [usize; 6],
    us: f64,
    /// Bytes that must move, over the time.
    gb_per_s: f64,
    copy_gb_per_s: f64,
    of_copy: f64,
    device: String,
}

/// Copies a vector. Grid: blocks of `block` elements.
#[tile_kernel]
fn copy(x: Tensor<f32, 1>, y: TensorMut<f32, 1>, block: Const<usize>) {
    store(y, (bid(0),), load(x, (bid(0),), (block,)));
}

/// Times all batch sizes. False if a result is wrong.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let device = open_device(&args.device)?;
    if !device.is_cuda() {
        return Err("bench-step takes a GPU: a step is measured against the GPU's copies".into());
    }
    let copy_rate = 8e-9 * COPY_VALUES as f64 / copy_time(&device)?.as_secs_f64();
    println!("{} ({device}): copy {copy_rate:.0} GB/s", device.name());
    println!("{:>6} {:>6} {:>6} {:>9} {:>9} {:>8}", "batch", "tokens", "heads", "us", "GB/s", "of copy");
    let mut lines = Vec::new();
    for &batch in &args.batch {
        let Args { tokens, heads, groups, head_dim, state, .. } = *args;
        let shape = Shape { batch, tokens, groups, heads, head_dim, state };
        shape.check()?;
        let time = time_step(&device, shape)?;
        // The f32 state is read and written; x and y, B and C, and dt are bf16.
        let bytes = 8 * shape.state_len() + 4 * shape.x_len() + 4 * shape.b_len() + 2 * shape.dt_len();
        let rate = 1e-9 * bytes as f64 / time.as_secs_f64();
        let us = 1e6 * time.as_secs_f64();
        println!(
            "{batch:>6} {tokens:>6} {heads:>6} {us:>9.1} {rate:>9.0} {:>7.1}%",
            100.0 * rate / copy_rate
        );
        lines.push(serde_json::to_string(&Row {
            step: [batch, tokens, groups, heads, head_dim, state],
            us,
            gb_per_s: rate,
            copy_gb_per_s: copy_rate,
            of_copy: rate / copy_rate,
            device: device.name().to_owned(),
        })?);
    }
    println!("\n{}", lines.join("\n"));
    Ok(true)
}

fn copy_time(device: &Device) -> Result<Duration> {
    let x = DeviceTensor::<f32>::zeros(device, &[COPY_VALUES])?;
    let mut y = DeviceTensor::<f32>::zeros(device, &[COPY_VALUES])?;
    let time = measure(device, &mut |stream| {
        copy(&x, &mut y, COPY_BLOCK).on(stream).launch(COPY_VALUES / COPY_BLOCK)
    })?;
    Ok(time.median)
}

fn time_step(device: &Device, shape: Shape) -> Result<Duration> {
    check(device, Shape { batch: shape.batch.min(2), ..shape })?;
    let case = inputs::generate(Shape { batch: 1, ..shape }, Dtype::BF16, 0);
    let one = Resident::<bf16, bf16>::new(device, &case)?;
    // Every batch element has the same inputs, and a state of its own.
    let repeat = |t: &DeviceTensor<bf16>| -> Result<DeviceTensor<bf16>> {
        let mut all = t.shape().to_vec();
        all[0] = shape.batch;
        Ok(DeviceTensor::from_slice(device, &all, &t.to_vec()?.repeat(shape.batch))?)
    };
    let (x, dt, b, c) = (repeat(&one.x)?, repeat(&one.dt)?, repeat(&one.b)?, repeat(&one.c)?);
    let Shape { batch, heads, head_dim, state, .. } = shape;
    let mut states = DeviceTensor::<f32>::zeros(device, &[batch, heads, head_dim, state])?;
    let mut y = DeviceTensor::<bf16>::zeros(device, x.shape())?;
    let inputs = Inputs::new(&x, &dt, &one.a, &b, &c).dt_softplus(true);
    let d = one.d.as_ref().expect("generated inputs have a skip weight");
    let time = measure(device, &mut |stream| {
        let options = StepOptions { stream: Some(stream.clone()), ..StepOptions::default() };
        step_into(&inputs.d(d), &mut states, &options, &mut y)
    })?;
    Ok(time.median)
}

/// Compares one step with float64.
fn check(device: &Device, shape: Shape) -> Result<()> {
    let states = inputs::generate(
        Shape { tokens: shape.state_len(), heads: 1, head_dim: 1, batch: 1, groups: 1, state: 1 },
        Dtype::F32,
        1,
    )
    .x;
    let case = Case { initial_states: Some(states), step: true, ..inputs::generate(shape, Dtype::BF16, 0) };
    let resident = Resident::<bf16, f32>::new(device, &case)?;
    let mut states = resident.initial_states.clone().expect("the case has states");
    let inputs = Inputs::new(&resident.x, &resident.dt, &resident.a, &resident.b, &resident.c);
    let d = resident.d.as_ref().expect("generated inputs have a skip weight");
    let y = step(&inputs.d(d), &mut states, &StepOptions::default())?.to_vec()?;
    let expected = reference::forward(&case.reference_inputs())?;
    let limits = tolerance::step(Dtype::BF16);
    let (y, state) = (relative_l2(&y, &expected.y), relative_l2(&states.to_vec()?, &expected.final_states));
    if y <= limits.y && state <= limits.state {
        return Ok(());
    }
    Err(format!("the step is wrong, so it was not timed: y {y:.2e}, state {state:.2e}").into())
}
