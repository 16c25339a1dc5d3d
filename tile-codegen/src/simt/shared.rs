//! A block's shared memory: bytes, which of them were written, and who accessed them last.

use super::clock::{Stamp, Who};

/// The address of the first byte, so that address 0 is a fault as on most GPUs.
pub(super) const SHARED_BASE: u64 = 1024;

/// Why an access may not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conflict {
    /// An access by another thread that nothing orders, and whether it was a write.
    Race { other: Stamp, write: bool },
    /// A copy issued at this line may be in flight.
    InFlight { pc: usize },
    /// An asynchronous operation issued at this line may still read the bytes.
    Reading { pc: usize },
    /// No proxy fence comes between this write and the asynchronous operation.
    Proxy { other: Stamp },
}

/// The shared memory of one block.
#[derive(Debug)]
pub(super) struct SharedMemory {
    bytes: Vec<u8>,
    defined: Vec<bool>,
    granule: usize,
    warps: usize,
    /// For each granule the last write.
    writers: Vec<Stamp>,
    /// For each granule the last read of each warp since that write.
    readers: Vec<Stamp>,
    /// For each granule whether `readers` holds anything.
    was_read: Vec<bool>,
    /// For each granule the line, plus 1, of the copy in flight to it; 0 is none.
    in_flight: Vec<u32>,
    /// For each granule the mbarrier and phase of the bulk copy that wrote it last.
    owners: Vec<Option<(u32, u32)>>,
    /// For each granule how many asynchronous operations are going to read it, and the line of the last.
    reading: Vec<(u16, u32)>,
}

impl SharedMemory {
    pub(super) fn new(len: usize, granule: usize, warps: usize) -> SharedMemory {
        let granules = len.div_ceil(granule);
        SharedMemory {
            bytes: vec![0; len],
            defined: vec![false; len],
            granule,
            warps,
            writers: vec![Stamp::default(); granules],
            readers: vec![Stamp::default(); granules * warps],
            was_read: vec![false; granules],
            in_flight: vec![0; granules],
            owners: vec![None; granules],
            reading: vec![(0, 0); granules],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The offset of `size` bytes at `address`, if they are inside.
    pub(super) fn offset(&self, address: u64, size: usize) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(SHARED_BASE)?).ok()?;
        (offset < self.bytes.len() && size <= self.bytes.len() - offset).then_some(offset)
    }

    fn granules(&self, at: usize, size: usize) -> std::ops::Range<usize> {
        at / self.granule..(at + size).div_ceil(self.granule)
    }

    /// The bytes themselves, without tracking.
    pub(super) fn peek(&self, at: usize, out: &mut [u8]) {
        out.copy_from_slice(&self.bytes[at..at + out.len()]);
    }

    /// Whether all these bytes were written.
    pub(super) fn is_defined(&self, at: usize, size: usize) -> bool {
        self.defined[at..at + size].iter().all(|&defined| defined)
    }

    /// Notes a read; returns a conflict with an earlier write.
    pub(super) fn note_read(&mut self, at: usize, size: usize, who: &Who<'_>) -> Option<Conflict> {
        let mut conflict = None;
        for g in self.granules(at, size) {
            if self.in_flight[g] != 0 {
                conflict = Some(Conflict::InFlight { pc: self.in_flight[g] as usize - 1 });
            }
            if let Some(unordered) = self.unordered_write(g, who) {
                conflict = Some(unordered);
            }
            let slot = &mut self.readers[g * self.warps + who.stamp.warp()];
            *slot = who.stamp.merged(*slot);
            self.was_read[g] = true;
        }
        conflict
    }

    /// Writes bytes; returns a conflict with an earlier access if the write changes the bytes.
    pub(super) fn write(&mut self, at: usize, data: &[u8], who: &Who<'_>) -> Option<Conflict> {
        let range = at..at + data.len();
        let same = self.bytes[range.clone()] == *data && self.is_defined(at, data.len());
        self.bytes[range.clone()].copy_from_slice(data);
        self.defined[range].fill(true);
        let mut conflict = None;
        for g in self.granules(at, data.len()) {
            if self.in_flight[g] != 0 {
                conflict = Some(Conflict::InFlight { pc: self.in_flight[g] as usize - 1 });
            } else if let Some(reading) = self.read_in_flight(g).filter(|_| !same) {
                conflict = Some(reading);
            } else if !same && let Some(race) = self.race(g, who) {
                conflict = Some(race);
            }
            self.writers[g] = who.stamp.merged(self.writers[g]);
            self.owners[g] = None;
            self.forget_readers(g);
        }
        conflict
    }

    /// The last write, if nothing orders it before this access.
    fn unordered_write(&self, g: usize, who: &Who<'_>) -> Option<Conflict> {
        let writer = self.writers[g];
        match self.owners[g] {
            Some(phase) if who.clock.sees(phase) => None,
            Some(_) => Some(Conflict::InFlight { pc: writer.pc() }),
            None if who.is_after(who.block, writer) => None,
            None => Some(Conflict::Race { other: writer, write: true }),
        }
    }

    /// An asynchronous read that may still go on.
    fn read_in_flight(&self, g: usize) -> Option<Conflict> {
        let (count, pc) = self.reading[g];
        (count > 0).then_some(Conflict::Reading { pc: pc as usize })
    }

    fn race(&self, g: usize, who: &Who<'_>) -> Option<Conflict> {
        if let Some(unordered) = self.unordered_write(g, who) {
            return Some(unordered);
        }
        if !self.was_read[g] {
            return None;
        }
        let readers = &self.readers[g * self.warps..(g + 1) * self.warps];
        let other = *readers.iter().find(|&&reader| !who.is_after(who.block, reader))?;
        Some(Conflict::Race { other, write: false })
    }

    fn forget_readers(&mut self, g: usize) {
        if std::mem::take(&mut self.was_read[g]) {
            self.readers[g * self.warps..(g + 1) * self.warps].fill(Stamp::default());
        }
    }

    /// Notes that an asynchronous write of these bytes was issued; returns a conflict with an earlier access.
    pub(super) fn begin_write(&mut self, at: usize, size: usize, who: &Who<'_>) -> Option<Conflict> {
        let mut conflict = None;
        for g in self.granules(at, size) {
            if self.in_flight[g] != 0 {
                conflict = Some(Conflict::InFlight { pc: self.in_flight[g] as usize - 1 });
            } else if let Some(found) = self.read_in_flight(g).or_else(|| self.race(g, who)) {
                conflict = Some(found);
            }
            self.in_flight[g] = who.stamp.pc() as u32 + 1;
            self.forget_readers(g);
        }
        conflict
    }

    /// A write by generic accesses that no proxy fence orders before an asynchronous operation.
    fn unproxied(&self, g: usize, who: &Who<'_>) -> Option<Conflict> {
        let other = self.writers[g];
        let generic = self.owners[g].is_none() && !other.is_none();
        (generic && !who.clock.is_proxied(other)).then_some(Conflict::Proxy { other })
    }

    /// Notes that a bulk copy will write these bytes, in a phase of an mbarrier.
    pub(super) fn begin_bulk_write(
        &mut self,
        at: usize,
        size: usize,
        who: &Who<'_>,
        phase: (u32, u32),
    ) -> Option<Conflict> {
        let mut conflict = None;
        for g in self.granules(at, size) {
            let found = if self.in_flight[g] != 0 {
                Some(Conflict::InFlight { pc: self.in_flight[g] as usize - 1 })
            } else {
                self.read_in_flight(g).or_else(|| self.race(g, who)).or_else(|| self.unproxied(g, who))
            };
            conflict = found.or(conflict);
            self.in_flight[g] = who.stamp.pc() as u32 + 1;
            self.owners[g] = Some(phase);
            self.writers[g] = who.stamp;
            self.forget_readers(g);
        }
        conflict
    }

    /// A bulk copy has written these bytes.
    pub(super) fn end_bulk_write(&mut self, at: usize, size: usize) {
        for g in self.granules(at, size) {
            self.in_flight[g] = 0;
        }
    }

    /// `cp.async` has written these bytes, which a phase of an mbarrier makes known.
    pub(super) fn hand_over(&mut self, at: usize, size: usize, phase: (u32, u32)) {
        for g in self.granules(at, size) {
            self.writers[g] = Stamp::of_copy(self.in_flight[g]);
            self.in_flight[g] = 0;
            self.owners[g] = Some(phase);
        }
    }

    /// Notes that an asynchronous operation will read these bytes.
    pub(super) fn begin_async_read(&mut self, at: usize, size: usize, who: &Who<'_>) -> Option<Conflict> {
        let mut conflict = None;
        for g in self.granules(at, size) {
            let found = if self.in_flight[g] != 0 {
                Some(Conflict::InFlight { pc: self.in_flight[g] as usize - 1 })
            } else {
                self.unordered_write(g, who).or_else(|| self.unproxied(g, who))
            };
            conflict = found.or(conflict);
            self.reading[g] = (self.reading[g].0 + 1, who.stamp.pc() as u32);
        }
        conflict
    }

    /// An asynchronous read has ended, as the thread of `stamp` knows.
    pub(super) fn end_async_read(&mut self, at: usize, size: usize, stamp: Stamp) {
        for g in self.granules(at, size) {
            self.reading[g].0 = self.reading[g].0.saturating_sub(1);
            let slot = &mut self.readers[g * self.warps + stamp.warp()];
            *slot = stamp.merged(*slot);
            self.was_read[g] = true;
        }
    }

    /// An asynchronous write reaches memory.
    pub(super) fn land(&mut self, at: usize, data: &[u8]) {
        self.bytes[at..at + data.len()].copy_from_slice(data);
        self.defined[at..at + data.len()].fill(true);
    }

    /// The thread of `stamp` has waited for an asynchronous write: from now on it counts as that thread's, made by the copy.
    pub(super) fn end_write(&mut self, at: usize, size: usize, stamp: Stamp) {
        for g in self.granules(at, size) {
            let copy = std::mem::take(&mut self.in_flight[g]) as usize;
            self.writers[g] = if copy > 0 { stamp.at(copy - 1) } else { stamp };
            self.owners[g] = None;
        }
    }
}
