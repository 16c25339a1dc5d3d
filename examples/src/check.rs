//! Comparison of a result with the float64 computation.

use std::fmt;

use crate::Value;

/// The largest error of a result, beside what rounding can explain.
#[derive(Debug, Clone)]
pub struct Check {
    /// What was computed, such as "1000x37 f32".
    what: String,
    error: f64,
    tolerance: f64,
}

impl Check {
    /// Whether the error is within the tolerance; never for NaN.
    pub fn passed(&self) -> bool {
        self.error <= self.tolerance
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, error, tolerance } = self;
        let verdict = if self.passed() { "ok" } else { "FAILED" };
        write!(f, "{what} max error {error:.2e} (at most {tolerance:.2e}) {verdict}")
    }
}

/// Compares `got` with `want`, value by value. The error of a value is `|got - want| / scale`, where `scale` gives the
/// magnitude that the value's rounding errors are proportional to. A value that is NaN or infinite on one side only,
/// and results of different lengths, count as infinitely wrong.
pub fn compare<T: Value>(
    what: String,
    got: &[T],
    want: &[f64],
    scale: impl Fn(usize) -> f64,
    tolerance: f64,
) -> Check {
    let error_of = |i: usize| {
        let (got, want) = (got[i].to_f64(), want[i]);
        let error = (got - want).abs();
        if got == want || (got.is_nan() && want.is_nan()) {
            0.0
        } else if error.is_nan() {
            f64::INFINITY
        } else {
            error / scale(i)
        }
    };
    let error = if got.len() == want.len() {
        (0..got.len()).map(error_of).fold(0.0, f64::max)
    } else {
        f64::INFINITY
    };
    Check { what, error, tolerance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_beyond_the_tolerance_fail() {
        let check = |got: &[f32], want: &[f64]| compare(String::new(), got, want, |_| 2.0, 0.25);
        assert!(check(&[1.0, 2.5], &[1.0, 2.0]).passed());
        assert!(!check(&[1.0, 2.75], &[1.0, 2.0]).passed());
        assert!(!check(&[f32::NAN], &[1.0]).passed());
        assert!(!check(&[1.0], &[f64::NAN]).passed());
        assert!(!check(&[f32::INFINITY], &[1.0]).passed());
        assert!(check(&[f32::NAN, f32::INFINITY], &[f64::NAN, f64::INFINITY]).passed());
        assert!(!check(&[1.0], &[1.0, 1.0]).passed());
    }
}
