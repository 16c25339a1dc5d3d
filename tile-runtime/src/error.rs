//! The one error type of the runtime: what was found, what was expected, and what to do about it.

use cudarc::driver::DriverError;
use tile_codegen::diag::Diagnostics;

use crate::executor::ExecutorError;

/// Result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong in the runtime.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The NVIDIA driver library is not on this machine, or cannot be used.
    #[error(
        "no usable NVIDIA driver: {detail}; install the NVIDIA driver (no CUDA toolkit is needed) \
         or use Device::cpu()"
    )]
    NoDriver {
        /// What the search for the driver found.
        detail: String,
    },
    /// The NVIDIA driver is older than the oldest one supported.
    #[error(
        "the NVIDIA driver is too old: {found}, but {required} is required; \
         update the NVIDIA driver or use Device::cpu()"
    )]
    DriverTooOld {
        /// What the installed driver offers.
        found: String,
        /// What the runtime needs.
        required: String,
    },
    /// There is a driver, but it shows no GPU.
    #[error(
        "the NVIDIA driver shows no GPU ({detail}); check `nvidia-smi` and the environment variable \
         CUDA_VISIBLE_DEVICES (an empty value hides every GPU), or use Device::cpu()"
    )]
    NoDevice {
        /// The driver's own words.
        detail: String,
    },
    /// A GPU index beyond the GPUs that the driver shows.
    #[error("there is no device cuda:{index}: the driver shows {count} GPU(s), counted from 0")]
    DeviceIndex {
        /// The index that was asked for.
        index: usize,
        /// The number of visible GPUs.
        count: usize,
    },
    /// A device name that cannot be parsed.
    #[error(
        "unknown device {text:?}: write \"cpu\", \"cuda\", \"cuda:N\" (N counts from 0), \"ptx:sm_80\" or \"meta\""
    )]
    DeviceName {
        /// The text that was given.
        text: String,
    },
    /// A CUDA driver call failed.
    #[error("{}{call} failed: {code} ({message}){}", prefix(.context), suffix(.remedy))]
    Driver {
        /// The driver function.
        call: &'static str,
        /// The kernel and its configuration, where one is concerned; otherwise empty.
        context: String,
        /// The driver's name of the error, such as `CUDA_ERROR_OUT_OF_MEMORY`.
        code: String,
        /// The driver's description of the error.
        message: String,
        /// What to do about it; empty when nothing general can be said.
        remedy: String,
    },
    /// The driver refused a module (PTX or cubin).
    #[error("{0}")]
    Module(Box<ModuleError>),
    /// A kernel has faults, for the constants and tensors of this launch.
    #[error("{0}")]
    Kernel(Box<KernelError>),
    /// The PTX executor found faults in a kernel.
    #[error("{0}")]
    Executor(Box<ExecutorError>),
    /// Results that are further from the reference than [`testing`](crate::testing) was told to accept.
    #[error("{0}")]
    Mismatch(String),
    /// An argument that does not fit the kernel or the other arguments.
    #[error("argument `{argument}` of kernel `{kernel}`: {problem}; {remedy}")]
    Argument {
        /// Name of the kernel.
        kernel: String,
        /// Name of the parameter.
        argument: String,
        /// What was found, and what was expected.
        problem: String,
        /// What to do instead.
        remedy: String,
    },
    /// A kernel needs more shared memory than a block may have.
    #[error(
        "kernel {kernel} needs {needed} bytes of shared memory per block, but {device} has {available}; \
         use smaller tiles or fewer pipeline stages"
    )]
    SharedMemory {
        /// Name of the kernel.
        kernel: String,
        /// Static plus dynamic bytes per block that were asked for.
        needed: usize,
        /// Bytes per block that the device allows.
        available: usize,
        /// Name of the device.
        device: String,
    },
    /// A shape, stride, axis or range that does not fit the tensor.
    #[error("{what}: found {found}, expected {expected}")]
    Shape {
        /// The operation and the thing at fault.
        what: String,
        /// What was given.
        found: String,
        /// What would have been right, or what to write instead.
        expected: String,
    },
    /// A view or an access that leaves its storage.
    #[error("{what} reaches element {index}, but the storage holds elements 0..{len}")]
    OutOfBounds {
        /// The operation.
        what: String,
        /// The first or last element that is outside.
        index: i128,
        /// Number of elements in the storage.
        len: usize,
    },
    /// Two things that must be on one device are not.
    #[error("{what}: found device {found}, expected device {expected}; use to_device() to move a tensor")]
    DeviceMismatch {
        /// The operation and the thing at fault.
        what: String,
        /// The device that was found.
        found: String,
        /// The device that was expected.
        expected: String,
    },
    /// A target was asked for whose code the device does not run.
    #[error(
        "kernel `{kernel}` was to be compiled for {target}, which {device} does not run: it runs {runs}; leave `.target(..)` \
         out, or ask for one of these"
    )]
    Target {
        /// Name of the kernel.
        kernel: String,
        /// The target that was asked for.
        target: String,
        /// The device.
        device: String,
        /// The targets whose code it runs.
        runs: String,
    },
    /// Another element type than the one asked for.
    #[error("{what}: found element type {found}, expected {expected}; element types never convert silently")]
    ElementType {
        /// The operation and the thing at fault.
        what: String,
        /// The type that was found.
        found: String,
        /// The type that was expected.
        expected: String,
    },
    /// A tensor of the `meta` device has a shape, but no elements to read or write.
    #[error("{what}: a tensor of the meta device has no elements; create it on Device::cpu() or a GPU")]
    NoData {
        /// The operation.
        what: String,
    },
    /// A write to memory that was borrowed for reading.
    #[error(
        "{what}: the memory is borrowed read-only; borrow it with borrow_cuda_slice_mut(), or write to a copy"
    )]
    ReadOnly {
        /// The operation.
        what: String,
    },
    /// Memory of the host is exhausted.
    #[error("cannot allocate {bytes} bytes of host memory")]
    OutOfHostMemory {
        /// Size of the allocation.
        bytes: usize,
    },
    /// Something that this device cannot do.
    #[error("{what} is not supported here; {instead}")]
    Unsupported {
        /// The operation.
        what: String,
        /// What to do instead.
        instead: String,
    },
}

/// The faults of a kernel.
#[derive(Debug, Clone)]
pub struct KernelError {
    /// Name of the kernel.
    pub kernel: String,
    /// What could not be done: `staged`, `compiled for sm_80 with 4 warps`, `run on the CPU`.
    pub phase: String,
    /// The faults, each with the lines of source that it stands for.
    pub text: String,
    /// The faults as data; none for those found while the kernel ran.
    pub diagnostics: Diagnostics,
}

impl KernelError {
    /// A fault without a place in the source.
    pub(crate) fn plain(kernel: &str, phase: &str, fault: &dyn std::fmt::Display) -> Error {
        let (kernel, phase, text) = (kernel.to_owned(), phase.to_owned(), fault.to_string());
        Error::Kernel(Box::new(Self { kernel, phase, text, diagnostics: Diagnostics::default() }))
    }
}

impl std::fmt::Display for KernelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "kernel `{}` cannot be {}:\n{}", self.kernel, self.phase, self.text)
    }
}

/// Why the driver refused a module.
#[derive(Debug, Clone, Default)]
pub struct ModuleError {
    /// Name of the kernel, with its configuration where the caller gave one.
    pub kernel: String,
    /// What was loaded, such as `PTX .version 8.0, .target sm_90a`.
    pub image: String,
    /// The driver's name of the error, or what was found before the driver was asked.
    pub code: String,
    /// The newest CUDA version that the driver supports, such as `12.4`; empty when the driver was not asked.
    pub driver: String,
    /// The log of the driver's assembler; empty when it wrote none.
    pub log: String,
    /// What to do about it.
    pub remedy: String,
}

impl std::fmt::Display for ModuleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kernel, image, code, driver, log, remedy } = self;
        write!(f, "kernel {kernel} ({image}) cannot be loaded: {code}{}", suffix(remedy))?;
        if !driver.is_empty() {
            write!(f, " (the driver supports CUDA {driver})")?;
        }
        match log.trim() {
            "" => Ok(()),
            log => write!(f, "\nlog of the driver's assembler:\n{log}"),
        }
    }
}

impl Error {
    /// The error of a failed driver call that concerns no kernel.
    pub(crate) fn driver(call: &'static str, error: DriverError) -> Self {
        Self::driver_in(String::new(), call, error)
    }

    /// The error of a failed driver call, with the kernel and configuration that it concerns.
    pub(crate) fn driver_in(context: String, call: &'static str, error: DriverError) -> Self {
        let (code, message) = describe(error);
        let remedy = remedy_of(&code).to_owned();
        Self::Driver { call, context, code, message, remedy }
    }

    /// A shape error.
    pub(crate) fn shape(
        what: impl Into<String>,
        found: impl std::fmt::Debug,
        expected: impl Into<String>,
    ) -> Self {
        Self::Shape { what: what.into(), found: format!("{found:?}"), expected: expected.into() }
    }
}

/// Name and description of a driver error.
pub(crate) fn describe(error: DriverError) -> (String, String) {
    let text = |found: std::result::Result<&std::ffi::CStr, DriverError>, otherwise: &str| {
        found.map_or_else(|_| otherwise.to_owned(), |text| text.to_string_lossy().into_owned())
    };
    let number = format!("CUDA error {}", error.0 as u32);
    (text(error.error_name(), &number), text(error.error_string(), "no description"))
}

fn remedy_of(code: &str) -> &'static str {
    match code {
        "CUDA_ERROR_OUT_OF_MEMORY" => "free tensors or use smaller ones; memory_info() tells what is left",
        "CUDA_ERROR_ILLEGAL_ADDRESS" | "CUDA_ERROR_MISALIGNED_ADDRESS" | "CUDA_ERROR_LAUNCH_FAILED" => {
            "an earlier kernel on this device accessed memory that it may not; the device cannot be used again \
             in this process; run under `compute-sanitizer` to find the kernel"
        }
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" => {
            "the block needs more registers or shared memory than the device has; use fewer warps or smaller tiles"
        }
        "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED" | "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" => {
            "inside Graph::capture queue only launches and copies on the stream that the closure is given"
        }
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" | "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE" => {
            "the driver library and the kernel module differ in version; reboot or reinstall the NVIDIA driver"
        }
        _ => "",
    }
}

fn prefix(context: &str) -> String {
    if context.is_empty() { String::new() } else { format!("{context}: ") }
}

fn suffix(remedy: &str) -> String {
    if remedy.is_empty() { String::new() } else { format!("; {remedy}") }
}
