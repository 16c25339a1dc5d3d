//! One GPU: its context, its limits and its default stream, shared by the whole process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use cudarc::driver::{CudaContext, result};

use super::probe::driver_version;
use super::stream::CudaQueue;
use crate::error::{Error, Result};

/// What a GPU offers to one kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Major and minor compute capability.
    pub compute_capability: (u32, u32),
    /// Number of streaming multiprocessors.
    pub multiprocessors: usize,
    /// Shared memory in bytes that a block may have when its kernel opts in.
    pub max_shared_bytes_per_block: usize,
    /// Shared memory in bytes of one multiprocessor.
    pub max_shared_bytes_per_multiprocessor: usize,
    /// Size of the second-level cache in bytes.
    pub l2_bytes: usize,
}

/// An opened GPU.
pub(crate) struct CudaDevice {
    pub(crate) ordinal: usize,
    pub(crate) name: String,
    pub(crate) limits: Limits,
    pub(crate) context: Arc<CudaContext>,
    pub(crate) default_queue: Arc<CudaQueue>,
}

/// Number of GPUs that the driver shows.
pub(crate) fn visible_devices() -> Result<usize> {
    driver_version()?;
    let count = CudaContext::device_count().map_err(|error| Error::driver("cuDeviceGetCount", error))?;
    match usize::try_from(count).unwrap_or(0) {
        0 => Err(Error::NoDevice { detail: "cuDeviceGetCount: 0".to_owned() }),
        count => Ok(count),
    }
}

/// Opens GPU `ordinal`, or returns it when it is open already. Devices stay open until the process ends, so that
/// every handle of one GPU shares one default stream and nothing depends on the order of drops.
pub(crate) fn open(ordinal: usize) -> Result<Arc<CudaDevice>> {
    static OPEN: Mutex<BTreeMap<usize, Arc<CudaDevice>>> = Mutex::new(BTreeMap::new());
    let count = visible_devices()?;
    if ordinal >= count {
        return Err(Error::DeviceIndex { index: ordinal, count });
    }
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = open.get(&ordinal) {
        return Ok(device.clone());
    }
    let device = Arc::new(CudaDevice::open(ordinal)?);
    open.insert(ordinal, device.clone());
    Ok(device)
}

impl CudaDevice {
    fn open(ordinal: usize) -> Result<Self> {
        let context =
            CudaContext::new(ordinal).map_err(|error| Error::driver("cuDevicePrimaryCtxRetain", error))?;
        // SAFETY: uses of buffers are tracked by this crate (see `memory`), not by `cudarc`.
        unsafe { context.disable_event_tracking() };
        let name = context.name().map_err(|error| Error::driver("cuDeviceGetName", error))?;
        let limits = read_limits(&context)?;
        keep_freed_memory(&context);
        let default_queue = Arc::new(CudaQueue::create(&context, true)?);
        Ok(Self { ordinal, name, limits, context, default_queue })
    }

    /// Makes the context current on this thread.
    pub(crate) fn bind(&self) -> Result<()> {
        bind(&self.context)
    }
}

/// Makes a context current on this thread; needed before every driver call, since threads start without one.
pub(crate) fn bind(context: &CudaContext) -> Result<()> {
    context.bind_to_thread().map_err(|error| Error::driver("cuCtxSetCurrent", error))
}

/// Lets the driver's pool keep memory that was freed, instead of giving it back at every synchronisation, which makes
/// the next allocation slow. A driver that refuses is only slower.
fn keep_freed_memory(context: &CudaContext) {
    if !context.has_async_alloc() {
        return;
    }
    let mut threshold = u64::MAX;
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the device handle is valid, the pool is its own, and the attribute is a 64-bit number.
    let outcome = unsafe {
        result::device::get_default_mem_pool(context.cu_device())
            .and_then(|pool| result::mem_pool::set_attribute(pool, attribute, (&raw mut threshold).cast()))
    };
    if let Err(error) = outcome {
        tracing::debug!("the memory pool keeps its release threshold: {error:?}");
    }
}

fn read_limits(context: &CudaContext) -> Result<Limits> {
    let read = |attribute| -> Result<usize> {
        let value =
            context.attribute(attribute).map_err(|error| Error::driver("cuDeviceGetAttribute", error))?;
        Ok(usize::try_from(value).unwrap_or(0))
    };
    let major = read(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = read(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(Limits {
        compute_capability: (major as u32, minor as u32),
        multiprocessors: read(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        max_shared_bytes_per_block: read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        max_shared_bytes_per_multiprocessor: read(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        )?,
        l2_bytes: read(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
    })
}
