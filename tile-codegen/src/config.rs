//! Configuration: what tuning may vary without changing what a kernel computes.

use crate::target::Target;

/// Choices of code generation. `None` leaves the choice to the compiler.
///
/// ```
/// use tile_codegen::config::Config;
///
/// let config = Config { occupancy: Some(2), ..Config::warpgroups(1) };
/// assert_eq!(config.num_warps, Some(4));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// Warps that compute: 1, 2, 4, 8 or 16. Where a block is divided into roles, those of the other roles come on top,
    /// and products are done by whole warpgroups, which are 4 warps.
    pub num_warps: Option<usize>,
    /// Blocks that must fit on a multiprocessor at once, as far as registers go, 1 to 32: more blocks leave each thread
    /// fewer registers, and 1 lets a thread have all that it wants. `None` lets the driver's assembler decide, which may
    /// trade a few spilled registers for more blocks.
    pub occupancy: Option<u32>,
    /// Stages of the channels or rings of a loop, at least 1: how many of its iterations' tiles may be on their way at once.
    /// Loads with a latency of their own have that instead. Where so many do not fit shared memory, there are no channels and
    /// no rings. Rings of asynchronous copies have 10 at most; with 1 there are none, and loads go through registers.
    pub stages: Option<usize>,
    /// `Some(false)`: no bulk tensor copies, as for tensors that they cannot address.
    pub allow_tma: Option<bool>,
}

impl Config {
    /// So many warpgroups compute: [`Config::num_warps`] is 4 for each.
    pub const fn warpgroups(groups: usize) -> Self {
        let num_warps = Some(groups.saturating_mul(4));
        Self { num_warps, occupancy: None, stages: None, allow_tma: None }
    }
}

/// A value for each target, with a default for the others.
///
/// ```
/// use tile_codegen::config::{ByTarget, Config};
/// use tile_codegen::target::Target;
///
/// let config = ByTarget::new(Config::default()).on(&Target::SM_90A, Config::warpgroups(2));
/// assert_eq!(config.of(&Target::SM_90A).num_warps, Some(8));
/// assert_eq!(config.of(&Target::SM_80).num_warps, None);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ByTarget<T> {
    default: T,
    own: Vec<(&'static str, T)>,
}

impl<T> ByTarget<T> {
    /// One value for every target.
    pub const fn new(default: T) -> Self {
        Self { default, own: Vec::new() }
    }

    /// Another value for `target`; the last one given counts.
    #[must_use]
    pub fn on(mut self, target: &Target, value: T) -> Self {
        self.own.retain(|(name, _)| *name != target.name);
        self.own.push((target.name, value));
        self
    }

    /// The value for a target.
    pub fn of(&self, target: &Target) -> &T {
        let own = self.own.iter().find(|(name, _)| *name == target.name);
        own.map_or(&self.default, |(_, value)| value)
    }
}

impl<T> From<T> for ByTarget<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}
