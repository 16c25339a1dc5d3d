//! `forward`: checks its inputs, allocates, and launches the three kernels.

use tile_runtime::prelude::*;
use tile_runtime::{Device, DeviceTensor, Element, Launch, Stream};

use crate::error::{Error, Result};
use crate::kernels;
use crate::plan::Plan;
use crate::problem::Shape;

/// Element types of x, B, C and y: f32 (exact products), f16 and bf16 (products on tensor cores, sums in f32).
pub trait Value: Element + Storable + MmaOperand + Float {}
impl<T: Element + Storable + MmaOperand + Float> Value for T {}

/// The inputs of a forward pass. Any strides are fine, also 0.
#[derive(Clone, Copy)]
pub struct Inputs<'a, T> {
    /// `[batch, tokens, heads, head_dim]`. A value that is not finite may spread to its channel's earlier tokens too, of
    /// the same block of up to 64.
    pub x: &'a DeviceTensor<T>,
    /// `[batch, tokens, heads]`, used as given; negative steps count as 0.
    pub dt: &'a DeviceTensor<f32>,
    /// `[heads]`, negative: the decay of each head.
    pub a: &'a DeviceTensor<f32>,
    /// `[batch, tokens, groups, state]`; heads must be a multiple of groups.
    pub b: &'a DeviceTensor<T>,
    /// As `b`.
    pub c: &'a DeviceTensor<T>,
    /// `[heads]`: the skip connection `y += D x`.
    pub d: Option<&'a DeviceTensor<f32>>,
    /// `[batch, heads, head_dim, state]`: the state before the first token; zero if absent.
    pub initial_states: Option<&'a DeviceTensor<f32>>,
}

/// Choices that do not change the result beyond rounding.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Tokens in a chunk: a power of two from 16 to 256. Chosen when not given.
    pub chunk: Option<usize>,
    /// The stream to launch on; the device's default one when not given.
    pub stream: Option<Stream>,
}

/// The results of a forward pass.
#[derive(Clone)]
pub struct Outputs<T> {
    /// `[batch, tokens, heads, head_dim]`
    pub y: DeviceTensor<T>,
    /// `[batch, heads, head_dim, state]`: the state after the last token.
    pub final_states: DeviceTensor<f32>,
}

/// The Mamba-2 forward pass on the device that holds the inputs:
///
/// ```text
/// S_t = exp(A dt_t) S_{t-1} + dt_t x_t B_t^T,   y_t = S_t C_t + D x_t
/// ```
///
/// Sums and carried states are f32; states between chunks are stored in x's type. Work is queued on the stream; reading
/// a result waits for it.
///
/// # Errors
/// If shapes or devices do not fit each other, before anything runs; or if the device fails.
pub fn forward<T: Value>(inputs: &Inputs<'_, T>, options: &Options) -> Result<Outputs<T>> {
    let shape = check(inputs)?;
    let plan = Plan::new::<T>(shape, options.chunk, tile_runtime::target_of(inputs.x.device()))?;
    let mut pass = Pass::new(inputs, shape, plan)?;
    let stream = match &options.stream {
        Some(stream) => stream.clone(),
        None => inputs.x.device().default_stream(),
    };
    for kernel in crate::KERNELS {
        pass.queue(kernel, &stream)?;
    }
    Ok(Outputs { y: pass.y, final_states: pass.final_states })
}

/// One kernel of a forward pass with the buffers of a whole pass, to be queued again and again: for timing it alone.
pub struct Rerun<'a, T> {
    pass: Pass<'a, T>,
    kernel: &'static str,
}

impl<'a, T: Value> Rerun<'a, T> {
    /// Runs a whole pass, so that the kernel finds what it reads.
    ///
    /// # Errors
    /// As [`forward`], and for a name that is not among [`KERNELS`](crate::KERNELS).
    pub fn new(inputs: &Inputs<'a, T>, options: &Options, kernel: &str) -> Result<Self> {
        let kernel = crate::KERNELS.into_iter().find(|known| *known == kernel).ok_or_else(|| {
            Error::Unknown { what: "kernel", name: kernel.into(), known: crate::KERNELS.join(", ") }
        })?;
        let shape = check(inputs)?;
        let device = inputs.x.device();
        let plan = Plan::new::<T>(shape, options.chunk, tile_runtime::target_of(device))?;
        let mut pass = Pass::new(inputs, shape, plan)?;
        let stream = options.stream.clone().unwrap_or_else(|| device.default_stream());
        for kernel in crate::KERNELS {
            pass.queue(kernel, &stream)?;
        }
        Ok(Self { pass, kernel })
    }

    /// Queues the kernel.
    ///
    /// # Errors
    /// If the device fails.
    pub fn queue(&mut self, stream: &Stream) -> Result<()> {
        self.pass.queue(self.kernel, stream)
    }
}

/// The products keep their accumulators in registers, as many as so many blocks leave; none may spill.
fn occupancy(blocks: u32) -> Config {
    Config { occupancy: Some(blocks), ..Config::default() }
}

/// Everything that the three kernels read and write.
pub(crate) struct Pass<'a, T> {
    inputs: Inputs<'a, T>,
    shape: Shape,
    plan: Plan,
    dt: DeviceTensor<f32>,
    decay: DeviceTensor<f32>,
    chunk_states: DeviceTensor<T>,
    y: DeviceTensor<T>,
    final_states: DeviceTensor<f32>,
}

impl<'a, T: Value> Pass<'a, T> {
    /// Allocates intermediates and outputs on the inputs' device.
    pub(crate) fn new(inputs: &Inputs<'a, T>, shape: Shape, plan: Plan) -> Result<Self> {
        let Shape { batch, tokens, heads, head_dim, state, .. } = shape;
        let (device, chunks) = (inputs.x.device(), tokens.div_ceil(plan.chunk));
        let padded = [batch, heads, chunks * plan.chunk];
        Ok(Self {
            inputs: *inputs,
            shape,
            plan,
            dt: DeviceTensor::uninit(device, &padded)?,
            decay: DeviceTensor::uninit(device, &padded)?,
            chunk_states: DeviceTensor::uninit(device, &[batch, heads, chunks, head_dim, state])?,
            y: DeviceTensor::uninit(device, &[batch, tokens, heads, head_dim])?,
            final_states: DeviceTensor::uninit(device, &[batch, heads, head_dim, state])?,
        })
    }

    fn queue(&mut self, kernel: &str, stream: &Stream) -> Result<()> {
        let (launch, grid) = match kernel {
            "chunk_cumsum" => self.chunk_cumsum(),
            "fwd_pass_state" => self.fwd_pass_state(),
            _ => self.compute_out(),
        };
        Ok(launch.on(stream).launch(grid)?)
    }

    pub(crate) fn chunk_cumsum(&mut self) -> (Launch<'_>, [usize; 3]) {
        let Plan { chunk, block_heads, .. } = self.plan;
        let grid =
            [self.shape.tokens.div_ceil(chunk), self.shape.heads.div_ceil(block_heads), self.shape.batch];
        let launch = kernels::chunk_cumsum(
            self.inputs.a,
            self.inputs.dt,
            &mut self.dt,
            &mut self.decay,
            chunk,
            block_heads,
        );
        (launch, grid)
    }

    pub(crate) fn fwd_pass_state(&mut self) -> (Launch<'_>, [usize; 3]) {
        let Plan { chunk, state_tokens, state_head_dim, state_state, .. } = self.plan;
        let Shape { batch, heads, head_dim, state, groups, .. } = self.shape;
        let grid = [head_dim.div_ceil(state_head_dim), state.div_ceil(state_state), batch * heads];
        let launch = kernels::fwd_pass_state(
            self.inputs.x,
            self.inputs.b,
            &self.dt,
            &self.decay,
            self.inputs.initial_states,
            &mut self.chunk_states,
            &mut self.final_states,
            (heads / groups.max(1)) as i32,
            chunk,
            state_tokens,
            state_head_dim,
            state_state,
        );
        (launch.config(occupancy(self.plan.state_occupancy)), grid)
    }

    pub(crate) fn compute_out(&mut self) -> (Launch<'_>, [usize; 3]) {
        let Plan { chunk, out_tokens, out_head_dim, out_state, .. } = self.plan;
        let Shape { batch, tokens, heads, head_dim, state, groups } = self.shape;
        let grid = [tokens.div_ceil(out_tokens), head_dim.div_ceil(out_head_dim), batch * heads];
        let launch = kernels::compute_out(
            self.inputs.x,
            self.inputs.b,
            self.inputs.c,
            &self.dt,
            &self.decay,
            self.inputs.d,
            &self.chunk_states,
            &mut self.y,
            (heads / groups.max(1)) as i32,
            chunk,
            out_tokens,
            out_head_dim,
            out_state,
            state.div_ceil(out_state),
        );
        (launch.config(occupancy(self.plan.out_occupancy)), grid)
    }
}

fn fault<T>(argument: &'static str, found: String, expected: String) -> Result<T> {
    Err(Error::Argument { argument, found, expected })
}

/// Checks an argument's shape and device.
fn fits<T: Element>(
    argument: &'static str,
    t: &DeviceTensor<T>,
    shape: &[usize],
    device: &Device,
) -> Result<()> {
    if t.shape() != shape {
        return fault(argument, format!("has shape {:?}", t.shape()), format!("{shape:?}"));
    }
    if t.device() != device {
        let expected = format!("{device}, where x is; copy it with `to_device`");
        return fault(argument, format!("is on {}", t.device()), expected);
    }
    Ok(())
}

/// The problem's sizes, if all inputs agree on them.
fn check<T: Element>(inputs: &Inputs<'_, T>) -> Result<Shape> {
    let &[batch, tokens, heads, head_dim] = inputs.x.shape() else {
        let found = format!("has shape {:?}", inputs.x.shape());
        return fault("x", found, "[batch, tokens, heads, head_dim]".into());
    };
    let &[_, _, groups, state] = inputs.b.shape() else {
        return fault(
            "b",
            format!("has shape {:?}", inputs.b.shape()),
            "[batch, tokens, groups, state]".into(),
        );
    };
    if groups == 0 || heads % groups != 0 {
        let found = format!("has {groups} groups");
        return fault("b", found, format!("a number of groups that divides the {heads} heads"));
    }
    for (argument, size, of) in [("x", head_dim, "head_dim"), ("b", state, "state")] {
        if !(1..=256).contains(&size) {
            return fault(argument, format!("has {of} {size}"), "1 to 256".into());
        }
    }
    let device = inputs.x.device();
    fits("dt", inputs.dt, &[batch, tokens, heads], device)?;
    fits("a", inputs.a, &[heads], device)?;
    fits("b", inputs.b, &[batch, tokens, groups, state], device)?;
    fits("c", inputs.c, &[batch, tokens, groups, state], device)?;
    if let Some(d) = inputs.d {
        fits("d", d, &[heads], device)?;
    }
    if let Some(initial) = inputs.initial_states {
        fits("initial_states", initial, &[batch, heads, head_dim, state], device)?;
    }
    Ok(Shape { batch, tokens, groups, heads, head_dim, state })
}
