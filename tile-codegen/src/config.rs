//! Configuration: what tuning may vary without changing what a kernel computes.

/// Choices of code generation. `None` leaves the choice to the compiler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// Warps per block: 1, 2, 4, 8 or 16.
    pub num_warps: Option<usize>,
}
