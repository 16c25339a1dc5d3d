//! Launches: a kernel with its arguments, ready to run, or to be looked at as tile IR or PTX.

use std::sync::Arc;

use smallvec::SmallVec;
use tile_codegen::compile::Compiled;
use tile_codegen::config::{ByTarget, Config};
use tile_codegen::dsl::Staged;
use tile_codegen::target::Target;

use crate::args::{ArgList, KernelInfo, StageArgs};
use crate::buffer::{Access, Use};
use crate::device::{Device, DeviceKind, Kind};
use crate::error::{Error, Result};
use crate::launch_grid::Grid;
use crate::specialisations;
use crate::specialize::Specialised;
use crate::stream::Stream;
use crate::{launch_check, launch_cpu, launch_cuda, launch_ptx, tensor_maps};

/// A kernel with its arguments: what calling a `#[tile_kernel]` function gives.
///
/// Nothing happens until [`Launch::launch`]. The first launch of every combination of element types, constants,
/// present options and layouts of tensors (alignment, unit stride) makes the kernel's tile IR and code, which later
/// ones find in memory.
///
/// ```
/// use tile_runtime::prelude::*;
///
/// #[tile_kernel]
/// fn add(x: Tensor<f32, 1>, y: Tensor<f32, 1>, out: TensorMut<f32, 1>, block: Const<usize>) {
///     let i = bid(0);
///     store(out, (i,), load(x, (i,), (block,)) + load(y, (i,), (block,)));
/// }
///
/// # fn main() -> Result<()> {
/// let device = Device::best();
/// let x = DeviceTensor::from_slice(&device, &[3], &[1.0, 2.0, 3.0])?;
/// let mut out = DeviceTensor::zeros(&device, &[3])?;
/// add(&x, &x, &mut out, 128).launch(out_blocks(3, 128))?;
/// assert_eq!(out.to_vec()?, [2.0, 4.0, 6.0]);
/// # Ok(())
/// # }
/// # fn out_blocks(n: usize, block: usize) -> usize { n.div_ceil(block) }
/// ```
#[must_use = "a launch does nothing until `.launch(grid)`"]
pub struct Launch<'a> {
    info: KernelInfo,
    args: ArgList<'a>,
    stage: fn(&mut StageArgs<'_>),
    stream: Option<Stream>,
    config: ByTarget<Config>,
    target: Option<Target>,
}

/// The launch of a kernel; called by the code of the attribute.
pub fn launch<'a>(info: KernelInfo, mut args: ArgList<'a>, stage: fn(&mut StageArgs<'_>)) -> Launch<'a> {
    // The function tells instances of a generic kernel apart, the source kernels whose code happens to be merged.
    args.words[0] = stage as usize as u64;
    args.words[1] = std::ptr::from_ref(info.source).addr() as u64;
    Launch { info, args, stage, stream: None, config: ByTarget::new(Config::default()), target: None }
}

impl Launch<'_> {
    /// Runs on `stream` instead of the default stream of the arguments' device.
    pub fn on(mut self, stream: &Stream) -> Self {
        self.stream = Some(stream.clone());
        self
    }

    /// Chooses how the code for GPUs is generated: a [`Config`], or one for each target. The CPU computes the same
    /// without it.
    pub fn config(mut self, config: impl Into<ByTarget<Config>>) -> Self {
        self.config = config.into();
        self
    }

    /// Compiles for `target` instead of the one that suits the GPU or that the PTX executor has. All of them run code for
    /// `sm_80`; that for `sm_90a` runs on Hopper alone, and [`Launch::launch`] refuses it elsewhere.
    pub fn target(mut self, target: &Target) -> Self {
        self.target = Some(*target);
        self
    }

    /// Runs the kernel on so many blocks: a number, or a tuple or an array of up to three. A grid with a 0 does
    /// nothing. On a GPU this only queues the work.
    ///
    /// # Errors
    /// Before anything runs: [`Error::Argument`] for an argument that does not fit the kernel, or a tensor that is
    /// written and overlaps another; [`Error::DeviceMismatch`]; [`Error::NoData`] for tensors of the meta device;
    /// [`Error::Target`] for one whose code the device does not run;
    /// [`Error::Shape`] for a grid of more than 2^31 - 1 blocks; [`Error::Kernel`] for faults in the kernel;
    /// [`Error::Module`]. Then [`Error::Driver`], and a fault of earlier work on the device; [`Error::Executor`] on a PTX
    /// executor.
    pub fn launch(&self, grid: impl Into<Grid>) -> Result<()> {
        let device = self.check()?;
        let grid = grid.into().checked(self.info.name)?;
        if device.is_meta() {
            return Err(Error::NoData { what: format!("launch of kernel `{}`", self.info.name) });
        }
        let Some(grid) = grid else { return Ok(()) };
        let kernel = self.specialised()?;
        let stream = self.stream.clone().unwrap_or_else(|| device.default_stream());
        match device.kind() {
            DeviceKind::Cpu => {
                let program = kernel.program()?;
                stream.submit(&self.uses(), || launch_cpu::run(self.info.name, program, &self.args, grid))
            }
            DeviceKind::Cuda { .. } => {
                let own = crate::target_of(&device).unwrap_or(Target::SM_80);
                let target = launch_check::target(self.info.name, self.target, own, &device)?;
                let config = self.reachable_config(&kernel, &target)?;
                let loaded = kernel.load(&device, &target, &config)?;
                stream.submit(&self.uses(), || launch_cuda::queue(&loaded, &self.args, grid, &stream))
            }
            DeviceKind::PtxExecutor { target } => {
                let Kind::Executor(executor) = device.inner() else { unreachable!("of this kind") };
                let target = launch_check::target(self.info.name, self.target, target, &device)?;
                let config = self.reachable_config(&kernel, &target)?;
                kernel.execute(&target, &config, |compiled, program| {
                    let run = launch_ptx::LaunchPtx {
                        name: self.info.name,
                        device: &device,
                        executor,
                        staged: kernel.staged(),
                        compiled,
                        program,
                        args: &self.args,
                        grid,
                    };
                    stream.submit(&self.uses(), || run.run())
                })
            }
            DeviceKind::Meta => unreachable!("refused above"),
        }
    }

    /// The configuration, without bulk tensor copies if these arguments are beyond them.
    fn reachable_config(&self, kernel: &Specialised, target: &Target) -> Result<Config> {
        let config = *self.config.of(target);
        let without = Config { allow_tma: Some(false), ..config };
        if !target.warpgroups || config == without {
            return Ok(config);
        }
        let compiled = kernel.compile(target, &config)?;
        let args: Vec<_> = self.args.runtime().map(|arg| &arg.value).collect();
        Ok(if tensor_maps::reachable(&compiled, &args) { config } else { without })
    }

    /// The kernel's tile IR for these arguments, with the lines of source that it stands for. Tensors of the meta
    /// device serve as well as others.
    ///
    /// # Errors
    /// As [`Launch::launch`], before anything runs.
    pub fn stage(&self) -> Result<Staged> {
        self.check()?;
        Ok(self.specialised()?.staged().clone())
    }

    /// The kernel compiled for a target. Needs no GPU; tensors of the meta device serve as well as others.
    ///
    /// # Errors
    /// As [`Launch::stage`]; [`Error::Kernel`] for a kernel that does not fit the target.
    pub fn compile(&self, target: &Target) -> Result<Arc<Compiled>> {
        self.check()?;
        self.specialised()?.compile(target, self.config.of(target))
    }

    /// The kernel's PTX for a target; see [`Launch::compile`]. It depends on nothing but the kernel, the layout of
    /// the arguments, the target and the configuration.
    ///
    /// # Errors
    /// As [`Launch::compile`].
    pub fn ptx(&self, target: &Target) -> Result<String> {
        self.compile(target).map(|compiled| compiled.ptx.clone())
    }

    /// Which path each load, product and store of the kernel takes for these arguments, and why no faster one, with the
    /// lines of source; the roles, threads and shared memory of a block. If the arguments are on a GPU that runs the
    /// target, also what its driver made of the code: registers, spills and blocks on a multiprocessor.
    /// [`Compiled::explanation`] has the same as data.
    ///
    /// # Errors
    /// As [`Launch::compile`]; on a GPU also [`Error::Module`] and [`Error::Driver`].
    pub fn explain(&self, target: &Target) -> Result<String> {
        let device = self.check()?;
        let kernel = self.specialised()?;
        let config = self.reachable_config(&kernel, target)?;
        let compiled = kernel.compile(target, &config)?;
        let mut text = compiled.explanation.render(&kernel.staged().sources);
        if device.is_cuda() && (*target == Target::SM_80 || crate::target_of(&device) == Some(*target)) {
            let function = kernel.load(&device, target, &config)?.function;
            let attributes = function.attributes();
            let blocks = function.occupancy(compiled.threads, compiled.shared_bytes)?;
            text += &format!(
                "on {}: {} registers and {} bytes of local memory a thread, {blocks} blocks on a multiprocessor\n",
                device.name(),
                attributes.registers,
                attributes.local_bytes,
            );
        }
        Ok(text)
    }

    /// The device of the arguments, which have been checked.
    fn check(&self) -> Result<Device> {
        launch_check::check(self.info.name, &self.args, self.stream.as_ref())
    }

    fn specialised(&self) -> Result<Arc<Specialised>> {
        let make = || Specialised::stage(&self.info, &self.args.args, self.stage);
        specialisations::get(&self.args.words, make)
    }

    fn uses(&self) -> SmallVec<[Use<'_>; 16]> {
        let access = |mutable| if mutable { Access::Write } else { Access::Read };
        self.args
            .tensors()
            .map(|(_, arg)| Use { storage: arg.tensor.storage(), access: access(arg.mutable) })
            .collect()
    }
}

impl std::fmt::Debug for Launch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch")
            .field("kernel", &format_args!("{}::{}", self.info.module, self.info.name))
            .field("args", &self.args)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
