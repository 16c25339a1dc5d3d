//! Devices: the CPU, NVIDIA GPUs, the PTX executor, and `meta`, where tensors have shapes but no elements.

use std::sync::{Arc, Once};

use tile_codegen::simt::Counts;
use tile_codegen::target::Target;

use crate::cuda::{self, CudaDevice, Limits};
use crate::error::{Error, Result};
use crate::executor::{Executor, ExecutorOptions};
use crate::stream::Stream;

/// Oldest compute capability that generated code runs on.
const OLDEST_CAPABILITY: (u32, u32) = (8, 0);

/// Where tensors live and kernels run. Cheap to clone, usable from any thread; two handles of one GPU are equal, and so
/// are clones of one PTX executor.
#[derive(Clone)]
pub struct Device(Kind);

#[derive(Clone)]
pub(crate) enum Kind {
    Cpu,
    Meta,
    Cuda(Arc<CudaDevice>),
    Executor(Arc<Executor>),
}

/// The kind of a [`Device`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// The processor that this program runs on.
    Cpu,
    /// An NVIDIA GPU.
    Cuda {
        /// Its number among the visible GPUs, from 0.
        ordinal: usize,
    },
    /// No device: shapes without elements, to inspect generated code.
    Meta,
    /// The processor, which executes the PTX of kernels.
    PtxExecutor {
        /// The target that kernels are compiled for.
        target: Target,
    },
}

impl Device {
    /// The first GPU of compute capability 8.0 or newer, else the CPU. The first time in a process that it falls
    /// back to the CPU, it says why in one line of [`tracing::info!`].
    pub fn best() -> Self {
        static FALLBACK: Once = Once::new();
        match Self::first_gpu() {
            Ok(device) => device,
            Err(reason) => {
                FALLBACK.call_once(|| tracing::info!("running on the CPU: {reason}"));
                Self::cpu()
            }
        }
    }

    fn first_gpu() -> Result<Self> {
        let mut reason = None;
        for ordinal in 0..cuda::visible_devices()? {
            match Self::cuda(ordinal) {
                Ok(device) => return Ok(device),
                Err(error) => reason = reason.or(Some(error)),
            }
        }
        Err(reason.unwrap_or(Error::NoDevice { detail: "no GPU was tried".to_owned() }))
    }

    /// The CPU.
    pub fn cpu() -> Self {
        Self(Kind::Cpu)
    }

    /// The meta device: tensors with shape and strides, but without elements.
    pub fn meta() -> Self {
        Self(Kind::Meta)
    }

    /// A device that compiles every kernel for `target` and executes its PTX on the CPU, checking for data races and
    /// other faults that a GPU hides: [`ExecutorOptions::default`] with [`Device::ptx_executor_with`].
    pub fn ptx_executor(target: &Target) -> Self {
        Self::ptx_executor_with(target, ExecutorOptions::default())
    }

    /// As [`Device::ptx_executor`], with schedules and limits. Tensors live in the CPU's memory. A launch whose kernel has
    /// a fault is [`Error::Executor`], and changes no tensor.
    ///
    /// Every call makes a device of its own, with counts of its own, which equals its clones alone.
    pub fn ptx_executor_with(target: &Target, options: ExecutorOptions) -> Self {
        Self(Kind::Executor(Arc::new(Executor::new(*target, options))))
    }

    /// GPU `ordinal` of those that the driver shows, counted from 0.
    ///
    /// # Errors
    /// Without a driver, without a GPU, with too old a driver or GPU, or when there are fewer GPUs: what is
    /// missing, and what to do about it. Never panics.
    pub fn cuda(ordinal: usize) -> Result<Self> {
        let device = cuda::open(ordinal)?;
        let (major, minor) = device.limits.compute_capability;
        if (major, minor) < OLDEST_CAPABILITY {
            return Err(Error::Unsupported {
                what: format!("{} of compute capability {major}.{minor}", device.name),
                instead: "use a GPU of compute capability 8.0 (Ampere) or newer, or Device::cpu()".to_owned(),
            });
        }
        Ok(Self(Kind::Cuda(device)))
    }

    /// The device of a name: `cpu`, `cuda` (the same as `cuda:0`), `cuda:N`, `meta`, or `ptx:TARGET` for a new
    /// [`Device::ptx_executor`], such as `ptx:sm_80`.
    ///
    /// # Errors
    /// [`Error::DeviceName`] for any other text, and as [`Device::cuda`].
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "cpu" => Ok(Self::cpu()),
            "meta" => Ok(Self::meta()),
            "cuda" => Self::cuda(0),
            _ if text.starts_with("ptx:") => {
                let target = Target::by_name(&text["ptx:".len()..]);
                let target = target.ok_or_else(|| Error::DeviceName { text: text.to_owned() })?;
                Ok(Self::ptx_executor(&target))
            }
            _ => {
                // `parse` alone would take a plus sign.
                let digits =
                    text.strip_prefix("cuda:").filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
                let ordinal = digits.and_then(|digits| digits.parse().ok());
                Self::cuda(ordinal.ok_or_else(|| Error::DeviceName { text: text.to_owned() })?)
            }
        }
    }

    /// The kind, with a GPU's number.
    pub fn kind(&self) -> DeviceKind {
        match &self.0 {
            Kind::Cpu => DeviceKind::Cpu,
            Kind::Meta => DeviceKind::Meta,
            Kind::Cuda(cuda) => DeviceKind::Cuda { ordinal: cuda.ordinal },
            Kind::Executor(executor) => DeviceKind::PtxExecutor { target: executor.target },
        }
    }

    /// A GPU's product name, or `cpu`, `meta` or `PTX executor`.
    pub fn name(&self) -> &str {
        match &self.0 {
            Kind::Cpu => "cpu",
            Kind::Meta => "meta",
            Kind::Cuda(cuda) => &cuda.name,
            Kind::Executor(_) => "PTX executor",
        }
    }

    /// Whether this is a GPU.
    pub fn is_cuda(&self) -> bool {
        matches!(self.0, Kind::Cuda(_))
    }

    /// Whether this is the CPU.
    pub fn is_cpu(&self) -> bool {
        matches!(self.0, Kind::Cpu)
    }

    /// Whether this is the meta device.
    pub fn is_meta(&self) -> bool {
        matches!(self.0, Kind::Meta)
    }

    /// Whether this is a PTX executor.
    pub fn is_ptx_executor(&self) -> bool {
        matches!(self.0, Kind::Executor(_))
    }

    /// What the launches on a PTX executor did so far, all added up: instructions by class, bytes moved, sectors of global
    /// memory, bank conflicts. Each launch counts once, under its first seed, and not at all if it has faults. None for
    /// other devices. `Display` shows a table.
    pub fn executor_counts(&self) -> Option<Counts> {
        match &self.0 {
            Kind::Executor(executor) => Some(executor.counts()),
            Kind::Cpu | Kind::Meta | Kind::Cuda(_) => None,
        }
    }

    /// What a GPU offers to one kernel; none for other devices.
    pub fn limits(&self) -> Option<Limits> {
        match &self.0 {
            Kind::Cuda(cuda) => Some(cuda.limits),
            Kind::Cpu | Kind::Meta | Kind::Executor(_) => None,
        }
    }

    /// A GPU's compute capability, major and minor; none for other devices.
    pub fn compute_capability(&self) -> Option<(u32, u32)> {
        self.limits().map(|limits| limits.compute_capability)
    }

    /// Number of units that run blocks: a GPU's streaming multiprocessors, the CPU's threads (also for
    /// a PTX executor), 1 for meta.
    pub fn multiprocessors(&self) -> usize {
        match &self.0 {
            Kind::Cpu | Kind::Executor(_) => rayon::current_num_threads(),
            Kind::Meta => 1,
            Kind::Cuda(cuda) => cuda.limits.multiprocessors,
        }
    }

    /// Bytes of shared memory that a block of a GPU may have when its kernel opts in; none for other devices.
    pub fn max_shared_bytes_per_block(&self) -> Option<usize> {
        self.limits().map(|limits| limits.max_shared_bytes_per_block)
    }

    /// Waits for all work queued on the device, on every stream.
    ///
    /// # Errors
    /// A fault of work queued earlier.
    pub fn synchronize(&self) -> Result<()> {
        match &self.0 {
            Kind::Cpu | Kind::Meta | Kind::Executor(_) => Ok(()),
            Kind::Cuda(cuda) => {
                cuda.context.synchronize().map_err(|error| Error::driver("cuCtxSynchronize", error))
            }
        }
    }

    /// The stream on which tensors are allocated, copied and freed, and kernels run unless another is given.
    pub fn default_stream(&self) -> Stream {
        Stream::default_of(self)
    }

    /// A new stream. Streams of the CPU and of a PTX executor run everything at once, in the calling thread.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn new_stream(&self) -> Result<Stream> {
        Stream::new_on(self)
    }

    /// Free and total bytes of a GPU's memory; none for other devices. Memory that dropped tensors have left in the
    /// driver's pool counts as used.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn memory_info(&self) -> Result<Option<(usize, usize)>> {
        match &self.0 {
            Kind::Cpu | Kind::Meta | Kind::Executor(_) => Ok(None),
            Kind::Cuda(cuda) => {
                let info = cuda.context.mem_get_info();
                info.map(Some).map_err(|error| Error::driver("cuMemGetInfo", error))
            }
        }
    }

    pub(crate) fn inner(&self) -> &Kind {
        &self.0
    }

    pub(crate) fn is_cuda_ordinal(&self, ordinal: usize) -> bool {
        self.kind() == DeviceKind::Cuda { ordinal }
    }

    pub(crate) fn require_cuda(&self, what: &str) -> Result<&Arc<CudaDevice>> {
        match &self.0 {
            Kind::Cuda(cuda) => Ok(cuda),
            Kind::Cpu | Kind::Meta | Kind::Executor(_) => Err(Error::Unsupported {
                what: format!("{what} on device {self}"),
                instead: "it needs an NVIDIA GPU; use Device::cuda(0)".to_owned(),
            }),
        }
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Executor(one), Kind::Executor(other)) => Arc::ptr_eq(one, other),
            _ => self.kind() == other.kind(),
        }
    }
}

impl Eq for Device {}

/// The name that [`Device::parse`] takes.
impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kind() {
            DeviceKind::Cpu => f.write_str("cpu"),
            DeviceKind::Meta => f.write_str("meta"),
            DeviceKind::Cuda { ordinal } => write!(f, "cuda:{ordinal}"),
            DeviceKind::PtxExecutor { target } => write!(f, "ptx:{}", target.name),
        }
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({self})")
    }
}
