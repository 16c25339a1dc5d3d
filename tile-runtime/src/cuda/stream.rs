//! A CUDA stream that counts what it was given, so that other streams can wait for exactly what they need.
//!
//! Every submission gets the next number of its stream. A buffer remembers (stream, number) of its last uses; no
//! event is recorded at a launch. When another stream must wait for a use, an event is recorded then, which covers
//! all numbers given out so far, and the waiting stream remembers that, so that it waits once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::{CudaContext, CudaEvent, CudaStream, sys};

use super::capture::Capture;
use super::context::bind;
use crate::error::{Error, Result};

/// A stream with its submission counter.
pub(crate) struct CudaQueue {
    id: u64,
    is_default: bool,
    raw: Arc<CudaStream>,
    /// Number of the last submission; raised only after the driver has taken the work.
    submitted: AtomicU64,
    /// For other streams, by id: the number up to which this stream already waits for them.
    waited: Mutex<Vec<(u64, u64)>>,
    /// The capture that is under way on this stream.
    capture: Mutex<Option<Capture>>,
}

impl CudaQueue {
    /// A new stream, which does not synchronise with the driver's own null stream.
    pub(crate) fn create(context: &Arc<CudaContext>, is_default: bool) -> Result<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let raw = context.new_stream().map_err(|error| Error::driver("cuStreamCreate", error))?;
        Ok(Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            is_default,
            raw,
            submitted: AtomicU64::new(0),
            waited: Mutex::default(),
            capture: Mutex::default(),
        })
    }

    /// Identity of the stream within the process.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Whether this is its device's default stream.
    pub(crate) fn is_default(&self) -> bool {
        self.is_default
    }

    /// The driver's handle.
    pub(crate) fn handle(&self) -> sys::CUstream {
        self.raw.cu_stream()
    }

    /// The stream as `cudarc` has it.
    pub(crate) fn raw(&self) -> &Arc<CudaStream> {
        &self.raw
    }

    /// Makes the stream's context current on this thread.
    pub(crate) fn bind(&self) -> Result<()> {
        bind(self.raw.context())
    }

    /// Numbers the work that was just queued. Call after the driver has taken it: a waiting stream that reads a
    /// number must be sure that an event recorded afterwards covers the work.
    pub(crate) fn number_submission(&self) -> u64 {
        self.submitted.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The capture under way, if any.
    pub(crate) fn capture(&self) -> MutexGuard<'_, Option<Capture>> {
        self.capture.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits on the host for everything queued so far.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.refuse_capture("synchronize()")?;
        self.raw.synchronize().map_err(|error| Error::driver("cuStreamSynchronize", error))
    }

    /// An event that is reached when everything queued so far is done.
    pub(crate) fn record(&self, flags: sys::CUevent_flags) -> Result<CudaEvent> {
        self.refuse_capture("record()")?;
        self.record_now(flags)
    }

    /// Makes work queued from now on wait for `event`.
    pub(crate) fn wait_event(&self, event: &CudaEvent) -> Result<()> {
        self.refuse_capture("wait()")?;
        self.raw.wait(event).map_err(|error| Error::driver("cuStreamWaitEvent", error))
    }

    /// Makes work queued from now on wait until `other` has done its submission `number`.
    pub(crate) fn wait_for(&self, other: &CudaQueue, number: u64) -> Result<()> {
        if self.id == other.id || self.waits_until(other.id) >= number {
            return Ok(());
        }
        // The lock keeps a capture from starting between the check and the recording.
        let capture = other.capture();
        let covered = if let Some(capture) = capture.as_ref() {
            // An event recorded on a capturing stream would join the graph. Submissions of a capture get no number,
            // so that the event from before the capture covers all numbers there are.
            let (event, covered) = capture.before();
            self.raw.wait(event).map_err(|error| Error::driver("cuStreamWaitEvent", error))?;
            covered
        } else {
            let covered = other.submitted.load(Ordering::Acquire);
            let event = other.record_now(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
            self.raw.wait(&event).map_err(|error| Error::driver("cuStreamWaitEvent", error))?;
            covered
        };
        drop(capture);
        self.note_wait(other.id, covered);
        Ok(())
    }

    /// An event together with the last submission number that it covers; the stream must not be capturing.
    pub(super) fn mark(&self) -> Result<(CudaEvent, u64)> {
        let covered = self.submitted.load(Ordering::Acquire);
        Ok((self.record_now(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?, covered))
    }

    pub(crate) fn record_now(&self, flags: sys::CUevent_flags) -> Result<CudaEvent> {
        self.raw.record_event(Some(flags)).map_err(|error| Error::driver("cuEventRecord", error))
    }

    fn waits_until(&self, other: u64) -> u64 {
        let waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        waited.iter().find(|(id, _)| *id == other).map_or(0, |(_, number)| *number)
    }

    fn note_wait(&self, other: u64, covered: u64) {
        let mut waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        match waited.iter_mut().find(|(id, _)| *id == other) {
            Some((_, number)) => *number = covered.max(*number),
            None => waited.push((other, covered)),
        }
    }

    fn refuse_capture(&self, what: &str) -> Result<()> {
        if self.capture().is_none() {
            return Ok(());
        }
        Err(Error::Unsupported {
            what: format!("{what} on a stream whose work is being captured"),
            instead: "do it before or after Graph::capture".to_owned(),
        })
    }
}
