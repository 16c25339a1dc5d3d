//! Rules for documents: paths that they name exist, and every error code has its entry.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Fault;
use crate::process::root;

/// The page with one entry for each error code.
const ERRORS: &str = "docs/errors.md";
/// Where the codes are declared, each `Name = 101;`.
const CODES: &str = "tile-codegen/src/diag/code.rs";

/// Paths in backticks and links of one document that name no file or folder of the repository.
pub(super) fn paths(document: &Path, text: &str, files: &BTreeSet<PathBuf>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            for name in quoted(line).filter(|name| looks_like_path(name, files)).chain(links(line)) {
                if !exists(document, name, files) {
                    faults.push(Fault::new(document, index + 1, format!("`{name}` does not exist")));
                }
            }
        }
    }
    faults
}

/// What stands between backticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Targets of links to files.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
    targets.filter(|target| !target.is_empty() && !target.contains(':'))
}

/// Whether a quoted word names a file here: below a top-level folder, or a file with a well-known ending.
fn looks_like_path(name: &str, files: &BTreeSet<PathBuf>) -> bool {
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || "<>{}*$()=;:".contains(c)) {
        return false;
    }
    match name.split_once('/') {
        Some(("", _)) => false,
        Some((top, _)) => files.iter().any(|file| file.starts_with(top) && file.as_path() != Path::new(top)),
        None => [".md", ".toml"].iter().any(|ending| name.ends_with(ending)),
    }
}

/// Whether `name` is a file or folder, seen from the root or from the document's folder.
fn exists(document: &Path, name: &str, files: &BTreeSet<PathBuf>) -> bool {
    let here = document.parent().unwrap_or(Path::new(""));
    [PathBuf::from(name), normal(&here.join(name))]
        .iter()
        .any(|path| files.iter().any(|file| file.starts_with(path)))
}

/// `a/../b` as `b`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        if part.as_os_str() == ".." {
            out.pop();
        } else if part.as_os_str() != "." {
            out.push(part);
        }
    }
    out
}

/// Codes without an entry, with two, and entries without a code. Nothing before the page exists.
pub(super) fn codes() -> Result<Vec<Fault>> {
    if !root().join(ERRORS).is_file() {
        return Ok(Vec::new());
    }
    let page = fs::read_to_string(root().join(ERRORS))?;
    let source = fs::read_to_string(root().join(CODES)).context(CODES)?;
    Ok(compare_codes(&source, &page))
}

fn compare_codes(source: &str, page: &str) -> Vec<Fault> {
    let declared: Vec<String> = source.lines().filter_map(declared_code).collect();
    let entries: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## ")?.split_once(':'))
        .map(|(code, _)| code)
        .collect();
    let mut faults = Vec::new();
    if declared.is_empty() {
        faults.push(Fault::new(Path::new(CODES), 0, "no codes found: each is a line `Name = 101;`"));
    }
    for code in &declared {
        let count = entries.iter().filter(|entry| *entry == code).count();
        if count != 1 {
            let message = format!("{count} entries for {code}: there must be one, headed `## {code}: ...`");
            faults.push(Fault::new(Path::new(ERRORS), 0, message));
        }
    }
    for entry in entries.iter().filter(|entry| !declared.iter().any(|code| code == *entry)) {
        faults.push(Fault::new(Path::new(ERRORS), 0, format!("{entry} is no code of {CODES}")));
    }
    faults
}

/// `E0101` for a line `Name = 101;`.
fn declared_code(line: &str) -> Option<String> {
    let (name, number) = line.trim().strip_suffix(';')?.split_once(" = ")?;
    let number: u16 = number.parse().ok()?;
    (number >= 100 && name.chars().all(char::is_alphanumeric)).then(|| format!("E{number:04}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(text: &str) -> Vec<String> {
        let files: BTreeSet<PathBuf> =
            ["README.md", "docs/a.md", "docs/b.md", "tests/ui/c.rs"].map(PathBuf::from).into();
        paths(Path::new("docs/a.md"), text, &files).into_iter().map(|fault| fault.message).collect()
    }

    #[test]
    fn paths_that_exist_pass() {
        assert!(
            missing("`docs/b.md`, `tests/ui/`, [b](b.md), [r](../README.md#top), `README.md`").is_empty()
        );
        assert!(
            missing("`f16/bf16`, `tests/<op>.rs`, `a::b`, `target/x`, `//!`, <https://a.b/c>").is_empty()
        );
        assert!(missing("```\n`docs/none.md`\n```").is_empty());
    }

    #[test]
    fn paths_that_do_not_exist_are_faults() {
        let expected = ["docs/c.md", "tests/ui/d.rs", "NONE.md", "e.md"];
        let faults = missing("`docs/c.md` and `tests/ui/d.rs`\n`NONE.md`, [e](e.md)");
        assert_eq!(faults, expected.map(|name| format!("`{name}` does not exist")));
    }

    #[test]
    fn codes_and_entries_are_the_same() {
        let source = "    Axis = 105;\n    Rank = 108;\n    Parse = 201;\n";
        let page = "## E0105: An axis\n## E0108: A rank\n## E0108: A rank\n## E0999: Nothing\n";
        let faults: Vec<String> = compare_codes(source, page).into_iter().map(|f| f.message).collect();
        assert_eq!(faults.len(), 3);
        assert!(faults[0].starts_with("2 entries for E0108"));
        assert!(faults[1].starts_with("0 entries for E0201"));
        assert!(faults[2].starts_with("E0999 is no code"));
    }
}
