//! Rendered texts, written by hand after rustc's form.

use super::render;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::Loc;

fn one(loc: Option<Loc>, help: Option<&str>) -> Diagnostics {
    let mut list = Diagnostics::default();
    let mut diagnostic =
        Diagnostic::new(Code::Broadcast, "the shapes (64,) and (32,) do not broadcast to one");
    diagnostic.loc = loc;
    diagnostic.help = help.map(str::to_string);
    list.push(diagnostic);
    list
}

fn loc(line: u32, column: u32, end_line: u32, end_column: u32) -> Option<Loc> {
    Some(Loc { file: "src/k.rs".into(), line, column, end_line, end_column })
}

const SOURCE: &str = "fn k() {\n    let c = añ + b;\n    store(c);\n}";

#[test]
fn marks_the_range_under_the_line() {
    let found = render(&one(loc(11, 13, 11, 19), Some("reshape one side")), |file| {
        assert_eq!(file, "src/k.rs");
        Some((10, SOURCE))
    });
    let expected = "\
error[E0103]: the shapes (64,) and (32,) do not broadcast to one
  --> src/k.rs:11:13
   |
11 |     let c = añ + b;
   |             ^^^^^^ different shapes
   |
   = help: reshape one side";
    assert_eq!(found, expected);
}

#[test]
fn shows_the_position_without_text() {
    for source in [None, Some((40, SOURCE)), Some((1, "one line"))] {
        let found = render(&one(loc(11, 13, 11, 19), None), |_| source);
        let expected = "error[E0103]: the shapes (64,) and (32,) do not broadcast to one\n--> src/k.rs:11:13";
        assert_eq!(found, expected);
    }
}

#[test]
fn shows_faults_without_a_place_and_separates_them() {
    let mut list = one(None, Some("help"));
    list.push(Diagnostic::new(Code::Target, "no such target"));
    let expected = "\
error[E0103]: the shapes (64,) and (32,) do not broadcast to one
 |
 = help: help

error[E0302]: no such target";
    assert_eq!(render(&list, |_| None), expected);
}

#[test]
fn places_outside_the_text_are_cut_to_it() {
    let ends = [
        (11, 99, 11, 120),
        (11, 19, 13, 2),
        (11, 13, 11, 13),
        (13, 1, 99, 1),
        (11, 5, 11, 2),
        (10, 0, 10, 0),
    ];
    for (line, column, end_line, end_column) in ends {
        let found = render(&one(loc(line, column, end_line, end_column), None), |_| Some((10, SOURCE)));
        assert!(found.contains("src/k.rs:"), "{found}");
        assert!(found.contains('^'), "{found}");
    }
}

#[test]
fn every_code_has_an_entry_in_the_docs() {
    let docs = include_str!("../../../../docs/errors.md");
    for &(code, explanation) in Code::ALL {
        let heading = format!("\n## {code}: {}\n", explanation.trim().trim_end_matches('.'));
        let entry = docs
            .split(&heading)
            .nth(1)
            .unwrap_or_else(|| panic!("docs/errors.md lacks `{}`", heading.trim()));
        let entry = entry.split("\n## ").next().expect("a split has a first part");
        assert!(entry.contains("```"), "{code} lacks an example");
        assert!(entry.contains("**Remedy.**"), "{code} lacks a remedy");
    }
    assert_eq!(docs.matches("\n## E").count(), Code::ALL.len(), "docs/errors.md has an entry of no code");
}
