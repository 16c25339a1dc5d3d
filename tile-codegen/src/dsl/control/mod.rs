//! Control flow of kernels: guards that the kernel attribute wraps around `for`, `while`, `loop`, `if` and `return`.
//!
//! A guard opens regions, takes the values that a construct hands on, and emits the operation when it ends. Contracts
//! of the operations are in [`crate::ops::control`].

mod branch;
mod carry;
mod join;
mod loops;
mod range;
mod region;
mod scope;

pub use branch::{Cond, HostIf, RtIf, host_jump_under_runtime_if, if_begin};
pub use carry::Carry;
pub use join::{Join, JoinOne, join, join_one};
pub use loops::{For, Loop, RtCond, for_begin, loop_begin};
pub use range::{Bounds, Step};
pub(crate) use region::Frame;
pub use scope::{Ret, Scope, fn_begin};
