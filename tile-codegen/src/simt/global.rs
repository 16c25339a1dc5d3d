//! Who accessed global memory last: races between threads of a block and between blocks, in regions that are written.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::clock::{Snapshot, Stamp, Who};

/// Granules in one page of the table.
const PAGE: usize = 512;

/// A write, by which block, and what it wrote.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Writer {
    pub(super) block: u64,
    pub(super) stamp: Stamp,
    value: u64,
}

/// A read, by which block.
pub(super) type Reader = (u64, Stamp);

/// The accesses to one region.
#[derive(Debug, Default)]
struct Track {
    writers: Vec<Option<Box<[Writer]>>>,
    readers: BTreeMap<usize, SmallVec<[Reader; 2]>>,
}

impl Track {
    fn writer(&self, g: usize) -> Writer {
        let page = self.writers.get(g / PAGE).and_then(Option::as_ref);
        page.map_or(Writer::default(), |page| page[g % PAGE])
    }

    fn set_writer(&mut self, g: usize, writer: Writer) {
        if self.writers.len() <= g / PAGE {
            self.writers.resize(g / PAGE + 1, None);
        }
        let fresh = || vec![Writer::default(); PAGE].into_boxed_slice();
        self.writers[g / PAGE].get_or_insert_with(fresh)[g % PAGE] = writer;
    }
}

/// The accesses of a run to all regions, and what releases have made known.
#[derive(Debug)]
pub(super) struct GlobalTrack {
    granule: usize,
    regions: Vec<Track>,
    /// For each address that was released to, what an acquire there learns.
    pub(super) released: BTreeMap<u64, Snapshot>,
}

/// An earlier access that nothing orders before the present one.
#[derive(Clone, Copy, Debug)]
pub(super) struct GlobalRace {
    pub(super) block: u64,
    pub(super) other: Stamp,
    pub(super) write: bool,
}

impl GlobalTrack {
    pub(super) fn new(regions: usize, granule: usize) -> GlobalTrack {
        let regions = (0..regions).map(|_| Track::default()).collect();
        GlobalTrack { granule, regions, released: BTreeMap::new() }
    }

    fn granules(&self, at: u64, size: usize) -> std::ops::Range<usize> {
        at as usize / self.granule..(at as usize + size).div_ceil(self.granule)
    }

    /// Notes a read of bytes of a region; returns a race with an earlier write.
    pub(super) fn read(&mut self, region: usize, at: u64, size: usize, who: &Who<'_>) -> Option<GlobalRace> {
        let mut race = None;
        for g in self.granules(at, size) {
            let track = &mut self.regions[region];
            let writer = track.writer(g);
            if !who.is_after(writer.block, writer.stamp) {
                race = Some(GlobalRace { block: writer.block, other: writer.stamp, write: true });
            }
            let readers = track.readers.entry(g).or_default();
            let same_warp = |(block, stamp): &Reader| *block == who.block && stamp.warp() == who.stamp.warp();
            match readers.iter_mut().find(|reader| same_warp(reader)) {
                Some(reader) => reader.1 = who.stamp.merged(reader.1),
                None => readers.push((who.block, who.stamp)),
            }
        }
        race
    }

    /// Notes a write to a region whose bytes were `old`; returns a race with an earlier access if it changes them.
    pub(super) fn write(
        &mut self,
        region: usize,
        at: u64,
        (old, new): (&[u8], &[u8]),
        who: &Who<'_>,
    ) -> Option<GlobalRace> {
        let mut race = None;
        for g in self.granules(at, new.len()) {
            let track = &mut self.regions[region];
            let writer = track.writer(g);
            if old != new {
                if !who.is_after(writer.block, writer.stamp) {
                    race = Some(GlobalRace { block: writer.block, other: writer.stamp, write: true });
                }
                let readers = track.readers.get(&g).map_or(&[][..], |readers| &readers[..]);
                if let Some(&(block, other)) =
                    readers.iter().find(|(block, stamp)| !who.is_after(*block, *stamp))
                {
                    race = Some(GlobalRace { block, other, write: false });
                }
            }
            track.readers.remove(&g);
            let from = (g * self.granule).saturating_sub(at as usize);
            let mut value = [0; 8];
            let piece = &new[from..(from + self.granule).min(new.len())];
            value[..piece.len()].copy_from_slice(piece);
            let stamp = if writer.block == who.block { who.stamp.merged(writer.stamp) } else { who.stamp };
            track.set_writer(g, Writer { block: who.block, stamp, value: u64::from_le_bytes(value) });
        }
        race
    }

    /// Adds the accesses of another run over other blocks.
    pub(super) fn absorb(&mut self, other: GlobalTrack) {
        for (mine, theirs) in self.regions.iter_mut().zip(other.regions) {
            for (page, writers) in theirs.writers.iter().enumerate() {
                let all = writers.iter().flat_map(|page| page.iter().enumerate());
                all.filter(|(_, writer)| !writer.stamp.is_none())
                    .for_each(|(i, writer)| mine.set_writer(page * PAGE + i, *writer));
            }
            for (g, readers) in theirs.readers {
                mine.readers.entry(g).or_default().extend(readers);
            }
        }
    }

    /// Races with another run of the same launch over other blocks: region, granule's offset, and both accesses, the
    /// other one with whether it writes. Nothing orders the blocks of two runs.
    pub(super) fn races_with(&self, other: &GlobalTrack) -> Vec<(usize, u64, Writer, (Reader, bool))> {
        let mut found = Vec::new();
        for (r, (mine, theirs)) in self.regions.iter().zip(&other.regions).enumerate() {
            for (page, writers) in mine.writers.iter().enumerate() {
                for (i, writer) in writers.iter().flat_map(|page| page.iter().enumerate()) {
                    let g = page * PAGE + i;
                    if let Some(reader) = rival(writer, theirs, g) {
                        found.push((r, (g * self.granule) as u64, *writer, reader));
                    }
                }
            }
        }
        found
    }
}

/// An access of another run that races with a write, and whether it writes too.
fn rival(writer: &Writer, theirs: &Track, g: usize) -> Option<(Reader, bool)> {
    if writer.stamp.is_none() {
        return None;
    }
    let both_strong = |stamp: Stamp| stamp.strong() && writer.stamp.strong();
    let their = theirs.writer(g);
    if !their.stamp.is_none() && their.value != writer.value && !both_strong(their.stamp) {
        return Some(((their.block, their.stamp), true));
    }
    let readers = theirs.readers.get(&g)?;
    readers.iter().find(|(_, stamp)| !both_strong(*stamp)).map(|&reader| (reader, false))
}
