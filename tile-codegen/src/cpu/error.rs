//! What can go wrong when a kernel runs on the CPU.

use crate::diag::OpError;
use crate::ir::Type;

/// An error of CPU execution. Kernels that passed the verifier meet only those about arguments, steps and budgets.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExecError {
    /// A wrong number of arguments.
    #[error("kernel `{kernel}` takes {expected} arguments, found {found}")]
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// How many parameters it has.
        expected: usize,
        /// How many arguments came.
        found: usize,
    },
    /// An argument that does not fit its parameter.
    #[error("argument `{param}` of kernel `{kernel}` must be {expected}, found {found}")]
    Argument {
        /// The kernel.
        kernel: String,
        /// The parameter.
        param: String,
        /// What the parameter takes.
        expected: String,
        /// What came.
        found: String,
    },
    /// A `for` with a step that is not positive.
    #[error(
        "the step of a loop must be positive, found {found}; to count down, compute the index from the end"
    )]
    LoopStep {
        /// The step.
        found: i64,
    },
    /// The block index lies outside the grid.
    #[error("block {block} lies outside the grid of {count} blocks")]
    BlockIndex {
        /// The index.
        block: u64,
        /// How many blocks there are.
        count: u64,
    },
    /// The kernel has faults; only kernels without diagnostics run.
    #[error("kernel `{kernel}` cannot run: {message}")]
    Invalid {
        /// The kernel.
        kernel: String,
        /// The fault.
        message: String,
    },
}

impl ExecError {
    pub(crate) fn invalid(kernel: &str, fault: &OpError) -> Self {
        ExecError::Invalid { kernel: kernel.to_string(), message: fault.message.clone() }
    }
}

/// A type as messages show it.
pub(crate) fn show(ty: &Type) -> String {
    match ty {
        Type::Tile(tile) if tile.rank() == 0 => format!("a scalar `{}`", tile.elem),
        Type::Tile(tile) => format!("a tile {tile}"),
        Type::Tensor(tensor) => format!("a tensor of `{}` of rank {}", tensor.elem, tensor.rank),
        Type::Shared(shared) => format!("a shared tile of `{}`", shared.elem),
        Type::Error => "a refused value".to_string(),
    }
}
