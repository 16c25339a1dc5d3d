//! One forward pass, ready to be launched: inputs, block sizes, and the memory of its three kernels.

use tile_runtime::prelude::*;
use tile_runtime::{DeviceTensor, Launch, Stream, Target};

use crate::arguments::{FloatElement, Inputs, Options, Outputs, Value};
use crate::check::check;
use crate::error::{Error, Result};
use crate::kernels;
use crate::plan::Plan;
use crate::problem::Shape;
use crate::sequences::Sequences;
use crate::tuned;
use crate::workspace::{ChunkStates, Intermediates, Workspace};

/// Everything that the three kernels read and write.
pub(crate) struct Pass<'a, T, Dt, D, Z, S> {
    inputs: Inputs<'a, T, Dt, D, Z, S>,
    shape: Shape,
    pub(crate) plan: Plan,
    /// D as `[heads, head_dim]`, or `[heads, 1]`.
    d: Option<DeviceTensor<D>>,
    pub(crate) between: Intermediates<T>,
    pub(crate) outputs: Outputs<T>,
    /// As in the options.
    target: Option<Target>,
}

/// D as a matrix: `[heads, 1]` where there is one value a head.
pub(crate) fn d_matrix<D: FloatElement>(d: Option<&DeviceTensor<D>>) -> Result<Option<DeviceTensor<D>>> {
    let Some(d) = d else { return Ok(None) };
    if d.rank() == 2 {
        return Ok(Some(d.clone()));
    }
    Ok(Some(d.with_strides(&[d.shape()[0], 1], &[d.strides()[0], 0], d.offset_elements())?))
}

/// The products keep their accumulators in registers, as many as so many blocks leave; none may spill.
fn config(blocks: usize, warps: usize, stages: usize, plain: usize) -> Config {
    Config {
        occupancy: Some(blocks as u32),
        num_warps: (warps > 0).then_some(warps),
        stages: (stages > 0).then_some(stages),
        allow_tma: (plain > 0).then_some(false),
    }
}

impl<'a, T: Value, Dt: FloatElement, D: FloatElement, Z: FloatElement, S: FloatElement>
    Pass<'a, T, Dt, D, Z, S>
{
    /// A pass that writes to `outputs`, whose shapes fit.
    pub(crate) fn new(
        inputs: &Inputs<'a, T, Dt, D, Z, S>,
        (shape, plan): (Shape, Plan),
        options: &Options,
        outputs: Outputs<T>,
        workspace: &mut Workspace<T>,
    ) -> Result<Self> {
        let d = d_matrix(inputs.d)?;
        let plan =
            if inputs.sequences.is_some() { plan.masked(options.target_on(inputs.x.device())) } else { plan };
        let between = workspace.views(shape, &plan, options.state_type)?;
        Ok(Self { inputs: *inputs, shape, plan, d, between, outputs, target: options.target })
    }

    /// Launches the three kernels.
    pub(crate) fn run(mut self, stream: &Stream) -> Result<Outputs<T>> {
        for kernel in crate::KERNELS {
            self.queue(kernel, stream)?;
        }
        Ok(self.outputs)
    }

    pub(crate) fn queue(&mut self, kernel: &str, stream: &Stream) -> Result<()> {
        let target = self.target;
        let (launch, grid) = self.launch(kernel)?;
        let launch = match target {
            Some(target) => launch.target(&target),
            None => launch,
        };
        Ok(launch.on(stream).launch(grid)?)
    }

    /// One of the kernels, and its grid.
    pub(crate) fn launch(&mut self, kernel: &str) -> Result<(Launch<'_>, [usize; 3])> {
        match kernel {
            "chunk_cumsum" => Ok(self.chunk_cumsum()),
            "fwd_pass_state" => Ok(self.fwd_pass_state()),
            "compute_out" => Ok(self.compute_out()),
            other => {
                let known = crate::KERNELS.join(", ");
                Err(Error::Unknown { what: "kernel", name: other.into(), known })
            }
        }
    }

    fn chunk_cumsum(&mut self) -> (Launch<'_>, [usize; 3]) {
        let Plan { chunk, block_heads, .. } = self.plan;
        let inputs = self.inputs;
        let grid =
            [self.shape.tokens.div_ceil(chunk), self.shape.heads.div_ceil(block_heads), self.shape.batch];
        let launch = kernels::chunk_cumsum(
            inputs.a,
            inputs.dt,
            inputs.dt_bias,
            inputs.sequences.map(|s| &s.number),
            &mut self.between.dt,
            &mut self.between.decay,
            inputs.dt_limit.0,
            inputs.dt_limit.1,
            inputs.dt_softplus,
            chunk,
            block_heads,
        );
        (launch, grid)
    }

    fn fwd_pass_state(&mut self) -> (Launch<'_>, [usize; 3]) {
        let Self { inputs, shape, plan, between, outputs, .. } = self;
        let Intermediates { dt, decay, states } = between;
        match states {
            ChunkStates::AsX(states) => fwd_pass_state(inputs, *shape, plan, (dt, decay), states, outputs),
            ChunkStates::F32(states) => fwd_pass_state(inputs, *shape, plan, (dt, decay), states, outputs),
        }
    }

    fn compute_out(&mut self) -> (Launch<'_>, [usize; 3]) {
        let Self { inputs, shape, plan, d, between, outputs, .. } = self;
        let Intermediates { dt, decay, states } = between;
        let (steps, d) = ((&*dt, &*decay), d.as_ref());
        match states {
            ChunkStates::AsX(states) => compute_out(inputs, *shape, plan, steps, d, states, &mut outputs.y),
            ChunkStates::F32(states) => compute_out(inputs, *shape, plan, steps, d, states, &mut outputs.y),
        }
    }
}

type Steps<'l> = (&'l DeviceTensor<f32>, &'l DeviceTensor<f32>);

fn fwd_pass_state<'l, T: Value, Dt, D, Z, S: FloatElement, C: FloatElement>(
    inputs: &Inputs<'l, T, Dt, D, Z, S>,
    shape: Shape,
    plan: &Plan,
    (dt, decay): Steps<'l>,
    states: &'l mut DeviceTensor<C>,
    outputs: &'l mut Outputs<T>,
) -> (Launch<'l>, [usize; 3]) {
    let Plan { chunk, state_tokens, state_head_dim, state_state, .. } = *plan;
    let Shape { batch, heads, head_dim, state, groups, .. } = shape;
    let rows = inputs.sequences.map_or(batch, Sequences::count);
    let grid = [head_dim.div_ceil(state_head_dim), state.div_ceil(state_state), rows * heads];
    let launch = kernels::fwd_pass_state(
        inputs.x,
        inputs.b,
        dt,
        decay,
        inputs.initial_states,
        inputs.sequences.map(|s| &s.table),
        states,
        &mut outputs.final_states,
        outputs.sequence_states.as_mut(),
        (heads / groups.max(1)) as i32,
        chunk,
        state_tokens,
        state_head_dim,
        state_state,
    );
    let Plan { state_occupancy, state_warps, state_stages, state_plain, .. } = *plan;
    (launch.config(config(state_occupancy, state_warps, state_stages, state_plain)), grid)
}

fn compute_out<'l, T: Value, Dt, D: FloatElement, Z: FloatElement, S: FloatElement, C: FloatElement>(
    inputs: &Inputs<'l, T, Dt, D, Z, S>,
    shape: Shape,
    plan: &Plan,
    (dt, decay): Steps<'l>,
    d: Option<&'l DeviceTensor<D>>,
    states: &'l DeviceTensor<C>,
    y: &'l mut DeviceTensor<T>,
) -> (Launch<'l>, [usize; 3]) {
    let Plan { chunk, out_tokens, out_head_dim, out_state, .. } = *plan;
    let Shape { batch, tokens, heads, head_dim, state, groups } = shape;
    // Sequences that may begin inside of a chunk with states of their own.
    let own = inputs.sequences.filter(|s| s.own_states() && inputs.initial_states.is_some());
    // Channels for their states, beside those for all else, are more than shared memory holds where states are many.
    let crowded = own.is_some() && state > 128;
    let out_tokens = if crowded { out_tokens.min(32) } else { out_tokens };
    let grid = [tokens.div_ceil(out_tokens), head_dim.div_ceil(out_head_dim), batch * heads];
    let launch = kernels::compute_out(
        inputs.x,
        inputs.b,
        inputs.c,
        dt,
        decay,
        d,
        inputs.z,
        inputs.sequences.map(|s| &s.number),
        own.map(|s| &s.table),
        inputs.initial_states.filter(|_| own.is_some()),
        states,
        y,
        (heads / groups.max(1)) as i32,
        inputs.d.is_some_and(|d| d.rank() == 2),
        chunk,
        out_tokens,
        out_head_dim,
        out_state,
        state.div_ceil(out_state),
    );
    let config = match crowded {
        true => config(1, plan.out_warps, plan.out_stages, 1),
        false => config(plan.out_occupancy, plan.out_warps, plan.out_stages, plan.out_plain),
    };
    (launch.config(config), grid)
}

/// One kernel of a forward pass with the buffers of a whole pass, to be queued again and again: for timing it alone.
pub struct Rerun<'a, T, Dt = f32, D = f32, Z = T, S = f32> {
    pass: Pass<'a, T, Dt, D, Z, S>,
    kernel: &'static str,
}

impl<'a, T: Value, Dt: FloatElement, D: FloatElement, Z: FloatElement, S: FloatElement>
    Rerun<'a, T, Dt, D, Z, S>
{
    /// Runs a whole pass, so that the kernel finds what it reads.
    ///
    /// # Errors
    /// As [`forward`](crate::forward), and for a name that is not among [`KERNELS`](crate::KERNELS).
    pub fn new(inputs: &Inputs<'a, T, Dt, D, Z, S>, options: &Options, kernel: &str) -> Result<Self> {
        let kernel = crate::KERNELS.into_iter().find(|known| *known == kernel).ok_or_else(|| {
            Error::Unknown { what: "kernel", name: kernel.into(), known: crate::KERNELS.join(", ") }
        })?;
        let mut pass = whole(inputs, options, options.target_on(inputs.x.device()))?;
        let stream = options.stream.clone().unwrap_or_else(|| inputs.x.device().default_stream());
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

/// A pass with outputs and memory of its own, for code of `target`.
pub(crate) fn whole<'a, T: Value, Dt: FloatElement, D: FloatElement, Z: FloatElement, S: FloatElement>(
    inputs: &Inputs<'a, T, Dt, D, Z, S>,
    options: &Options,
    target: Option<Target>,
) -> Result<Pass<'a, T, Dt, D, Z, S>> {
    let shape = check(inputs)?;
    let plan = tuned::choose(inputs, options, shape, target)?.plan;
    let outputs = Outputs::uninit(inputs, shape)?;
    let mut workspace = Workspace::new(inputs.x.device());
    Pass::new(inputs, (shape, plan), options, outputs, &mut workspace)
}

impl<T: Value> Outputs<T> {
    /// Outputs for these inputs, without values yet.
    pub(crate) fn uninit<Dt, D, Z, S>(inputs: &Inputs<'_, T, Dt, D, Z, S>, shape: Shape) -> Result<Self> {
        let Shape { batch, tokens, heads, head_dim, state, .. } = shape;
        let device = inputs.x.device();
        let own = inputs.sequences.filter(|s| s.own_states());
        let states = [batch, heads, head_dim, state];
        // No sequence with tokens writes to the final states where there is none.
        let written = own.is_none() || tokens > 0;
        Ok(Self {
            y: DeviceTensor::uninit(device, &[batch, tokens, heads, head_dim])?,
            final_states: match written {
                true => DeviceTensor::uninit(device, &states)?,
                false => DeviceTensor::zeros(device, &states)?,
            },
            sequence_states: own
                .map(|s| DeviceTensor::uninit(device, &[s.count(), heads, head_dim, state]))
                .transpose()?,
        })
    }
}
