//! An executor for PTX: runs a kernel's syntax tree on the CPU, and reports what hardware hides.
//!
//! ```text
//! Program::new(&module, entry)      a kernel prepared once
//! Memory::add(..)                   global memory: buffers with addresses
//! Run { program, grid, .. }         a launch, with a seed and a budget
//!     .execute(&memory)             -> Outcome { reports, counts }
//! ```
//!
//! It is deterministic: a launch with the same seed always does the same. The seed chooses which warp goes on when, the order
//! of blocks, and when asynchronous copies land; a correct kernel gives the same results for every seed. Reports do not
//! depend on luck: races are found by what synchronises threads (vector clocks), not by what happened to go wrong.
//!
//! # What is checked
//!
//! | report | rule |
//! |---|---|
//! | data race | two accesses by different threads that no barrier, fence or release orders, one a write that changes the bytes |
//! | uninitialised | registers, shared, local and (where asked for) global memory are written before they are read |
//! | out of bounds, misaligned, read-only | every access lies inside one buffer, at a multiple of its size |
//! | missing wait | nobody touches the destination of `cp.async` before the issuing thread has waited for it, that of a bulk copy before a wait for its phase of its mbarrier, or the source of a bulk store or `wgmma` before the wait for its group |
//! | missing fence | `fence.proxy.async` comes between generic writes of shared memory and bulk copies or `wgmma` on it, `fence.mbarrier_init` (or the former) between an mbarrier's init and copies, `wgmma.fence` between uses of registers and products |
//! | register in flight | nobody reads or writes accumulators, or writes registers of A, before `wgmma.wait_group` |
//! | mbarrier misuse, transaction mismatch | arrivals and bytes come out as every phase expects |
//! | warpgroup misuse, tensor map | the warps of a warpgroup issue the same products; descriptors and maps exist |
//! | divergence | all lanes execute what takes the whole warp; all lanes of a mask come |
//! | barrier misuse, deadlock, budget | counts agree; some warp can always go on; the run ends |
//!
//! # Limits
//!
//! * Threads of one warp are told apart by their warp's synchronisations alone, and memory scopes all count as the widest.
//! * Lanes of one warp that wait for each other in loops make no progress: the lanes that are behind always go first.
//! * The lanes of a warp commit and wait for groups of `cp.async` and of bulk stores together. `wait_group.read` also waits for
//!   the writes.
//! * A warp where no executing lane passes `mbarrier.try_wait` is suspended with all its lanes.
//! * Proxies are told apart in shared memory alone.
//! * Tensor maps are encoded by [`TensorMap::encode`], not by the driver; boxes with a swizzle are as wide as its rows.
//! * `griddepcontrol` does nothing.
//! * `%smid`, `%clock64` and `%globaltimer` have plausible values.
//! * Conversions of the address space (`cvta`) leave addresses as they are.
//!
//! | file | idea |
//! |---|---|
//! | `program.rs` | a kernel with numbered registers, resolved labels and its text |
//! | `memory.rs`, `shared.rs`, `global.rs` | memory, and who accessed it last |
//! | `clock.rs`, `conflicts.rs` | which accesses are ordered, reports of those that are not |
//! | `regs.rs`, `state.rs` | registers, warps and blocks |
//! | `step.rs` | one instruction: the table of meanings, lanes that diverge |
//! | `integer.rs`, `floating.rs`, `number.rs`, `nan.rs` | arithmetic and conversions |
//! | `access.rs`, `atomics.rs`, `ordering.rs` | loads, stores, atomics, fences |
//! | `exchange.rs`, `barrier.rs` | shuffles, votes, barriers |
//! | `matrix.rs` | tensor core products, matrix loads and stores |
//! | `copies.rs` | asynchronous copies |
//! | `mbarrier.rs` | mbarriers: phases, arrivals, bytes |
//! | `bulk.rs`, `tensor_map.rs` | bulk copies and their tensor maps |
//! | `wgmma.rs`, `descriptor.rs` | products of warpgroups, descriptors of shared operands |
//! | `hopper.rs` | the table of meanings of Hopper's instructions, and its small ones |
//! | `run.rs`, `random.rs` | schedules |
//! | `report.rs`, `counts.rs` | what a run tells |
//! | `launch.rs` | launches of compiled kernels |

mod access;
mod atomics;
mod barrier;
mod bulk;
mod clock;
mod conflicts;
mod copies;
mod counts;
mod descriptor;
mod exchange;
mod floating;
mod global;
mod hopper;
mod integer;
mod launch;
mod matrix;
mod mbarrier;
mod memory;
mod nan;
mod number;
mod ordering;
mod program;
mod random;
mod regs;
mod report;
mod run;
mod shared;
mod state;
mod step;
mod tensor_map;
#[cfg(test)]
mod tests;
mod wgmma;

pub use counts::{Class, Counts, Traffic};
pub use launch::{Arg, LaunchError};
pub use memory::{Access, Memory};
pub use program::{Program, ProgramError};
pub use report::{OtherAccess, Report, ReportKind};
pub use run::{DEFAULT_BUDGET, Outcome, Run, RunError};
pub use tensor_map::{TensorMap, TensorMapError, TensorSwizzle};
