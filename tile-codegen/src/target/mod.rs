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
}

/// Every target.
pub const TARGETS: [Target; 1] = [Target::SM_80];

impl Target {
    /// Every NVIDIA GPU of compute capability 8.0 or higher: `mma.sync`, `ldmatrix`. Blocks stay within the 99 KiB of
    /// shared memory that all of them have.
    pub const SM_80: Target = Target { name: "sm_80", sm: Sm::SM_80, max_shared_bytes: 99 * 1024 };

    /// The target of this name.
    pub fn by_name(name: &str) -> Option<Target> {
        TARGETS.into_iter().find(|t| t.name == name)
    }
}
