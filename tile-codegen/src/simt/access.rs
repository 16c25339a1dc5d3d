//! Loads and stores of every state space, with their bounds, alignment, definedness and races.

use smallvec::SmallVec;

use super::counts::{lanes, passes, sectors};
use super::memory::Access;
use super::number::extend;
use super::program::base_register;
use super::regs::Lanes;
use super::report::ReportKind;
use super::shared::SHARED_BASE;
use super::step::{Step, who};
use crate::ptx::{Addr, AddrBase, MemSem, Operand, Reg, Space, Ty};

/// The first bytes as a little-endian number.
pub(super) fn word(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

impl Step<'_, '_> {
    /// The address of every lane. Parameters and local memory count from 0.
    pub(super) fn addresses(&self, addr: Addr) -> Lanes {
        let offset = addr.offset as u64;
        match addr.base {
            AddrBase::Reg(reg) => {
                let number = base_register(self.engine.program, addr.base).expect("the base is a register");
                let width = u64::MAX >> (64 - reg.class.bits());
                self.warp.regs.plane_at(number).map(|base| base.wrapping_add(offset) & width)
            }
            AddrBase::Shared => [SHARED_BASE.wrapping_add(offset); 32],
            AddrBase::Param(_) | AddrBase::Local => [offset; 32],
        }
    }

    /// Counts a request of the executing lanes.
    pub(super) fn count_access(&mut self, space: Space, at: &Lanes, bytes: usize, store: bool) {
        let (mask, counts) = (self.mask, &mut self.engine.counts);
        let (traffic, total) = match (space, store) {
            (Space::Global, false) => (sectors(mask, at, bytes as u32), &mut counts.global_loads),
            (Space::Global, true) => (sectors(mask, at, bytes as u32), &mut counts.global_stores),
            (Space::Shared, false) => (passes(mask, at, bytes as u32), &mut counts.shared_loads),
            (Space::Shared, true) => (passes(mask, at, bytes as u32), &mut counts.shared_stores),
            (Space::Param | Space::Local, _) => return,
        };
        total.add(traffic);
    }

    pub(super) fn load(&mut self, space: Space, ty: Ty, sem: MemSem, dsts: &[Reg], addr: Addr) {
        let (size, at) = (ty.bytes() as usize, self.addresses(addr));
        let total = size * dsts.len();
        self.count_access(space, &at, total, false);
        let mut planes: SmallVec<[Lanes; 4]> = SmallVec::from_elem([0; 32], dsts.len());
        for lane in lanes(self.mask) {
            let mut data = [0; 16];
            let strong = sem != MemSem::Weak;
            match (space, addr.base) {
                (Space::Param, AddrBase::Param(index)) => {
                    self.read_param(lane, index, at[lane], &mut data[..total])
                }
                (Space::Local, _) => self.read_local(lane, at[lane], &mut data[..total]),
                (Space::Shared, _) => self.read_shared(lane, at[lane], &mut data[..total], strong),
                (Space::Global | Space::Param, _) => {
                    self.read_global(lane, at[lane], &mut data[..total], strong)
                }
            }
            for (plane, element) in planes.iter_mut().zip(data.chunks(size)) {
                plane[lane] = extend(ty, word(element));
            }
        }
        self.after_read(space, sem, &at);
        dsts.iter().zip(&planes).for_each(|(&dst, plane)| self.set(dst, plane));
    }

    pub(super) fn store(&mut self, space: Space, ty: Ty, sem: MemSem, addr: Addr, srcs: &[Operand]) {
        let (size, at) = (ty.bytes() as usize, self.addresses(addr));
        let total = size * srcs.len();
        let values: SmallVec<[Lanes; 4]> = srcs.iter().map(|&src| self.operand(src, ty)).collect();
        self.count_access(space, &at, total, true);
        self.before_write(space, sem, &at, false);
        let strong = sem != MemSem::Weak;
        for lane in lanes(self.mask) {
            let mut data = [0; 16];
            for (element, values) in data.chunks_mut(size).zip(&values) {
                element.copy_from_slice(&values[lane].to_le_bytes()[..size]);
            }
            let data = &data[..total];
            match space {
                Space::Local => self.write_local(lane, at[lane], data),
                Space::Shared => self.write_shared(lane, at[lane], data, strong),
                Space::Global => self.write_global(lane, at[lane], data, strong),
                Space::Param => unreachable!("the checker refuses stores to parameters"),
            }
        }
        self.after_write(sem);
    }

    /// Whether an address is a multiple of the size of its access; reports it if not.
    pub(super) fn aligned(&mut self, lane: usize, address: u64, size: usize) -> bool {
        let ok = address.is_multiple_of(size as u64);
        if !ok {
            self.report(ReportKind::Misaligned, Some(lane), || {
                format!("address {address:#x} is no multiple of {size}, the bytes of the access")
            });
        }
        ok
    }

    fn read_param(&mut self, lane: usize, index: u32, at: u64, out: &mut [u8]) {
        let param = &self.engine.run.params[index as usize];
        let range = usize::try_from(at).ok().and_then(|at| param.get(at..at + out.len()));
        match range {
            Some(bytes) => out.copy_from_slice(bytes),
            None => {
                let len = param.len();
                self.report(ReportKind::OutOfBounds, Some(lane), || {
                    format!("{} bytes at byte {} of a parameter of {len} bytes", out.len(), at as i64)
                });
            }
        }
    }

    /// The place of a lane's bytes in the warp's local memory.
    fn local_offset(&mut self, lane: usize, at: u64, size: usize) -> Option<usize> {
        let bytes = self.engine.program.local_bytes as usize;
        if !self.aligned(lane, at, size) {
            return None;
        }
        match usize::try_from(at) {
            Ok(at) if at < bytes && size <= bytes - at => Some(lane * bytes + at),
            _ => {
                self.report(ReportKind::OutOfBounds, Some(lane), || {
                    format!("{size} bytes at {at:#x} of {bytes} bytes of local memory")
                });
                None
            }
        }
    }

    fn read_local(&mut self, lane: usize, at: u64, out: &mut [u8]) {
        let Some(at) = self.local_offset(lane, at, out.len()) else { return };
        let range = at..at + out.len();
        if !self.warp.local_defined[range.clone()].iter().all(|&defined| defined) {
            self.report_undefined(lane, "local");
        }
        out.copy_from_slice(&self.warp.local[range]);
    }

    fn write_local(&mut self, lane: usize, at: u64, data: &[u8]) {
        let Some(at) = self.local_offset(lane, at, data.len()) else { return };
        let range = at..at + data.len();
        self.warp.local[range.clone()].copy_from_slice(data);
        self.warp.local_defined[range].fill(true);
    }

    pub(super) fn report_undefined(&mut self, lane: usize, space: &str) {
        let message = || format!("reads bytes of {space} memory that nobody has written");
        self.report(ReportKind::UninitialisedMemory, Some(lane), message);
    }

    /// The offset of bytes in shared memory; reports it if they are outside.
    pub(super) fn shared_offset(&mut self, lane: usize, at: u64, size: usize) -> Option<usize> {
        let offset = self.block.shared.offset(at, size);
        if offset.is_none() {
            let (len, at) = (self.block.shared.len(), at as i64 - SHARED_BASE as i64);
            self.report(ReportKind::OutOfBounds, Some(lane), || {
                format!("{size} bytes at byte {at} of shared memory, which has {len}")
            });
        }
        offset
    }

    pub(super) fn read_shared(&mut self, lane: usize, at: u64, out: &mut [u8], strong: bool) {
        if self.aligned(lane, at, out.len()) {
            self.read_shared_as(lane, lane as u32, at, out, strong);
        }
    }

    /// Reads shared memory at the address of `lane` on behalf of the lanes that `reader` stands for.
    pub(super) fn read_shared_as(&mut self, lane: usize, reader: u32, at: u64, out: &mut [u8], strong: bool) {
        let Some(at) = self.shared_offset(lane, at, out.len()) else { return };
        let who = who(self.warp, self.block.index, reader, strong, self.pc);
        match self.block.shared.note_read(at, out.len(), &who) {
            Some(conflict) => self.report_conflict(lane, conflict),
            None if !self.block.shared.is_defined(at, out.len()) => self.report_undefined(lane, "shared"),
            None => {}
        }
        self.block.shared.peek(at, out);
    }

    pub(super) fn write_shared(&mut self, lane: usize, at: u64, data: &[u8], strong: bool) {
        if self.aligned(lane, at, data.len()) {
            self.write_shared_as(lane, lane as u32, at, data, strong);
        }
    }

    pub(super) fn write_shared_as(&mut self, lane: usize, writer: u32, at: u64, data: &[u8], strong: bool) {
        let Some(at) = self.shared_offset(lane, at, data.len()) else { return };
        let who = who(self.warp, self.block.index, writer, strong, self.pc);
        if let Some(conflict) = self.block.shared.write(at, data, &who) {
            self.report_conflict(lane, conflict);
        }
    }

    /// The region and offset of bytes in global memory; reports it if they are outside.
    pub(super) fn global_place(&mut self, lane: usize, at: u64, size: usize) -> Option<(usize, u64)> {
        let memory = self.engine.memory;
        let Some(region) = memory.find(at, size as u64) else {
            self.report(ReportKind::OutOfBounds, Some(lane), || {
                format!("{size} bytes at {at:#x} of global memory: {}", memory.describe(at))
            });
            return None;
        };
        Some((region, at - memory.region(region).base))
    }

    /// Checks a read of global memory and gives its region and offset.
    pub(super) fn global_read(
        &mut self,
        lane: usize,
        at: u64,
        size: usize,
        strong: bool,
    ) -> Option<(usize, u64)> {
        let (index, offset) = self.global_place(lane, at, size)?;
        let region = self.engine.memory.region(index);
        let mut race = None;
        if region.access == Access::Write {
            let who = who(self.warp, self.block.index, lane as u32, strong, self.pc);
            race = self.engine.track.read(index, offset, size, &who);
        }
        match race {
            Some(race) => self.report_race(lane, Space::Global, Some(race.block), race.other, race.write),
            None if !region.is_defined(offset, size as u64) => self.report_undefined(lane, "global"),
            None => {}
        }
        Some((index, offset))
    }

    fn read_global(&mut self, lane: usize, at: u64, out: &mut [u8], strong: bool) {
        if !self.aligned(lane, at, out.len()) {
            return;
        }
        if let Some((region, offset)) = self.global_read(lane, at, out.len(), strong) {
            self.engine.memory.region(region).read(offset, out);
        }
    }

    pub(super) fn write_global(&mut self, lane: usize, at: u64, data: &[u8], strong: bool) {
        if !self.aligned(lane, at, data.len()) {
            return;
        }
        let Some((index, offset)) = self.global_place(lane, at, data.len()) else { return };
        let region = self.engine.memory.region(index);
        if region.access == Access::Read {
            self.report(ReportKind::ReadOnly, Some(lane), || {
                format!("writes `{}`, which was given to be read", region.name)
            });
            return;
        }
        let mut old = [0; 16];
        let old = &mut old[..data.len()];
        region.read(offset, old);
        if !region.is_defined(offset, data.len() as u64) {
            // Nobody may rely on what these bytes are.
            old.iter_mut().zip(data).for_each(|(old, new)| *old = !new);
        }
        let who = who(self.warp, self.block.index, lane as u32, strong, self.pc);
        if let Some(race) = self.engine.track.write(index, offset, (old, data), &who) {
            self.report_race(lane, Space::Global, Some(race.block), race.other, race.write);
        }
        region.write(offset, data);
    }
}
