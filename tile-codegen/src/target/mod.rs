//! Targets: what a GPU architecture has, as data. Passes ask; they never copy a pipeline per architecture.

use crate::ptx::Sm;

/// A compilation target.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Target {
    /// Its name on command lines and in cache keys.
    pub name: &'static str,
    /// The PTX target.
    pub sm: Sm,
    /// Bytes of shared memory that a block may use.
    pub max_shared_bytes: usize,
    /// Whether warpgroups multiply out of shared memory, bulk tensor copies fill it, and registers move between warpgroups.
    pub warpgroups: bool,
}

/// Every target.
pub const TARGETS: [Target; 2] = [Target::SM_80, Target::SM_90A];

impl Target {
    /// Every NVIDIA GPU of compute capability 8.0 or higher: `mma.sync`, `ldmatrix`. Blocks stay within the 99 KiB of
    /// shared memory that all of them have.
    pub const SM_80: Target =
        Target { name: "sm_80", sm: Sm::SM_80, max_shared_bytes: 99 * 1024, warpgroups: false };

    /// Hopper: H100 and H200. `wgmma`, bulk tensor copies, mbarriers, 227 KiB of shared memory for a block.
    pub const SM_90A: Target =
        Target { name: "sm_90a", sm: Sm::SM_90A, max_shared_bytes: 227 * 1024, warpgroups: true };

    /// The target of this name.
    pub fn by_name(name: &str) -> Option<Target> {
        TARGETS.into_iter().find(|t| t.name == name)
    }
}
