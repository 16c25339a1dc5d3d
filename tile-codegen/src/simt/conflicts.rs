//! Reports of accesses that nothing orders.

use super::clock::Stamp;
use super::program::Program;
use super::report::{OtherAccess, ReportKind};
use super::shared::Conflict;
use super::step::Step;
use crate::ptx::Space;

impl Step<'_, '_> {
    /// Reports a conflict in shared memory.
    pub(super) fn report_conflict(&mut self, lane: usize, conflict: Conflict) {
        let block = self.block.index;
        match conflict {
            Conflict::InFlight { pc } => self.report_with(ReportKind::MissingWait, lane, |program| {
                let line = program.line_name(pc);
                let message = format!("the copy of {line} may still be in flight to these bytes of shared memory");
                (message, OtherAccess::in_flight(program, block, pc, true))
            }),
            Conflict::Reading { pc } => self.report_with(ReportKind::MissingWait, lane, |program| {
                let line = program.line_name(pc);
                let message =
                    format!("the asynchronous operation of {line} may still read these bytes of shared memory");
                (message, OtherAccess::in_flight(program, block, pc, false))
            }),
            Conflict::Proxy { other } => self.report_with(ReportKind::MissingFence, lane, |program| {
                let other = OtherAccess::of(program, block, other, true);
                let (who, line) = (other.who(), at_line(&other));
                let message = format!(
                    "no fence.proxy.async comes between the write by {who} at {line} and this asynchronous operation"
                );
                (message, other)
            }),
            Conflict::Race { other, write } => self.report_race(lane, Space::Shared, None, other, write),
        }
    }

    /// Reports a race with another access, of this block if `block` is none.
    pub(super) fn report_race(
        &mut self,
        lane: usize,
        space: Space,
        block: Option<u64>,
        other: Stamp,
        write: bool,
    ) {
        let block = block.unwrap_or(self.block.index);
        self.report_with(ReportKind::Race, lane, |program: &Program| {
            let other = OtherAccess::of(program, block, other, write);
            let (who, line) = (other.who(), at_line(&other));
            let what = if write { "write" } else { "read" };
            let space = space.name();
            let message =
                format!("nothing orders this access to {space} memory and the {what} by {who} at {line}");
            (message, other)
        });
    }
}

/// A line as messages name it.
fn at_line(other: &OtherAccess) -> String {
    format!("line {}, `{}`", other.line, other.text)
}
