//! How the program writes numbers and comparisons.

use std::time::Duration;

use mamba2::{golden::Errors, tolerance::Limits};

/// A duration in the unit that leaves it between 1 and 1000.
pub(crate) fn time(duration: Duration) -> String {
    let us = duration.as_secs_f64() * 1e6;
    match us {
        us if us < 1e3 => format!("{us:.1} us"),
        us if us < 1e6 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

/// Both errors beside their limits.
pub(crate) fn errors(errors: &Errors, limits: &Limits) -> String {
    let one = |name: &str, error: f64, limit: f64| format!("{name} {error:.2e} (limit {limit:.2e})");
    format!("{}, {}", one("y", errors.y, limits.y), one("state", errors.state, limits.state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(time(Duration::from_nanos(12_340)), "12.3 us");
        assert_eq!(time(Duration::from_micros(12_340)), "12.34 ms");
        assert_eq!(time(Duration::from_millis(12_340)), "12.34 s");
    }
}
