//! `forward`: checks its inputs, and launches the three kernels.

use tile_runtime::DeviceTensor;

use crate::arguments::{FloatElement, Inputs, Options, Outputs, Value};
use crate::check::{check, fault, fits};
use crate::error::Result;
use crate::pass::Pass;
use crate::problem::Shape;
use crate::tuned;
use crate::workspace::Workspace;

/// The Mamba-2 forward pass on the device that holds the inputs:
///
/// ```text
/// dt  = clamp(softplus?(dt + dt_bias?), dt_limit)
/// S_t = exp(A dt_t) S_{t-1} + dt_t x_t B_t^T
/// y_t = (S_t C_t + D? x_t) silu(z_t)?
/// ```
///
/// `S` of each head, `[head_dim, state]`, begins as the initial state, or 0. [`Inputs`] has the shapes, [`Outputs`] what comes back.
///
/// Sums and carried states are f32; states between chunks are stored in x's type unless the options say otherwise. Work is
/// queued on the stream; reading a result waits for it.
///
/// # Errors
/// If shapes or devices do not fit each other, before anything runs; or if the device fails.
pub fn forward<T: Value, Dt: FloatElement, D: FloatElement, Z: FloatElement, S: FloatElement>(
    inputs: &Inputs<'_, T, Dt, D, Z, S>,
    options: &Options,
) -> Result<Outputs<T>> {
    let shape = check(inputs)?;
    let stream = options.stream.clone().unwrap_or_else(|| inputs.x.device().default_stream());
    let outputs = Outputs::uninit(inputs, shape)?;
    let mut workspace = Workspace::new(inputs.x.device());
    tuned::with_plan(inputs, options, shape, |plan| {
        Pass::new(inputs, (shape, plan), options, outputs.clone(), &mut workspace)?.run(&stream)
    })
}

/// As [`forward`], into outputs of an earlier pass with the same sizes, and with the memory of `workspace`: once that has
/// grown to the size of the pass, nothing is allocated, and the launches can be captured into a graph.
///
/// # Errors
/// As [`forward`], and if an output or the workspace does not fit the inputs.
pub fn forward_into<T: Value, Dt: FloatElement, D: FloatElement, Z: FloatElement, S: FloatElement>(
    inputs: &Inputs<'_, T, Dt, D, Z, S>,
    options: &Options,
    outputs: &mut Outputs<T>,
    workspace: &mut Workspace<T>,
) -> Result<()> {
    let shape = check(inputs)?;
    check_outputs(inputs, shape, outputs)?;
    if workspace.device() != inputs.x.device() {
        let found = format!("is on {}", workspace.device());
        return fault("workspace", found, format!("{}, where x is", inputs.x.device()));
    }
    let stream = options.stream.clone().unwrap_or_else(|| inputs.x.device().default_stream());
    if shape.tokens == 0 && inputs.sequences.is_some_and(|s| s.own_states()) {
        // No sequence has tokens, so that none writes to it.
        outputs.final_states.fill_on(&stream, 0.0)?;
    }
    tuned::with_plan(inputs, options, shape, |plan| {
        Pass::new(inputs, (shape, plan), options, outputs.clone(), workspace)?.run(&stream).map(drop)
    })
}

fn check_outputs<T: Value, Dt, D, Z, S>(
    inputs: &Inputs<'_, T, Dt, D, Z, S>,
    shape: Shape,
    outputs: &Outputs<T>,
) -> Result<()> {
    let Shape { batch, tokens, heads, head_dim, state, .. } = shape;
    let device = inputs.x.device();
    fits("outputs.y", &outputs.y, &[batch, tokens, heads, head_dim], device)?;
    fits("outputs.final_states", &outputs.final_states, &[batch, heads, head_dim, state], device)?;
    let wanted = inputs.sequences.filter(|s| s.own_states()).map(|s| s.count());
    let states = |t: &DeviceTensor<f32>, n: usize| {
        fits("outputs.sequence_states", t, &[n, heads, head_dim, state], device)
    };
    match (&outputs.sequence_states, wanted) {
        (Some(found), Some(count)) => states(found, count),
        (None, None) => Ok(()),
        (None, Some(count)) => {
            let expected = format!("[{count}, {heads}, {head_dim}, {state}], one a sequence");
            fault("outputs.sequence_states", "is absent".into(), expected)
        }
        (Some(_), None) => {
            fault("outputs.sequence_states", "is given".into(), "none, without sequences by offsets")
        }
    }
}
