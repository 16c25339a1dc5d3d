//! Faults put into kernels that have none, one at a time, with what the PTX executor must say of each.

mod check;
mod compiled;
mod edit;
mod hopper;
mod hopper_table;
mod plain;
mod plain_table;
mod subject;
mod warpgroups;

use tile_codegen::simt::ReportKind;

pub use check::{check, check_clean};
pub use subject::Subject;

/// How a fault is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// By a report of this kind, on every schedule.
    Report(ReportKind),
    /// By one of these reports, depending on the schedule; the first one on the plain schedule.
    Either(ReportKind, ReportKind),
    /// No rule is broken, but the output is another one.
    Value,
}

/// A line of the PTX: the nth one, from 0, that contains a text.
#[derive(Clone, Copy, Debug)]
pub struct At(pub &'static str, pub usize);

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// What is wrong.
    pub name: &'static str,
    /// The kernel without the fault.
    pub subject: fn() -> Subject,
    /// Puts the fault in.
    pub change: fn(&mut Subject),
    /// How it is seen.
    pub shown: Shown,
    /// Where it is reported on the plain schedule.
    pub at: Option<At>,
    /// Where it is reported on other schedules, if not there.
    pub or: Option<At>,
    /// The other access that the report names, for races and missing waits.
    pub other: Option<At>,
    /// A part of the message.
    pub says: &'static str,
    /// A part of the line of the tile kernel that the report names, for compiled kernels.
    pub source: Option<&'static str>,
}

impl Fault {
    /// A fault that the executor reports at a line.
    const fn new(
        name: &'static str,
        subject: fn() -> Subject,
        change: fn(&mut Subject),
        kind: ReportKind,
        at: At,
        says: &'static str,
    ) -> Fault {
        Fault {
            name,
            subject,
            change,
            shown: Shown::Report(kind),
            at: Some(at),
            or: None,
            other: None,
            says,
            source: None,
        }
    }

    /// A fault that only a comparison of results shows.
    const fn value(name: &'static str, subject: fn() -> Subject, change: fn(&mut Subject)) -> Fault {
        Fault {
            name,
            subject,
            change,
            shown: Shown::Value,
            at: None,
            or: None,
            other: None,
            says: "",
            source: None,
        }
    }

    /// Names the line of the tile kernel.
    const fn from(self, source: &'static str) -> Fault {
        Fault { source: Some(source), ..self }
    }

    /// Names another place.
    const fn or(self, at: At) -> Fault {
        Fault { or: Some(at), ..self }
    }

    /// Names the other access.
    const fn and(self, other: At) -> Fault {
        Fault { other: Some(other), ..self }
    }
}

/// Every fault: in kernels compiled from the tile language, in hand-written PTX, and in PTX for Hopper.
pub fn table() -> Vec<(&'static str, Vec<Fault>)> {
    vec![
        ("compiled from tile kernels, `sm_80`", compiled::table()),
        ("compiled from tile kernels, `sm_90a`", warpgroups::table()),
        ("written as PTX, `sm_80`", plain_table::table()),
        ("written as PTX, `sm_90a`", hopper_table::table()),
    ]
}

/// Kernels written as PTX for Hopper without a fault, with the outputs that they must have.
pub fn right_outputs() -> Vec<(Subject, Vec<u8>)> {
    vec![
        (hopper::tile(), hopper::products(64, 0.0)),
        (hopper::ring(), hopper::products(320, 0.0)),
        (hopper::registers(), hopper::products(16, 100.0)),
        (hopper::line(), (0..64u32).flat_map(u32::to_le_bytes).collect()),
    ]
}

/// The table as documentation.
pub fn markdown() -> String {
    let mut text = String::from("| fault | kernel | shown by | where |\n|---|---|---|---|\n");
    for (section, faults) in table() {
        text += &format!("| *{section}* | | | |\n");
        for fault in faults {
            let shown = match fault.shown {
                Shown::Report(kind) => kind.name().to_string(),
                Shown::Either(kind, other) => format!("{}, or {}", kind.name(), other.name()),
                Shown::Value => "value".to_string(),
            };
            let mut place = fault.at.map_or(String::new(), |at| format!("`{}`", at.0));
            if let Some(or) = fault.or {
                place += &format!(" or `{}`", or.0);
            }
            if let Some(other) = fault.other {
                place += &format!(" against `{}`", other.0);
            }
            if let Some(source) = fault.source {
                place += &format!(", of `{source}`");
            }
            text += &format!("| {} | {} | {shown} | {place} |\n", fault.name, (fault.subject)().kernel.name);
        }
    }
    text
}
