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

/// A vector clock: the own block's warps, and those of other blocks of which something is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    warps: Counts,
    others: Option<Arc<BTreeMap<u64, Counts>>>,
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
        Clock { warps: counts, others: None }
    }

    /// Whether nothing is known at all.
    pub(super) fn is_empty(&self) -> bool {
        self.warps.is_empty()
    }

    /// The warp's own count.
    pub(super) fn own(&self, warp: usize) -> u32 {
        self.warps[warp]
    }

    /// Learns all that another clock of the same block knows.
    pub(super) fn join(&mut self, other: &Clock) {
        raise(&mut self.warps, &other.warps);
        if let Some(theirs) = &other.others {
            self.join_others(theirs);
        }
    }

    fn join_others(&mut self, theirs: &Arc<BTreeMap<u64, Counts>>) {
        match &mut self.others {
            Some(mine) if Arc::ptr_eq(mine, theirs) => {}
            Some(mine) => {
                let mine = Arc::make_mut(mine);
                theirs.iter().for_each(|(&block, counts)| raise(mine.entry(block).or_default(), counts));
            }
            None => self.others = Some(theirs.clone()),
        }
    }

    /// The warp has synchronised: later accesses are told apart from earlier ones.
    pub(super) fn tick(&mut self, warp: usize) {
        self.warps[warp] += 1;
    }

    fn knows(&self, block: u64, warp: usize, home: u64) -> u32 {
        let counts = if block == home {
            Some(&self.warps)
        } else {
            self.others.as_ref().and_then(|others| others.get(&block))
        };
        counts.and_then(|counts| counts.get(warp)).copied().unwrap_or(0)
    }

    /// What a thread of block `home` publishes to other blocks.
    pub(super) fn publish(&self, home: u64) -> Snapshot {
        let mut all = self.others.as_ref().map_or(BTreeMap::new(), |others| (**others).clone());
        all.insert(home, self.warps.clone());
        Snapshot(Arc::new(all))
    }

    /// Learns what was published.
    pub(super) fn acquire(&mut self, snapshot: &Snapshot, home: u64) {
        if let Some(counts) = snapshot.0.get(&home) {
            raise(&mut self.warps, counts);
        }
        self.join_others(&snapshot.0);
    }
}

/// What a release makes known, for every block.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot(Arc<BTreeMap<u64, Counts>>);

impl Snapshot {
    /// Adds what another snapshot makes known.
    pub(super) fn join(&mut self, other: &Snapshot) {
        let mine = Arc::make_mut(&mut self.0);
        other.0.iter().for_each(|(&block, counts)| raise(mine.entry(block).or_default(), counts));
    }
}

/// The lane of an access by several lanes of a warp.
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

    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    pub(super) fn count(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(super) fn warp(self) -> usize {
        (self.0 >> 27 & 31) as usize
    }

    pub(super) fn lane(self) -> u32 {
        (self.0 >> 21 & 63) as u32
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
            return Stamp(self.0 & !(63 << 21) | u64::from(MANY) << 21);
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
            let same_lane = stamp.lane() == self.stamp.lane() && stamp.lane() != MANY;
            return same_lane || stamp.count() < self.stamp.count();
        }
        self.clock.knows(block, stamp.warp(), self.block) >= stamp.count()
    }
}
