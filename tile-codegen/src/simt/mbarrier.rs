//! mbarriers: phases, pending arrivals and bytes of copies, and who knows which phase to be complete.

use super::clock::{Clock, Stamp};
use super::counts::lanes;
use super::regs::Lanes;
use super::report::{Place, ReportKind};
use super::state::{BlockParts, Engine, Wait};
use super::step::{Step, who};
use crate::ptx::{Addr, Operand, Reg, Ty};

/// The most arrivals or bytes that an mbarrier counts (PTX ISA 9.7.13.15).
const MOST: i64 = (1 << 20) - 1;

/// One mbarrier object.
#[derive(Clone, Debug)]
pub(super) struct Mbarrier {
    /// Its number in the block's clocks; every initialisation gives a new one.
    pub(super) slot: u32,
    count: i64,
    pub(super) pending: i64,
    pub(super) tx: i64,
    /// Phases completed so far, which is the number of the current phase.
    pub(super) phase: u32,
    /// What those that arrived in this phase know together, and those of the last one.
    joined: Clock,
    completed: Clock,
    init: Stamp,
    /// Whether bulk copies may know of it.
    pub(super) fenced: bool,
    /// Where bytes were last expected.
    expected: Option<Place>,
}

impl Mbarrier {
    /// Whether the phase of this parity is complete.
    fn is_done(&self, parity: u64) -> bool {
        u64::from(self.phase & 1) != parity
    }

    fn try_complete(&mut self) {
        if self.pending == 0 && self.tx == 0 {
            self.phase += 1;
            self.pending = self.count;
            self.completed = std::mem::take(&mut self.joined);
        }
    }

    /// Joins what an arrival releases.
    fn release(&mut self, clock: &Clock) {
        if self.joined.is_empty() {
            self.joined = clock.clone();
        } else {
            self.joined.join(clock);
        }
    }

    /// Arrives; `false` if the phase expects fewer.
    pub(super) fn arrive(&mut self, count: i64, clock: &Clock) -> bool {
        if count > self.pending {
            return false;
        }
        self.pending -= count;
        self.release(clock);
        self.try_complete();
        true
    }

    /// Bytes of a copy are there.
    pub(super) fn complete_tx(&mut self, bytes: i64) {
        self.tx -= bytes;
        self.try_complete();
    }

    /// Where it stands, in words.
    pub(super) fn describe(&self) -> String {
        let Mbarrier { phase, pending, count, tx, .. } = self;
        format!("phase {phase}, {pending} of {count} arrivals pending, {tx} bytes expected")
    }
}

impl BlockParts {
    /// Whether a thread that waits for this parity may go on.
    pub(super) fn mbarrier_done(&self, at: usize, parity: u64) -> bool {
        self.mbarriers.get(&at).is_none_or(|mbarrier| mbarrier.is_done(parity))
    }

    /// Reports mbarriers whose bytes do not come out even; `ended`: nobody will wait for them any more.
    pub(super) fn check_transactions(&self, engine: &mut Engine<'_>, ended: bool) {
        for (at, mbarrier) in &self.mbarriers {
            if mbarrier.tx == 0 || !(ended || mbarrier.pending == 0) {
                continue;
            }
            let Some(place) = mbarrier.expected.or_else(|| self.last_copy.get(at).copied()) else { continue };
            engine.reports.add(engine.program, ReportKind::TransactionMismatch, place, || {
                let (state, tx) = (mbarrier.describe(), mbarrier.tx);
                let what = if tx > 0 {
                    "more bytes are expected than copied"
                } else {
                    "more bytes are copied than expected"
                };
                format!("the mbarrier at byte {at} of shared memory: {what} ({state})")
            });
        }
    }
}

impl Step<'_, '_> {
    /// The offset of an mbarrier's 8 bytes; reports it if there can be none.
    fn mbarrier_place(&mut self, lane: usize, at: u64) -> Option<usize> {
        if !self.aligned(lane, at, 8) {
            return None;
        }
        self.shared_offset(lane, at, 8)
    }

    /// The offset of an initialised mbarrier that this lane may use; reports it if there is none.
    pub(super) fn mbarrier_at(&mut self, lane: usize, at: u64) -> Option<usize> {
        let at = self.mbarrier_place(lane, at)?;
        let Some(mbarrier) = self.block.mbarriers.get(&at) else {
            let message = || format!("no mbarrier was initialised at byte {at} of shared memory");
            self.report(ReportKind::MbarrierMisuse, Some(lane), message);
            return None;
        };
        let init = mbarrier.init;
        let who = who(self.warp, self.block.index, lane as u32, false, self.pc);
        if !who.is_after(self.block.index, init) {
            self.report_race(lane, crate::ptx::Space::Shared, None, init, true);
        }
        Some(at)
    }

    pub(super) fn mbarrier_init(&mut self, addr: Addr, count: Operand) {
        let (at, counts) = (self.addresses(addr), self.operand(count, Ty::U32));
        for lane in lanes(self.mask) {
            let Some(at) = self.mbarrier_place(lane, at[lane]) else { continue };
            let count = counts[lane] as i64;
            if !(1..=MOST).contains(&count) {
                let message = || format!("{count} arrivals, expected 1 to {MOST}");
                self.report(ReportKind::MbarrierMisuse, Some(lane), message);
                continue;
            }
            if self.block.mbarriers.contains_key(&at) {
                let message = || format!("an mbarrier is in use at byte {at}; invalidate it first");
                self.report(ReportKind::MbarrierMisuse, Some(lane), message);
            }
            let who = who(self.warp, self.block.index, lane as u32, false, self.pc);
            if let Some(conflict) = self.block.shared.write(at, &(count as u64).to_le_bytes(), &who) {
                self.report_conflict(lane, conflict);
            }
            let slot = self.block.slots;
            self.block.slots += 1;
            let mbarrier = Mbarrier {
                slot,
                count,
                pending: count,
                tx: 0,
                phase: 0,
                joined: Clock::default(),
                completed: Clock::default(),
                init: super::step::who(self.warp, self.block.index, lane as u32, false, self.pc).stamp,
                fenced: false,
                expected: None,
            };
            self.block.mbarriers.insert(at, mbarrier);
        }
    }

    pub(super) fn mbarrier_inval(&mut self, addr: Addr) {
        let at = self.addresses(addr);
        for lane in lanes(self.mask) {
            if let Some(at) = self.mbarrier_at(lane, at[lane]) {
                let in_use = self.block.flights.iter().any(|flight| flight.mbarrier() == Some(at));
                if in_use {
                    let message = || "a copy in flight still counts on it".to_string();
                    self.report(ReportKind::MbarrierMisuse, Some(lane), message);
                }
                self.block.mbarriers.remove(&at);
            }
        }
    }

    /// `fence.mbarrier_init` and `fence.proxy.async`: what this warp has initialised, bulk copies may use.
    pub(super) fn publish_mbarriers(&mut self) {
        let warp = self.warp.index;
        let known = |mbarrier: &Mbarrier| mbarrier.init.warp() == warp;
        self.block.mbarriers.values_mut().filter(|m| known(m)).for_each(|m| m.fenced = true);
    }

    /// Arrives `count` times (1 without one) after expecting `bytes` more.
    pub(super) fn mbarrier_arrive(&mut self, addr: Addr, count: Option<Operand>, bytes: Option<Operand>) {
        let at = self.addresses(addr);
        let counts = count.map_or([1; 32], |count| self.operand(count, Ty::U32));
        if let Some(bytes) = bytes {
            self.mbarrier_expect(addr, bytes);
        }
        for lane in lanes(self.mask) {
            let Some(at) = self.mbarrier_at(lane, at[lane]) else { continue };
            let mbarrier = self.block.mbarriers.get_mut(&at).expect("it was found");
            let (before, tried) = (mbarrier.describe(), counts[lane] as i64);
            if tried == 0 || !mbarrier.arrive(tried, &self.warp.clock) {
                let message = || format!("{tried} arrivals at the mbarrier at byte {at}: {before}");
                self.report(ReportKind::MbarrierMisuse, Some(lane), message);
            }
        }
        self.warp.clock.tick(self.warp.index);
    }

    pub(super) fn mbarrier_expect(&mut self, addr: Addr, bytes: Operand) {
        let (at, bytes) = (self.addresses(addr), self.operand(bytes, Ty::U32));
        for lane in lanes(self.mask) {
            let Some(at) = self.mbarrier_at(lane, at[lane]) else { continue };
            let place = self.place(Some(lane));
            let mbarrier = self.block.mbarriers.get_mut(&at).expect("it was found");
            mbarrier.tx += bytes[lane] as i64;
            mbarrier.expected = Some(place);
            if mbarrier.tx > MOST {
                let message = || format!("more than {MOST} bytes are expected at the mbarrier at byte {at}");
                self.report(ReportKind::MbarrierMisuse, Some(lane), message);
            }
        }
    }

    /// `try_wait` suspends the warp where no executing lane may go on; `test_wait` never does.
    pub(super) fn mbarrier_wait(&mut self, blocking: bool, dst: Reg, addr: Addr, parity: Operand) {
        let (at, parities) = (self.addresses(addr), self.operand(parity, Ty::U32));
        let mut done = 0;
        let mut stuck = None;
        for lane in lanes(self.mask) {
            let Some(at) = self.mbarrier_at(lane, at[lane]) else {
                done |= 1 << lane;
                continue;
            };
            if parities[lane] > 1 {
                let message = || format!("parity {}, expected 0 or 1", parities[lane]);
                self.report(ReportKind::MbarrierMisuse, Some(lane), message);
            }
            if self.block.mbarrier_done(at, parities[lane]) {
                done |= 1 << lane;
                self.observe(at);
            } else {
                stuck = Some((at, parities[lane]));
            }
        }
        if let (true, 0, Some((at, parity))) = (blocking, done, stuck) {
            self.suspend(Wait::Mbarrier { at, parity, pc: self.pc });
            return;
        }
        if done == 0 {
            self.land_next();
        }
        self.warp.regs.set_pred(dst, self.mask, done);
    }

    /// The warp learns what the last complete phase makes known.
    fn observe(&mut self, at: usize) {
        let mbarrier = &self.block.mbarriers[&at];
        self.warp.clock.join(&mbarrier.completed);
        self.warp.clock.see_phase(mbarrier.slot, mbarrier.phase);
    }

    /// Puts the executing lanes back to this line, to go on there when `wait` ends.
    pub(super) fn suspend(&mut self, wait: Wait) {
        self.put_back();
        self.warp.wait = wait;
    }

    /// All lanes' addresses of an mbarrier that bulk copies count on, where copies may know of it.
    pub(super) fn copy_mbarrier(&mut self, lane: usize, at: &Lanes) -> Option<usize> {
        let at = self.mbarrier_at(lane, at[lane])?;
        if !self.block.mbarriers[&at].fenced {
            let message = || {
                format!(
                    "nothing made the mbarrier at byte {at} known to copies; use fence.mbarrier_init after its init"
                )
            };
            self.report(ReportKind::MissingFence, Some(lane), message);
        }
        let place = self.place(Some(lane));
        self.block.last_copy.insert(at, place);
        Some(at)
    }
}
