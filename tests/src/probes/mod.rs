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
//! | `execute.rs` | runs a probe on the executor and on a GPU |
//! | `shared.rs` | shared memory as a whole: filled, shown, described |
//! | others | one family of instructions each, listed in [`FAMILIES`] |

mod atomics;
mod bounds;
mod builder;
mod bulk;
mod compare;
mod control;
mod convert;
mod copies;
mod descriptors;
mod execute;
mod floating;
mod integer;
mod matrix;
mod mbarriers;
mod memory;
mod mma;
mod predicates;
mod shared;
mod tensors;
mod values;
mod warp;
mod warpgroup;
mod wgmma;

pub use compare::{Compare, Difference};
use tile_codegen::ptx::{Module, Ty};
use tile_codegen::simt::TensorMap;

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
    ("mbarrier", mbarriers::probes),
    ("bulk", bulk::probes),
    ("tensor", tensors::probes),
    ("wgmma", wgmma::probes),
    ("descriptor", descriptors::probes),
    ("warpgroup", warpgroup::probes),
];

/// The entry of every probe's module; its parameters are the input, the output and the tensor maps.
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

/// The memory that a tensor map is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The input.
    Input,
    /// The output.
    Output,
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
    /// The tensor maps, whose addresses count from the start of the input or output.
    pub maps: Vec<(Side, TensorMap)>,
    /// Whether it shows what stores do behind the end of a tensor's rows, which the executor reports.
    pub writes_past_tensor: bool,
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
        for (side, map) in &self.maps {
            mix(format!("{side:?} {map:?}").as_bytes());
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
