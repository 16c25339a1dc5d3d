//! The timing rule on a GPU: replays of a captured graph, each with a cold L2.

use std::time::Duration;

use tile_runtime::{Device, DeviceTensor, Graph, Stream};

use crate::cli::{Result, median};

/// Passes before the capture, so that everything is compiled and loaded.
const WARM_UPS: usize = 3;
/// Replays of which the time is the median.
const REPLAYS: usize = 30;
/// Values written before each replay: 256 MiB, several times the largest L2.
const FLUSH_VALUES: usize = (256 << 20) / size_of::<u32>();

/// Median time of one replay of what `queue` queues.
pub(crate) fn median_time(device: &Device, queue: &mut dyn FnMut(&Stream) -> Result<()>) -> Result<Duration> {
    let stream = device.new_stream()?;
    for _ in 0..WARM_UPS {
        queue(&stream)?;
    }
    stream.synchronize()?;
    let mut failure = None;
    let graph = Graph::capture(&stream, |stream| {
        failure = queue(stream).err();
        Ok(())
    });
    if let Some(error) = failure {
        return Err(error);
    }
    let graph = graph?;
    let flush = DeviceTensor::<u32>::zeros(device, &[FLUSH_VALUES])?;
    let mut times = Vec::with_capacity(REPLAYS);
    for _ in 0..REPLAYS {
        flush.fill_on(&stream, 0)?;
        let start = stream.record()?;
        graph.launch(&stream)?;
        let end = stream.record()?;
        times.push(Duration::from_secs_f64(f64::from(start.elapsed_ms(&end)?) / 1e3));
    }
    Ok(median(times))
}
