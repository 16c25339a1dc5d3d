//! Time of launches on a GPU: replays of a captured graph, each with a cold L2 cache.

use tile_runtime::prelude::{Device, DeviceTensor, Graph, Stream};

use crate::Result;

/// Replays of which the time is the median.
const REPLAYS: usize = 30;
/// Values written before each replay: 256 MiB, several times the largest L2.
const FLUSH_VALUES: usize = (256 << 20) / size_of::<u32>();

/// Median time in microseconds of what `work` queues on the stream it is given. Needs a GPU.
///
/// # Errors
/// On the CPU, and what `work` returns.
pub fn median_us(device: &Device, work: impl Fn(&Stream) -> tile_runtime::Result<()>) -> Result<f64> {
    let stream = device.new_stream()?;
    // Compiles and loads everything before the capture.
    work(&stream)?;
    stream.synchronize()?;
    let graph = Graph::capture(&stream, work)?;
    let flush = DeviceTensor::<u32>::zeros(device, &[FLUSH_VALUES])?;
    let mut times = Vec::with_capacity(REPLAYS);
    for _ in 0..REPLAYS {
        flush.fill_on(&stream, 0)?;
        let start = stream.record()?;
        graph.launch(&stream)?;
        let end = stream.record()?;
        times.push(f64::from(start.elapsed_ms(&end)?) * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok((times[REPLAYS / 2 - 1] + times[REPLAYS / 2]) / 2.0)
}
