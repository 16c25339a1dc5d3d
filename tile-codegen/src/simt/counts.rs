//! What a run did, as numbers: instructions by class, memory requests and how well they fit the hardware.

use std::fmt;

use crate::ptx::{Hopper, Inst};

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A class of instructions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Class { $($(#[$doc])* $name,)* }

        impl Class {
            /// Every class, in the order of the table.
            pub const ALL: &'static [Class] = &[$(Class::$name,)*];

            /// The name in the table.
            pub fn name(self) -> &'static str {
                match self { $(Class::$name => $text,)* }
            }
        }
    };
}

classes! {
    /// Copies between registers, packing, special registers.
    Move = "moves",
    /// Integer and bit arithmetic.
    Integer = "integer",
    /// f32 and f64 arithmetic.
    Float = "float",
    /// Conversions between types.
    Convert = "conversions",
    /// Comparisons, selections and logic on predicates.
    Predicate = "predicates",
    /// Loads and stores.
    Memory = "loads and stores",
    /// Atomics and reductions in memory.
    Atomic = "atomics",
    /// Shuffles, votes and reductions among lanes.
    Warp = "shuffles and votes",
    /// Tensor core products.
    Matrix = "tensor core products",
    /// Matrix loads and stores of shared memory.
    MatrixMemory = "matrix loads and stores",
    /// Asynchronous copies, their groups and waits.
    Async = "asynchronous copies",
    /// Barriers and fences.
    Barrier = "barriers and fences",
    /// Branches and exits.
    Control = "control",
}

impl Class {
    /// The class of an instruction.
    pub fn of(inst: &Inst) -> Class {
        match inst {
            Inst::Mov { .. }
            | Inst::SharedAddr { .. }
            | Inst::CvtaTo { .. }
            | Inst::Pack { .. }
            | Inst::Unpack { .. } => Class::Move,
            Inst::Int { .. }
            | Inst::IntUn { .. }
            | Inst::MulWide { .. }
            | Inst::MadLo { .. }
            | Inst::MadWide { .. }
            | Inst::Lop3 { .. }
            | Inst::Bfe { .. }
            | Inst::Bfi { .. }
            | Inst::Shf { .. }
            | Inst::Prmt { .. } => Class::Integer,
            Inst::Float { .. } | Inst::FloatUn { .. } | Inst::Fma { .. } => Class::Float,
            Inst::Cvt { .. } | Inst::CvtPack { .. } => Class::Convert,
            Inst::Setp { .. } | Inst::Selp { .. } | Inst::Pred { .. } | Inst::PredNot { .. } => {
                Class::Predicate
            }
            Inst::Ld { .. } | Inst::St { .. } => Class::Memory,
            Inst::Atom { .. } | Inst::Red { .. } => Class::Atomic,
            Inst::Shfl { .. } | Inst::Vote { .. } | Inst::Redux { .. } => Class::Warp,
            Inst::Mma { .. } => Class::Matrix,
            Inst::Ldmatrix { .. } | Inst::Stmatrix { .. } => Class::MatrixMemory,
            Inst::CpAsync { .. } | Inst::CpAsyncCommit | Inst::CpAsyncWait(_) | Inst::CpAsyncWaitAll => {
                Class::Async
            }
            Inst::BarSync { .. }
            | Inst::BarArrive { .. }
            | Inst::BarWarpSync { .. }
            | Inst::Membar { .. }
            | Inst::Fence { .. } => Class::Barrier,
            Inst::Hopper(inst) => Class::of_hopper(inst),
            Inst::Label(_) | Inst::Bra { .. } | Inst::Ret | Inst::Exit | Inst::Trap => Class::Control,
        }
    }
}

impl Class {
    fn of_hopper(inst: &Hopper) -> Class {
        match inst {
            Hopper::ParamAddr { .. } | Hopper::CvtaParam { .. } => Class::Move,
            Hopper::Elect { .. } => Class::Warp,
            Hopper::Wgmma(_) | Hopper::WgmmaFence | Hopper::WgmmaCommit | Hopper::WgmmaWait(_) => {
                Class::Matrix
            }
            Hopper::BulkLoad { .. }
            | Hopper::BulkStore { .. }
            | Hopper::TensorLoad { .. }
            | Hopper::TensorStore { .. }
            | Hopper::BulkCommit
            | Hopper::BulkWait { .. }
            | Hopper::PrefetchTensorMap { .. }
            | Hopper::CpAsyncMbarrierArrive { .. } => Class::Async,
            Hopper::MbarrierInit { .. }
            | Hopper::MbarrierInval { .. }
            | Hopper::MbarrierArrive { .. }
            | Hopper::MbarrierArriveExpectTx { .. }
            | Hopper::MbarrierExpectTx { .. }
            | Hopper::MbarrierWait { .. }
            | Hopper::FenceProxyAsync { .. }
            | Hopper::FenceMbarrierInit => Class::Barrier,
            Hopper::SetMaxNReg { .. } | Hopper::GridDepWait | Hopper::GridDepLaunch => Class::Control,
        }
    }
}

/// Requests of one direction to one memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Instructions of a warp in which some lane took part.
    pub requests: u64,
    /// Bytes asked for by all lanes.
    pub bytes: u64,
    /// Shared memory: passes over the banks. Global memory: sectors of 32 bytes touched.
    pub parts: u64,
    /// The fewest parts that could carry these bytes.
    pub ideal: u64,
}

impl Traffic {
    pub(super) fn add(&mut self, other: Traffic) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.parts += other.parts;
        self.ideal += other.ideal;
    }
}

/// What a run did. Instructions are counted once per warp.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions in the order of [`Class::ALL`].
    pub instructions: [u64; Class::ALL.len()],
    /// Loads of global memory, with copies to shared memory.
    pub global_loads: Traffic,
    /// Stores and atomics to global memory.
    pub global_stores: Traffic,
    /// Loads of shared memory.
    pub shared_loads: Traffic,
    /// Stores and atomics to shared memory, without asynchronous copies.
    pub shared_stores: Traffic,
    /// Floating-point operations of tensor core products: two per multiplication.
    pub matrix_flops: u64,
}

impl Counts {
    /// All instructions.
    pub fn total(&self) -> u64 {
        self.instructions.iter().sum()
    }

    /// The instructions of a class.
    pub fn of(&self, class: Class) -> u64 {
        self.instructions[class as usize]
    }

    /// Adds the numbers of another run.
    pub fn add(&mut self, other: &Counts) {
        self.instructions.iter_mut().zip(&other.instructions).for_each(|(a, b)| *a += b);
        self.global_loads.add(other.global_loads);
        self.global_stores.add(other.global_stores);
        self.shared_loads.add(other.shared_loads);
        self.shared_stores.add(other.shared_stores);
        self.matrix_flops += other.matrix_flops;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<26}{:>14}", "instructions of warps", self.total())?;
        for &class in Class::ALL.iter().filter(|&&class| self.of(class) > 0) {
            writeln!(f, "  {:<24}{:>14}", class.name(), self.of(class))?;
        }
        writeln!(f, "{:<26}{:>14}", "tensor core operations", self.matrix_flops)?;
        writeln!(f, "{:<16}{:>12}{:>16}{:>14}{:>14}", "memory", "requests", "bytes", "parts", "ideal")?;
        let rows = [
            ("global loads", self.global_loads),
            ("global stores", self.global_stores),
            ("shared loads", self.shared_loads),
            ("shared stores", self.shared_stores),
        ];
        for (name, t) in rows {
            writeln!(f, "{name:<16}{:>12}{:>16}{:>14}{:>14}", t.requests, t.bytes, t.parts, t.ideal)?;
        }
        write!(f, "parts: 32-byte sectors of global memory, passes over the banks of shared memory")
    }
}

/// A request of `bytes` per lane to global memory: sectors of 32 bytes.
pub(super) fn sectors(mask: u32, addresses: &[u64; 32], bytes: u32) -> Traffic {
    let mut seen = [0u64; 64];
    let mut count = 0;
    for lane in lanes(mask) {
        let first = addresses[lane] / 32;
        let last = (addresses[lane] + u64::from(bytes) - 1) / 32;
        for sector in [first, last] {
            if !seen[..count].contains(&sector) {
                seen[count] = sector;
                count += 1;
            }
        }
    }
    let total = u64::from(mask.count_ones() * bytes);
    Traffic { requests: 1, bytes: total, parts: count as u64, ideal: total.div_ceil(32).min(count as u64) }
}

/// A request of `bytes` (a multiple of a power of two) per lane to shared memory: 32 banks of 4 bytes, 128 bytes a
/// pass. Wider accesses go in halves or quarters of the warp.
pub(super) fn passes(mask: u32, addresses: &[u64; 32], bytes: u32) -> Traffic {
    let phases = (bytes / 4).clamp(1, 4) as usize;
    let words = bytes.div_ceil(4);
    let mut traffic =
        Traffic { requests: 1, bytes: u64::from(mask.count_ones() * bytes), ..Traffic::default() };
    for phase in 0..phases {
        let width = 32 / phases;
        let mut seen = [0u64; 64];
        let (mut count, mut in_bank) = (0, [0u64; 32]);
        for lane in lanes(mask).filter(|lane| lane / width == phase) {
            for word in 0..u64::from(words) {
                let word = addresses[lane] / 4 + word;
                if !seen[..count].contains(&word) {
                    seen[count] = word;
                    count += 1;
                    in_bank[(word % 32) as usize] += 1;
                }
            }
        }
        traffic.parts += in_bank.into_iter().max().unwrap_or(0);
        traffic.ideal += count.div_ceil(32) as u64;
    }
    traffic
}

/// The lanes of a mask, lowest first.
pub(super) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 != 0)
}
