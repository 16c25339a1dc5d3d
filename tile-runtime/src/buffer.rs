//! Memory of any device behind one shared handle, and what a piece of work does with it.

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{result, sys};

use crate::cpu_buffer::CpuBuffer;
use crate::cuda::CudaBuffer;
use crate::device::{Device, Kind};
use crate::error::{Error, Result};

/// What a piece of work does with a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Only reads.
    Read,
    /// Writes, and perhaps reads.
    Write,
}

/// One buffer that a piece of work uses; see [`Stream::submit`](crate::Stream::submit).
#[derive(Debug, Clone, Copy)]
pub struct Use<'a> {
    /// The buffer.
    pub storage: &'a Arc<Storage>,
    /// What is done with it.
    pub access: Access,
}

/// A piece of memory on one device. Tensors and their views share it through an `Arc`; the last one frees it, once
/// all work queued on it is done.
pub struct Storage {
    device: Device,
    memory: Memory,
}

enum Memory {
    Cpu(CpuBuffer),
    Cuda(CudaBuffer),
    Meta { bytes: usize },
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Storage").field("device", &self.device).field("bytes", &self.bytes()).finish()
    }
}

impl Storage {
    /// Memory of `bytes` zero bytes; on the meta device, none.
    ///
    /// # Errors
    /// The host or the device is out of memory.
    pub fn zeroed(device: &Device, bytes: usize) -> Result<Arc<Self>> {
        let memory = match device.inner() {
            Kind::Cpu | Kind::Executor(_) => Memory::Cpu(CpuBuffer::zeroed(bytes)?),
            Kind::Meta => Memory::Meta { bytes },
            Kind::Cuda(cuda) => Memory::Cuda(CudaBuffer::zeroed(cuda, bytes)?),
        };
        Ok(Arc::new(Self { device: device.clone(), memory }))
    }

    /// Memory of `bytes` bytes of no particular value, to be written before it is read. A PTX executor notes which bytes are
    /// written, and reports kernels that read others; on the CPU they are zero.
    ///
    /// # Errors
    /// The host or the device is out of memory.
    pub fn uninit(device: &Device, bytes: usize) -> Result<Arc<Self>> {
        let memory = match device.inner() {
            Kind::Executor(_) => Memory::Cpu(CpuBuffer::unwritten(bytes)?),
            Kind::Cuda(cuda) => Memory::Cuda(CudaBuffer::allocate(cuda, bytes)?),
            Kind::Cpu | Kind::Meta => return Self::zeroed(device, bytes),
        };
        Ok(Arc::new(Self { device: device.clone(), memory }))
    }

    /// Memory that holds a copy of `host`.
    pub(crate) fn from_host(device: &Device, host: CpuBuffer) -> Result<Arc<Self>> {
        let memory = match device.inner() {
            Kind::Cpu | Kind::Executor(_) => Memory::Cpu(host),
            Kind::Meta => Memory::Meta { bytes: host.bytes() },
            Kind::Cuda(cuda) => {
                let bytes = host.bytes();
                let memory = Memory::Cuda(CudaBuffer::allocate(cuda, bytes)?);
                let storage = Arc::new(Self { device: device.clone(), memory });
                storage.upload(&host, 0)?;
                return Ok(storage);
            }
        };
        Ok(Arc::new(Self { device: device.clone(), memory }))
    }

    /// Wraps device memory.
    pub(crate) fn from_cuda(device: &Device, buffer: CudaBuffer) -> Arc<Self> {
        Arc::new(Self { device: device.clone(), memory: Memory::Cuda(buffer) })
    }

    /// The device that holds the memory.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        match &self.memory {
            Memory::Cpu(buffer) => buffer.bytes(),
            Memory::Cuda(buffer) => buffer.bytes(),
            Memory::Meta { bytes } => *bytes,
        }
    }

    /// The memory, if it is the CPU's, as that of a PTX executor is too.
    pub fn cpu(&self) -> Option<&CpuBuffer> {
        match &self.memory {
            Memory::Cpu(buffer) => Some(buffer),
            Memory::Cuda(_) | Memory::Meta { .. } => None,
        }
    }

    /// The device address of the first byte, if the memory is a GPU's. It may be used only by work that is queued
    /// through [`Stream::submit`](crate::Stream::submit) with this storage among its uses.
    pub fn device_address(&self) -> Option<u64> {
        self.cuda().map(CudaBuffer::address)
    }

    pub(crate) fn cuda(&self) -> Option<&CudaBuffer> {
        match &self.memory {
            Memory::Cuda(buffer) => Some(buffer),
            Memory::Cpu(_) | Memory::Meta { .. } => None,
        }
    }

    /// Where the storage lies among all memory of its device; meta storages lie at 0 and are told apart by identity.
    pub(crate) fn base(&self) -> u64 {
        match &self.memory {
            Memory::Cpu(buffer) => buffer.address() as u64,
            Memory::Cuda(buffer) => buffer.address(),
            Memory::Meta { .. } => 0,
        }
    }

    /// Whether the storage may be written.
    ///
    /// # Errors
    /// [`Error::ReadOnly`].
    pub(crate) fn check_access(&self, what: &str, access: Access) -> Result<()> {
        match &self.memory {
            Memory::Cuda(buffer) if access == Access::Write && !buffer.is_writable() => {
                Err(Error::ReadOnly { what: what.to_owned() })
            }
            Memory::Cpu(_) | Memory::Cuda(_) | Memory::Meta { .. } => Ok(()),
        }
    }

    /// Copies `host` to this GPU memory from byte `start` on, and waits for the copy, since `host` may change then.
    pub(crate) fn upload(self: &Arc<Self>, host: &CpuBuffer, start: usize) -> Result<()> {
        let bytes = host.bytes();
        let Some(buffer) = self.cuda_part("a copy to the device", start, bytes)? else { return Ok(()) };
        let stream = self.device.default_stream();
        stream.submit(&[Use { storage: self, access: Access::Write }], || {
            let queue = stream.require_queue("a copy to the device")?;
            // SAFETY: both ranges were checked, and the host memory outlives the copy, which is waited for below.
            let status = unsafe {
                sys::cuMemcpyHtoDAsync_v2(
                    buffer.address() + start as u64,
                    host.as_mut_ptr().cast(),
                    bytes,
                    queue.handle(),
                )
            };
            status.result().map_err(|error| Error::driver("cuMemcpyHtoDAsync", error))
        })?;
        stream.synchronize()
    }

    /// Copies the bytes `range` of this GPU memory to the host, after all work queued on them so far.
    pub(crate) fn download(self: &Arc<Self>, range: Range<usize>) -> Result<CpuBuffer> {
        let host = CpuBuffer::zeroed(range.len())?;
        let Some(buffer) = self.cuda_part("a copy from the device", range.start, range.len())? else {
            return Ok(host);
        };
        let stream = self.device.default_stream();
        let copied = stream.submit(&[Use { storage: self, access: Access::Read }], || {
            let queue = stream.require_queue("a copy from the device")?;
            // SAFETY: both ranges were checked; nobody else has the host memory until the copy has been waited for.
            let status = unsafe {
                sys::cuMemcpyDtoHAsync_v2(
                    host.as_mut_ptr().cast(),
                    buffer.address() + range.start as u64,
                    range.len(),
                    queue.handle(),
                )
            };
            status.result().map_err(|error| Error::driver("cuMemcpyDtoHAsync", error))
        });
        let done = stream.synchronize();
        if done.is_err() {
            // The driver may still write to the memory.
            std::mem::forget(host);
            return Err(copied.err().or(done.err()).expect("one of the two failed"));
        }
        copied.map(|()| host)
    }

    /// Sets `count` elements of `width` bytes from byte `start` on to the bits `word`, in the order of `stream`.
    pub(crate) fn fill_words(
        self: &Arc<Self>,
        stream: &crate::Stream,
        start: usize,
        count: usize,
        (width, word): (usize, u64),
    ) -> Result<()> {
        let Some(buffer) = self.cuda_part("fill", start, count * width)? else { return Ok(()) };
        stream.submit(&[Use { storage: self, access: Access::Write }], || {
            let queue = stream.require_queue("fill")?;
            let (to, queue) = (buffer.address() + start as u64, queue.handle());
            // SAFETY: the range was checked, and `start` is a multiple of the element size.
            let status = unsafe {
                match width {
                    1 => result::memset_d8_async(to, word as u8, count, queue),
                    2 => sys::cuMemsetD16Async(to, word as u16, count, queue).result(),
                    4 => sys::cuMemsetD32Async(to, word as u32, count, queue).result(),
                    // Only called with equal halves.
                    _ => sys::cuMemsetD32Async(to, word as u32, count * (width / 4), queue).result(),
                }
            };
            status.map_err(|error| Error::driver("cuMemsetAsync", error))
        })
    }

    /// This storage's device memory after checking that `bytes` from `start` on lie inside; none when there is
    /// nothing to do.
    fn cuda_part(&self, what: &str, start: usize, bytes: usize) -> Result<Option<&CudaBuffer>> {
        let buffer = self.cuda().ok_or_else(|| Error::NoData { what: what.to_owned() })?;
        if start.checked_add(bytes).is_none_or(|end| end > buffer.bytes()) {
            let index = start as i128 + bytes as i128 - 1;
            return Err(Error::OutOfBounds { what: what.to_owned(), index, len: buffer.bytes() });
        }
        Ok((bytes > 0).then_some(buffer))
    }
}
