//! What a run consists of while it goes on: warps, blocks, and what all blocks share.

use std::collections::VecDeque;

use super::barrier::Barrier;
use super::clock::{Clock, Snapshot};
use super::copies::CopyGroup;
use super::counts::Counts;
use super::global::GlobalTrack;
use super::memory::Memory;
use super::program::Program;
use super::random::Random;
use super::regs::Regs;
use super::report::Reports;
use super::run::Run;
use super::shared::SharedMemory;

/// What a warp waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nothing.
    Ready,
    /// A named barrier, at this line.
    Barrier { id: usize, pc: usize },
}

/// One warp.
#[derive(Debug)]
pub(super) struct Warp {
    pub(super) index: usize,
    pub(super) regs: Regs,
    /// The line that each lane executes next.
    pub(super) pcs: [usize; 32],
    /// The line that all live lanes execute next, unless they are apart.
    pub(super) together: Option<usize>,
    /// Lanes that have not exited.
    pub(super) live: u32,
    /// Lanes that wait for others at an instruction with a mask.
    pub(super) gathering: u32,
    pub(super) wait: Wait,
    pub(super) clock: Clock,
    /// What a relaxed write after the last fence makes known.
    pub(super) fenced: Option<Snapshot>,
    /// What relaxed reads have seen, to be learnt at the next fence.
    pub(super) observed: Option<Snapshot>,
    /// The lanes' local memory, one after the other, and which bytes were written.
    pub(super) local: Vec<u8>,
    pub(super) local_defined: Vec<bool>,
    /// Copies not yet committed, then groups not yet waited for, the oldest first.
    pub(super) open: CopyGroup,
    pub(super) groups: VecDeque<CopyGroup>,
}

impl Warp {
    pub(super) fn new(program: &Program, index: usize) -> Warp {
        let local = program.local_bytes as usize * 32;
        Warp {
            index,
            regs: Regs::new(program),
            pcs: [0; 32],
            together: Some(0),
            live: u32::MAX,
            gathering: 0,
            wait: Wait::Ready,
            clock: Clock::start(index, program.warps),
            fenced: None,
            observed: None,
            local: vec![0; local],
            local_defined: vec![false; local],
            open: CopyGroup::default(),
            groups: VecDeque::new(),
        }
    }

    /// The line of the lane that is furthest behind.
    pub(super) fn pc(&self) -> usize {
        self.together.unwrap_or_else(|| {
            let live = (0..32).filter(|lane| self.live >> lane & 1 != 0);
            live.map(|lane| self.pcs[lane]).min().unwrap_or(0)
        })
    }
}

/// What the warps of a block share.
#[derive(Debug)]
pub(super) struct BlockParts {
    pub(super) index: u64,
    pub(super) id: [u32; 3],
    pub(super) shared: SharedMemory,
    pub(super) barriers: Vec<Barrier>,
    /// For each warp that a barrier let go, what it has learnt there.
    pub(super) wake: Vec<Option<Clock>>,
}

/// One block.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) parts: BlockParts,
    pub(super) warps: Vec<Warp>,
}

impl Block {
    pub(super) fn new(program: &Program, run: &Run<'_>, index: u64, shared_bytes: usize) -> Block {
        let [x, y] = [u64::from(run.grid[0]), u64::from(run.grid[1])];
        Block {
            parts: BlockParts {
                index,
                id: [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32],
                shared: SharedMemory::new(shared_bytes, program.shared_granule, program.warps),
                barriers: vec![Barrier::default(); 16],
                wake: vec![None; program.warps],
            },
            warps: (0..program.warps).map(|index| Warp::new(program, index)).collect(),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.warps.iter().all(|warp| warp.live == 0)
    }
}

/// What all blocks of a run share.
#[derive(Debug)]
pub(super) struct Engine<'a> {
    pub(super) program: &'a Program,
    pub(super) run: &'a Run<'a>,
    pub(super) memory: &'a Memory,
    pub(super) track: GlobalTrack,
    pub(super) reports: Reports,
    pub(super) counts: Counts,
    pub(super) random: Random,
    pub(super) steps: u64,
    /// Whether a trap has ended the run.
    pub(super) stopped: bool,
}
