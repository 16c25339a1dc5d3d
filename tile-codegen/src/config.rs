//! Configuration: what tuning may vary without changing what a kernel computes.

/// Choices of code generation. `None` leaves the choice to the compiler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// Warps per block: 1, 2, 4, 8 or 16.
    pub num_warps: Option<usize>,
    /// Blocks that must fit on a multiprocessor at once, as far as registers go: more blocks leave each thread fewer
    /// registers, and 1 lets a thread have all that it wants. `None` lets the driver's assembler decide, which may trade
    /// a few spilled registers for more blocks.
    pub occupancy: Option<u32>,
    /// Stages of the channels of a loop: how many of its iterations' tiles may be on their way at once.
    pub stages: Option<usize>,
    /// `Some(false)`: no bulk tensor copies, as for tensors that they cannot address.
    pub allow_tma: Option<bool>,
}
