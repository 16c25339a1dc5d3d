//! What passes note beside operations while they decide.

use std::fmt;

use super::{Reason, count};
use crate::ir::{Kernel, LocId, Op, Type};
use crate::ops::OpKind;

/// A decision about one operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// Where the user wrote the operation.
    pub loc: LocId,
    /// The operation as [`title`] names it.
    pub title: String,
    /// What was decided.
    pub choice: Choice,
}

/// What was decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Choice {
    /// The kernel is not divided into roles.
    NoRoles(Reason),
    /// A load is not done by bulk tensor copies through a channel.
    NoChannel(Reason),
    /// What bulk tensor copies of a load fill with zeros becomes the padding by a mask.
    Masked,
    /// A load is not done by asynchronous copies into a ring.
    NoRing(Reason),
    /// A load is issued one iteration ahead, or why not.
    Ahead(Result<(), Reason>),
    /// The way that a product takes.
    Product(Product),
    /// A store is not done by bulk tensor copies.
    NoBulkStore(Reason),
}

/// Where an operand of a product of warpgroups is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// In registers.
    Registers,
    /// In shared memory, where bulk tensor copies put it.
    Channel,
    /// In shared memory, where threads write it.
    Shared,
}

/// The way that a product takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Product {
    /// `wgmma`.
    Warpgroups {
        /// Where a is.
        a: Source,
        /// Where b is.
        b: Source,
        /// Whether it is done as `(b^T @ a^T)^T`.
        swapped: bool,
        /// Warpgroups.
        groups: usize,
        /// Rows of each warpgroup.
        rows: usize,
        /// Columns of an instruction.
        columns: usize,
    },
    /// `mma.sync`.
    TensorCores {
        /// Warps along the batch, the rows and the columns.
        warps: [usize; 3],
        /// Why not by warpgroups.
        slower: Reason,
    },
    /// FMAs.
    Fma {
        /// Why not by warpgroups.
        slower: Reason,
        /// Why not on tensor cores.
        slow: Reason,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Registers => "from registers",
            Source::Channel => "from its channel",
            Source::Shared => "written to shared memory first",
        })
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Product::Warpgroups { a, b, swapped, groups, rows, columns } => {
                let groups = count(*groups, "warpgroup");
                write!(f, "wgmma by {groups}, {rows} rows each, N = {columns}; a {a}, b {b}")?;
                if *swapped { write!(f, "; as the transpose of b^T @ a^T") } else { Ok(()) }
            }
            Product::TensorCores { warps: [batch, m, n], .. } => {
                let warps = if *batch > 1 { format!("{batch} x {m} x {n}") } else { format!("{m} x {n}") };
                write!(f, "mma.sync by {warps} warps")
            }
            Product::Fma { .. } => write!(f, "FMAs, operands from shared memory"),
        }
    }
}

impl Note {
    /// A decision about an operation of `kernel`.
    pub(crate) fn of(kernel: &Kernel, op: &Op, choice: Choice) -> Self {
        Self { loc: op.loc, title: title(kernel, op), choice }
    }
}

impl Kernel {
    /// Notes a decision about an operation.
    pub(crate) fn note(&mut self, op: &Op, choice: Choice) {
        self.notes.push(Note::of(self, op, choice));
    }
}

/// What an operation is called: its name, its tensor or operands, its tile.
pub fn title(kernel: &Kernel, op: &Op) -> String {
    let shape = |ty: &Type| match ty {
        Type::Tile(t) => format!("{} {}", crate::ir::dim::show(&t.shape), t.elem),
        Type::Shared(t) => format!("{} {}", crate::ir::dim::show(&t.layout.shape), t.elem),
        Type::Tensor(_) | Type::Error => String::new(),
    };
    let name = |at: usize| {
        let param = kernel.params.iter().find(|p| Some(&p.value) == op.operands.get(at));
        param.map_or("", |p| p.name.as_str())
    };
    match &op.kind {
        OpKind::Load(_) => format!("load {} {}", name(0), shape(kernel.ty(op.results[0]))),
        OpKind::Send(send) => {
            format!("load {} {} {}", name(0), crate::ir::dim::show(&send.layout.shape), send.elem)
        }
        OpKind::CopyAsync(copy) => {
            format!("load {} {} {}", name(0), crate::ir::dim::show(&copy.layout.shape), copy.elem)
        }
        OpKind::Store(_) => format!("store {} {}", name(1), shape(kernel.ty(op.operands[0]))),
        OpKind::Mma(_) => {
            let [a, b, acc] = [op.operands[0], op.operands[1], op.results[0]];
            format!("mma {} @ {} + {}", shape(kernel.ty(a)), shape(kernel.ty(b)), shape(kernel.ty(acc)))
        }
        kind => crate::ops::TileOp::name(kind).to_owned(),
    }
}
