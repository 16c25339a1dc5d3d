//! What rustc says to authors of kernels: programs that must compile and run, and programs with one mistake each.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../ui/pass/lints.rs"]
mod lints;

/// As a module of this crate it is seen by clippy, which trybuild does not run.
#[test]
fn denied_lints() {
    lints::main();
}

/// Compiles every program of `ui`: those of `pass` must run, those of `fail` must be refused in the words beside them.
#[test]
fn programs() {
    let cases = trybuild::TestCases::new();
    cases.pass("ui/pass/*.rs");
    cases.compile_fail("ui/fail/*.rs");
}

/// The files of `ui/fail` that end in `extension`, by name.
fn refused(extension: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("ui/fail");
    let entries = fs::read_dir(&folder).expect("the folder is part of the source");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no {extension} files in {}", folder.display());
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("the file is text");
            (path, text)
        })
        .collect()
}

/// The lines of a message that are its own: not those that quote source.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let quoted =
        |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit()) && line.contains(" | ");
    text.lines().filter(move |line| !quoted(line))
}

#[test]
fn one_mistake_gives_one_error() {
    for (path, text) in refused("stderr") {
        let errors = text.lines().filter(|line| line.starts_with("error")).count();
        assert_eq!(errors, 1, "{}:\n{text}", path.display());
        let warnings = text.lines().filter(|line| line.starts_with("warning")).count();
        assert_eq!(warnings, 0, "{}:\n{text}", path.display());
    }
}

#[test]
fn messages_name_nothing_that_the_attributes_generate() {
    for (path, text) in refused("stderr") {
        for line in words(&text) {
            for word in ["__tile", "__TILE", "__private", "'__", "macro `tile_kernel`", "KernelParam>::"] {
                assert!(!line.contains(word), "{}: `{word}` in\n{text}", path.display());
            }
        }
    }
}

/// Types that only expansions name may stand in rustc's notes on traits, never in the message or its labels.
#[test]
fn headlines_name_what_the_user_wrote() {
    let note = |line: &str| line.trim_start().trim_start_matches('|').trim_start().starts_with("= ");
    for (path, text) in refused("stderr") {
        for line in words(&text).take_while(|line| !note(line)) {
            for word in ["Lit<", "RtIf", "HostIf", "private::", "For<", "Loop::", "Scope<"] {
                assert!(!line.contains(word), "{}: `{word}` in\n{text}", path.display());
            }
        }
    }
}

/// The place of the error is a line of the user's below the attribute, never the attribute's.
#[test]
fn errors_stand_below_the_attribute() {
    for (path, text) in refused("stderr") {
        let source = fs::read_to_string(path.with_extension("rs")).expect("each message has its program");
        let place = text.lines().find_map(|line| line.trim_start().strip_prefix("--> ui/fail/"));
        let place = place.unwrap_or_else(|| panic!("{}: no place in\n{text}", path.display()));
        let line: usize = place.split(':').nth(1).and_then(|n| n.parse().ok()).expect("file:line:column");
        let shown = source.lines().nth(line - 1).expect("a line of the program");
        let on_attribute = shown.starts_with("#[tile_") && !shown.contains('(');
        assert!(!on_attribute, "{}: on the attribute\n{text}", path.display());
    }
}

#[test]
fn programs_and_messages_come_in_pairs() {
    let names = |extension: &str| -> Vec<PathBuf> {
        refused(extension).into_iter().map(|(path, _)| path.with_extension("")).collect()
    };
    assert_eq!(names("rs"), names("stderr"));
}
