//! Probe kernels: every instruction form of PTX that we emit, on inputs that show what it does, so that the executor can be
//! held against what a GPU gave.
//!
//! A probe is one kernel with its inputs. Its threads read operands from columns of the input, one element a thread, and
//! write results to regions of the output, one region a form. A GPU's outputs are kept in `tests/data/probes`; the
//! executor must give the same bits, or for approximations lie within the error that the PTX manual gives.
//!
//! | file | idea |
//! |---|---|
//! | `builder.rs` | builds a probe |
//! | `values.rs` | operands: edge values and random ones |
//! | `compare.rs` | what counts as the same result |
//! | `bounds.rs` | how far approximations may differ, and why |
//! | `execute.rs` | runs a probe on the executor |
//! | others | one family of instructions each, listed in [`FAMILIES`] |

mod atomics;
mod bounds;
mod builder;
mod compare;
mod control;
mod convert;
mod copies;
mod execute;
mod floating;
mod integer;
mod matrix;
mod memory;
mod mma;
mod predicates;
mod values;
mod warp;

pub use compare::{Compare, Difference};
use tile_codegen::ptx::{Module, Ty};

/// A name, and the probes of it.
pub type Family = (&'static str, fn() -> Vec<Probe>);

/// The families.
pub const FAMILIES: &[Family] = &[
    ("integer", integer::probes),
    ("floating", floating::probes),
    ("convert", convert::probes),
    ("predicates", predicates::probes),
    ("warp", warp::probes),
    ("atomics", atomics::probes),
    ("mma", mma::probes),
    ("matrix", matrix::probes),
    ("copies", copies::probes),
    ("memory", memory::probes),
    ("control", control::probes),
];

/// The entry of every probe's module; its parameters are the input and the output.
pub const ENTRY: &str = "probe";

/// One region of a probe's output: the results of one instruction form, one element a thread.
#[derive(Clone, Debug)]
pub struct Form {
    /// What it shows.
    pub name: String,
    /// The type of the results.
    pub ty: Ty,
    /// Bytes from the start of the output.
    pub offset: usize,
    /// What counts as the same result.
    pub compare: Compare,
}

/// A kernel with its launch.
#[derive(Clone, Debug)]
pub struct Probe {
    /// `family/what`, unique.
    pub name: String,
    /// The kernel, named [`ENTRY`].
    pub module: Module,
    /// Blocks, along x.
    pub blocks: u32,
    /// Threads in all blocks together: elements of a column and of a region.
    pub count: usize,
    /// Operands by column, each with one element a thread.
    pub columns: Vec<Vec<u64>>,
    /// The bytes at the input's address: the columns, 8 bytes an element, and then whatever else the kernel reads.
    pub input: Vec<u8>,
    /// Bytes of output, zero before the launch.
    pub output: usize,
    /// The regions of the output.
    pub forms: Vec<Form>,
}

impl Probe {
    /// A number that changes with the inputs and the layout of the output: data of another number are not this probe's.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut mix = |bytes: &[u8]| {
            for &byte in bytes {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        mix(&self.input);
        mix(&self.blocks.to_le_bytes());
        for form in &self.forms {
            mix(form.name.as_bytes());
            mix(&(form.offset as u64).to_le_bytes());
        }
        hash
    }

    /// The name of the probe's tensor in the data file.
    pub fn key(&self) -> String {
        format!("{} {:016x}", self.name, self.fingerprint())
    }
}

/// Every probe, in a fixed order.
pub fn all() -> Vec<Probe> {
    FAMILIES.iter().flat_map(|(_, probes)| probes()).collect()
}
