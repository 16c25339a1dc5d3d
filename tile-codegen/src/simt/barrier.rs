//! Named barriers: `bar.sync` and `bar.arrive` with their counts of threads.

use super::clock::Clock;
use super::report::ReportKind;
use super::state::Wait;
use super::step::Step;
use crate::ptx::{Operand, Ty};

/// One named barrier of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Barrier {
    /// The threads that it waits for, once somebody has arrived.
    pub(super) expected: u32,
    pub(super) arrived: u32,
    /// The warps that have arrived, and those of them that wait.
    members: Vec<usize>,
    pub(super) waiting: Vec<usize>,
    /// What those that arrived know together.
    joined: Clock,
}

impl Step<'_, '_> {
    /// `bar.sync` where `waits`, else `bar.arrive`: the warp arrives with all its threads.
    pub(super) fn barrier(&mut self, id: Operand, threads: Option<u32>, waits: bool) {
        self.need_whole_warp();
        let lanes = self.operand(id, Ty::U32);
        let id = lanes[self.first_lane()] as usize;
        if id >= 16 || self.lanes().any(|lane| lanes[lane] != id as u64) {
            let message = || format!("barrier {id}; expected the same number below 16 in all lanes");
            self.report(ReportKind::BarrierMisuse, None, message);
            return;
        }
        let expected = threads.unwrap_or(32 * self.block.wake.len() as u32);
        let warp = self.warp.index;
        let barrier = &mut self.block.barriers[id];
        let twice = barrier.members.contains(&warp);
        let others = (barrier.arrived > 0 && barrier.expected != expected).then_some(barrier.expected);
        if let Some(others) = others {
            let message = || format!("barrier {id} with {expected} threads, but others expect {others}");
            self.report(ReportKind::BarrierMisuse, None, message);
        }
        if twice {
            let message = || format!("the warp arrives at barrier {id} again before the barrier is complete");
            self.report(ReportKind::BarrierMisuse, None, message);
        }
        self.arrive(id, expected, waits);
    }

    fn arrive(&mut self, id: usize, expected: u32, waits: bool) {
        let warp = self.warp.index;
        let barrier = &mut self.block.barriers[id];
        barrier.expected = expected;
        barrier.arrived += 32;
        barrier.members.push(warp);
        if barrier.joined.is_empty() {
            barrier.joined = self.warp.clock.clone();
        } else {
            barrier.joined.join(&self.warp.clock);
        }
        self.warp.clock.tick(warp);
        if waits {
            barrier.waiting.push(warp);
            self.warp.wait = Wait::Barrier { id, pc: self.pc };
        }
        if barrier.arrived >= barrier.expected {
            let done = std::mem::take(barrier);
            for waiting in done.waiting {
                self.block.wake[waiting] = Some(done.joined.clone());
            }
        }
    }
}
