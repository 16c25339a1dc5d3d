//! CUDA graphs: a sequence of launches captured once and replayed at the cost of one.

use crate::buffer::Use;
use crate::cuda::CudaGraph;
use crate::error::{Error, Result};
use crate::stream::Stream;

/// A captured sequence of work. It keeps the tensors and kernels that it uses alive, and every launch of it is
/// ordered with other work on them as one use of each.
pub struct Graph(CudaGraph);

impl Graph {
    /// Captures what `work` queues on `stream`, without running it.
    ///
    /// `stream` must not be the default stream. Inside `work` queue launches, fills and copies on the stream that it
    /// is given. What goes elsewhere happens at once and is not replayed: allocations, copies from and to the
    /// host, and anything queued on another stream. A tensor made inside `work` is therefore zeroed once, not at
    /// each launch; fill it on the stream where that matters. Results are there after [`Graph::launch`] only.
    ///
    /// # Errors
    /// [`Error::Unsupported`] on the CPU, on the default stream, for a nested capture, for work on a slice that is
    /// only borrowed, and when nothing was captured; the error of `work`; [`Error::Driver`].
    pub fn capture(stream: &Stream, work: impl FnOnce(&Stream) -> Result<()>) -> Result<Self> {
        let Some(queue) = stream.queue() else {
            return Err(Error::Unsupported {
                what: format!("capturing a graph on device {}", stream.device()),
                instead: "call the launches directly; graphs save launch time of a GPU only".to_owned(),
            });
        };
        CudaGraph::capture(queue, || work(stream)).map(Self)
    }

    /// Number of nodes: launches, fills and copies.
    pub fn nodes(&self) -> usize {
        self.0.nodes()
    }

    /// Queues the whole sequence on `stream`, of the device that it was captured on.
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`]; [`Error::Unsupported`] inside another capture; [`Error::Driver`].
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        let queue = stream.require_queue("launching a graph")?;
        if queue.capture().is_some() {
            return Err(Error::Unsupported {
                what: "launching a graph inside a capture".to_owned(),
                instead: "capture the launches themselves again".to_owned(),
            });
        }
        let uses: Vec<_> = self.0.buffers().map(|(storage, access)| Use { storage, access }).collect();
        stream.submit(&uses, || self.0.launch(queue))
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("nodes", &self.nodes()).finish_non_exhaustive()
    }
}
