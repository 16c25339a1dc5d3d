//! Tests of kernels: one call compares the CPU, the PTX executor and a reference.

use std::fmt::Write as _;

use tile_codegen::target::Target;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::executor::ExecutorOptions;

/// Schedules that [`compare`] runs.
const SEEDS: u64 = 8;
/// Wrong values that a message lists.
const LISTED: usize = 6;

/// How far a value may be from the reference: `relative * |reference| + absolute`. Any NaN equals any NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Of the expected value.
    pub relative: f64,
    /// Where the expected value may be near 0.
    pub absolute: f64,
}

impl Tolerance {
    /// No difference, except that 0 equals -0.
    pub const EXACT: Tolerance = Tolerance { relative: 0.0, absolute: 0.0 };

    fn accepts(self, found: f64, expected: f64) -> bool {
        found == expected
            || found.is_nan() && expected.is_nan()
            || (found - expected).abs() <= self.relative * expected.abs() + self.absolute
    }
}

/// The CPU, and the PTX executor for `sm_80` with 8 schedules.
pub fn devices() -> [Device; 2] {
    let options = ExecutorOptions { seeds: (0..SEEDS).collect(), ..ExecutorOptions::default() };
    [Device::cpu(), Device::ptx_executor_with(&Target::SM_80, options)]
}

/// Runs `run` on each of [`devices`] and compares what it returns with the reference. `run` makes its tensors on the
/// device that it is given, launches, and returns the values to look at; types without a conversion to f64 (i64) it
/// converts itself.
///
/// ```
/// use tile_runtime::prelude::*;
/// use tile_runtime::testing::{Tolerance, compare};
///
/// #[tile_kernel]
/// fn double(x: Tensor<f32, 1>, y: TensorMut<f32, 1>, block: Const<usize>) {
///     store(y, (bid(0),), load(x, (bid(0),), (block,)) * 2.0);
/// }
///
/// # fn main() -> Result<()> {
/// let host: Vec<f32> = (0..300).map(|i| i as f32).collect();
/// let want: Vec<f64> = (0..300).map(|i| 2.0 * f64::from(i)).collect();
/// compare(Tolerance::EXACT, &want, |device| {
///     let x = DeviceTensor::from_slice(device, &[300], &host)?;
///     let mut y = DeviceTensor::zeros(device, &[300])?;
///     double(&x, &mut y, 128).launch(3)?;
///     y.to_vec()
/// })
/// # }
/// ```
///
/// # Errors
/// What `run` returns: on the executor, [`Error::Executor`] for a kernel with data races or other faults.
/// [`Error::Mismatch`] for values that are too far from the reference, or another number of them.
pub fn compare<T: Copy + Into<f64>>(
    tolerance: Tolerance,
    reference: &[f64],
    run: impl Fn(&Device) -> Result<Vec<T>>,
) -> Result<()> {
    compare_on(&devices(), tolerance, reference, run)
}

/// As [`compare`], on other devices: a GPU, or executors with other options.
///
/// # Errors
/// As [`compare`].
pub fn compare_on<T: Copy + Into<f64>>(
    devices: &[Device],
    tolerance: Tolerance,
    reference: &[f64],
    run: impl Fn(&Device) -> Result<Vec<T>>,
) -> Result<()> {
    for device in devices {
        let found: Vec<f64> = run(device)?.into_iter().map(Into::into).collect();
        if let Some(text) = differences(tolerance, &found, reference) {
            return Err(Error::Mismatch(format!("on {device}, {text}")));
        }
    }
    Ok(())
}

/// What is wrong with the values, in words; none if all is well.
fn differences(tolerance: Tolerance, found: &[f64], expected: &[f64]) -> Option<String> {
    if found.len() != expected.len() {
        return Some(format!("there are {} values, expected {}", found.len(), expected.len()));
    }
    let wrong: Vec<usize> = (0..found.len()).filter(|&i| !tolerance.accepts(found[i], expected[i])).collect();
    if wrong.is_empty() {
        return None;
    }
    let Tolerance { relative, absolute } = tolerance;
    let mut text = format!(
        "{} of {} values differ from the reference by more than {relative:e} of it and {absolute:e}:",
        wrong.len(),
        found.len()
    );
    for &i in wrong.iter().take(LISTED) {
        write!(text, " [{i}] {:?} for {:?};", found[i], expected[i]).expect("a string");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_the_tolerance_are_listed() {
        let of = |found: &[f32], expected: &[f64]| {
            let tolerance = Tolerance { relative: 0.25, absolute: 0.0 };
            compare_on(&[Device::cpu()], tolerance, expected, |_| Ok(found.to_vec()))
        };
        of(&[1.0, 2.5, f32::NAN, f32::INFINITY], &[1.0, 2.0, f64::NAN, f64::INFINITY]).expect("all are near");
        for (found, expected) in [(2.75, 2.0), (f32::NAN, 1.0), (1.0, f64::NAN), (f32::INFINITY, 1.0)] {
            let error = of(&[0.0, found], &[0.0, expected]).expect_err("too far");
            assert!(error.to_string().starts_with("on cpu, 1 of 2 values"), "{error}");
            assert!(error.to_string().contains("[1]"), "{error}");
        }
        assert!(matches!(of(&[1.0], &[1.0, 1.0]), Err(Error::Mismatch(_))));
    }
}
