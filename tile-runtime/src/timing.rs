//! How times are taken, the same everywhere: replays of a captured graph with a cold L2 on a GPU, wall clock on the CPU.

use std::time::{Duration, Instant};

use crate::device::{Device, DeviceKind};
use crate::error::Error;
use crate::graph::Graph;
use crate::stream::Stream;
use crate::tensor::DeviceTensor;

/// Runs on a GPU before the capture, so that everything is compiled and loaded.
const GPU_WARM_UPS: usize = 3;
/// Replays of which a GPU's time is the median.
const GPU_REPLAYS: usize = 30;
/// Values written before each replay: 256 MiB, several times the largest L2.
const FLUSH_VALUES: usize = (256 << 20) / size_of::<u32>();
/// Runs of which the CPU's time is the median, after one that compiles.
const CPU_RUNS: usize = 5;

/// The time of some work: the median of its repetitions, and how far they lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    /// The median.
    pub median: Duration,
    /// The third quartile less the first: half of the repetitions lie in a range of this width.
    pub spread: Duration,
}

impl Time {
    /// Of these repetitions; zero of none.
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |quarters: usize| times.get(times.len().saturating_sub(1) * quarters / 4).copied();
        let spread = at(3).zip(at(1)).map_or(Duration::ZERO, |(third, first)| third.saturating_sub(first));
        Self { spread, median: median(times) }
    }
}

/// The median; the mean of the middle two for an even number; zero of none.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    match times.len() {
        0 => Duration::ZERO,
        n if n.is_multiple_of(2) => (times[n / 2 - 1] + times[n / 2]) / 2,
        n => times[n / 2],
    }
}

/// The time of what `queue` queues on the stream that it is given.
///
/// On a GPU it is captured into a graph, so that host time does not count, and replayed 30 times; 256 MiB are written before
/// each replay, so that the L2 cache is cold. On the CPU it runs 5 times after a first one.
///
/// # Errors
/// As [`check`]; what `queue` returns; the device's.
pub fn measure<E: From<Error>>(
    device: &Device,
    queue: &mut dyn FnMut(&Stream) -> Result<(), E>,
) -> Result<Time, E> {
    check(device)?;
    if device.is_cuda() { replays(device, queue) } else { wall_clock(device, queue) }
}

/// Whether the times of a device mean something.
///
/// # Errors
/// [`Error::Unsupported`] for a PTX executor, which takes far longer than any GPU, and the meta device.
pub fn check(device: &Device) -> Result<(), Error> {
    match device.kind() {
        DeviceKind::Cuda { .. } | DeviceKind::Cpu => Ok(()),
        DeviceKind::PtxExecutor { .. } | DeviceKind::Meta => Err(Error::Unsupported {
            what: format!("taking times on device {device}"),
            instead: "use the CPU or a GPU, whose times mean something".to_owned(),
        }),
    }
}

fn wall_clock<E: From<Error>>(
    device: &Device,
    queue: &mut dyn FnMut(&Stream) -> Result<(), E>,
) -> Result<Time, E> {
    let stream = device.default_stream();
    queue(&stream)?;
    let mut times = Vec::with_capacity(CPU_RUNS);
    for _ in 0..CPU_RUNS {
        let start = Instant::now();
        queue(&stream)?;
        times.push(start.elapsed());
    }
    Ok(Time::of(times))
}

fn replays<E: From<Error>>(
    device: &Device,
    queue: &mut dyn FnMut(&Stream) -> Result<(), E>,
) -> Result<Time, E> {
    let stream = device.new_stream()?;
    for _ in 0..GPU_WARM_UPS {
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
    let mut times = Vec::with_capacity(GPU_REPLAYS);
    for _ in 0..GPU_REPLAYS {
        flush.fill_on(&stream, 0)?;
        let start = stream.record()?;
        graph.launch(&stream)?;
        let end = stream.record()?;
        times.push(Duration::from_secs_f64(f64::from(start.elapsed_ms(&end)?) / 1e3));
    }
    Ok(Time::of(times))
}

#[cfg(test)]
mod tests {
    use tile_codegen::target::Target;

    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn medians_and_quartiles() {
        assert_eq!(median(vec![ms(9), ms(1), ms(5)]), ms(5));
        assert_eq!(median(vec![ms(4), ms(1), ms(9), ms(2)]), ms(3));
        assert_eq!(Time::of(Vec::new()), Time { median: ms(0), spread: ms(0) });
        // Sorted 1 2 3 10 20: the quartiles are 2 and 10.
        let time = Time::of(vec![ms(10), ms(1), ms(20), ms(3), ms(2)]);
        assert_eq!(time, Time { median: ms(3), spread: ms(8) });
    }

    #[test]
    fn the_cpu_runs_once_and_five_times() {
        let mut runs = 0;
        let time = measure::<Error>(&Device::cpu(), &mut |_| {
            runs += 1;
            std::thread::sleep(ms(1));
            Ok(())
        });
        assert!(time.expect("nothing fails").median >= ms(1));
        assert_eq!(runs, 6);
    }

    #[test]
    fn what_has_no_time_is_refused() {
        for device in [Device::meta(), Device::ptx_executor(&Target::SM_80)] {
            let refused = measure::<Error>(&device, &mut |_| unreachable!("never called"));
            assert!(matches!(refused, Err(Error::Unsupported { .. })), "{device}");
        }
    }

    #[test]
    fn an_error_of_the_work_is_returned() {
        let failed = measure(&Device::cpu(), &mut |_| Err(Error::Mismatch("no".to_owned())));
        assert_eq!(failed.expect_err("the work fails").to_string(), "no");
    }
}
