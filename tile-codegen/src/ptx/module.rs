//! Modules and kernels: what surrounds the instructions.

use std::fmt;

use super::inst::Inst;
use super::reg::{Reg, Ty};

/// A PTX target architecture (PTX ISA 11.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sm {
    /// Ten times the compute capability.
    pub number: u32,
    /// Whether instructions of exactly this architecture may be used, as in `sm_90a`.
    pub specific: bool,
}

impl Sm {
    /// `sm_80`: Ampere and everything later.
    pub const SM_80: Sm = Sm { number: 80, specific: false };
    /// `sm_90`: Hopper and everything later.
    pub const SM_90: Sm = Sm { number: 90, specific: false };
    /// `sm_90a`: Hopper alone, with all its instructions.
    pub const SM_90A: Sm = Sm { number: 90, specific: true };
}

impl fmt::Display for Sm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.number, if self.specific { "a" } else { "" })
    }
}

/// A PTX module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The target architecture.
    pub target: Sm,
    /// The kernels, in text order.
    pub kernels: Vec<Kernel>,
}

/// The type of a kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A number of this type.
    Scalar(Ty),
    /// A 64-bit pointer to global memory whose target is aligned to this many bytes.
    Pointer {
        /// Bytes, a power of two.
        align: u32,
    },
    /// A block of bytes, such as a tensor map.
    Bytes {
        /// Bytes.
        size: u32,
        /// Bytes, a power of two.
        align: u32,
    },
}

/// A kernel parameter. The text calls it `p_NAME`, so that names of instructions are usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// An ASCII identifier, unique in the kernel.
    pub name: String,
    /// Its type.
    pub kind: ParamKind,
}

/// The shared memory of a kernel: one symbol, `smem`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// None.
    None,
    /// As many bytes as the launch says; the alignment is 128 bytes, or 1024 if `align` asks for more.
    Dynamic {
        /// Bytes, a power of two.
        align: u32,
    },
    /// A fixed number of bytes, at most 48 KiB.
    Static {
        /// Bytes.
        bytes: u32,
        /// Bytes, a power of two.
        align: u32,
    },
}

/// One line of a kernel's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The predicate that the instruction runs under, and whether it is negated.
    pub guard: Option<(Reg, bool)>,
    /// The instruction.
    pub inst: Inst,
    /// The source location's number, 0 for none. It is not printed.
    pub loc: u32,
}

/// A kernel: one `.visible .entry`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// An ASCII identifier, unique in the module.
    pub name: String,
    /// The parameters, in order.
    pub params: Vec<Param>,
    /// Threads per block, exactly.
    pub reqntid: u32,
    /// `.minnctapersm`: blocks that must fit on a multiprocessor at once.
    pub min_ctas: Option<u32>,
    /// `.maxnreg`: registers per thread at most.
    pub max_regs: Option<u32>,
    /// The shared memory.
    pub shared: Shared,
    /// Bytes of local memory per thread, aligned to 16.
    pub local_bytes: u32,
    /// The body.
    pub lines: Vec<Line>,
}
