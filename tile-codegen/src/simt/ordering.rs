//! Ordering between threads by memory: releases, acquires, fences and warp barriers.
//!
//! A release makes what its warp knows available at its address; an acquire of the same address learns it. A fence before
//! relaxed writes, or after relaxed reads, does the same (PTX ISA 8.7). All scopes count as the widest.

use super::regs::Lanes;
use super::report::ReportKind;
use super::step::Step;
use crate::ptx::{MemSem, Operand, Space, Ty};

fn acquires(sem: MemSem) -> bool {
    matches!(sem, MemSem::Acquire(_) | MemSem::AcqRel(_))
}

fn releases(sem: MemSem) -> bool {
    matches!(sem, MemSem::Release(_) | MemSem::AcqRel(_))
}

impl Step<'_, '_> {
    /// Shared addresses are those of one block.
    fn sync_key(&self, space: Space, address: u64) -> u64 {
        if space == Space::Shared { 1 << 63 | self.block.index << 20 | address } else { address }
    }

    /// What a read of every executing lane has learnt.
    pub(super) fn after_read(&mut self, space: Space, sem: MemSem, at: &Lanes) {
        if sem == MemSem::Weak {
            return;
        }
        for lane in self.lanes() {
            let key = self.sync_key(space, at[lane]);
            let Some(known) = self.engine.track.released.get(&key) else { continue };
            if acquires(sem) {
                self.warp.clock.acquire(known, self.block.index);
            } else {
                self.warp.observed.get_or_insert_default().join(known);
            }
        }
    }

    /// Makes available what a write of every executing lane releases; a read-modify-write keeps what was there.
    pub(super) fn before_write(&mut self, space: Space, sem: MemSem, at: &Lanes, keeps: bool) {
        if sem == MemSem::Weak {
            return;
        }
        let known = if releases(sem) {
            self.warp.clock.publish(self.block.index)
        } else {
            self.warp.fenced.clone().unwrap_or_default()
        };
        for lane in self.lanes() {
            let key = self.sync_key(space, at[lane]);
            let released = &mut self.engine.track.released;
            if keeps {
                released.entry(key).or_default().join(&known);
            } else {
                released.insert(key, known.clone());
            }
        }
    }

    /// Accesses after a release are not part of it.
    pub(super) fn after_write(&mut self, sem: MemSem) {
        if releases(sem) {
            self.warp.clock.tick(self.warp.index);
        }
    }

    /// `fence` and `membar`.
    pub(super) fn fence(&mut self) {
        if let Some(observed) = self.warp.observed.take() {
            self.warp.clock.acquire(&observed, self.block.index);
        }
        self.warp.fenced = Some(self.warp.clock.publish(self.block.index));
        self.warp.clock.tick(self.warp.index);
    }

    /// `bar.warp.sync`: orders the accesses of the warp's lanes.
    pub(super) fn warp_sync(&mut self, mask: Operand) {
        let named = self.operand(mask, Ty::B32)[self.first_lane()] as u32;
        let Some(members) = self.gather(mask) else { return };
        // Shuffles and votes wait for lanes that have not exited, this one for all (PTX ISA 9.7.13.2).
        let exited = named & !self.warp.live;
        if exited != 0 {
            let message = || format!("{} lanes of its mask have exited", exited.count_ones());
            self.report(ReportKind::Divergence, None, message);
        }
        // Lanes are told apart by the warp's count alone: a barrier of some lanes orders nothing here unless the others
        // have exited, which can only lead to a report too many.
        if members == self.warp.live {
            self.warp.clock.tick(self.warp.index);
        }
    }
}
