//! Capture of a stream's work into a CUDA graph, and its replay.
//!
//! Waits for work from before the capture would be illegal inside it. They are not captured: the graph lists the
//! buffers that it uses, and every launch of the graph waits for, and counts as, a use of each.

use std::any::Any;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaEvent, result, sys};

use super::stream::CudaQueue;
use crate::buffer::{Access, Storage};
use crate::error::{Error, Result};

/// A capture under way on a stream.
pub(crate) struct Capture {
    /// Reached when the work from before the capture is done, with the last submission number that it covers.
    before: (CudaEvent, u64),
    used: Captured,
}

/// What a graph needs to stay alive.
#[derive(Default)]
struct Captured {
    buffers: Vec<(Arc<Storage>, Access)>,
    keep: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Capture {
    pub(super) fn before(&self) -> (&CudaEvent, u64) {
        (&self.before.0, self.before.1)
    }

    /// Notes that the captured work uses `storage`.
    pub(crate) fn note_use(&mut self, storage: &Arc<Storage>, access: Access) {
        match self.used.buffers.iter_mut().find(|(known, _)| Arc::ptr_eq(known, storage)) {
            Some((_, known)) => *known = access.max(*known),
            None => self.used.buffers.push((storage.clone(), access)),
        }
    }

    /// Keeps `thing` alive as long as the graph.
    pub(crate) fn keep(&mut self, thing: Arc<dyn Any + Send + Sync>) {
        if !self.used.keep.iter().any(|known| std::ptr::addr_eq(Arc::as_ptr(known), Arc::as_ptr(&thing))) {
            self.used.keep.push(thing);
        }
    }
}

/// An instantiated graph.
pub(crate) struct CudaGraph {
    graph: sys::CUgraph,
    exec: sys::CUgraphExec,
    queue: Arc<CudaQueue>,
    used: Captured,
    nodes: usize,
    /// Graph handles are not synchronised by the driver.
    launching: Mutex<()>,
}

// SAFETY: the handles may be used from any thread; `launching` keeps it to one at a time.
unsafe impl Send for CudaGraph {}
// SAFETY: as above.
unsafe impl Sync for CudaGraph {}

impl CudaGraph {
    /// Captures what `work` queues on `queue`.
    pub(crate) fn capture(queue: &Arc<CudaQueue>, work: impl FnOnce() -> Result<()>) -> Result<Self> {
        begin(queue)?;
        let mut guard = EndCapture { queue, open: true };
        let outcome = work();
        let ended = guard.end();
        drop(guard);
        let (graph, used) = match (outcome, ended) {
            (Err(error), ended) => {
                if let Ok((graph, _)) = ended {
                    destroy(graph);
                }
                return Err(error);
            }
            (Ok(()), ended) => ended?,
        };
        instantiate(queue, graph, used)
    }

    /// The buffers that the graph uses.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = (&Arc<Storage>, Access)> {
        self.used.buffers.iter().map(|(storage, access)| (storage, *access))
    }

    /// Number of nodes: launches, copies and fills.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes
    }

    /// Queues the graph on `queue`; the caller has waited for its buffers.
    pub(crate) fn launch(&self, queue: &CudaQueue) -> Result<()> {
        let _one_at_a_time = self.launching.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: both handles are alive, the context is current, and no other thread uses the graph now.
        let status = unsafe { result::graph::launch(self.exec, queue.handle()) };
        status.map_err(|error| Error::driver("cuGraphLaunch", error))
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        if self.queue.bind().is_err() {
            return;
        }
        // SAFETY: the handle is alive and destroyed once; the driver completes launches that are under way.
        let status = unsafe { result::graph::exec_destroy(self.exec) };
        if let Err(error) = status {
            tracing::debug!("leaked a graph: {error:?}");
        }
        destroy(self.graph);
    }
}

fn begin(queue: &Arc<CudaQueue>) -> Result<()> {
    if queue.is_default() {
        return Err(Error::Unsupported {
            what: "capturing the default stream, on which tensors are allocated and copied".to_owned(),
            instead: "capture a stream made by device.new_stream()".to_owned(),
        });
    }
    queue.bind()?;
    let mut capture = queue.capture();
    if capture.is_some() {
        return Err(Error::Unsupported {
            what: "capturing a stream that is being captured already".to_owned(),
            instead: "finish the other Graph::capture first, or use another stream".to_owned(),
        });
    }
    let before = queue.mark()?;
    // Relaxed: modules may be loaded and tensors allocated meanwhile; they go to other streams.
    let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the stream is alive and its context current.
    let status = unsafe { result::stream::begin_capture(queue.handle(), mode) };
    status.map_err(|error| Error::driver("cuStreamBeginCapture", error))?;
    *capture = Some(Capture { before, used: Captured::default() });
    Ok(())
}

/// Ends the capture, also when the captured closure panics.
struct EndCapture<'a> {
    queue: &'a Arc<CudaQueue>,
    open: bool,
}

impl EndCapture<'_> {
    fn end(&mut self) -> Result<(sys::CUgraph, Captured)> {
        self.open = false;
        self.queue.bind()?;
        let mut capture = self.queue.capture();
        // SAFETY: the stream is alive and capturing.
        let status = unsafe { result::stream::end_capture(self.queue.handle()) };
        let used = capture.take().map(|capture| capture.used).unwrap_or_default();
        let graph = status.map_err(|error| Error::driver("cuStreamEndCapture", error))?;
        Ok((graph, used))
    }
}

impl Drop for EndCapture<'_> {
    fn drop(&mut self) {
        if self.open
            && let Ok((graph, _)) = self.end()
        {
            destroy(graph);
        }
    }
}

fn instantiate(queue: &Arc<CudaQueue>, graph: sys::CUgraph, used: Captured) -> Result<CudaGraph> {
    let counted = count_nodes(graph);
    let nodes = match counted {
        Ok(nodes) if nodes > 0 => nodes,
        Ok(_) => {
            destroy(graph);
            return Err(Error::Unsupported {
                what: "a graph without any work".to_owned(),
                instead: "queue launches on the stream that the closure is given".to_owned(),
            });
        }
        Err(error) => {
            destroy(graph);
            return Err(error);
        }
    };
    // SAFETY: the graph is alive and complete.
    match unsafe { result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0)) } {
        Ok(exec) => {
            let queue = queue.clone();
            Ok(CudaGraph { graph, exec, queue, used, nodes, launching: Mutex::default() })
        }
        Err(error) => {
            destroy(graph);
            Err(Error::driver("cuGraphInstantiateWithFlags", error))
        }
    }
}

fn count_nodes(graph: sys::CUgraph) -> Result<usize> {
    let mut count = MaybeUninit::new(0);
    if graph.is_null() {
        return Ok(0);
    }
    // SAFETY: the graph is alive; with a null array the driver only writes the count.
    let status = unsafe { sys::cuGraphGetNodes(graph, std::ptr::null_mut(), count.as_mut_ptr()) };
    status.result().map_err(|error| Error::driver("cuGraphGetNodes", error))?;
    // SAFETY: it was initialised above.
    Ok(unsafe { count.assume_init() })
}

fn destroy(graph: sys::CUgraph) {
    if graph.is_null() {
        return;
    }
    // SAFETY: the graph is alive and destroyed once.
    if let Err(error) = unsafe { result::graph::destroy(graph) } {
        tracing::debug!("leaked a graph: {error:?}");
    }
}
