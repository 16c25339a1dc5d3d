//! Device memory that knows which streams used it last, so that no use and no free can come too early.
//!
//! * A read on a stream first waits for the last write on another stream; a write waits for every earlier use.
//! * Dropping a buffer makes the allocating stream wait for every use, then frees in stream order. The host never
//!   waits.
//! * Memory of a foreign owner (a `cudarc` slice) is joined after every use: the owner's stream waits for it, so
//!   that the owner may free or reuse the memory whenever its borrow allows, even if this buffer is leaked.
//! * Uses inside a graph capture are not tracked here: the graph keeps the buffer, and every launch of the graph
//!   counts as a use of it.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaStream, result, sys};

use super::context::CudaDevice;
use super::stream::CudaQueue;
use crate::buffer::Access;
use crate::error::{Error, Result};

/// A range of device memory.
pub(crate) struct CudaBuffer {
    address: u64,
    bytes: usize,
    /// The stream on which the memory is allocated and freed: the default stream of its device.
    home: Arc<CudaQueue>,
    owner: Owner,
    uses: Mutex<Uses>,
}

enum Owner {
    /// Allocated here; `pooled` memory is freed in stream order.
    Own { pooled: bool },
    /// Kept alive elsewhere, and ordered by `stream`. `keep` holds the owner where it can be held.
    Foreign { stream: Arc<CudaStream>, writable: bool, keep: Option<Box<dyn Any + Send + Sync>> },
}

/// The last uses that a later one may have to wait for.
#[derive(Default)]
struct Uses {
    writer: Option<LastUse>,
    readers: Vec<LastUse>,
}

struct LastUse {
    queue: Arc<CudaQueue>,
    number: u64,
}

impl CudaBuffer {
    /// Allocates `bytes` of memory and sets it to zero, on the default stream of `device`.
    pub(crate) fn zeroed(device: &CudaDevice, bytes: usize) -> Result<Self> {
        let buffer = Self::allocate(device, bytes)?;
        if bytes > 0 {
            // SAFETY: the memory was just allocated on this stream with this size.
            let status = unsafe { result::memset_d8_async(buffer.address, 0, bytes, buffer.home.handle()) };
            status.map_err(|error| Error::driver("cuMemsetD8Async", error))?;
            buffer.note(&buffer.home.clone(), Access::Write, buffer.home.number_submission());
        }
        Ok(buffer)
    }

    /// Allocates memory of unspecified content on the default stream of `device`; the caller fills it at once.
    pub(crate) fn allocate(device: &CudaDevice, bytes: usize) -> Result<Self> {
        device.bind()?;
        let home = device.default_queue.clone();
        let pooled = device.context.has_async_alloc();
        let address = match (bytes, pooled) {
            // The driver refuses to allocate nothing.
            (0, _) => Ok(0),
            // SAFETY: the stream is alive, and its context is current.
            (_, true) => unsafe { result::malloc_async(home.handle(), bytes) },
            // SAFETY: the context is current.
            (_, false) => unsafe { result::malloc_sync(bytes) },
        };
        let context = format!("allocating {bytes} bytes on cuda:{}", device.ordinal);
        let address = address.map_err(|error| Error::driver_in(context, "cuMemAlloc", error))?;
        let buffer = Self { address, bytes, home, owner: Owner::Own { pooled }, uses: Mutex::default() };
        // The allocation itself is the first thing that other streams must wait for.
        buffer.note(&buffer.home.clone(), Access::Write, buffer.home.number_submission());
        Ok(buffer)
    }

    /// Wraps memory that someone else owns. Work queued so far on `stream` is waited for; later work on `stream`
    /// waits for every use of this buffer.
    pub(crate) fn foreign(
        device: &CudaDevice,
        address: u64,
        bytes: usize,
        stream: Arc<CudaStream>,
        writable: bool,
        keep: Option<Box<dyn Any + Send + Sync>>,
    ) -> Result<Self> {
        device.bind()?;
        let home = device.default_queue.clone();
        let event = stream.record_event(None).map_err(|error| Error::driver("cuEventRecord", error))?;
        home.wait_event(&event)?;
        let owner = Owner::Foreign { stream, writable, keep };
        let buffer = Self { address, bytes, home, owner, uses: Mutex::default() };
        buffer.note(&buffer.home.clone(), Access::Write, buffer.home.number_submission());
        Ok(buffer)
    }

    /// Device address of the first byte; 0 for an empty buffer.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether kernels and copies may write.
    pub(crate) fn is_writable(&self) -> bool {
        !matches!(self.owner, Owner::Foreign { writable: false, .. })
    }

    /// Whether the memory is only borrowed: nothing here keeps it alive beyond the borrow.
    pub(crate) fn is_borrowed(&self) -> bool {
        matches!(self.owner, Owner::Foreign { keep: None, .. })
    }

    /// Makes work queued on `queue` from now on wait for the earlier uses that `access` conflicts with.
    pub(crate) fn wait_for_uses(&self, queue: &CudaQueue, access: Access) -> Result<()> {
        let uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = &uses.writer {
            queue.wait_for(&writer.queue, writer.number)?;
        }
        if access == Access::Write {
            for reader in &uses.readers {
                queue.wait_for(&reader.queue, reader.number)?;
            }
        }
        Ok(())
    }

    /// Remembers that submission `number` of `queue` uses this buffer, and joins it into a foreign owner's stream.
    pub(crate) fn note_use(&self, queue: &Arc<CudaQueue>, access: Access, number: u64) -> Result<()> {
        self.note(queue, access, number);
        let Owner::Foreign { stream, .. } = &self.owner else { return Ok(()) };
        let event = queue.record_now(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
        stream.wait(&event).map_err(|error| Error::driver("cuStreamWaitEvent", error))
    }

    fn note(&self, queue: &Arc<CudaQueue>, access: Access, number: u64) {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if access == Access::Write {
            // The write has waited for everything before it, so that waiting for the write is enough.
            uses.readers.clear();
            uses.writer = Some(LastUse { queue: queue.clone(), number });
        } else if let Some(reader) = uses.readers.iter_mut().find(|reader| reader.queue.id() == queue.id()) {
            reader.number = reader.number.max(number);
        } else {
            uses.readers.push(LastUse { queue: queue.clone(), number });
        }
    }

    /// Orders the free after every use, and frees.
    fn release(&mut self) -> Result<()> {
        let Owner::Own { pooled } = self.owner else { return Ok(()) };
        if self.address == 0 {
            return Ok(());
        }
        self.home.bind()?;
        self.wait_for_uses(&self.home, Access::Write)?;
        if pooled {
            // SAFETY: the memory was allocated by `malloc_async`, is freed once, and every use comes earlier on this
            // stream or is waited for by it.
            let status = unsafe { result::free_async(self.address, self.home.handle()) };
            return status.map_err(|error| Error::driver("cuMemFreeAsync", error));
        }
        self.home.synchronize()?;
        // SAFETY: the memory was allocated by `malloc_sync`, is freed once, and every use of it is complete.
        let status = unsafe { result::free_sync(self.address) };
        status.map_err(|error| Error::driver("cuMemFree", error))
    }
}

impl Drop for CudaBuffer {
    fn drop(&mut self) {
        // Where ordering fails (a context that a faulty kernel has broken) the memory leaks, which is safe.
        if let Err(error) = self.release() {
            tracing::debug!("leaked {} bytes of device memory: {error}", self.bytes);
        }
        if let Owner::Foreign { keep, .. } = &mut self.owner {
            // The owner frees on its own stream, which waits for every use already.
            drop(keep.take());
        }
    }
}
