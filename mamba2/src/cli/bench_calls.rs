//! `mamba2 bench-calls`: what one call of the forward pass costs the host, once it is warm.

use std::time::{Duration, Instant};

use half::bf16;
use mamba2::{
    Options, Workspace, case::Dtype, forward, forward_into, inputs, resident::Resident,
    tolerance::relative_l2,
};
use tile_runtime::Graph;
use tile_runtime::timing::median;

use super::{
    Result,
    shape_args::{ShapeArgs, fits_memory},
    text,
};
use crate::engine::open_device;

/// Calls in a burst: few enough not to fill the launch queue of a GPU.
const BURST: u32 = 32;
/// Bursts of which the time is the median.
const BURSTS: usize = 41;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to run: best, cpu, cuda or cuda:N
    #[arg(long, default_value = "best")]
    device: String,
    #[command(flatten)]
    shape: ShapeArgs,
}

/// Times calls, and compares a captured call with one that was not. False if they differ.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let (name, shape) = args.shape.resolve("m130m")?;
    fits_memory(&shape)?;
    let device = open_device(&args.device)?;
    if device.is_ptx_executor() {
        return Err("times of a PTX executor mean nothing; write best, cpu, cuda or cuda:N".into());
    }
    let case = inputs::generate(shape, Dtype::BF16, 0);
    let resident = Resident::<bf16, f32>::new(&device, &case)?;
    let inputs = resident.inputs();
    let stream = device.new_stream()?;
    let options = Options { stream: Some(stream.clone()), ..Options::default() };
    let expected = forward(&inputs, &options)?;
    let mut outputs = forward(&inputs, &options)?;
    let mut workspace = Workspace::new(&device);
    forward_into(&inputs, &options, &mut outputs, &mut workspace)?;
    stream.synchronize()?;
    let held = workspace.bytes();

    let mut times = Vec::with_capacity(BURSTS);
    for _ in 0..BURSTS {
        let start = Instant::now();
        for _ in 0..BURST {
            forward_into(&inputs, &options, &mut outputs, &mut workspace)?;
        }
        times.push(start.elapsed() / BURST);
        stream.synchronize()?;
    }
    println!("shape    {name}: {shape}, bf16");
    println!("device   {} ({device}), target {}", device.name(), mamba2::target_name(&device));
    let what = if device.is_cuda() { "host time" } else { "time" };
    println!("call     {} of {what}: median of {BURSTS} bursts of {BURST}", text::time(median(times)));
    if workspace.bytes() != held {
        return Err(format!("the workspace grew from {held} to {} bytes", workspace.bytes()).into());
    }
    if !device.is_cuda() {
        return Ok(true);
    }
    outputs.y.fill(bf16::ZERO)?;
    device.synchronize()?;
    let mut failure = None;
    let graph = Graph::capture(&stream, |_| {
        failure = forward_into(&inputs, &options, &mut outputs, &mut workspace).err();
        Ok(())
    });
    if let Some(error) = failure {
        return Err(error.into());
    }
    let graph = graph?;
    let start = Instant::now();
    graph.launch(&stream)?;
    let launch: Duration = start.elapsed();
    stream.synchronize()?;
    let error = relative_l2(
        &outputs.y.to_vec()?,
        &expected.y.to_vec()?.iter().map(|v| v.to_f32()).collect::<Vec<_>>(),
    );
    println!(
        "graph    launched in {}; its y {} that of a plain call",
        text::time(launch),
        if error == 0.0 { "equals" } else { "DIFFERS FROM" }
    );
    Ok(error == 0.0)
}
