//! Which accesses are ordered: vector clocks over warps, and compact stamps of accesses.
//!
//! Every warp counts its own synchronisations. A clock says, for every warp, up to which count this warp knows what that
//! one did. An access is stamped with its warp's count; it happened before whoever's clock has reached the stamp. A warp
//! publishes its clock when it arrives at a barrier or releases, and then counts on.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

/// What is known of one block's warps.
type Counts = SmallVec<[u32; 8]>;

/// What is known of one block.
#[derive(Clone, Debug, Default)]
struct Known {
    /// For each warp up to which count its accesses happened before.
    warps: Counts,
    /// The same, for what asynchronous operations may rely on: a proxy fence came after these accesses.
    proxied: Counts,
    /// For each mbarrier how many of its phases are complete.
    phases: Counts,
}

impl Known {
    fn raise(&mut self, from: &Known) {
        raise(&mut self.warps, &from.warps);
        raise(&mut self.proxied, &from.proxied);
        raise(&mut self.phases, &from.phases);
    }
}

/// A vector clock: the own block, and others of which something is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    home: Known,
    others: Option<Arc<BTreeMap<u64, Known>>>,
}

/// Raises every count of `into` to that of `from`.
fn raise(into: &mut Counts, from: &[u32]) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    into.iter_mut().zip(from).for_each(|(a, b)| *a = (*a).max(*b));
}

impl Clock {
    /// The clock of `warp` at the start of its block: it knows of nobody.
    pub(super) fn start(warp: usize, warps: usize) -> Clock {
        let mut counts = Counts::from_elem(0, warps);
        counts[warp] = 1;
        Clock { home: Known { warps: counts, ..Known::default() }, others: None }
    }

    /// Whether nothing is known at all.
    pub(super) fn is_empty(&self) -> bool {
        self.home.warps.is_empty()
    }

    /// The warp's own count.
    pub(super) fn own(&self, warp: usize) -> u32 {
        self.home.warps[warp]
    }

    /// Learns all that another clock of the same block knows.
    pub(super) fn join(&mut self, other: &Clock) {
        self.home.raise(&other.home);
        if let Some(theirs) = &other.others {
            self.join_others(theirs);
        }
    }

    fn join_others(&mut self, theirs: &Arc<BTreeMap<u64, Known>>) {
        match &mut self.others {
            Some(mine) if Arc::ptr_eq(mine, theirs) => {}
            Some(mine) => {
                let mine = Arc::make_mut(mine);
                theirs.iter().for_each(|(&block, known)| mine.entry(block).or_default().raise(known));
            }
            None => self.others = Some(theirs.clone()),
        }
    }

    /// The warp has synchronised: later accesses are told apart from earlier ones.
    pub(super) fn tick(&mut self, warp: usize) {
        self.home.warps[warp] += 1;
    }

    /// A proxy fence: asynchronous operations may rely on all that is known.
    pub(super) fn proxy_fence(&mut self) {
        raise(&mut self.home.proxied, &self.home.warps);
    }

    /// Whether asynchronous operations may rely on an access of this block.
    pub(super) fn is_proxied(&self, stamp: Stamp) -> bool {
        self.home.proxied.get(stamp.warp()).is_some_and(|&count| count >= stamp.count())
    }

    /// Phases of an mbarrier are known to be complete.
    pub(super) fn see_phase(&mut self, slot: u32, complete: u32) {
        let slot = slot as usize;
        if self.home.phases.len() <= slot {
            self.home.phases.resize(slot + 1, 0);
        }
        self.home.phases[slot] = self.home.phases[slot].max(complete);
    }

    /// Whether the phase of this number is known to be complete.
    pub(super) fn sees(&self, (slot, phase): (u32, u32)) -> bool {
        self.home.phases.get(slot as usize).is_some_and(|&complete| complete > phase)
    }

    fn knows(&self, block: u64, warp: usize, home: u64) -> u32 {
        let counts = if block == home {
            Some(&self.home.warps)
        } else {
            self.others.as_ref().and_then(|others| others.get(&block)).map(|known| &known.warps)
        };
        counts.and_then(|counts| counts.get(warp)).copied().unwrap_or(0)
    }

    /// What a thread of block `home` publishes to other blocks.
    pub(super) fn publish(&self, home: u64) -> Snapshot {
        let mut all = self.others.as_ref().map_or(BTreeMap::new(), |others| (**others).clone());
        all.insert(home, self.home.clone());
        Snapshot(Arc::new(all))
    }

    /// Learns what was published.
    pub(super) fn acquire(&mut self, snapshot: &Snapshot, home: u64) {
        if let Some(known) = snapshot.0.get(&home) {
            self.home.raise(known);
        }
        self.join_others(&snapshot.0);
    }
}

/// What a release makes known, for every block.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot(Arc<BTreeMap<u64, Known>>);

impl Snapshot {
    /// Adds what another snapshot makes known.
    pub(super) fn join(&mut self, other: &Snapshot) {
        let mine = Arc::make_mut(&mut self.0);
        other.0.iter().for_each(|(&block, known)| mine.entry(block).or_default().raise(known));
    }
}

/// The lane of an access by a whole warp. That of an access by several lanes is 32 plus the first of them.
pub(super) const MANY: u32 = 63;

/// An access: who made it at which count and line, in 64 bits; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp(u64);

impl Stamp {
    pub(super) fn new(count: u32, warp: usize, lane: u32, strong: bool, pc: usize) -> Stamp {
        let pc = (pc as u64).min(0xf_ffff);
        Stamp(
            u64::from(count) << 32
                | (warp as u64) << 27
                | u64::from(lane) << 21
                | u64::from(strong) << 20
                | pc,
        )
    }

    /// A write by a copy whose line, plus 1, is `line`: nobody's, but with a place.
    pub(super) fn of_copy(line: u32) -> Stamp {
        Stamp::new(0, 0, MANY, false, line.saturating_sub(1) as usize)
    }

    /// The same access at another line.
    pub(super) fn at(self, pc: usize) -> Stamp {
        Stamp(self.0 & !0xf_ffff | (pc as u64).min(0xf_ffff))
    }

    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    pub(super) fn count(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(super) fn warp(self) -> usize {
        (self.0 >> 27 & 31) as usize
    }

    fn lane(self) -> u32 {
        (self.0 >> 21 & 63) as u32
    }

    /// The lane, or the first of several; `None` for the whole warp.
    pub(super) fn first_lane(self) -> Option<u32> {
        (self.lane() != MANY).then(|| self.lane() & 31)
    }

    fn is_by_many(self) -> bool {
        self.lane() >= 32
    }

    /// Whether it was atomic or ordered: such accesses do not race with each other.
    pub(super) fn strong(self) -> bool {
        self.0 >> 20 & 1 != 0
    }

    pub(super) fn pc(self) -> usize {
        (self.0 & 0xf_ffff) as usize
    }

    /// The same access as one of several lanes, if another lane made it before at the same count.
    pub(super) fn merged(self, before: Stamp) -> Stamp {
        let same = before.count() == self.count() && before.warp() == self.warp() && !before.is_none();
        if same && before.lane() != self.lane() {
            return Stamp(self.0 & !(63 << 21) | u64::from(before.lane() | 32) << 21);
        }
        self
    }
}

/// Who makes an access now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Who<'a> {
    pub(super) clock: &'a Clock,
    pub(super) block: u64,
    pub(super) stamp: Stamp,
}

impl Who<'_> {
    /// Whether an earlier access of some block is ordered before this one, or cannot race with it.
    pub(super) fn is_after(&self, block: u64, stamp: Stamp) -> bool {
        if stamp.is_none() || (stamp.strong() && self.stamp.strong()) {
            return true;
        }
        if block == self.block && stamp.warp() == self.stamp.warp() {
            let same_lane = stamp.lane() == self.stamp.lane() && !stamp.is_by_many();
            return same_lane || stamp.count() < self.stamp.count();
        }
        self.clock.knows(block, stamp.warp(), self.block) >= stamp.count()
    }
}
