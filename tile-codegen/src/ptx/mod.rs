//! PTX as a typed syntax tree: what the code generator builds, the checker verifies and the printer writes.
//!
//! | file | idea |
//! |---|---|
//! | `reg.rs` | register classes, types, operands, addresses |
//! | `ops.rs` | modifiers of instructions as enums with their spelling |
//! | `inst.rs` | the instructions |
//! | `hopper.rs` | the instructions that came with Hopper; `hopper_*.rs` are their operands, texts and builder |
//! | `visit.rs` | which operands an instruction writes and reads, and their types |
//! | `module.rs` | modules, kernels, parameters, lines, targets |
//! | `func.rs` | the builder of a kernel's body |
//! | `arith.rs` | the builder's arithmetic, with constant folding |
//! | `memory.rs` | the builder's loads, stores and warp operations |
//! | `fold.rs` | the value of integer operations on constants |
//! | `print.rs` | the text of a module, with a line map beside it |
//! | `print_inst.rs` | the text of one instruction |
//! | `version.rs` | the lowest `.version` and target that have an instruction |
//! | `check.rs` | structural faults of a kernel, all of them |
//! | `forms.rs` | which types and modifiers an instruction has |
//! | `defined.rs` | registers read before they are written |
//!
//! The text is a function of the tree alone: registers and labels are numbered by first appearance, and source
//! locations stay beside the text. Instructions carry everything that gives them a meaning, so that an executor can
//! match on the same enum that the printer matches on.

mod arith;
mod check;
mod defined;
mod fold;
mod forms;
mod func;
mod hopper;
mod hopper_build;
mod hopper_print;
mod hopper_visit;
mod inst;
mod memory;
mod module;
mod ops;
mod print;
mod print_inst;
mod reg;
#[cfg(test)]
mod tests;
mod version;
mod visit;

pub use check::{CheckError, check_kernel, check_module};
pub use fold::{int_bin, int_un, wrap};
pub use func::FuncBuilder;
pub use hopper::{Coords, Hopper, Wgmma, WgmmaA};
pub use inst::{Inst, Regs};
pub use module::{Kernel, Line, Module, Param, ParamKind, Shared, Sm};
pub use ops::*;
pub use print::{PtxText, print_module};
pub use reg::*;
pub use version::{Need, Version, module_version, need};
pub use visit::{Role, Slot, Want};
