//! What a run consists of while it goes on: warps, blocks, and what all blocks share.

use std::collections::{BTreeMap, VecDeque};

use super::barrier::Barrier;
use super::bulk::{self, BulkStore, Flight};
use super::clock::{Clock, Snapshot};
use super::copies::CopyGroup;
use super::counts::Counts;
use super::global::GlobalTrack;
use super::mbarrier::Mbarrier;
use super::memory::Memory;
use super::program::Program;
use super::random::Random;
use super::regs::Regs;
use super::report::{Place, ReportKind, Reports};
use super::run::Run;
use super::shared::SharedMemory;
use super::wgmma::Products;

/// What a warp waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nothing.
    Ready,
    /// A named barrier, at this line.
    Barrier { id: usize, pc: usize },
    /// A phase of the mbarrier at this byte, at this line.
    Mbarrier { at: usize, parity: u64, pc: usize },
    /// Registers that other warps are to give back, at this line.
    Registers { need: i64, pc: usize },
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
    /// The same for bulk stores.
    pub(super) bulk_open: Vec<BulkStore>,
    pub(super) bulk_groups: VecDeque<Vec<BulkStore>>,
    pub(super) products: Products,
    /// Registers that each thread may use.
    pub(super) max_registers: u32,
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
            bulk_open: Vec::new(),
            bulk_groups: VecDeque::new(),
            products: Products::new(if program.has_products { program.registers } else { 0 }),
            max_registers: program.initial_registers,
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
    /// The mbarriers by their offsets in shared memory, and how many there have been.
    pub(super) mbarriers: BTreeMap<usize, Mbarrier>,
    pub(super) slots: u32,
    /// Where the last copy was issued that counts on the mbarrier at this offset.
    pub(super) last_copy: BTreeMap<usize, Place>,
    /// Operations in flight that mbarriers count, the oldest first.
    pub(super) flights: VecDeque<Flight>,
    /// For each warpgroup the lines of its products so far.
    pub(super) issued: Vec<Vec<usize>>,
    /// Registers that warps have given back.
    pub(super) free_registers: i64,
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
                mbarriers: BTreeMap::new(),
                slots: 0,
                last_copy: BTreeMap::new(),
                flights: VecDeque::new(),
                issued: vec![Vec::new(); program.warps.div_ceil(4)],
                free_registers: 0,
            },
            warps: (0..program.warps).map(|index| Warp::new(program, index)).collect(),
        }
    }

    /// Reports what is unfinished when the block ends.
    pub(super) fn end(&mut self, engine: &mut Engine<'_>) {
        let mut stores = Vec::new();
        for warp in &mut self.warps {
            stores.extend(warp.bulk_groups.drain(..).flatten());
            stores.append(&mut warp.bulk_open);
        }
        bulk::check_end(engine, &mut self.parts, &stores);
        for (index, warp) in self.warps.iter().enumerate() {
            let (group, first) = (&self.parts.issued[index / 4], &self.warps[index / 4 * 4]);
            let unequal = warp.products.issued != group.len() || warp.max_registers != first.max_registers;
            if unequal {
                let pc = group.get(warp.products.issued).copied().unwrap_or(0);
                let place = Place { block: self.parts.index, warp: index as u32, lane: None, pc };
                engine.reports.add(engine.program, ReportKind::WarpgroupMisuse, place, || {
                    "the warp has not done the products or setmaxnreg of its warpgroup".to_string()
                });
            }
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
