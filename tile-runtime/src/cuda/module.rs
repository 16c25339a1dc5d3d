//! Loads PTX, through the cache of linked code, or cubin into a GPU, and launches its functions.

use std::ffi::{CStr, CString, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUfunction_attribute as Attribute};
use cudarc::driver::{DriverError, result};

use super::context::CudaDevice;
use super::link::{self, Logs};
use super::probe::driver_version;
use super::stream::CudaQueue;
use crate::cache::{self, DiskCache, Origin};
use crate::device::Device;
use crate::error::{Error, ModuleError, Result, describe};
use crate::stream::Stream;

/// Dynamic shared memory in bytes that a function may use without opting in.
const DEFAULT_SHARED_BYTES: u32 = 48 * 1024;

/// Code loaded into one GPU. Unloaded when the last of its functions, and of the graphs that use it, is gone.
pub struct Module {
    device: Arc<CudaDevice>,
    handle: sys::CUmodule,
    kernel: String,
    info_log: String,
}

// SAFETY: module handles belong to the context, which may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above; the handle is never changed.
unsafe impl Sync for Module {}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Module").field("kernel", &self.kernel).finish_non_exhaustive()
    }
}

impl Module {
    /// Loads PTX text. `kernel` names the kernel (and its configuration) in errors.
    ///
    /// The driver assembles and links it, unless the linked code is in the [cache](crate::cache), where it goes otherwise.
    ///
    /// # Errors
    /// [`Error::Module`] with the assembler's log; [`Error::Unsupported`] on a device that is not a GPU.
    pub fn load_ptx(device: &Device, ptx: &str, kernel: &str) -> Result<Arc<Self>> {
        let header =
            format!("PTX .version {}, .target {}", directive(ptx, ".version"), directive(ptx, ".target"));
        let Ok(text) = CString::new(ptx) else {
            return Err(unusable(
                kernel,
                header,
                "a zero byte in the text",
                "PTX is text without zero bytes",
            ));
        };
        if let Some(cache) = cache::of_process() {
            let cuda = device.require_cuda("loading a module")?;
            match Self::load_linked(cuda, cache, &text, kernel) {
                Ok(module) => return Ok(Arc::new(module)),
                Err((error, log)) => {
                    // Faulty PTX is refused below too, with the same log. What the linker alone cannot do must not stop
                    // a launch.
                    let log = log.trim();
                    tracing::info!("kernel {kernel} is not linked, so not kept on disk: {error:?} {log}");
                }
            }
        }
        Self::load(device, text.as_bytes_with_nul(), header, kernel)
    }

    /// Loads PTX through the cache. Linked code that was kept and that the driver refuses is linked again.
    fn load_linked(
        device: &Arc<CudaDevice>,
        cache: &DiskCache,
        ptx: &CStr,
        kernel: &str,
    ) -> Result<Self, (DriverError, String)> {
        let no_log = |error| (error, String::new());
        device.context.bind_to_thread().map_err(no_log)?;
        let key = link::key(device, ptx.to_bytes());
        let mut info_log = String::new();
        let mut build = || {
            let linked = link::link(ptx, kernel)?;
            info_log = linked.info_log;
            Ok(linked.cubin)
        };
        let (mut cubin, origin) = cache.get_or_insert_with(&key, &mut build)?;
        let mut loaded = load_image(&cubin);
        if let (Err((error, _)), Origin::Stored) = (&loaded, origin) {
            tracing::warn!("the linked code of kernel {kernel} is refused ({error:?}) and made again");
            cache.remove(&key);
            cubin = cache.get_or_insert_with(&key, &mut build)?.0;
            loaded = load_image(&cubin);
        }
        let (handle, log) = loaded?;
        info_log.push_str(&log);
        Ok(Self { device: device.clone(), handle, kernel: kernel.to_owned(), info_log })
    }

    /// Loads a linked cubin for exactly this GPU's architecture.
    ///
    /// # Errors
    /// As [`Module::load_ptx`]; a file that is not an ELF image is refused before the driver sees it.
    pub fn load_cubin(device: &Device, cubin: &[u8], kernel: &str) -> Result<Arc<Self>> {
        let image = format!("cubin of {} bytes", cubin.len());
        if !is_elf(cubin) {
            let remedy = "load PTX instead, and keep the cubin that comes of it";
            return Err(unusable(kernel, image, "not an ELF image", remedy));
        }
        Self::load(device, cubin, image, kernel)
    }

    fn load(device: &Device, image: &[u8], described: String, kernel: &str) -> Result<Arc<Self>> {
        let device = device.require_cuda("loading a module")?.clone();
        device.bind()?;
        match load_image(image) {
            Ok((handle, info_log)) => {
                Ok(Arc::new(Self { device, handle, kernel: kernel.to_owned(), info_log }))
            }
            Err((error, log)) => Err(refused(kernel, described, error, &log, &device)),
        }
    }

    /// What the driver's assembler said while loading; often empty, and always for code from the cache.
    pub fn info_log(&self) -> &str {
        &self.info_log
    }

    /// The function `name` of the module.
    ///
    /// # Errors
    /// [`Error::Driver`] when the module has no such function.
    pub fn function(self: &Arc<Self>, name: &str) -> Result<Arc<Function>> {
        let fail =
            |call, error| Error::driver_in(format!("kernel {}, entry {name}", self.kernel), call, error);
        let entry = CString::new(name)
            .map_err(|_| fail("cuModuleGetFunction", DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE)))?;
        self.device.bind()?;
        // SAFETY: the module is loaded and its context current.
        let handle = unsafe { result::module::get_function(self.handle, entry) }
            .map_err(|error| fail("cuModuleGetFunction", error))?;
        let read = |attribute| -> Result<u32> {
            // SAFETY: the function was just found in a loaded module.
            let value = unsafe { result::function::get_function_attribute(handle, attribute) };
            Ok(u32::try_from(value.map_err(|error| fail("cuFuncGetAttribute", error))?).unwrap_or(0))
        };
        let attributes = FunctionAttributes {
            registers: read(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: read(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            static_shared_bytes: read(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            max_threads: read(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        };
        Ok(Arc::new(Function {
            module: self.clone(),
            handle,
            name: name.to_owned(),
            attributes,
            allowed_dynamic: AtomicU32::new(
                DEFAULT_SHARED_BYTES.saturating_sub(attributes.static_shared_bytes),
            ),
            raising: Mutex::default(),
        }))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // Kernels of the module may still be queued. Where waiting fails (a broken context, or a capture under way)
        // the module stays loaded, which is safe.
        if self.device.context.synchronize().is_err() {
            return;
        }
        // SAFETY: no function of the module is left, and all queued work is done.
        if let Err(error) = unsafe { result::module::unload(self.handle) } {
            tracing::debug!("kernel {} stays loaded: {error:?}", self.kernel);
        }
    }
}

/// What the driver says of a loaded function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionAttributes {
    /// Registers per thread.
    pub registers: u32,
    /// Local memory per thread in bytes; more than 0 usually means spilled registers.
    pub local_bytes: u32,
    /// Statically declared shared memory per block in bytes.
    pub static_shared_bytes: u32,
    /// Most threads that a block may have.
    pub max_threads: u32,
}

/// An entry function of a [`Module`], which it keeps loaded.
pub struct Function {
    module: Arc<Module>,
    handle: sys::CUfunction,
    name: String,
    attributes: FunctionAttributes,
    /// Dynamic shared memory in bytes that the driver has been told to allow.
    allowed_dynamic: AtomicU32,
    raising: Mutex<()>,
}

// SAFETY: function handles belong to the context, which may be used from any thread.
unsafe impl Send for Function {}
// SAFETY: as above; changes go through atomics and a lock.
unsafe impl Sync for Function {}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Function")
            .field("name", &self.name)
            .field("attributes", &self.attributes)
            .finish_non_exhaustive()
    }
}

impl Function {
    /// Name of the entry.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Registers, spills, shared memory and block size.
    pub fn attributes(&self) -> FunctionAttributes {
        self.attributes
    }

    /// How many of its blocks, of so many threads and bytes of dynamic shared memory, a multiprocessor runs at once.
    ///
    /// # Errors
    /// [`Error::SharedMemory`]; [`Error::Driver`] naming the kernel.
    pub fn occupancy(&self, threads: u32, dynamic_shared: u32) -> Result<u32> {
        self.module.device.bind()?;
        self.allow_dynamic_shared(dynamic_shared)?;
        // SAFETY: the function is loaded and its context current.
        let blocks = unsafe {
            result::occupancy::max_active_block_per_multiprocessor(
                self.handle,
                threads as i32,
                dynamic_shared as usize,
            )
        };
        let fail = |error| {
            let context = format!("kernel {}, {threads} threads", self.module.kernel);
            Error::driver_in(context, "cuOccupancyMaxActiveBlocksPerMultiprocessor", error)
        };
        Ok(u32::try_from(blocks.map_err(fail)?).unwrap_or(0))
    }

    /// Queues the function on a stream of the same GPU. Use it inside [`Stream::submit`], which orders it after the
    /// earlier uses of its buffers and keeps them alive.
    ///
    /// `grid` counts blocks and `threads` the threads of a block; `dynamic_shared` is in bytes. A grid with a zero
    /// does nothing.
    ///
    /// # Errors
    /// [`Error::SharedMemory`] before anything runs; [`Error::DeviceMismatch`]; [`Error::Driver`] naming the kernel
    /// and the configuration.
    ///
    /// # Safety
    /// `parameters` holds one valid pointer for each parameter of the kernel, to a value of its size. Device
    /// addresses among them are valid for what the kernel does with them until it has run.
    pub unsafe fn launch(
        self: &Arc<Self>,
        stream: &Stream,
        grid: [u32; 3],
        threads: u32,
        dynamic_shared: u32,
        parameters: &mut [*mut c_void],
    ) -> Result<()> {
        if grid.contains(&0) {
            return Ok(());
        }
        let queue = self.queue_of(stream)?;
        self.allow_dynamic_shared(dynamic_shared)?;
        if let Some(capture) = queue.capture().as_mut() {
            capture.keep(self.clone());
        }
        let block = (threads, 1, 1);
        // SAFETY: the function is loaded, its context current, and the caller vouches for the parameters.
        let status = unsafe {
            result::launch_kernel(self.handle, grid.into(), block, dynamic_shared, queue.handle(), parameters)
        };
        status.map_err(|error| {
            let context = format!(
                "kernel {} (entry {}, grid {grid:?}, {threads} threads, {dynamic_shared} bytes of dynamic shared memory)",
                self.module.kernel, self.name
            );
            Error::driver_in(context, "cuLaunchKernel", error)
        })
    }

    /// The CUDA stream, whose context is made current, if it is one of this function's GPU.
    fn queue_of<'s>(&self, stream: &'s Stream) -> Result<&'s Arc<CudaQueue>> {
        let device = &self.module.device;
        match stream.queue() {
            Some(queue) if stream.device().is_cuda_ordinal(device.ordinal) => {
                queue.bind()?;
                Ok(queue)
            }
            _ => Err(Error::DeviceMismatch {
                what: format!("launch of kernel {} on a stream", self.module.kernel),
                found: stream.device().to_string(),
                expected: format!("cuda:{}", device.ordinal),
            }),
        }
    }

    /// Opts in to more dynamic shared memory where needed; a plain load when it was granted before.
    fn allow_dynamic_shared(&self, bytes: u32) -> Result<()> {
        if bytes <= self.allowed_dynamic.load(Ordering::Acquire) {
            return Ok(());
        }
        let needed = bytes as usize + self.attributes.static_shared_bytes as usize;
        let available = self.module.device.limits.max_shared_bytes_per_block;
        if needed > available {
            let device = self.module.device.name.clone();
            return Err(Error::SharedMemory {
                kernel: self.module.kernel.clone(),
                needed,
                available,
                device,
            });
        }
        let _one_at_a_time = self.raising.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes <= self.allowed_dynamic.load(Ordering::Acquire) {
            return Ok(());
        }
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is loaded and its context current.
        let status =
            unsafe { result::function::set_function_attribute(self.handle, attribute, bytes as i32) };
        status.map_err(|error| {
            let context = format!("kernel {}, {bytes} bytes of dynamic shared memory", self.module.kernel);
            Error::driver_in(context, "cuFuncSetAttribute", error)
        })?;
        self.allowed_dynamic.store(bytes, Ordering::Release);
        Ok(())
    }
}

fn refused(kernel: &str, image: String, error: DriverError, log: &str, device: &CudaDevice) -> Error {
    let (code, message) = describe(error);
    let driver = driver_version().map_or_else(|_| "unknown".to_owned(), |version| version.to_string());
    let (major, minor) = device.limits.compute_capability;
    let remedy = match error.0 {
        sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
            let newest = driver_version().map(super::DriverVersion::newest_ptx).unwrap_or_default();
            format!(
                "this driver loads PTX up to .version {}.{}; update the NVIDIA driver, or lower the .version",
                newest.0, newest.1
            )
        }
        sys::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU | sys::CUresult::CUDA_ERROR_INVALID_SOURCE => {
            format!("{} has compute capability {major}.{minor}; compile for a target that it can run", device.name)
        }
        sys::CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND => {
            "the driver's PTX compiler (libnvidia-ptxjitcompiler.so.1) is missing; install the complete driver".to_owned()
        }
        _ => message,
    };
    let kernel = kernel.to_owned();
    Error::Module(Box::new(ModuleError { kernel, image, code, driver, log: log.to_owned(), remedy }))
}

/// The error for an image that is not given to the driver at all.
fn unusable(kernel: &str, image: String, found: &str, remedy: &str) -> Error {
    let (kernel, code, remedy) = (kernel.to_owned(), found.to_owned(), remedy.to_owned());
    Error::Module(Box::new(ModuleError { kernel, image, code, remedy, ..ModuleError::default() }))
}

/// Loads null-terminated PTX or an ELF image into the GPU whose context is current: the module and the log of
/// what the driver did, or its error and the log of errors.
fn load_image(image: &[u8]) -> Result<(sys::CUmodule, String), (DriverError, String)> {
    if image.last() != Some(&0) && !is_elf(image) {
        let error = DriverError(sys::CUresult::CUDA_ERROR_INVALID_IMAGE);
        return Err((error, "neither text nor an ELF image".to_owned()));
    }
    let mut logs = Logs::new();
    let mut handle = std::ptr::null_mut();
    // SAFETY: the image is null-terminated text or an ELF image; each option has its value, and the buffers
    // have the sizes given and outlive the call.
    let status = unsafe {
        sys::cuModuleLoadDataEx(
            &mut handle,
            image.as_ptr().cast(),
            logs.count(),
            logs.options.as_mut_ptr(),
            logs.values.as_mut_ptr(),
        )
    };
    match status.result() {
        Ok(()) => Ok((handle, logs.info())),
        Err(error) => Err((error, logs.errors())),
    }
}

/// Whether this can be linked code. The driver takes no length, so that anything else could make it read beyond the end.
fn is_elf(image: &[u8]) -> bool {
    image.len() >= 64 && image.starts_with(b"\x7fELF")
}

/// The first operand of a PTX directive, or `?`.
fn directive<'a>(ptx: &'a str, name: &str) -> &'a str {
    let line = ptx.lines().find_map(|line| line.trim_start().strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()).unwrap_or("?")
}
