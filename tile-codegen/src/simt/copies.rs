//! `cp.async`: copies that land at some time between their issue and their wait, as the schedule likes. Groups are those of
//! a warp: its lanes commit and wait together.

use super::counts::{lanes, sectors};
use super::memory::Memory;
use super::shared::SharedMemory;
use super::step::{Step, who};
use crate::ptx::{Addr, Operand, Ty};

/// The copy of one lane.
#[derive(Clone, Copy, Debug)]
struct Copy {
    /// The offset in shared memory.
    to: usize,
    /// The region of global memory and the offset there; `None` if nothing is read.
    from: Option<(usize, u64)>,
    /// Bytes read; the others become zero.
    size: usize,
    lane: u32,
}

/// The copies of one instruction.
#[derive(Debug)]
struct WarpCopy {
    copies: Vec<Copy>,
    bytes: usize,
    landed: bool,
}

/// Copies that are waited for together.
#[derive(Debug, Default)]
pub(super) struct CopyGroup {
    list: Vec<WarpCopy>,
}

impl WarpCopy {
    fn land(&mut self, memory: &Memory, shared: &mut SharedMemory) {
        if std::mem::replace(&mut self.landed, true) {
            return;
        }
        for one in &self.copies {
            let mut data = [0; 16];
            if let Some((region, offset)) = one.from {
                memory.region(region).read(offset, &mut data[..one.size]);
            }
            shared.land(one.to, &data[..self.bytes]);
        }
    }
}

impl CopyGroup {
    /// Lets all copies land, for whoever knows this phase of an mbarrier to be complete.
    pub(super) fn land_all(mut self, memory: &Memory, shared: &mut SharedMemory, phase: (u32, u32)) {
        for copy in &mut self.list {
            copy.land(memory, shared);
            for one in &copy.copies {
                shared.hand_over(one.to, copy.bytes, phase);
            }
        }
    }
}

impl Step<'_, '_> {
    /// `cp.async`: notes the copies, which are in flight from now on.
    pub(super) fn copy_async(&mut self, bytes: u32, dst: Addr, src: Addr, size: Option<Operand>) {
        let (to, from) = (self.addresses(dst), self.addresses(src));
        let sizes = size.map(|size| self.operand(size, Ty::U32));
        let mut copies = Vec::new();
        let mut reading = 0;
        for lane in lanes(self.mask) {
            let size = sizes.map_or(u64::from(bytes), |sizes| sizes[lane]).min(u64::from(bytes)) as usize;
            if size > 0 {
                reading |= 1 << lane;
            }
            if let Some(copy) = self.begin_copy(lane, to[lane], from[lane], bytes as usize, size) {
                copies.push(copy);
            }
        }
        if reading != 0 {
            self.engine.counts.global_loads.add(sectors(reading, &from, bytes));
        }
        self.warp.open.list.push(WarpCopy { copies, bytes: bytes as usize, landed: false });
    }

    fn begin_copy(&mut self, lane: usize, to: u64, from: u64, bytes: usize, size: usize) -> Option<Copy> {
        let aligned = self.aligned(lane, to, bytes) & (size == 0 || self.aligned(lane, from, bytes));
        if !aligned {
            return None;
        }
        let offset = self.shared_offset(lane, to, bytes)?;
        let source = match size {
            0 => None,
            _ => Some(self.global_read(lane, from, size, false)?),
        };
        let who = who(self.warp, self.block.index, lane as u32, false, self.pc);
        if let Some(conflict) = self.block.shared.begin_write(offset, bytes, &who) {
            self.report_conflict(lane, conflict);
        }
        Some(Copy { to: offset, from: source, size, lane: lane as u32 })
    }

    /// `cp.async.commit_group`.
    pub(super) fn copy_commit(&mut self) {
        let group = std::mem::take(&mut self.warp.open);
        self.warp.groups.push_back(group);
    }

    /// `cp.async.wait_group`: until at most `pending` groups are in flight.
    pub(super) fn copy_wait(&mut self, pending: usize) {
        while self.warp.groups.len() > pending {
            let group = self.warp.groups.pop_front().expect("there are more groups than may be pending");
            self.finish_group(group);
        }
    }

    /// `cp.async.wait_all`.
    pub(super) fn copy_wait_all(&mut self) {
        self.copy_commit();
        self.copy_wait(0);
    }

    fn finish_group(&mut self, group: CopyGroup) {
        for mut copy in group.list {
            self.land(&mut copy);
            for one in &copy.copies {
                let stamp = who(self.warp, self.block.index, one.lane, false, self.pc).stamp;
                self.block.shared.end_write(one.to, copy.bytes, stamp);
            }
        }
    }

    /// Lets some copies land early; the plain schedule lets them land as late as they may.
    pub(super) fn land_some(&mut self) {
        if self.engine.random.is_plain() || (self.warp.groups.is_empty() && self.warp.open.list.is_empty()) {
            return;
        }
        let mut groups = std::mem::take(&mut self.warp.groups);
        let mut open = std::mem::take(&mut self.warp.open);
        for copy in groups.iter_mut().chain([&mut open]).flat_map(|group| &mut group.list) {
            if self.engine.random.below(3) == 0 {
                self.land(copy);
            }
        }
        self.warp.groups = groups;
        self.warp.open = open;
    }

    fn land(&mut self, copy: &mut WarpCopy) {
        copy.land(self.engine.memory, &mut self.block.shared);
    }
}
