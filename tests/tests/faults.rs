//! The PTX executor finds every fault of the table, and none in the kernels without them.

use std::collections::BTreeMap;

use tile_codegen::simt::ReportKind;
use tile_tests::faults::{Fault, Shown, check, check_clean, markdown, right_outputs, table};

const PAGE: &str = include_str!("../../docs/testing-kernels.md");

fn faults() -> Vec<Fault> {
    table().into_iter().flat_map(|(_, faults)| faults).collect()
}

#[test]
fn every_fault_is_found_where_it_is() {
    let mut right: BTreeMap<String, Result<Vec<u8>, String>> = BTreeMap::new();
    let mut failed = Vec::new();
    for fault in faults() {
        let subject = (fault.subject)();
        let clean = right
            .entry(format!("{:?} {}", subject.target, subject.kernel.name))
            .or_insert_with(|| check_clean(&subject));
        let result = match clean {
            Ok(right) => check(&fault, right),
            Err(why) => Err(format!("the kernel without the fault: {why}")),
        };
        if let Err(why) = result {
            failed.push(format!("{}, {}: {why}", subject.kernel.name, fault.name));
        }
    }
    assert!(failed.is_empty(), "{} faults:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn kernels_without_a_fault_are_right() {
    for (subject, right) in right_outputs() {
        let found = check_clean(&subject).unwrap_or_else(|why| panic!("{}: {why}", subject.kernel.name));
        assert!(found == right, "{} gives another output", subject.kernel.name);
    }
}

#[test]
fn the_table_is_large_enough() {
    let counts: Vec<usize> = table().iter().map(|(_, faults)| faults.len()).collect();
    let [compiled, wide, plain, hopper] = counts[..] else { panic!("four sections") };
    assert!(compiled + plain + hopper >= 24 && hopper >= 12 && wide >= 6, "{counts:?}");
    assert!(3 * compiled >= compiled + plain, "a third of those for sm_80 are compiled: {counts:?}");
    // What only ends a run, or is not a fault of a kernel, has tests of its own.
    let elsewhere = [ReportKind::Budget, ReportKind::Trap];
    for kind in ReportKind::ALL.iter().filter(|kind| !elsewhere.contains(kind)) {
        let shows =
            |fault: &Fault| matches!(fault.shown, Shown::Report(k) | Shown::Either(k, _) if k == *kind);
        assert!(faults().iter().any(shows), "no fault shows {}", kind.name());
    }
}

/// The part of the page after a heading.
fn section(heading: &str) -> &'static str {
    let start = PAGE.find(heading).unwrap_or_else(|| panic!("the page has no `{heading}`"));
    let rest = &PAGE[start + heading.len()..];
    &rest[..rest.find("\n## ").unwrap_or(rest.len())]
}

#[test]
fn the_page_has_this_table() {
    let rows: Vec<&str> =
        section("\n## Faults that are found\n").lines().filter(|l| l.starts_with('|')).collect();
    let right = markdown();
    assert!(
        rows == right.lines().collect::<Vec<_>>(),
        "docs/testing-kernels.md has another table; this is it:\n{right}"
    );
}

#[test]
fn the_page_explains_every_report() {
    let rows = section("\n## What is checked\n");
    for kind in ReportKind::ALL {
        let row = rows.lines().find(|line| line.starts_with(&format!("| {} |", kind.name())));
        let row = row.unwrap_or_else(|| panic!("no row for {}", kind.name()));
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        assert_eq!(cells.len(), 4, "the report, what it means, its cause, the remedy: {row}");
        assert!(cells.iter().all(|cell| cell.len() > 3), "{row}");
    }
}

/// The files of the page's crate are files here, which are compiled and run.
#[test]
fn the_page_has_the_files_that_are_tested() {
    let tests = include_str!("page.rs").replace("tile_tests::page", "my_kernels");
    for file in [include_str!("../src/page.rs"), &tests] {
        assert!(PAGE.contains(file), "docs/testing-kernels.md lacks this file:\n{file}");
    }
}
