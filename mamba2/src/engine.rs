//! The one place where the program meets devices and kernels.

mod replay;

use std::time::{Duration, Instant};

use half::{bf16, f16};
use mamba2::{
    Inputs, Options,
    case::{Case, Dtype, Feature, Skip},
    problem::Shape,
};
use tile_runtime::{Device, DeviceTensor, Stream};

use crate::cli::Result;

/// Results of a forward pass on the host. Values of a 16-bit type are held as f32.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    /// `[batch, tokens, heads, head_dim]`
    pub(crate) y: Vec<f32>,
    /// `[batch, heads, head_dim, state]`
    pub(crate) final_states: Vec<f32>,
}

/// A device on which forward passes run.
pub(crate) struct Engine {
    device: Device,
}

/// A problem whose inputs lie on the device.
pub(crate) struct Loaded {
    chunk: usize,
    problem: Box<dyn Problem>,
}

/// What `show` prints.
pub(crate) struct ShowRequest<'a> {
    pub(crate) kernel: &'a str,
    pub(crate) target: &'a str,
    pub(crate) stage: &'a str,
    pub(crate) shape: Shape,
    pub(crate) dtype: Dtype,
    pub(crate) chunk: Option<usize>,
}

impl Engine {
    /// Opens `best`, `cpu`, `cuda`, `cuda:N` or `ptx:sm_80`.
    pub(crate) fn open(device: &str) -> Result<Engine> {
        let device = match device {
            "best" => Device::best(),
            name => Device::parse(name)?,
        };
        if device.is_meta() {
            return Err("the meta device runs nothing; write best, cpu, cuda, cuda:N or ptx:sm_80".into());
        }
        Ok(Engine { device })
    }

    /// What `case` needs and the forward pass does not have yet.
    pub(crate) fn missing(case: &Case) -> Vec<Feature> {
        case.features()
    }

    /// Whether the device is a GPU.
    pub(crate) fn is_gpu(&self) -> bool {
        self.device.is_cuda()
    }

    /// The device as users know it, such as "NVIDIA H200 (cuda:0)" or "CPU, 8 threads".
    pub(crate) fn device_name(&self) -> String {
        let threads = self.device.multiprocessors();
        if self.is_gpu() {
            format!("{} ({})", self.device.name(), self.device)
        } else if self.device.is_ptx_executor() {
            format!("PTX executor, {threads} threads ({})", self.device)
        } else {
            format!("CPU, {threads} threads")
        }
    }

    /// What kernels did so far, as a table, if the device is a PTX executor.
    pub(crate) fn counts(&self) -> Option<String> {
        self.device.executor_counts().map(|counts| counts.to_string())
    }

    /// The target that kernels are compiled for, such as "sm_80".
    pub(crate) fn target_name(&self) -> String {
        mamba2::target_name(&self.device)
    }

    /// Copies the inputs to the device.
    pub(crate) fn load(&self, case: &Case, chunk: Option<usize>) -> Result<Loaded> {
        let chunk = chunk.unwrap_or_else(|| mamba2::default_chunk(case.shape));
        let problem: Box<dyn Problem> = match case.dtype {
            Dtype::F32 => Box::new(Resident::<f32>::new(&self.device, case, chunk)?),
            Dtype::F16 => Box::new(Resident::<f16>::new(&self.device, case, chunk)?),
            Dtype::BF16 => Box::new(Resident::<bf16>::new(&self.device, case, chunk)?),
        };
        Ok(Loaded { chunk, problem })
    }
}

impl Loaded {
    /// The chunk length in use.
    pub(crate) fn chunk(&self) -> usize {
        self.chunk
    }

    /// Runs once and copies the results back.
    pub(crate) fn run(&self) -> Result<Output> {
        self.problem.run()
    }

    /// Runs once and gives the time from the first kernel's start to the last one's end.
    pub(crate) fn time_once(&self) -> Result<Duration> {
        let stream = self.problem.device().default_stream();
        if stream.device().is_cpu() {
            let start = Instant::now();
            self.problem.queue(&stream)?;
            return Ok(start.elapsed());
        }
        let start = stream.record()?;
        self.problem.queue(&stream)?;
        let end = stream.record()?;
        Ok(Duration::from_secs_f64(f64::from(start.elapsed_ms(&end)?) / 1e3))
    }

    /// Median time of 30 replays of a graph, with 256 MiB written before each. On a GPU only.
    pub(crate) fn time_replays(&self) -> Result<Duration> {
        replay::median_time(self.problem.device(), &mut |stream| self.problem.queue(stream))
    }

    /// The same for one kernel alone, on the buffers of a whole pass.
    pub(crate) fn time_kernel(&self, kernel: &str) -> Result<Duration> {
        let mut queue = self.problem.rerun(kernel)?;
        replay::median_time(self.problem.device(), &mut queue)
    }
}

/// Queues the same work each time.
type Requeue<'a> = Box<dyn FnMut(&Stream) -> Result<()> + 'a>;

/// A forward pass of some element type that can be queued again and again.
trait Problem {
    fn device(&self) -> &Device;
    /// Queues one pass and drops its results.
    fn queue(&self, stream: &Stream) -> Result<()>;
    /// Runs a pass, and gives what queues one of its kernels again.
    fn rerun(&self, kernel: &str) -> Result<Requeue<'_>>;
    fn run(&self) -> Result<Output>;
}

/// The inputs of one problem on the device.
struct Resident<T> {
    device: Device,
    chunk: usize,
    x: DeviceTensor<T>,
    dt: DeviceTensor<f32>,
    a: DeviceTensor<f32>,
    b: DeviceTensor<T>,
    c: DeviceTensor<T>,
    d: Option<DeviceTensor<f32>>,
    initial_states: Option<DeviceTensor<f32>>,
}

impl<T: Value> Resident<T> {
    fn new(device: &Device, case: &Case, chunk: usize) -> Result<Self> {
        let Shape { batch, tokens, groups, heads, head_dim, state } = case.shape;
        let floats = |shape: &[usize], values: &[f32]| DeviceTensor::from_slice(device, shape, values);
        let values = |shape: &[usize], values: &[f32]| {
            let values: Vec<T> = values.iter().map(|&v| T::from_f32(v)).collect();
            DeviceTensor::from_slice(device, shape, &values)
        };
        let bc = [batch, tokens, groups, state];
        let d = case.d.as_ref().map(|d| match d {
            Skip::PerHead(d) => floats(&[heads], d),
            Skip::PerDim(d) => floats(&[heads, head_dim], d),
        });
        let initial_states =
            case.initial_states.as_ref().map(|states| floats(&[batch, heads, head_dim, state], states));
        Ok(Resident {
            device: device.clone(),
            chunk,
            x: values(&[batch, tokens, heads, head_dim], &case.x)?,
            dt: floats(&[batch, tokens, heads], &case.dt)?,
            a: floats(&[heads], &case.a)?,
            b: values(&bc, &case.b)?,
            c: values(&bc, &case.c)?,
            d: d.transpose()?,
            initial_states: initial_states.transpose()?,
        })
    }

    fn inputs(&self) -> Inputs<'_, T> {
        Inputs {
            x: &self.x,
            dt: &self.dt,
            a: &self.a,
            b: &self.b,
            c: &self.c,
            d: self.d.as_ref(),
            initial_states: self.initial_states.as_ref(),
        }
    }

    fn forward(&self, stream: &Stream) -> Result<mamba2::Outputs<T>> {
        let options = Options { chunk: Some(self.chunk), stream: Some(stream.clone()) };
        Ok(mamba2::forward(&self.inputs(), &options)?)
    }
}

impl<T: Value> Problem for Resident<T> {
    fn device(&self) -> &Device {
        &self.device
    }

    fn queue(&self, stream: &Stream) -> Result<()> {
        self.forward(stream).map(drop)
    }

    fn rerun(&self, kernel: &str) -> Result<Requeue<'_>> {
        let options = Options { chunk: Some(self.chunk), stream: None };
        let mut rerun = mamba2::Rerun::new(&self.inputs(), &options, kernel)?;
        self.device.synchronize()?;
        Ok(Box::new(move |stream| Ok(rerun.queue(stream)?)))
    }

    fn run(&self) -> Result<Output> {
        let outputs = self.forward(&self.device.default_stream())?;
        Ok(Output {
            y: outputs.y.to_vec()?.into_iter().map(T::to_f32).collect(),
            final_states: outputs.final_states.to_vec()?,
        })
    }
}

/// An element type of `x`.
trait Value: mamba2::Value {
    fn from_f32(value: f32) -> Self;
    fn to_f32(self) -> f32;
}

impl Value for f32 {
    fn from_f32(value: f32) -> f32 {
        value
    }

    fn to_f32(self) -> f32 {
        self
    }
}

impl Value for f16 {
    fn from_f32(value: f32) -> f16 {
        f16::from_f32(value)
    }

    fn to_f32(self) -> f32 {
        f16::to_f32(self)
    }
}

impl Value for bf16 {
    fn from_f32(value: f32) -> bf16 {
        bf16::from_f32(value)
    }

    fn to_f32(self) -> f32 {
        bf16::to_f32(self)
    }
}

/// The tile IR after a pass, or the PTX, of one kernel.
pub(crate) fn show(request: &ShowRequest<'_>) -> Result<String> {
    let ShowRequest { kernel, target, stage, shape, dtype, chunk } = *request;
    Ok(mamba2::show(kernel, target, stage, shape, dtype, chunk)?)
}

/// Which path each load, product and store of one kernel takes.
pub(crate) fn explain(request: &ShowRequest<'_>) -> Result<String> {
    let ShowRequest { kernel, target, shape, dtype, chunk, .. } = *request;
    Ok(mamba2::explain(kernel, target, shape, dtype, chunk)?)
}

/// The median time of 21 compilations of one kernel, from staged to PTX.
pub(crate) fn compile_time(request: &ShowRequest<'_>) -> Result<Duration> {
    let ShowRequest { kernel, target, shape, dtype, chunk, .. } = *request;
    Ok(mamba2::compile_time(kernel, target, shape, dtype, chunk, 21)?)
}
