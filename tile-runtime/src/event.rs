//! Events: points in a stream's work, to wait for and to time with.

use std::time::Instant;

use cudarc::driver::CudaEvent;

use crate::error::{Error, Result};

/// A point in the work of a stream; made by [`Stream::record`](crate::Stream::record).
#[derive(Debug)]
pub struct Event(Inner);

#[derive(Debug)]
enum Inner {
    Host(Instant),
    Cuda(CudaEvent),
}

impl Event {
    pub(crate) fn now() -> Self {
        Self(Inner::Host(Instant::now()))
    }

    pub(crate) fn cuda(event: CudaEvent) -> Self {
        Self(Inner::Cuda(event))
    }

    pub(crate) fn as_cuda(&self) -> Option<&CudaEvent> {
        match &self.0 {
            Inner::Host(_) => None,
            Inner::Cuda(event) => Some(event),
        }
    }

    /// Waits on the host until the event is reached.
    ///
    /// # Errors
    /// A fault of the work before the event.
    pub fn synchronize(&self) -> Result<()> {
        match &self.0 {
            Inner::Host(_) => Ok(()),
            Inner::Cuda(event) => {
                event.synchronize().map_err(|error| Error::driver("cuEventSynchronize", error))
            }
        }
    }

    /// Milliseconds from this event to `later`, both of one device; waits for `later`. A GPU's clock resolves about
    /// half a microsecond.
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`] for events of different kinds of device; a fault of the work before `later`.
    pub fn elapsed_ms(&self, later: &Self) -> Result<f32> {
        match (&self.0, &later.0) {
            (Inner::Host(start), Inner::Host(end)) => {
                let forward = end.saturating_duration_since(*start).as_secs_f64();
                let backward = start.saturating_duration_since(*end).as_secs_f64();
                Ok(((forward - backward) * 1e3) as f32)
            }
            (Inner::Cuda(start), Inner::Cuda(end)) => {
                later.synchronize()?;
                start.elapsed_ms(end).map_err(|error| Error::driver("cuEventElapsedTime", error))
            }
            (start, end) => Err(Error::DeviceMismatch {
                what: "elapsed_ms".to_owned(),
                found: kind(end).to_owned(),
                expected: kind(start).to_owned(),
            }),
        }
    }
}

fn kind(inner: &Inner) -> &'static str {
    match inner {
        Inner::Host(_) => "cpu",
        Inner::Cuda(_) => "cuda",
    }
}
