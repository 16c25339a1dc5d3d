//! What a candidate of the forward pass computes and how long it takes: one kernel alone, or a whole pass.

use std::collections::HashMap;

use tile_runtime::cache::Key;
use tile_runtime::codegen::ir::Elem;
use tile_runtime::timing::{Time, measure};
use tile_runtime::tune::{self, Point, Trial};
use tile_runtime::{Config, Device, DeviceTensor, Stream, Target};

use crate::arguments::{FloatElement, Inputs, Options, Outputs};
use crate::case::Dtype;
use crate::error::{Error, Result};
use crate::pass::Pass;
use crate::plan::Plan;
use crate::problem::Shape;
use crate::resident::HostFloat;
use crate::tolerance::{blocks_differ, plans};
use crate::workspace::{ChunkStates, Workspace};

/// Results on the host, by name.
type Values = Vec<(&'static str, Vec<f32>)>;

fn values<T: HostFloat>(tensor: &DeviceTensor<T>) -> Result<Vec<f32>> {
    Ok(tensor.to_vec()?.into_iter().map(T::to_f32).collect())
}

fn differ<T: HostFloat>(first: &Values, other: &Values) -> Result<(), String> {
    let limit = plans(match T::TYPE {
        Elem::F16 => Dtype::F16,
        Elem::BF16 => Dtype::BF16,
        _ => Dtype::F32,
    });
    for ((name, first), (_, other)) in first.iter().zip(other) {
        let error = blocks_differ(other, first);
        if error > limit {
            return Err(format!("{name} differs from the default's by {error:.1e}, of at most {limit:.1e}"));
        }
    }
    Ok(())
}

/// A point that is no plan comes of a fault of the space.
fn plan_at(base: &Plan, point: &Point) -> Result<Plan> {
    base.at(point).map_err(|found| Error::Argument { argument: "plan", found, expected: "a plan".into() })
}

/// One kernel at one chunk length, on the buffers of a whole pass.
pub(super) struct KernelTrial<'a, T, Dt, D, Z, S> {
    base: Plan,
    pass: Pass<'a, T, Dt, D, Z, S>,
    kernel: &'static str,
    device: Device,
    target: Option<Target>,
    stream: Stream,
    /// Points by their code.
    seen: HashMap<Key, Point>,
}

impl<'a, T: HostFloat, Dt: FloatElement, D: FloatElement, Z: FloatElement, S: FloatElement>
    KernelTrial<'a, T, Dt, D, Z, S>
{
    /// Runs a pass with `base`, so that each kernel finds what it reads.
    pub(super) fn new(
        inputs: &Inputs<'a, T, Dt, D, Z, S>,
        options: &Options,
        shape: Shape,
        base: Plan,
    ) -> Result<Self> {
        let device = inputs.x.device().clone();
        let stream = options.stream.clone().unwrap_or_else(|| device.default_stream());
        let outputs = Outputs::uninit(inputs, shape)?;
        let mut workspace = Workspace::new(&device);
        let mut pass = Pass::new(inputs, (shape, base), options, outputs, &mut workspace)?;
        for kernel in crate::KERNELS {
            pass.queue(kernel, &stream)?;
        }
        let target = options.target_on(&device);
        Ok(Self { base, pass, kernel: crate::KERNELS[0], device, target, stream, seen: HashMap::new() })
    }

    /// Goes on with another kernel.
    pub(super) fn of(&mut self, kernel: &'static str) {
        self.kernel = kernel;
        self.seen.clear();
    }

    /// Sets what the kernel writes to zero, so that nothing of an earlier candidate is left.
    fn clear(&self) -> Result<()> {
        let Outputs { y, final_states, sequence_states } = &self.pass.outputs;
        y.fill_on(&self.stream, T::default())?;
        if self.kernel == "fwd_pass_state" {
            final_states.fill_on(&self.stream, 0.0)?;
            match &self.pass.between.states {
                ChunkStates::AsX(states) => states.fill_on(&self.stream, T::default())?,
                ChunkStates::F32(states) => states.fill_on(&self.stream, 0.0)?,
            }
            if let Some(states) = sequence_states {
                states.fill_on(&self.stream, 0.0)?;
            }
        }
        Ok(())
    }
}

impl<T: HostFloat, Dt: FloatElement, D: FloatElement, Z: FloatElement, S: FloatElement> Trial
    for KernelTrial<'_, T, Dt, D, Z, S>
{
    type Output = Values;
    type Error = Error;

    fn fits(&mut self, point: &Point) -> Result<(), String> {
        self.pass.plan = self.base.at(point)?;
        let Some(target) = self.target else { return Ok(()) };
        let plan = self.pass.plan;
        let blocks = if self.kernel == "fwd_pass_state" { plan.state_occupancy } else { plan.out_occupancy };
        let config = Config { occupancy: Some(blocks as u32), ..Config::default() };
        let (launch, _) = self.pass.launch(self.kernel).map_err(|error| error.to_string())?;
        let compiled = launch.compile(&target).map_err(|error| error.to_string())?;
        tune::fits(&compiled, &config, self.device.limits())?;
        // Block sizes are part of the code, so that equal code has equal grids.
        match self.seen.insert(tune::kernels([&compiled.ptx]), point.clone()) {
            Some(known) => Err(format!("the same code as {known}")),
            None => Ok(()),
        }
    }

    fn run(&mut self, point: &Point) -> Result<Values> {
        self.pass.plan = plan_at(&self.base, point)?;
        self.clear()?;
        self.pass.queue(self.kernel, &self.stream)?;
        self.stream.synchronize()?;
        let Outputs { y, final_states, sequence_states } = &self.pass.outputs;
        if self.kernel == "compute_out" {
            return Ok(vec![("y", values(y)?)]);
        }
        let chunk_states = match &self.pass.between.states {
            ChunkStates::AsX(states) => values(states)?,
            ChunkStates::F32(states) => values(states)?,
        };
        let mut all = vec![("chunk_states", chunk_states), ("final_states", values(final_states)?)];
        if let Some(states) = sequence_states {
            all.push(("sequence_states", values(states)?));
        }
        Ok(all)
    }

    fn compare(&self, first: &Values, other: &Values) -> Result<(), String> {
        differ::<T>(first, other)
    }

    fn time(&mut self, point: &Point) -> Result<Time> {
        self.pass.plan = plan_at(&self.base, point)?;
        let (pass, kernel) = (&mut self.pass, self.kernel);
        measure(&self.device, &mut |stream| pass.queue(kernel, stream))
    }
}

/// A whole pass.
pub(super) struct WholeTrial<'i, 'a, T, Dt, D, Z, S> {
    inputs: &'i Inputs<'a, T, Dt, D, Z, S>,
    options: &'i Options,
    shape: Shape,
    base: Plan,
    outputs: Outputs<T>,
    workspace: Workspace<T>,
}

impl<'i, 'a, T: HostFloat, Dt: FloatElement, D: FloatElement, Z: FloatElement, S: FloatElement>
    WholeTrial<'i, 'a, T, Dt, D, Z, S>
{
    pub(super) fn new(
        inputs: &'i Inputs<'a, T, Dt, D, Z, S>,
        options: &'i Options,
        shape: Shape,
        base: Plan,
    ) -> Result<Self> {
        let outputs = Outputs::uninit(inputs, shape)?;
        let workspace = Workspace::new(inputs.x.device());
        Ok(Self { inputs, options, shape, base, outputs, workspace })
    }

    fn queue(&mut self, plan: Plan, stream: &Stream) -> Result<()> {
        let Self { inputs, options, shape, outputs, workspace, .. } = self;
        Pass::new(inputs, (*shape, plan), options, outputs.clone(), workspace)?.run(stream).map(drop)
    }
}

impl<T: HostFloat, Dt: FloatElement, D: FloatElement, Z: FloatElement, S: FloatElement> Trial
    for WholeTrial<'_, '_, T, Dt, D, Z, S>
{
    type Output = Values;
    type Error = Error;

    fn run(&mut self, point: &Point) -> Result<Values> {
        let plan = plan_at(&self.base, point)?;
        let stream = self.inputs.x.device().default_stream();
        self.outputs.y.fill_on(&stream, T::default())?;
        self.outputs.final_states.fill_on(&stream, 0.0)?;
        self.queue(plan, &stream)?;
        Ok(vec![("y", values(&self.outputs.y)?), ("final_states", values(&self.outputs.final_states)?)])
    }

    fn compare(&self, first: &Values, other: &Values) -> Result<(), String> {
        differ::<T>(first, other)
    }

    fn time(&mut self, point: &Point) -> Result<Time> {
        let plan = plan_at(&self.base, point)?;
        let device = self.inputs.x.device().clone();
        measure(&device, &mut |stream| self.queue(plan, stream))
    }
}
