//! Streams: queues of work that a device does in order, and the ordering between them.

use std::sync::Arc;

use cudarc::driver::sys::CUevent_flags;

use crate::buffer::Use;
use crate::cuda::CudaQueue;
use crate::device::{Device, Kind};
use crate::error::{Error, Result};
use crate::event::Event;

/// A queue of work on one device. Clones are the same stream. Usable from any thread.
///
/// Work on one stream runs in order. Work on different streams of a GPU may overlap, except that buffers are
/// respected: work that uses a buffer waits for the earlier work that it conflicts with. On the CPU and a PTX executor
/// every piece of work is done when the call returns.
#[derive(Clone)]
pub struct Stream {
    device: Device,
    queue: Option<Arc<CudaQueue>>,
}

impl Stream {
    pub(crate) fn default_of(device: &Device) -> Self {
        let queue = match device.inner() {
            Kind::Cpu | Kind::Meta | Kind::Executor(_) => None,
            Kind::Cuda(cuda) => Some(cuda.default_queue.clone()),
        };
        Self { device: device.clone(), queue }
    }

    pub(crate) fn new_on(device: &Device) -> Result<Self> {
        let queue = match device.inner() {
            Kind::Cpu | Kind::Meta | Kind::Executor(_) => None,
            Kind::Cuda(cuda) => Some(Arc::new(CudaQueue::create(&cuda.context, false)?)),
        };
        Ok(Self { device: device.clone(), queue })
    }

    /// The device that does the work.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits on the host until everything queued so far is done.
    ///
    /// # Errors
    /// A fault of the queued work; [`Error::Unsupported`] inside a graph capture of this stream.
    pub fn synchronize(&self) -> Result<()> {
        self.queue.as_ref().map_or(Ok(()), |queue| queue.synchronize())
    }

    /// An event that is reached when everything queued so far is done.
    ///
    /// # Errors
    /// [`Error::Driver`]; [`Error::Unsupported`] inside a graph capture of this stream.
    pub fn record(&self) -> Result<Event> {
        match &self.queue {
            None => Ok(Event::now()),
            Some(queue) => queue.record(CUevent_flags::CU_EVENT_DEFAULT).map(Event::cuda),
        }
    }

    /// Makes work queued from now on wait for `event`, which may be of another stream or device.
    ///
    /// # Errors
    /// As [`Stream::record`].
    pub fn wait(&self, event: &Event) -> Result<()> {
        match (&self.queue, event.as_cuda()) {
            (_, None) => Ok(()),
            (Some(queue), Some(event)) => queue.wait_event(event),
            // The CPU's streams run in the calling thread, so that waiting means waiting here.
            (None, Some(_)) => event.synchronize(),
        }
    }

    /// Runs `work`, which queues work on this stream, ordered after all earlier work that its `uses` conflict with
    /// on any stream; the buffers stay allocated until it is done. While a graph is captured on this stream, the
    /// uses are the graph's.
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`] for a buffer of another device, [`Error::ReadOnly`] for a write to memory that was
    /// borrowed for reading, [`Error::NoData`] on the meta device, and what `work` returns.
    pub fn submit(&self, uses: &[Use<'_>], work: impl FnOnce() -> Result<()>) -> Result<()> {
        for used in uses {
            self.check_use(used)?;
        }
        let Some(queue) = &self.queue else { return work() };
        if self.note_captured(queue, uses)? {
            queue.bind()?;
            return work();
        }
        queue.bind()?;
        let buffers = || uses.iter().filter_map(|used| Some((used.storage.cuda()?, used.access)));
        for (buffer, access) in buffers() {
            buffer.wait_for_uses(queue, access)?;
        }
        // Work that fails may have queued a part of itself, so that its uses count all the same.
        let outcome = work();
        let number = queue.number_submission();
        for (buffer, access) in buffers() {
            buffer.note_use(queue, access, number)?;
        }
        outcome
    }

    /// The CUDA stream, if this is one.
    pub(crate) fn queue(&self) -> Option<&Arc<CudaQueue>> {
        self.queue.as_ref()
    }

    pub(crate) fn require_queue(&self, what: &str) -> Result<&Arc<CudaQueue>> {
        self.device.require_cuda(what)?;
        Ok(self.queue.as_ref().expect("streams of a GPU have a queue"))
    }

    fn check_use(&self, used: &Use<'_>) -> Result<()> {
        let device = used.storage.device();
        if device.is_meta() {
            return Err(Error::NoData { what: "work on a tensor".to_owned() });
        }
        if *device != self.device {
            return Err(Error::DeviceMismatch {
                what: "a tensor used by work on a stream".to_owned(),
                found: device.to_string(),
                expected: self.device.to_string(),
            });
        }
        used.storage.check_access("work that writes a tensor", used.access)
    }

    /// Notes the uses in the capture under way; false when there is none.
    fn note_captured(&self, queue: &CudaQueue, uses: &[Use<'_>]) -> Result<bool> {
        let mut capture = queue.capture();
        let Some(capture) = capture.as_mut() else { return Ok(false) };
        for used in uses {
            // The graph could outlive the borrow.
            if used.storage.cuda().is_some_and(|buffer| buffer.is_borrowed()) {
                return Err(Error::Unsupported {
                    what: "capturing work on a borrowed cudarc slice".to_owned(),
                    instead: "share it with DeviceTensor::from_shared_cuda_slice(Arc<CudaSlice<_>>, shape)"
                        .to_owned(),
                });
            }
        }
        for used in uses {
            capture.note_use(used.storage, used.access);
        }
        Ok(true)
    }
}

impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        let id = |stream: &Self| stream.queue.as_ref().map(|queue| queue.id());
        self.device == other.device && id(self) == id(other)
    }
}

impl Eq for Stream {}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let default = self.queue.as_ref().is_none_or(|queue| queue.is_default());
        f.debug_struct("Stream")
            .field("device", &self.device)
            .field("default", &default)
            .finish_non_exhaustive()
    }
}
