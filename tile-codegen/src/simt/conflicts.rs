//! Reports of accesses that nothing orders.

use super::clock::{MANY, Stamp};
use super::report::ReportKind;
use super::shared::Conflict;
use super::step::Step;
use crate::ptx::Space;

impl Step<'_, '_> {
    /// Reports a conflict in shared memory.
    pub(super) fn report_conflict(&mut self, lane: usize, conflict: Conflict) {
        match conflict {
            Conflict::InFlight { pc } => {
                let program = self.engine.program;
                self.report(ReportKind::MissingWait, Some(lane), || {
                    let line = program.line_name(pc);
                    format!("the copy of {line} may still be in flight to these bytes of shared memory")
                });
            }
            Conflict::Reading { pc } => {
                let program = self.engine.program;
                self.report(ReportKind::MissingWait, Some(lane), || {
                    let line = program.line_name(pc);
                    format!(
                        "the asynchronous operation of {line} may still read these bytes of shared memory"
                    )
                });
            }
            Conflict::Proxy { other } => {
                let program = self.engine.program;
                self.report(ReportKind::MissingFence, Some(lane), || {
                    let line = program.line_name(other.pc());
                    format!("no fence.proxy.async comes between the write at {line} and this asynchronous operation")
                });
            }
            Conflict::Race { other, write } => self.report_race(lane, Space::Shared, None, other, write),
        }
    }

    /// Reports a race with another access.
    pub(super) fn report_race(
        &mut self,
        lane: usize,
        space: Space,
        block: Option<u64>,
        other: Stamp,
        write: bool,
    ) {
        let program = self.engine.program;
        self.report(ReportKind::Race, Some(lane), || {
            let line = program.line_name(other.pc());
            let what = if write { "write" } else { "read" };
            let who = if other.lane() == MANY {
                format!("warp {}", other.warp())
            } else {
                format!("warp {}, lane {}", other.warp(), other.lane())
            };
            let block = block.map_or(String::new(), |block| format!("block {block}, "));
            format!(
                "nothing orders this access to {} memory and the {what} by {block}{who} at {line}",
                space.name()
            )
        });
    }
}
