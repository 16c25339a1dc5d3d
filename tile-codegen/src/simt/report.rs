//! What a run found wrong: each fault with its kind, thread, PTX line and source location.

use std::collections::BTreeMap;
use std::fmt;

use super::clock::Stamp;
use super::program::Program;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $name:literal,)*) => {
        /// The kind of a fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ReportKind { $($(#[$doc])* $kind,)* }

        impl ReportKind {
            /// Every kind.
            pub const ALL: &[ReportKind] = &[$(ReportKind::$kind),*];

            /// The kind in words.
            pub fn name(self) -> &'static str {
                match self { $(ReportKind::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    /// Two accesses that nothing orders, at least one of them a write of another value.
    Race: "data race",
    /// A register was read before it was written.
    UninitialisedRegister: "uninitialised register",
    /// Memory was read before it was written.
    UninitialisedMemory: "uninitialised memory",
    /// An access outside of all memory of its state space.
    OutOfBounds: "out of bounds",
    /// An address that is no multiple of the size of its access.
    Misaligned: "misaligned access",
    /// A write to memory that was given to be read.
    ReadOnly: "write to read-only memory",
    /// Memory used while an asynchronous copy to it may be in flight.
    MissingWait: "missing wait",
    /// An instruction that takes the whole warp, or the lanes in its mask, met fewer lanes.
    Divergence: "divergence",
    /// A shuffle read a lane that does not take part.
    AbsentLane: "absent lane",
    /// Threads disagree about a barrier.
    BarrierMisuse: "barrier misuse",
    /// No warp can go on.
    Deadlock: "deadlock",
    /// The budget of steps was used up.
    Budget: "budget used up",
    /// `trap` was met.
    Trap: "trap",
    /// Nothing orders an access and an asynchronous operation, or registers and a product: a fence is missing.
    MissingFence: "missing fence",
    /// An mbarrier is used that is none, or in a way that its counts do not allow.
    MbarrierMisuse: "mbarrier misuse",
    /// The bytes that an mbarrier expects are not those that are copied.
    TransactionMismatch: "transaction mismatch",
    /// A register is used while a product in flight reads or writes it.
    RegisterInFlight: "register in flight",
    /// The warps of a warpgroup do not do the same, or with operands that do not exist.
    WarpgroupMisuse: "warpgroup misuse",
    /// A bulk tensor copy without a tensor map that fits it, at coordinates that the hardware refuses, or that writes
    /// outside of its tensor.
    TensorMap: "tensor map",
}

/// The access that a fault is about besides the one that was met: of a data race, a missing wait or a missing fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherAccess {
    /// The block's index in the grid, x fastest.
    pub block: u64,
    /// The warp in the block; `None` for an asynchronous operation in flight.
    pub warp: Option<u32>,
    /// The first lane, unless it is the whole warp.
    pub lane: Option<u32>,
    /// The line in the text of the module, from 1.
    pub line: u32,
    /// The text of that line.
    pub text: String,
    /// The number of its source location in the kernel's table, 0 for none.
    pub loc: u32,
    /// Whether it writes.
    pub write: bool,
}

impl OtherAccess {
    /// The access of a stamp in a block.
    pub(super) fn of(program: &Program, block: u64, stamp: Stamp, write: bool) -> OtherAccess {
        let warp = Some(stamp.warp() as u32);
        OtherAccess {
            warp,
            lane: stamp.first_lane(),
            ..OtherAccess::in_flight(program, block, stamp.pc(), write)
        }
    }

    /// The asynchronous operation that a line issued.
    pub(super) fn in_flight(program: &Program, block: u64, pc: usize, write: bool) -> OtherAccess {
        OtherAccess {
            block,
            warp: None,
            lane: None,
            line: program.line_number(pc),
            text: program.line_text(pc).to_string(),
            loc: program.lines[pc].loc,
            write,
        }
    }

    /// Who made it: the block, and the thread or the warp where it is known.
    pub fn who(&self) -> String {
        match self.warp {
            Some(warp) => thread_name(self.block, warp, self.lane),
            None => format!("block {}", self.block),
        }
    }
}

/// A thread in words, as messages name it.
fn thread_name(block: u64, warp: u32, lane: Option<u32>) -> String {
    match lane {
        Some(lane) => format!("block {block}, thread {} (warp {warp}, lane {lane})", 32 * warp + lane),
        None => format!("block {block}, warp {warp}"),
    }
}

/// One fault. The same fault at the same line is listed once, where it was first met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What is wrong.
    pub kind: ReportKind,
    /// The block's index in the grid, x fastest.
    pub block: u64,
    /// The warp in the block.
    pub warp: u32,
    /// The first lane concerned, unless it is the whole warp.
    pub lane: Option<u32>,
    /// The line in the text of the module, from 1.
    pub line: u32,
    /// The text of that line.
    pub text: String,
    /// The number of its source location in the kernel's table, 0 for none.
    pub loc: u32,
    /// What happened, in words.
    pub message: String,
    /// The earlier access that this one conflicts with, if the fault is about two.
    pub other: Option<OtherAccess>,
    /// How often it happened.
    pub times: u64,
}

impl Report {
    /// Who met it: the block, and the thread, or the warp if it is the whole warp.
    pub fn who(&self) -> String {
        thread_name(self.block, self.warp, self.lane)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at PTX line {}, `{}`, ", self.kind.name(), self.line, self.text)?;
        write!(f, "{}: {}", self.who(), self.message)?;
        if self.times > 1 { write!(f, " ({} times)", self.times) } else { Ok(()) }
    }
}

/// Where a fault was met.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) block: u64,
    pub(super) warp: u32,
    pub(super) lane: Option<u32>,
    pub(super) pc: usize,
}

/// The faults so far, in the order in which they were met.
#[derive(Debug, Default)]
pub(super) struct Reports {
    list: Vec<Report>,
    index: BTreeMap<(ReportKind, usize), usize>,
}

impl Reports {
    /// Notes a fault; the message is made only for the first of its kind and line.
    pub(super) fn add(
        &mut self,
        program: &Program,
        kind: ReportKind,
        place: Place,
        message: impl FnOnce() -> String,
    ) {
        self.add_with(program, kind, place, || (message(), None));
    }

    /// As [`Reports::add`], with the access that this one conflicts with.
    pub(super) fn add_with(
        &mut self,
        program: &Program,
        kind: ReportKind,
        place: Place,
        about: impl FnOnce() -> (String, Option<OtherAccess>),
    ) {
        if let Some(&at) = self.index.get(&(kind, place.pc)) {
            self.list[at].times += 1;
            return;
        }
        self.index.insert((kind, place.pc), self.list.len());
        let (message, other) = about();
        self.list.push(Report {
            kind,
            block: place.block,
            warp: place.warp,
            lane: place.lane,
            line: program.line_number(place.pc),
            text: program.line_text(place.pc).to_string(),
            loc: program.lines[place.pc].loc,
            message,
            other,
            times: 1,
        });
    }

    /// Adds the faults of another run; the same fault at the same line is counted on.
    pub(super) fn merge(list: &mut Vec<Report>, others: Vec<Report>) {
        for other in others {
            match list.iter_mut().find(|report| (report.kind, report.line) == (other.kind, other.line)) {
                Some(report) => report.times += other.times,
                None => list.push(other),
            }
        }
    }

    pub(super) fn into_list(self) -> Vec<Report> {
        self.list
    }
}
