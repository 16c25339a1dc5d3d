//! Runs a fault on every schedule and compares what is reported with its row.

use tile_codegen::ptx::print_module;
use tile_codegen::simt::{Outcome, Report, ReportKind};

use super::{At, Fault, Shown, Subject};

/// Schedules that each kernel runs on.
const SEEDS: std::ops::Range<u64> = 0..8;

/// The output of a kernel without a fault, the same on every schedule.
///
/// # Errors
/// What is reported, or which schedule gives another output.
pub fn check_clean(subject: &Subject) -> Result<Vec<u8>, String> {
    let mut first: Option<Vec<u8>> = None;
    for seed in SEEDS {
        let (outcome, output) = subject.run(seed)?;
        if !outcome.is_clean() {
            return Err(format!("seed {seed}: {}", show(&outcome)));
        }
        if first.get_or_insert_with(|| output.clone()) != &output {
            return Err(format!("seed {seed} gives another output"));
        }
    }
    Ok(first.expect("there is a schedule"))
}

/// Checks one row. `right` is the output without the fault.
///
/// # Errors
/// What differs from the row, in words.
pub fn check(fault: &Fault, right: &[u8]) -> Result<(), String> {
    let mut subject = (fault.subject)();
    let before = subject.clone();
    (fault.change)(&mut subject);
    if subject.kernel == before.kernel
        && subject.tensors.iter().zip(&before.tensors).all(|(a, b)| a.map == b.map)
    {
        return Err("the fault changes nothing".to_string());
    }
    let kinds = match fault.shown {
        Shown::Report(kind) => vec![kind],
        Shown::Either(kind, other) => vec![kind, other],
        Shown::Value => {
            let output = check_clean(&subject)?;
            return if output == right { Err("the output is right".to_string()) } else { Ok(()) };
        }
    };
    let text = print_module(&subject.module()).text;
    for seed in SEEDS {
        let (outcome, _) = subject.run(seed)?;
        let wrong = |what: &str| format!("seed {seed}: {what}: {}", show(&outcome));
        // The plain schedule reports the first kind, at the very line.
        let wanted = if seed == 0 { &kinds[..1] } else { &kinds[..] };
        let found: Vec<&Report> =
            outcome.reports.iter().filter(|report| wanted.contains(&report.kind)).collect();
        if found.is_empty() {
            return Err(wrong(&format!("no {}", names(wanted))));
        }
        if seed == 0 {
            plain(fault, &subject, &text, found[0]).map_err(|what| wrong(&what))?;
        } else if !found.iter().any(|report| kinds.len() > 1 || near(fault, report)) {
            return Err(wrong("only at other lines"));
        }
    }
    Ok(())
}

/// Compares the first report of the plain schedule.
fn plain(fault: &Fault, subject: &Subject, text: &str, report: &Report) -> Result<(), String> {
    let at = fault.at.expect("reports have a place");
    is_at(text, at, (report.line, &report.text))?;
    match (&report.other, fault.other) {
        (Some(other), Some(at)) => {
            is_at(text, at, (other.line, &other.text)).map_err(|what| format!("the other access: {what}"))?;
            // An instruction of a whole warp has no thread.
            if report.kind == ReportKind::Race
                && (other.warp.is_none() || !report.message.contains(&other.who()))
            {
                return Err("nobody is named".to_string());
            }
        }
        (None, None) => {}
        (found, _) => return Err(format!("the other access is {found:?}")),
    }
    if !report.message.contains(fault.says) {
        return Err(format!("it does not say `{}`", fault.says));
    }
    let Some(source) = fault.source else { return Ok(()) };
    let others = report.other.as_ref().map_or(report.loc, |other| other.loc);
    for loc in [report.loc, others] {
        let line = subject.source_line(loc).unwrap_or("nothing");
        if !line.contains(source) {
            return Err(format!("the line of the tile kernel is `{line}`, expected `{source}`"));
        }
    }
    Ok(())
}

/// Whether a report names the right line of the printed text.
fn is_at(text: &str, At(part, nth): At, (line, found): (u32, &str)) -> Result<(), String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| line.contains(part));
    let Some((number, right)) = lines.nth(nth) else { return Err(format!("no line {nth} with `{part}`")) };
    let right = right.trim().trim_end_matches(';');
    if (number as u32 + 1, right) == (line, found) {
        return Ok(());
    }
    Err(format!("line {line}, `{found}`; expected line {}, `{right}`", number + 1))
}

/// Whether it is one of the two accesses, or the same instruction at another place: which comes first depends on the schedule.
fn near(fault: &Fault, report: &Report) -> bool {
    [fault.at, fault.or, fault.other].iter().flatten().any(|at| report.text.contains(at.0))
}

fn names(kinds: &[ReportKind]) -> String {
    kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(" or ")
}

fn show(outcome: &Outcome) -> String {
    outcome.reports.iter().take(3).map(|report| format!("\n    {report}")).collect()
}
