//! Links PTX into the code of one GPU with the driver's linker, and says what that code depends on.

use std::ffi::{CStr, CString, c_void};
use std::path::Path;
use std::sync::OnceLock;

use cudarc::driver::DriverError;
use cudarc::driver::sys::{self, CUjit_option as Jit, CUjitInputType};

use super::context::CudaDevice;
use super::probe::driver_version;
use crate::cache::Key;

/// Size of each log buffer given to the driver, in bytes.
const LOG_BYTES: usize = 16 * 1024;

/// The linker's options that change the code, as the key of the cache has them: the target is that of the current
/// context, all else is the driver's default.
const OPTIONS: &str = "target of the context";

/// The two logs of an assembly, and the options that have the driver write them. They must stay where they are until
/// the driver is done with them.
pub(super) struct Logs {
    errors: Vec<u8>,
    info: Vec<u8>,
    pub(super) options: [Jit; 4],
    pub(super) values: [*mut c_void; 4],
}

impl Logs {
    /// Empty logs. The pointers among the values stay valid while this lives, wherever it moves.
    pub(super) fn new() -> Self {
        let (mut errors, mut info) = (vec![0_u8; LOG_BYTES], vec![0_u8; LOG_BYTES]);
        let options = [
            Jit::CU_JIT_ERROR_LOG_BUFFER,
            Jit::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            Jit::CU_JIT_INFO_LOG_BUFFER,
            Jit::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        ];
        // Numbers are passed in the place of pointers.
        let size = || std::ptr::without_provenance_mut::<c_void>(LOG_BYTES);
        let values = [errors.as_mut_ptr().cast(), size(), info.as_mut_ptr().cast(), size()];
        Self { errors, info, options, values }
    }

    /// Number of options.
    pub(super) fn count(&self) -> u32 {
        self.options.len() as u32
    }

    pub(super) fn errors(&self) -> String {
        text(&self.errors)
    }

    pub(super) fn info(&self) -> String {
        text(&self.info)
    }
}

fn text(buffer: &[u8]) -> String {
    let end = buffer.iter().position(|&byte| byte == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(&buffer[..end]).into_owned()
}

/// Code for one GPU.
pub(super) struct Linked {
    pub(super) cubin: Vec<u8>,
    /// What the assembler and the linker said; often empty.
    pub(super) info_log: String,
}

/// A linker at work, ended when dropped.
struct Linker(sys::CUlinkState);

impl Drop for Linker {
    fn drop(&mut self) {
        // SAFETY: the state was created and is destroyed once.
        let status = unsafe { sys::cuLinkDestroy(self.0) };
        if let Err(error) = status.result() {
            tracing::debug!("cuLinkDestroy: {error:?}");
        }
    }
}

/// The code of `ptx` for the GPU whose context is current. `kernel` names it in the logs.
///
/// # Errors
/// The driver's error, and the log of errors.
pub(super) fn link(ptx: &CStr, kernel: &str) -> Result<Linked, (DriverError, String)> {
    let mut logs = Logs::new();
    let outcome = link_with(&mut logs, ptx, kernel);
    match outcome {
        Ok(cubin) => Ok(Linked { cubin, info_log: logs.info() }),
        Err(error) => Err((error, logs.errors())),
    }
}

fn link_with(logs: &mut Logs, ptx: &CStr, kernel: &str) -> Result<Vec<u8>, DriverError> {
    let name = CString::new(kernel).unwrap_or_default();
    let mut state = std::ptr::null_mut();
    // SAFETY: each option has its value; the options, their values and the buffers are the caller's, so that they
    // outlive the linker, which may write to them until it is destroyed.
    unsafe {
        sys::cuLinkCreate_v2(logs.count(), logs.options.as_mut_ptr(), logs.values.as_mut_ptr(), &mut state)
    }
    .result()?;
    let linker = Linker(state);
    let bytes = ptx.to_bytes_with_nul();
    // SAFETY: the text ends in a zero byte and has the size given; the driver reads it during the call alone.
    unsafe {
        sys::cuLinkAddData_v2(
            linker.0,
            CUjitInputType::CU_JIT_INPUT_PTX,
            bytes.as_ptr().cast_mut().cast(),
            bytes.len(),
            name.as_ptr(),
            0,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    }
    .result()?;
    let (mut cubin, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the linker lives, and both places may be written.
    unsafe { sys::cuLinkComplete(linker.0, &mut cubin, &mut size) }.result()?;
    if cubin.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: the driver owns `size` bytes there until the linker is destroyed; they are copied before.
    Ok(unsafe { std::slice::from_raw_parts(cubin.cast::<u8>(), size) }.to_vec())
}

/// What the linked code of `ptx` is kept under: all that it depends on, but not which of several equal GPUs it is for.
pub(super) fn key(device: &CudaDevice, ptx: &[u8]) -> Key {
    let (major, minor) = device.limits.compute_capability;
    let driver = driver_version().map_or_else(|_| String::new(), |version| version.to_string());
    Key::of(&[
        ptx,
        OPTIONS.as_bytes(),
        device.name.as_bytes(),
        format!("{major}.{minor}").as_bytes(),
        driver.as_bytes(),
        driver_build().as_bytes(),
    ])
}

/// The build of the driver library, whose version counts releases of CUDA alone; empty where it cannot be known.
pub(crate) fn driver_build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let Some(path) = driver_path(&maps) else { return String::new() };
        let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
        format!("{name} of {bytes} bytes")
    })
}

/// The driver library among the mapped files of a process. Linux resolves links, so that the name has the build.
fn driver_path(maps: &str) -> Option<&str> {
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    paths.into_iter().find(|path| {
        path.rsplit('/').next().is_some_and(|name| name == "libcuda.so" || name.starts_with("libcuda.so."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_is_found_among_the_mapped_files() {
        let maps = "\
5581d6c00000-5581d6c21000 rw-p 00000000 00:00 0                          [heap]
7f10a0000000-7f10a0001000 r--p 00000000 08:01 4711    /opt/libcuda.software/libother.so.1
7f10a1000000-7f10a1001000 r--p 00000000 08:01 4712    /usr/lib/x86_64-linux-gnu/libcudart.so.12
7f10a2000000-7f10a2001000 r--p 00000000 08:01 4713    /usr/lib/with space/libcuda.so.580.159.04
7f10a3000000-7f10a3001000 rw-p 00000000 00:00 0
";
        assert_eq!(driver_path(maps), Some("/usr/lib/with space/libcuda.so.580.159.04"));
        assert_eq!(driver_path(&maps.replace("libcuda.so.580", "libcudb.so.580")), None);
        assert_eq!(driver_path(""), None);
    }

    #[test]
    fn logs_end_at_the_first_zero() {
        assert_eq!(text(b"ptxas error\0rest"), "ptxas error");
        assert_eq!(text(b"full"), "full");
        assert_eq!(text(b""), "");
    }
}
