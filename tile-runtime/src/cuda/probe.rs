//! Finds out whether there is a usable driver before `cudarc` is asked, which panics where there is none.

use std::sync::OnceLock;

use cudarc::driver::sys;

use crate::error::{Error, Result, describe};

/// The CUDA version that a driver supports, such as 12.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DriverVersion {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
}

impl std::fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl DriverVersion {
    /// The newest PTX `.version` that a driver of this CUDA version loads (PTX ISA manual, release history).
    pub fn newest_ptx(self) -> (u32, u32) {
        match (self.major, self.minor) {
            (12, minor @ 0..=5) => (8, minor),
            (12, minor) => (8, minor - 1),
            (major @ 13.., minor) => (major - 4, minor),
            (11, minor) => (7, minor),
            _ => (6, 0),
        }
    }
}

/// The oldest driver that loads PTX 8.0 and has every function used here.
const OLDEST: DriverVersion = DriverVersion { major: 12, minor: 0 };

/// Every driver function that the runtime calls, directly or through `cudarc`.
const FUNCTIONS: &[&str] = &[
    "cuInit",
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuDeviceGet",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuEventDestroy_v2",
    "cuMemGetInfo_v2",
    "cuDeviceGetDefaultMemPool",
    "cuMemPoolSetAttribute",
    "cuMemAllocAsync",
    "cuMemAlloc_v2",
    "cuMemFreeAsync",
    "cuMemFree_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemsetD8Async",
    "cuMemsetD16Async",
    "cuMemsetD32Async",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuLinkCreate_v2",
    "cuLinkAddData_v2",
    "cuLinkComplete",
    "cuLinkDestroy",
    "cuModuleLoadDataEx",
    "cuModuleGetFunction",
    "cuModuleUnload",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuTensorMapEncodeTiled",
    "cuLaunchKernel",
    "cuGraphInstantiateWithFlags",
    "cuGraphGetNodes",
    "cuGraphLaunch",
    "cuGraphExecDestroy",
    "cuGraphDestroy",
];

/// The CUDA version of the installed driver, found once a process.
///
/// # Errors
/// [`Error::NoDriver`] when there is no driver library, [`Error::DriverTooOld`] when it is too old, and
/// [`Error::NoDevice`] when it shows no GPU. Never panics.
pub fn driver_version() -> Result<DriverVersion> {
    static VERSION: OnceLock<Result<DriverVersion>> = OnceLock::new();
    VERSION.get_or_init(probe).clone()
}

fn probe() -> Result<DriverVersion> {
    // SAFETY: loads a system library by its well-known names and runs nothing but its initialisers.
    if !unsafe { sys::is_culib_present() } {
        let detail = "the library libcuda.so.1 (nvcuda.dll on Windows) was not found".to_owned();
        return Err(Error::NoDriver { detail });
    }
    // SAFETY: the library was just found under one of the names that this searches.
    let library = unsafe { sys::culib() };
    for name in FUNCTIONS {
        // SAFETY: the symbol is only looked up, never called through this type.
        if unsafe { library.get::<*const core::ffi::c_void>(name.as_bytes()) }.is_err() {
            let found = format!("it lacks the function {name}");
            return Err(Error::DriverTooOld {
                found,
                required: format!("a driver for CUDA {OLDEST} or newer"),
            });
        }
    }
    let mut number = 0;
    // SAFETY: the function exists, may be called before cuInit, and writes one integer.
    let status = unsafe { sys::cuDriverGetVersion(&mut number) };
    status.result().map_err(|error| Error::driver("cuDriverGetVersion", error))?;
    let number = u32::try_from(number).unwrap_or(0);
    let version = DriverVersion { major: number / 1000, minor: number % 1000 / 10 };
    if version < OLDEST {
        let found = format!("it supports CUDA {version}");
        return Err(Error::DriverTooOld { found, required: format!("CUDA {OLDEST} or newer") });
    }
    cudarc::driver::result::init().map_err(|error| {
        let (code, message) = describe(error);
        let detail = format!("cuInit: {code}, {message}");
        match error.0 {
            sys::CUresult::CUDA_ERROR_NO_DEVICE | sys::CUresult::CUDA_ERROR_INVALID_DEVICE => {
                Error::NoDevice { detail }
            }
            _ => Error::NoDriver { detail },
        }
    })?;
    Ok(version)
}
