//! A run of a launch: the blocks and warps that go on next, as a seed chooses, until all are done or none can go on.

use std::ops::Range;

use super::bulk;
use super::counts::Counts;
use super::global::GlobalTrack;
use super::memory::Memory;
use super::program::Program;
use super::random::Random;
use super::report::{OtherAccess, Place, Report, ReportKind, Reports};
use super::state::{Block, Engine, Wait, Warp};
use super::step::{Step, step};
use crate::ptx::Shared;

/// Blocks that are resident at once when blocks may wait for each other.
const RESIDENT: usize = 132;
/// Instructions that a warp executes in a turn of the plain schedule.
const TURN: u64 = 64;
/// Warps that a report about the whole run lists.
const LISTED: usize = 64;
/// A budget that no kernel of moderate size uses up: about a minute in an optimised build.
pub const DEFAULT_BUDGET: u64 = 1 << 30;

/// A launch to execute.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// The kernel.
    pub program: &'a Program,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// The bytes of every parameter, little-endian, as many as its type has.
    pub params: Vec<Vec<u8>>,
    /// Dynamic shared memory in bytes; unused by kernels that declare a fixed size.
    pub shared_bytes: u32,
    /// Which blocks to run, x fastest; `None` for all. Blocks that communicate belong into one run.
    pub blocks: Option<Range<u64>>,
    /// Chooses the schedule: 0 takes turns, copies landing as late as they may; every other seed chooses at random.
    pub seed: u64,
    /// Instructions of warps before the run is ended with a report.
    pub budget: u64,
}

/// Why a launch is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The parameters do not fit the kernel's.
    #[error("{found} parameters, expected {expected}")]
    ParamCount {
        /// How many were given.
        found: usize,
        /// How many the kernel has.
        expected: usize,
    },
    /// A parameter has another size.
    #[error("parameter {index} has {found} bytes, expected {expected}")]
    ParamSize {
        /// Which one.
        index: usize,
        /// Its bytes.
        found: usize,
        /// The bytes of its type.
        expected: usize,
    },
    /// The range of blocks lies outside the grid.
    #[error("blocks {}..{} of a grid of {total}", blocks.start, blocks.end)]
    Blocks {
        /// The range.
        blocks: Range<u64>,
        /// Blocks in the grid.
        total: u64,
    },
}

/// What a run found.
#[derive(Debug)]
pub struct Outcome {
    /// Every fault, in the order in which they were met; empty for a correct kernel.
    pub reports: Vec<Report>,
    /// What the run did.
    pub counts: Counts,
    track: GlobalTrack,
}

impl<'a> Run<'a> {
    /// All blocks of a grid, in the plain schedule, with the default budget.
    pub fn new(program: &'a Program, grid: [u32; 3], params: Vec<Vec<u8>>) -> Run<'a> {
        Run { program, grid, params, shared_bytes: 0, blocks: None, seed: 0, budget: DEFAULT_BUDGET }
    }

    /// Executes the launch on `memory`. Faults of the kernel are reports, and the run goes on after most of them, with
    /// zero for what cannot be read.
    ///
    /// # Errors
    /// If the launch does not fit the kernel.
    pub fn execute(&self, memory: &Memory) -> Result<Outcome, RunError> {
        let blocks = self.check()?;
        let mut engine = Engine {
            program: self.program,
            run: self,
            memory,
            track: GlobalTrack::new(memory.len(), self.program.global_granule),
            reports: Reports::default(),
            counts: Counts::default(),
            random: Random::new(self.seed),
            steps: 0,
            stopped: false,
        };
        Scheduler::new(&mut engine, blocks).run();
        let Engine { reports, counts, track, .. } = engine;
        Ok(Outcome { reports: reports.into_list(), counts, track })
    }

    fn check(&self) -> Result<Range<u64>, RunError> {
        let sizes = self.program.param_sizes();
        if sizes.len() != self.params.len() {
            return Err(RunError::ParamCount { found: self.params.len(), expected: sizes.len() });
        }
        for (index, (&size, bytes)) in sizes.iter().zip(&self.params).enumerate() {
            if bytes.len() != size as usize {
                return Err(RunError::ParamSize { index, found: bytes.len(), expected: size as usize });
            }
        }
        let total = self.grid.iter().map(|&n| u64::from(n)).product();
        let blocks = self.blocks.clone().unwrap_or(0..total);
        if blocks.start > blocks.end || blocks.end > total {
            return Err(RunError::Blocks { blocks, total });
        }
        Ok(blocks)
    }

    fn shared_len(&self) -> usize {
        match self.program.shared {
            Shared::None => 0,
            Shared::Dynamic { .. } => self.shared_bytes as usize,
            Shared::Static { bytes, .. } => bytes as usize,
        }
    }
}

impl Outcome {
    /// Whether nothing was reported.
    pub fn is_clean(&self) -> bool {
        self.reports.is_empty()
    }

    /// Adds the outcome of another run of the same launch over other blocks on the same memory, with the races between
    /// the two.
    pub fn join(&mut self, program: &Program, memory: &Memory, other: Outcome) {
        let mut reports = Reports::default();
        let both = [self.track.races_with(&other.track), other.track.races_with(&self.track)];
        for (region, offset, writer, rival) in both.into_iter().flatten() {
            let place = Place {
                block: writer.block,
                warp: writer.stamp.warp() as u32,
                lane: writer.stamp.first_lane(),
                pc: writer.stamp.pc(),
            };
            reports.add_with(program, ReportKind::Race, place, || {
                let (reader, write) = rival;
                let other = OtherAccess::of(program, reader.0, reader.1, write);
                let (name, who, line) =
                    (&memory.region(region).name, other.who(), program.line_name(reader.1.pc()));
                let message = format!(
                    "writes byte {offset} of `{name}`, which {who} uses at {line}, and nothing orders the two"
                );
                (message, Some(other))
            });
        }
        Reports::merge(&mut self.reports, other.reports);
        Reports::merge(&mut self.reports, reports.into_list());
        self.counts.add(&other.counts);
        self.track.absorb(other.track);
    }
}

/// Which blocks and warps go on.
struct Scheduler<'e, 'p> {
    engine: &'e mut Engine<'p>,
    /// Blocks not yet started, the next one last.
    pending: Vec<u64>,
    resident: Vec<Block>,
    window: usize,
    turn: usize,
}

/// Whether a warp can execute an instruction.
fn ready(block: &Block, warp: usize) -> bool {
    let state = &block.warps[warp];
    let goes_on = match state.wait {
        Wait::Ready => true,
        Wait::Barrier { .. } => block.parts.wake[warp].is_some(),
        Wait::Mbarrier { at, parity, .. } => block.parts.mbarrier_done(at, parity),
        Wait::Registers { need, .. } => block.parts.free_registers >= need,
    };
    state.live != 0 && goes_on
}

impl<'e, 'p> Scheduler<'e, 'p> {
    fn new(engine: &'e mut Engine<'p>, blocks: Range<u64>) -> Self {
        let mut pending: Vec<u64> = blocks.rev().collect();
        let communicates = engine.program.communicates;
        let mut window = if communicates { RESIDENT } else { 1 };
        if !engine.random.is_plain() && !communicates {
            window += engine.random.below(3) as usize;
            for i in (1..pending.len()).rev() {
                pending.swap(i, engine.random.below(i as u64 + 1) as usize);
            }
        }
        Scheduler { engine, pending, resident: Vec::new(), window, turn: 0 }
    }

    fn run(&mut self) {
        loop {
            self.refill();
            let Some((block, warp)) = self.pick() else {
                if self.land_one() {
                    continue;
                }
                break;
            };
            let turn = if self.engine.random.is_plain() { TURN } else { 1 + self.engine.random.below(48) };
            self.run_turn(block, warp, turn);
            if self.engine.stopped {
                return;
            }
            if self.engine.steps >= self.engine.run.budget {
                self.report_stuck(ReportKind::Budget);
                return;
            }
        }
        if !self.resident.is_empty() {
            self.report_stuck(ReportKind::Deadlock);
        }
    }

    fn refill(&mut self) {
        for block in self.resident.extract_if(.., |block| block.is_done()) {
            let mut block = block;
            block.end(self.engine);
        }
        while self.resident.len() < self.window {
            let Some(index) = self.pending.pop() else { return };
            let (program, run) = (self.engine.program, self.engine.run);
            self.resident.push(Block::new(program, run, index, run.shared_len()));
        }
    }

    /// Lets an operation in flight end, when no warp can go on without it; `false` if there is none.
    fn land_one(&mut self) -> bool {
        for block in &mut self.resident {
            if let Some(flight) = block.parts.flights.pop_front() {
                bulk::land(self.engine, &mut block.parts, flight);
                return true;
            }
        }
        false
    }

    /// A warp that is ready, in turn or at random.
    fn pick(&mut self) -> Option<(usize, usize)> {
        let warps = self.engine.program.warps;
        let all = self.resident.len() * warps;
        let start = match self.engine.random.is_plain() {
            true => self.turn + 1,
            false => self.engine.random.below(all as u64 + 1) as usize,
        };
        let mut places = (0..all).map(|i| (start + i) % all);
        let found = places.find(|&i| ready(&self.resident[i / warps], i % warps))?;
        self.turn = found;
        Some((found / warps, found % warps))
    }

    fn run_turn(&mut self, block: usize, warp: usize, turn: u64) {
        let Block { parts, warps } = &mut self.resident[block];
        let warp: &mut Warp = &mut warps[warp];
        if let Some(learnt) = parts.wake[warp.index].take() {
            warp.clock.join(&learnt);
        }
        warp.wait = Wait::Ready;
        bulk::land_some(self.engine, parts);
        let (pc, here) = (warp.pc(), warp.live);
        let engine = &mut *self.engine;
        let mut early = Step { engine, block: parts, warp, pc, here, mask: here, forced: false };
        early.land_some();
        early.perform_some();
        early.multiply_some();
        for _ in 0..turn {
            if warp.live == 0 || warp.wait != Wait::Ready || self.engine.stopped {
                return;
            }
            step(self.engine, parts, warp);
        }
    }

    /// Reports where every warp stands.
    fn report_stuck(&mut self, kind: ReportKind) {
        for block in &self.resident {
            block.parts.check_transactions(self.engine, false);
        }
        let program = self.engine.program;
        let alive =
            || self.resident.iter().flat_map(|block| block.warps.iter().map(move |warp| (block, warp)));
        let alive: Vec<_> = alive().filter(|(_, warp)| warp.live != 0).collect();
        let Some((block, warp)) = alive.first() else { return };
        let place =
            Place { block: block.parts.index, warp: warp.index as u32, lane: None, pc: stands_at(warp) };
        let mut message = match kind {
            ReportKind::Budget => format!("{} instructions were executed; ", self.engine.steps),
            _ => String::new(),
        };
        message.push_str(&format!("{} warps have not ended", alive.len()));
        for (block, warp) in alive.iter().take(LISTED) {
            message.push_str(&format!("\n  {}", standing(program, block, warp)));
        }
        self.engine.reports.add(program, kind, place, || message);
    }
}

/// The line at which a warp waits or goes on.
fn stands_at(warp: &Warp) -> usize {
    match warp.wait {
        Wait::Barrier { pc, .. } | Wait::Mbarrier { pc, .. } | Wait::Registers { pc, .. } => pc,
        Wait::Ready => warp.pc(),
    }
}

fn standing(program: &Program, block: &Block, warp: &Warp) -> String {
    let line = program.line_name(stands_at(warp));
    let place = format!("block {}, warp {}: {line}", block.parts.index, warp.index);
    match warp.wait {
        Wait::Ready => place,
        Wait::Mbarrier { at, parity, .. } => {
            let state = block.parts.mbarriers.get(&at).map_or(String::new(), |mbarrier| mbarrier.describe());
            format!("{place}: waits for parity {parity} of the mbarrier at byte {at}: {state}")
        }
        Wait::Registers { need, .. } => {
            format!("{place}: waits for {need} registers, {} are free", block.parts.free_registers)
        }
        Wait::Barrier { id, .. } => {
            let barrier = &block.parts.barriers[id];
            let (arrived, expected) = (barrier.arrived, barrier.expected);
            format!("{place}: waits at barrier {id}, where {arrived} of {expected} threads have arrived")
        }
    }
}
