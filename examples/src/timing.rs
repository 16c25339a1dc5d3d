//! Time of launches on a GPU, in the unit of the examples.

use tile_runtime::prelude::{Device, Stream};

use crate::Result;

/// Median time in microseconds of what `work` queues on the stream it is given; see [`measure`](tile_runtime::timing::measure).
///
/// # Errors
/// On a PTX executor, and what `work` returns.
pub fn median_us(device: &Device, work: impl Fn(&Stream) -> tile_runtime::Result<()>) -> Result<f64> {
    let time = tile_runtime::timing::measure(device, &mut |stream| work(stream))?;
    Ok(time.median.as_secs_f64() * 1e6)
}
