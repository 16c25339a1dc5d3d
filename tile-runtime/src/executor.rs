//! The PTX executor as a device: its options, its counts, and what it says about a faulty kernel.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use tile_codegen::diag::{Mark, render_fault};
use tile_codegen::dsl::Staged;
use tile_codegen::ir::{Loc, LocId};
use tile_codegen::target::Target;

use crate::specialize::source_of;

pub use tile_codegen::simt::{Class, Counts, DEFAULT_BUDGET, OtherAccess, Report, ReportKind, Traffic};

/// How a PTX executor runs every launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorOptions {
    /// The schedules: a launch runs once for each seed, on copies of its tensors, and all must give the same bytes. Seed
    /// 0 takes turns, with asynchronous copies that land as late as they may; every other seed chooses at random which
    /// warp goes on and when copies land, always in the same way. Without any, seed 0 is used. `[0]` by default.
    pub seeds: Vec<u64>,
    /// Instructions of warps that one run of a part of a launch (at least a 32nd of its blocks) may execute before it is
    /// ended with a report of where every warp stands. [`DEFAULT_BUDGET`] by default, about a minute.
    pub budget: u64,
}

impl Default for ExecutorOptions {
    fn default() -> Self {
        Self { seeds: vec![0], budget: DEFAULT_BUDGET }
    }
}

/// A PTX executor.
#[derive(Debug)]
pub(crate) struct Executor {
    pub(crate) target: Target,
    pub(crate) options: ExecutorOptions,
    counts: Mutex<Counts>,
}

impl Executor {
    pub(crate) fn new(target: Target, mut options: ExecutorOptions) -> Self {
        if options.seeds.is_empty() {
            options.seeds.push(0);
        }
        Self { target, options, counts: Mutex::default() }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn add(&self, counts: &Counts) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).add(counts);
    }
}

/// What a PTX executor found wrong with a launch.
#[derive(Clone)]
pub struct ExecutorError {
    /// Name of the kernel.
    pub kernel: String,
    /// The device, such as `ptx:sm_80`.
    pub device: String,
    /// The seed of the schedule under which it was found.
    pub seed: u64,
    /// Every fault as data; none if only the results under two seeds differ.
    pub reports: Vec<Report>,
    /// The faults in words, each with the source lines and the PTX that it stands for.
    pub text: String,
}

impl ExecutorError {
    /// The faults of a kernel, with places in the source that it was staged from.
    pub(crate) fn of(kernel: &str, device: String, seed: u64, staged: &Staged, reports: Vec<Report>) -> Self {
        let texts: Vec<String> = reports.iter().map(|report| rendered(report, staged)).collect();
        Self { kernel: kernel.to_owned(), device, seed, text: texts.join("\n\n"), reports }
    }
}

/// A report as a diagnostic: the kind and the first line of its message, the source of both accesses where there are two,
/// then the PTX and the thread of each.
fn rendered(report: &Report, staged: &Staged) -> String {
    let (head, rest) = report.message.split_once('\n').unwrap_or((&report.message, ""));
    let times = if report.times > 1 { format!("; {} times", report.times) } else { String::new() };
    let mut notes = vec![format!("PTX line {}: {}\n{}{times}", report.line, report.text, report.who())];
    let at = |loc: u32| staged.kernel.locs.get(LocId(loc));
    let mut places: Vec<(&Loc, Option<&str>)> = at(report.loc).map(|loc| (loc, None)).into_iter().collect();
    if let Some(other) = &report.other {
        let what = if other.write { "the other access, a write" } else { "the other access, a read" };
        if let Some(loc) = at(other.loc) {
            match places.first_mut() {
                Some(first) if first.0 == loc => first.1 = Some("both accesses"),
                _ => places.push((loc, Some(what))),
            }
        }
        notes.push(format!("{what}: PTX line {}: {}\n{}", other.line, other.text, other.who()));
    }
    if !rest.is_empty() {
        notes.push(rest.to_owned());
    }
    let mark = |&(loc, label)| (loc, label, source_of(Some(loc), &staged.sources));
    let marks: Vec<Mark<'_>> = places.iter().map(mark).collect();
    render_fault(&format!("{}: {head}", report.kind.name()), &marks, &notes)
}

impl fmt::Display for ExecutorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, device, seed, text, .. } = self;
        write!(f, "kernel `{kernel}` is faulty, as {device} found with seed {seed}:\n{text}")
    }
}

/// The text of [`fmt::Display`], so that a test that returns the error shows its lines.
impl fmt::Debug for ExecutorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
