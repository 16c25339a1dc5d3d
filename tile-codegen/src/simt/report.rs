//! What a run found wrong: each fault with its kind, thread, PTX line and source location.

use std::collections::BTreeMap;
use std::fmt;

use super::program::Program;

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReportKind {
    /// Two accesses that nothing orders, at least one of them a write of another value.
    Race,
    /// A register was read before it was written.
    UninitialisedRegister,
    /// Memory was read before it was written.
    UninitialisedMemory,
    /// An access outside of all memory of its state space.
    OutOfBounds,
    /// An address that is no multiple of the size of its access.
    Misaligned,
    /// A write to memory that was given to be read.
    ReadOnly,
    /// Memory used while an asynchronous copy to it may be in flight.
    MissingWait,
    /// An instruction that takes the whole warp, or the lanes in its mask, met fewer lanes.
    Divergence,
    /// A shuffle read a lane that does not take part.
    AbsentLane,
    /// Threads disagree about a barrier.
    BarrierMisuse,
    /// No warp can go on.
    Deadlock,
    /// The budget of steps was used up.
    Budget,
    /// `trap` was met.
    Trap,
    /// Nothing orders an access and an asynchronous operation, or registers and a product: a fence is missing.
    MissingFence,
    /// An mbarrier is used that is none, or in a way that its counts do not allow.
    MbarrierMisuse,
    /// The bytes that an mbarrier expects are not those that are copied.
    TransactionMismatch,
    /// A register is used while a product in flight reads or writes it.
    RegisterInFlight,
    /// The warps of a warpgroup do not do the same, or with operands that do not exist.
    WarpgroupMisuse,
    /// A bulk tensor copy without a tensor map that fits it.
    TensorMap,
}

impl ReportKind {
    /// The kind in words.
    pub fn name(self) -> &'static str {
        match self {
            ReportKind::Race => "data race",
            ReportKind::UninitialisedRegister => "uninitialised register",
            ReportKind::UninitialisedMemory => "uninitialised memory",
            ReportKind::OutOfBounds => "out of bounds",
            ReportKind::Misaligned => "misaligned access",
            ReportKind::ReadOnly => "write to read-only memory",
            ReportKind::MissingWait => "missing wait",
            ReportKind::Divergence => "divergence",
            ReportKind::AbsentLane => "absent lane",
            ReportKind::BarrierMisuse => "barrier misuse",
            ReportKind::Deadlock => "deadlock",
            ReportKind::Budget => "budget used up",
            ReportKind::Trap => "trap",
            ReportKind::MissingFence => "missing fence",
            ReportKind::MbarrierMisuse => "mbarrier misuse",
            ReportKind::TransactionMismatch => "transaction mismatch",
            ReportKind::RegisterInFlight => "register in flight",
            ReportKind::WarpgroupMisuse => "warpgroup misuse",
            ReportKind::TensorMap => "tensor map",
        }
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
    /// How often it happened.
    pub times: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at PTX line {}, `{}`, ", self.kind.name(), self.line, self.text)?;
        write!(f, "block {}, warp {}", self.block, self.warp)?;
        if let Some(lane) = self.lane {
            write!(f, ", lane {lane}")?;
        }
        write!(f, ": {}", self.message)?;
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
        if let Some(&at) = self.index.get(&(kind, place.pc)) {
            self.list[at].times += 1;
            return;
        }
        self.index.insert((kind, place.pc), self.list.len());
        self.list.push(Report {
            kind,
            block: place.block,
            warp: place.warp,
            lane: place.lane,
            line: program.line_number(place.pc),
            text: program.line_text(place.pc).to_string(),
            loc: program.lines[place.pc].loc,
            message: message(),
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
