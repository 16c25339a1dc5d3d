//! Bulk copies: loads that an mbarrier counts, stores in groups, both done at some time between issue and wait.

use super::clock::{Clock, Stamp, Who};
use super::copies::CopyGroup;
use super::counts::{Traffic, lanes};
use super::memory::Access;
use super::report::{Place, ReportKind};
use super::state::{BlockParts, Engine};
use super::step::{Step, who};
use super::tensor_map::{self, BoxRow, TensorMap};
use crate::ptx::{Addr, Coords, Operand, Reg, Space, Ty};

/// Where parameters lie among generic addresses, and how far apart.
const PARAM_BASE: u64 = 0x5000_0000_0000;
const PARAM_STEP: u64 = 1 << 20;

/// At most 16 bytes of a copy.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The offset in shared memory.
    at: usize,
    len: usize,
    /// The region and offset of the valid bytes in global memory, which are `low..high` of these; the others are zero.
    global: Option<(usize, u64)>,
    low: usize,
    high: usize,
}

/// What happens when an asynchronous operation is done.
#[derive(Debug)]
enum Done {
    /// The mbarrier at this byte, of this slot, in this phase at the issue, counts these bytes.
    Bytes { mbar: usize, slot: u32, phase: u32, bytes: i64 },
    /// The mbarrier at this byte gets this many arrivals, after the copies.
    Arrivals { mbar: usize, slot: u32, count: i64, copies: Vec<CopyGroup> },
}

/// An operation that an mbarrier waits for.
#[derive(Debug)]
pub(super) struct Flight {
    pieces: Vec<Piece>,
    done: Done,
    place: Place,
    clock: Clock,
}

impl Flight {
    /// The offset of the mbarrier that it counts on.
    pub(super) fn mbarrier(&self) -> Option<usize> {
        match self.done {
            Done::Bytes { mbar, .. } | Done::Arrivals { mbar, .. } => Some(mbar),
        }
    }
}

/// A bulk store of one lane.
#[derive(Debug)]
pub(super) struct BulkStore {
    pieces: Vec<Piece>,
    stamp: Stamp,
    clock: Clock,
    performed: bool,
    place: Place,
}

impl Step<'_, '_> {
    pub(super) fn param_addr(&mut self, dst: Reg, param: u32) {
        self.set(dst, &[PARAM_BASE + u64::from(param) * PARAM_STEP; 32]);
    }

    /// The tensor map at a generic address; reports it if there is none.
    fn tensor_map(&mut self, lane: usize, address: u64, coords: &Coords) -> Option<TensorMap> {
        let from = address.checked_sub(PARAM_BASE);
        let found = from.and_then(|from| {
            let param = self.engine.run.params.get((from / PARAM_STEP) as usize)?;
            let at = (from % PARAM_STEP) as usize;
            TensorMap::decode(param.get(at..at + tensor_map::BYTES)?)
        });
        let message = match &found {
            None => {
                format!("no tensor map at {address:#x}; pass `TensorMap::encode` as a parameter of 128 bytes")
            }
            Some(map) if !map.fits(coords) => {
                format!("{} coordinates for a tensor map with {} dimensions", coords.len(), map.dims.len())
            }
            Some(_) => return found,
        };
        self.report(ReportKind::TensorMap, Some(lane), || message);
        None
    }

    pub(super) fn prefetch_tensor_map(&mut self, map: Reg) {
        let address = self.warp.regs.plane(map)[self.first_lane()];
        if !(PARAM_BASE..PARAM_BASE + 4096 * PARAM_STEP).contains(&address) {
            let message = || format!("no tensor map at {address:#x}");
            self.report(ReportKind::TensorMap, None, message);
        }
    }

    /// The pieces of a tensor copy of one lane; `load` tells which side is read.
    fn tensor_pieces(
        &mut self,
        lane: usize,
        shared: u64,
        map: Reg,
        coords: &Coords,
        load: bool,
    ) -> Vec<Piece> {
        let address = self.warp.regs.plane(map)[lane];
        let Some(map) = self.tensor_map(lane, address, coords) else { return Vec::new() };
        let at: Vec<i64> =
            coords.iter().map(|&coord| i64::from(self.operand(coord, Ty::S32)[lane] as u32 as i32)).collect();
        if !self.aligned_to(lane, shared, 128) {
            return Vec::new();
        }
        if let Some(message) = map.refusal(&at, load) {
            self.report(ReportKind::TensorMap, Some(lane), || message);
            return Vec::new();
        }
        let mut pieces = Vec::new();
        for mut row in map.rows(&at) {
            if !load {
                self.whole_pieces(lane, &mut row);
            }
            let length = row.valid.end - row.valid.start;
            let place = match length {
                0 => None,
                _ => self.global_side(lane, row.address.wrapping_add(row.valid.start), length as usize, load),
            };
            for first in (0..row.bytes).step_by(16) {
                let to = map.swizzle.apply(shared + row.offset + first);
                let Some(at) = self.shared_offset(lane, to, 16) else { return pieces };
                let low = row.valid.start.clamp(first, first + 16) - first;
                let high = row.valid.end.clamp(first, first + 16) - first;
                let global = place.filter(|_| high > low);
                let global = global.map(|(region, at)| (region, at + first + low - row.valid.start));
                pieces.push(Piece { at, len: 16, global, low: low as usize, high: high as usize });
            }
        }
        pieces
    }

    /// Stores write whole pieces of 16 bytes: the last one of a row that has elements of the tensor goes on behind them.
    fn whole_pieces(&mut self, lane: usize, row: &mut BoxRow) {
        let end = row.valid.end;
        row.valid.end = end.next_multiple_of(16);
        let over = row.valid.end - end;
        if over > 0 {
            let at = row.address + end;
            self.report(ReportKind::TensorMap, Some(lane), || {
                format!(
                    "writes {over} bytes behind the end of a row of the tensor, at {at:#x}; \
                     a tensor that boxes are stored over the edge of needs rows of a multiple of 16 bytes"
                )
            });
        }
    }

    /// The pieces of a copy in a line, of one lane.
    fn line_pieces(&mut self, lane: usize, shared: u64, global: u64, bytes: u64, load: bool) -> Vec<Piece> {
        let aligned = [shared, global, bytes].map(|value| self.aligned_to(lane, value, 16));
        if aligned.contains(&false) || bytes == 0 {
            return Vec::new();
        }
        let Some(at) = self.shared_offset(lane, shared, bytes as usize) else { return Vec::new() };
        let Some((region, from)) = self.global_side(lane, global, bytes as usize, load) else {
            return Vec::new();
        };
        let piece = |i: usize| Piece {
            at: at + i,
            len: 16,
            global: Some((region, from + i as u64)),
            low: 0,
            high: 16,
        };
        (0..bytes as usize).step_by(16).map(piece).collect()
    }

    /// Whether a number is a multiple of what bulk copies need; reports it if not.
    fn aligned_to(&mut self, lane: usize, value: u64, of: u64) -> bool {
        let ok = value.is_multiple_of(of);
        if !ok {
            self.report(ReportKind::Misaligned, Some(lane), || format!("{value:#x} is no multiple of {of}"));
        }
        ok
    }

    fn global_side(&mut self, lane: usize, at: u64, bytes: usize, load: bool) -> Option<(usize, u64)> {
        if load {
            return self.global_read(lane, at, bytes, false);
        }
        let (index, offset) = self.global_place(lane, at, bytes)?;
        let region = self.engine.memory.region(index);
        if region.access == Access::Read {
            let message = || format!("writes `{}`, which was given to be read", region.name);
            self.report(ReportKind::ReadOnly, Some(lane), message);
            return None;
        }
        Some((index, offset))
    }

    /// `cp.async.bulk` and `cp.async.bulk.tensor` to shared memory: `source` is an address and bytes, or a map.
    pub(super) fn bulk_load(&mut self, dst: Addr, source: Source<'_>, mbar: Addr) {
        let (to, mbars) = (self.addresses(dst), self.addresses(mbar));
        for lane in lanes(self.mask) {
            let Some(mbar) = self.copy_mbarrier(lane, &mbars) else { continue };
            let pieces = self.pieces(lane, to[lane], source, true);
            let bytes: usize = pieces.iter().map(|piece| piece.len).sum();
            let state = &self.block.mbarriers[&mbar];
            let (slot, phase) = (state.slot, state.phase);
            for piece in &pieces {
                let who = who(self.warp, self.block.index, lane as u32, false, self.pc);
                if let Some(conflict) =
                    self.block.shared.begin_bulk_write(piece.at, piece.len, &who, (slot, phase))
                {
                    self.report_conflict(lane, conflict);
                }
            }
            self.count_bulk(bytes, true);
            let done = Done::Bytes { mbar, slot, phase, bytes: bytes as i64 };
            let (place, clock) = (self.place(Some(lane)), self.warp.clock.clone());
            self.block.flights.push_back(Flight { pieces, done, place, clock });
        }
    }

    fn pieces(&mut self, lane: usize, shared: u64, side: Source<'_>, load: bool) -> Vec<Piece> {
        match side {
            Source::Line { global, bytes } => {
                let (global, bytes) = (self.addresses(global)[lane], self.operand(bytes, Ty::U32)[lane]);
                self.line_pieces(lane, shared, global, bytes, load)
            }
            Source::Tensor { map, coords } => self.tensor_pieces(lane, shared, map, coords, load),
        }
    }

    fn count_bulk(&mut self, bytes: usize, load: bool) {
        let parts = bytes.div_ceil(32) as u64;
        let traffic = Traffic { requests: 1, bytes: bytes as u64, parts, ideal: parts };
        let counts = &mut self.engine.counts;
        if load { counts.global_loads.add(traffic) } else { counts.global_stores.add(traffic) }
    }

    /// `cp.async.bulk` and `cp.async.bulk.tensor` to global memory.
    pub(super) fn bulk_store(&mut self, src: Addr, target: Source<'_>) {
        let from = self.addresses(src);
        for lane in lanes(self.mask) {
            let pieces = self.pieces(lane, from[lane], target, false);
            for piece in &pieces {
                self.async_read(lane, lane as u32, piece.at, piece.len);
            }
            self.count_bulk(pieces.iter().map(|piece| piece.high - piece.low).sum(), false);
            let stamp = who(self.warp, self.block.index, lane as u32, false, self.pc).stamp;
            let (clock, place) = (self.warp.clock.clone(), self.place(Some(lane)));
            self.warp.bulk_open.push(BulkStore { pieces, stamp, clock, performed: false, place });
        }
    }

    /// Notes that an asynchronous operation will read these bytes of shared memory.
    pub(super) fn async_read(&mut self, lane: usize, reader: u32, at: usize, len: usize) {
        let who = who(self.warp, self.block.index, reader, false, self.pc);
        match self.block.shared.begin_async_read(at, len, &who) {
            Some(conflict) => self.report_conflict(lane, conflict),
            None if !self.block.shared.is_defined(at, len) => self.report_undefined(lane, "shared"),
            None => {}
        }
    }

    /// Commits the bulk stores since the last commit.
    pub(super) fn bulk_commit(&mut self) {
        let group = std::mem::take(&mut self.warp.bulk_open);
        self.warp.bulk_groups.push_back(group);
    }

    /// Until at most `pending` groups of bulk stores are pending.
    pub(super) fn bulk_wait(&mut self, pending: usize) {
        while self.warp.bulk_groups.len() > pending {
            let group = self.warp.bulk_groups.pop_front().expect("there are more groups than may be pending");
            for mut store in group {
                self.perform(&mut store);
                let lane = store.stamp.first_lane().unwrap_or(0);
                let stamp = who(self.warp, self.block.index, lane, false, self.pc).stamp;
                for piece in &store.pieces {
                    self.block.shared.end_async_read(piece.at, piece.len, stamp);
                }
            }
        }
        self.warp.clock.tick(self.warp.index);
    }

    fn perform(&mut self, store: &mut BulkStore) {
        if std::mem::replace(&mut store.performed, true) {
            return;
        }
        for piece in &store.pieces {
            let Some((index, offset)) = piece.global else { continue };
            let mut data = [0; 16];
            self.block.shared.peek(piece.at, &mut data[..piece.len]);
            let data = &data[piece.low..piece.high];
            let region = self.engine.memory.region(index);
            let mut old = [0; 16];
            let old = &mut old[..data.len()];
            region.read(offset, old);
            if !region.is_defined(offset, data.len() as u64) {
                old.iter_mut().zip(data).for_each(|(old, new)| *old = !new);
            }
            let who = Who { clock: &store.clock, block: self.block.index, stamp: store.stamp };
            if let Some(race) = self.engine.track.write(index, offset, (old, data), &who) {
                let lane = store.stamp.first_lane().unwrap_or(0) as usize;
                self.report_race(lane, Space::Global, Some(race.block), race.other, race.write);
            }
            region.write(offset, data);
        }
    }

    /// Lets some bulk stores of the warp be done early.
    pub(super) fn perform_some(&mut self) {
        if self.engine.random.is_plain() {
            return;
        }
        let mut groups = std::mem::take(&mut self.warp.bulk_groups);
        let mut open = std::mem::take(&mut self.warp.bulk_open);
        for store in groups.iter_mut().flatten().chain(&mut open) {
            if self.engine.random.below(3) == 0 {
                self.perform(store);
            }
        }
        self.warp.bulk_groups = groups;
        self.warp.bulk_open = open;
    }

    /// `cp.async.mbarrier.arrive.noinc`: the copies of the warp so far count on the mbarrier.
    pub(super) fn copies_arrive(&mut self, addr: Addr) {
        let at = self.addresses(addr);
        let mut copies: Vec<CopyGroup> = std::mem::take(&mut self.warp.groups).into();
        copies.push(std::mem::take(&mut self.warp.open));
        let mut found: Vec<(usize, i64)> = Vec::new();
        for lane in lanes(self.mask) {
            let Some(at) = self.mbarrier_at(lane, at[lane]) else { continue };
            match found.iter_mut().find(|(place, _)| *place == at) {
                Some((_, count)) => *count += 1,
                None => found.push((at, 1)),
            }
        }
        for (mbar, count) in found {
            let slot = self.block.mbarriers[&mbar].slot;
            let done = Done::Arrivals { mbar, slot, count, copies: std::mem::take(&mut copies) };
            let (place, clock) = (self.place(None), self.warp.clock.clone());
            self.block.flights.push_back(Flight { pieces: Vec::new(), done, place, clock });
        }
        self.warp.clock.tick(self.warp.index);
    }

    /// Lets the oldest operation in flight end.
    pub(super) fn land_next(&mut self) {
        if let Some(flight) = self.block.flights.pop_front() {
            land(self.engine, self.block, flight);
        }
    }
}

/// The other side of a bulk copy.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    /// Bytes in a line.
    Line { global: Addr, bytes: Operand },
    /// A box of a tensor.
    Tensor { map: Reg, coords: &'a Coords },
}

/// An operation is done: its bytes are in shared memory, and its mbarrier counts it.
pub(super) fn land(engine: &mut Engine<'_>, block: &mut BlockParts, flight: Flight) {
    for piece in &flight.pieces {
        let mut data = [0; 16];
        if let Some((region, offset)) = piece.global {
            engine.memory.region(region).read(offset, &mut data[piece.low..piece.high]);
        }
        block.shared.land(piece.at, &data[..piece.len]);
        block.shared.end_bulk_write(piece.at, piece.len);
    }
    let (mbar, slot) = match &flight.done {
        Done::Bytes { mbar, slot, .. } | Done::Arrivals { mbar, slot, .. } => (*mbar, *slot),
    };
    let Some(mbarrier) = block.mbarriers.get_mut(&mbar).filter(|mbarrier| mbarrier.slot == slot) else {
        return;
    };
    match flight.done {
        Done::Bytes { phase, bytes, .. } => {
            let before = mbarrier.phase;
            if before != phase {
                engine.reports.add(engine.program, ReportKind::TransactionMismatch, flight.place, || {
                    format!("its bytes arrive in phase {before} of the mbarrier, but it was issued in phase {phase}")
                });
            }
            mbarrier.complete_tx(bytes);
        }
        Done::Arrivals { count, copies, .. } => {
            let phase = mbarrier.phase;
            if !mbarrier.arrive(count, &flight.clock) {
                let state = mbarrier.describe();
                engine.reports.add(engine.program, ReportKind::MbarrierMisuse, flight.place, || {
                    format!("{count} arrivals at the mbarrier at byte {mbar}: {state}")
                });
            }
            for group in copies {
                group.land_all(engine.memory, &mut block.shared, (slot, phase));
            }
        }
    }
}

/// Lets some operations of a block end, in any order.
pub(super) fn land_some(engine: &mut Engine<'_>, block: &mut BlockParts) {
    if engine.random.is_plain() {
        return;
    }
    while !block.flights.is_empty() && engine.random.below(3) == 0 {
        let at = engine.random.below(block.flights.len() as u64) as usize;
        let flight = block.flights.remove(at).expect("the place is inside");
        land(engine, block, flight);
    }
}

/// Reports what is still going on when a block ends.
pub(super) fn check_end(engine: &mut Engine<'_>, block: &mut BlockParts, stores: &[BulkStore]) {
    for store in stores {
        engine.reports.add(engine.program, ReportKind::MissingWait, store.place, || {
            "the block ends before the copy has read its source; use cp.async.bulk.wait_group".to_string()
        });
    }
    while let Some(flight) = block.flights.pop_front() {
        let (program, place) = (engine.program, flight.place);
        engine.reports.add(program, ReportKind::MissingWait, place, || {
            "the block ends while the copy is in flight".to_string()
        });
        land(engine, block, flight);
    }
    block.check_transactions(engine, true);
}
