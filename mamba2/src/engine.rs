//! The one place where the program meets devices and kernels.

use std::time::{Duration, Instant};

use mamba2::{
    Choice, Options, StepOptions,
    case::Case,
    resident::{HostFloat, HostOutputs, Resident, Work, with_resident},
    tune::{Progress, Tuning},
};
use tile_runtime::codegen::target::TARGETS;
use tile_runtime::timing::measure;
use tile_runtime::{Device, Stream, Target};

use crate::cli::Result;

/// A device on which forward passes run.
pub(crate) struct Engine {
    device: Device,
    target: Option<Target>,
}

/// A problem whose inputs lie on the device.
pub(crate) struct Loaded {
    problem: Box<dyn Problem>,
}

/// The device that `best`, `cpu`, `cuda`, `cuda:N`, `ptx:sm_80` or `meta` names.
pub(crate) fn open_device(name: &str) -> Result<Device> {
    if name == "best" { Ok(Device::best()) } else { Ok(Device::parse(name)?) }
}

impl Engine {
    /// Opens `best`, `cpu`, `cuda`, `cuda:N` or `ptx:sm_80`.
    pub(crate) fn open(device: &str) -> Result<Engine> {
        let device = open_device(device)?;
        if device.is_meta() {
            return Err("the meta device runs nothing; write best, cpu, cuda, cuda:N or ptx:sm_80".into());
        }
        Ok(Engine { device, target: None })
    }

    /// Compiles for the target of this name instead of the one that suits the device.
    pub(crate) fn with_target(self, name: Option<&str>) -> Result<Engine> {
        let Some(name) = name else { return Ok(self) };
        let target = Target::by_name(name).ok_or_else(|| {
            let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            format!("there is no target `{name}`; expected one of {}", known.join(", "))
        })?;
        Ok(Engine { target: Some(target), ..self })
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
        self.target.map_or_else(|| mamba2::target_name(&self.device), |target| target.name.to_owned())
    }

    /// Copies the inputs to the device.
    pub(crate) fn load(&self, case: &Case, chunk: Option<usize>) -> Result<Loaded> {
        let problem =
            with_resident(&self.device, case, Keep { chunk, step: case.step, target: self.target })?;
        Ok(Loaded { problem })
    }
}

impl Loaded {
    /// The chunk length in use, and whether tuning found it.
    pub(crate) fn choice(&self) -> Result<Choice> {
        self.problem.choice()
    }

    /// Tries every plan for the problem.
    pub(crate) fn tune(&self, watch: &mut dyn FnMut(Progress<'_>)) -> Result<Tuning> {
        self.problem.tune(watch)
    }

    /// Runs once and copies the results back.
    pub(crate) fn run(&self) -> Result<HostOutputs> {
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
        Ok(measure(self.problem.device(), &mut |stream| self.problem.queue(stream))?.median)
    }

    /// The same for one kernel alone, on the buffers of a whole pass.
    pub(crate) fn time_kernel(&self, kernel: &str) -> Result<Duration> {
        let mut queue = self.problem.rerun(kernel)?;
        Ok(measure(self.problem.device(), &mut queue)?.median)
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
    fn run(&self) -> Result<HostOutputs>;
    fn choice(&self) -> Result<Choice>;
    fn tune(&self, watch: &mut dyn FnMut(Progress<'_>)) -> Result<Tuning>;
}

/// A problem whose inputs stay on the device.
struct Kept<T, Dt> {
    resident: Resident<T, Dt>,
    chunk: Option<usize>,
    step: bool,
    target: Option<Target>,
}

/// Keeps the inputs, whatever their types are.
struct Keep {
    chunk: Option<usize>,
    step: bool,
    target: Option<Target>,
}

impl Work for Keep {
    type Out = Box<dyn Problem>;
    fn on<T: HostFloat, Dt: HostFloat>(self, resident: Resident<T, Dt>) -> mamba2::Result<Box<dyn Problem>> {
        let Keep { chunk, step, target } = self;
        Ok(Box::new(Kept { resident, chunk, step, target }))
    }
}

impl<T: HostFloat, Dt: HostFloat> Kept<T, Dt> {
    fn options(&self, stream: Option<&Stream>) -> Options {
        Options { chunk: self.chunk, stream: stream.cloned(), target: self.target, ..Options::default() }
    }
}

impl<T: HostFloat, Dt: HostFloat> Problem for Kept<T, Dt> {
    fn device(&self) -> &Device {
        self.resident.x.device()
    }

    fn queue(&self, stream: &Stream) -> Result<()> {
        Ok(mamba2::forward(&self.resident.inputs(), &self.options(Some(stream))).map(drop)?)
    }

    fn rerun(&self, kernel: &str) -> Result<Requeue<'_>> {
        let mut rerun = mamba2::Rerun::new(&self.resident.inputs(), &self.options(None), kernel)?;
        self.device().synchronize()?;
        Ok(Box::new(move |stream| Ok(rerun.queue(stream)?)))
    }

    fn run(&self) -> Result<HostOutputs> {
        Ok(if self.step {
            self.resident.step(&StepOptions { target: self.target, ..StepOptions::default() })?
        } else {
            self.resident.forward(&self.options(None))?
        })
    }

    fn choice(&self) -> Result<Choice> {
        Ok(mamba2::choice(&self.resident.inputs(), &self.options(None))?)
    }

    fn tune(&self, watch: &mut dyn FnMut(Progress<'_>)) -> Result<Tuning> {
        Ok(mamba2::tune::tune(&self.resident.inputs(), &self.options(None), watch)?)
    }
}
