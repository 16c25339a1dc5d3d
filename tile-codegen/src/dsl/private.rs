//! What the kernel attributes expand to. Nothing here is for use by hand.

pub use super::compare::{CmpEq, CmpOrd, Logic, NeedsRight, and_needs_right, or_needs_right};
pub use super::control::{
    Bounds, Carry, Cond, For, HostIf, Join, JoinOne, Loop, Ret, RtCond, RtIf, Scope, Step, fn_begin,
    for_begin, host_jump_under_runtime_if, if_begin, join, join_one, loop_begin,
};
pub use super::convert::CastAs;
pub use super::host::{Lit, scalar as lift};
pub use super::params::Params;
pub use super::session::{SourceGuard, StageError, Staged, source, stage};
pub use super::source::KernelSource;
