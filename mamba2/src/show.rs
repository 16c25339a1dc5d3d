//! `show`: the tile IR or PTX of a kernel of the forward pass, for given sizes, without a device.

use std::time::{Duration, Instant};

use tile_runtime::prelude::*;
use tile_runtime::{Config, DeviceTensor, Launch, Target, codegen};

use crate::arguments::{Inputs, Options, Value};
use crate::case::Dtype;
use crate::error::{Error, Result};
use crate::pass::whole;
use crate::problem::Shape;

/// The kernels of the forward pass, in order.
pub const KERNELS: [&str; 3] = ["chunk_cumsum", "fwd_pass_state", "compute_out"];

/// The text of `kernel` at `stage` (a pass, `staged` or `ptx`) for `target`, with the block sizes that `forward` would
/// choose for the problem.
///
/// # Errors
/// If a name is unknown, or the kernel does not compile.
pub fn show(
    kernel: &str,
    target: &str,
    stage: &str,
    shape: Shape,
    dtype: Dtype,
    chunk: Option<usize>,
) -> Result<String> {
    let target = target_named(target)?;
    with_launch(kernel, &target, shape, dtype, chunk, |launch| text(&launch, &target, stage))
}

/// What became of `kernel` for `target`: which path each load, product and store takes, and why no faster one.
///
/// # Errors
/// As [`show`].
pub fn explain(
    kernel: &str,
    target: &str,
    shape: Shape,
    dtype: Dtype,
    chunk: Option<usize>,
) -> Result<String> {
    let target = target_named(target)?;
    with_launch(kernel, &target, shape, dtype, chunk, |launch| Ok(launch.explain(&target)?))
}

/// The time from the staged kernel to its PTX, as the median of `repeats` compilations.
///
/// # Errors
/// As [`show`].
pub fn compile_time(
    kernel: &str,
    target: &str,
    shape: Shape,
    dtype: Dtype,
    chunk: Option<usize>,
    repeats: usize,
) -> Result<Duration> {
    let target = target_named(target)?;
    with_launch(kernel, &target, shape, dtype, chunk, |launch| {
        launch.ptx(&target)?;
        let staged = launch.stage()?;
        let mut times = Vec::new();
        for _ in 0..repeats.max(1) {
            let start = Instant::now();
            let compiled = codegen::compile::compile(&staged.kernel, &target, &Config::default());
            times.push(start.elapsed());
            drop(compiled);
        }
        times.sort_unstable();
        Ok(times[times.len() / 2])
    })
}

fn target_named(name: &str) -> Result<Target> {
    Target::by_name(name).ok_or_else(|| Error::Unknown {
        what: "target",
        name: name.into(),
        known: codegen::target::TARGETS.iter().map(|t| t.name).collect::<Vec<_>>().join(", "),
    })
}

fn with_launch<R>(
    kernel: &str,
    target: &Target,
    shape: Shape,
    dtype: Dtype,
    chunk: Option<usize>,
    work: impl FnOnce(Launch<'_>) -> Result<R>,
) -> Result<R> {
    match dtype {
        Dtype::F32 => with_launch_of::<f32, R>(kernel, target, shape, chunk, work),
        Dtype::F16 => with_launch_of::<f16, R>(kernel, target, shape, chunk, work),
        Dtype::BF16 => with_launch_of::<bf16, R>(kernel, target, shape, chunk, work),
    }
}

/// A launch on tensors of the meta device.
fn with_launch_of<T: Value, R>(
    kernel: &str,
    target: &Target,
    shape: Shape,
    chunk: Option<usize>,
    work: impl FnOnce(Launch<'_>) -> Result<R>,
) -> Result<R> {
    let Shape { batch, tokens, groups, heads, head_dim, state } = shape;
    let x = DeviceTensor::<T>::meta(&[batch, tokens, heads, head_dim])?;
    let dt = DeviceTensor::<f32>::meta(&[batch, tokens, heads])?;
    let per_head = DeviceTensor::<f32>::meta(&[heads])?;
    let b = DeviceTensor::<T>::meta(&[batch, tokens, groups, state])?;
    let inputs = Inputs::new(&x, &dt, &per_head, &b, &b).d(&per_head);
    let mut pass = whole(&inputs, &Options { chunk, ..Options::default() }, Some(*target))?;
    let (launch, _) = pass.launch(kernel)?;
    work(launch)
}

fn text(launch: &Launch<'_>, target: &Target, stage: &str) -> Result<String> {
    let staged = launch.stage()?;
    if stage == "staged" {
        return Ok(codegen::ir::print(&staged.kernel));
    }
    if stage == "ptx" {
        return Ok(launch.ptx(target)?);
    }
    let mut found = None;
    // A kernel that does not fit the target still has the stages before that is found out.
    let compiled = codegen::compile::compile_observed(
        &staged.kernel,
        target,
        &Config::default(),
        &mut |pass, kernel| {
            if pass == stage {
                found = Some(codegen::ir::print(kernel));
            }
        },
    );
    match (found, compiled) {
        (Some(text), _) => Ok(text),
        (None, Err(_)) => Ok(launch.ptx(target)?),
        (None, Ok(_)) => {
            let passes = codegen::passes::PASSES.iter().map(|p| p.id);
            let known: Vec<&str> = ["staged"].into_iter().chain(passes).chain(["ptx"]).collect();
            Err(Error::Unknown { what: "stage", name: stage.into(), known: known.join(", ") })
        }
    }
}
