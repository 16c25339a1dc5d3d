//! Rules for Rust files: a first line that says the idea, length, `unsafe`, nothing left undone.

use std::path::Path;

use super::Fault;
use super::code::{code_only, has_word};

/// Longest file, in lines.
const MAX_LINES: usize = 600;
/// Length from which a file is named, though it passes.
const LONG_LINES: usize = 500;
/// The one crate with `unsafe`.
const UNSAFE_CRATE: &str = "tile-runtime";
/// How far above an `unsafe` its reason may stand: a statement's lines and a comment's.
const REASON_LINES: usize = 10;

/// Faults of one file.
pub(super) fn check(path: &Path, text: &str) -> Vec<Fault> {
    // UI tests show what users write, mistakes included.
    if path.components().any(|c| c.as_os_str() == "ui") {
        return Vec::new();
    }
    let mut faults = Vec::new();
    if !text.starts_with("//!") {
        faults.push(Fault::new(path, 1, "the first line must be `//!` and say the one idea of the file"));
    }
    let lines = text.lines().count();
    if lines > MAX_LINES {
        faults.push(Fault::new(path, 0, format!("{lines} lines; split it, {MAX_LINES} is the most")));
    } else if lines > LONG_LINES {
        println!("{}:0: note: {lines} lines; {LONG_LINES} is the aim", path.display());
    }
    let code = code_only(text);
    faults.extend(unsafe_blocks(path, text, &code));
    faults.extend(undone(path, &code));
    faults
}

/// `unsafe` elsewhere than in its crate, or without a reason.
fn unsafe_blocks(path: &Path, text: &str, code: &str) -> Vec<Fault> {
    let lines: Vec<&str> = text.lines().collect();
    let mut faults = Vec::new();
    for (index, line) in code.lines().enumerate().filter(|(_, line)| has_word(line, "unsafe")) {
        if !path.starts_with(UNSAFE_CRATE) {
            faults.push(Fault::new(path, index + 1, format!("`unsafe` is allowed in {UNSAFE_CRATE} alone")));
        } else if !declares_function(line) && !has_reason(&lines[..index]) {
            faults.push(Fault::new(path, index + 1, "`unsafe` needs a comment `// SAFETY:` right above"));
        }
    }
    faults
}

/// An unsafe function documents what its caller must keep; its body has blocks of its own.
fn declares_function(line: &str) -> bool {
    let after = line.split_once("unsafe").map_or("", |(_, rest)| rest.trim_start());
    after.starts_with("fn") || after.starts_with("extern")
}

/// Whether a reason stands above, with no blank line between.
fn has_reason(above: &[&str]) -> bool {
    let near = above.iter().rev().take(REASON_LINES).take_while(|line| !line.trim().is_empty());
    near.into_iter().any(|line| line.contains("// SAFETY:"))
}

/// Code that is not there yet, and tests that do not test.
fn undone(path: &Path, code: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (index, line) in code.lines().enumerate() {
        for name in ["todo", "unimplemented", "dbg"] {
            if has_word(line, name) && line.contains(&format!("{name}!")) {
                faults.push(Fault::new(path, index + 1, format!("`{name}!` must not be committed")));
            }
        }
        for (attribute, instead) in [
            ("#[ignore", "print \"skipped: REASON\" and return"),
            ("#[should_panic", "return an error and compare its text"),
        ] {
            if line.contains(attribute) {
                faults.push(Fault::new(path, index + 1, format!("`{attribute}]`: {instead}")));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(Path::new(path), text).iter().map(|fault| fault.line).collect()
    }

    #[test]
    fn the_first_line_says_the_idea() {
        assert_eq!(lines("mamba2/src/a.rs", "use std::fs;\n"), [1]);
        assert_eq!(lines("mamba2/src/a.rs", "//! An idea.\n"), []);
        assert_eq!(lines("tests/ui/a.rs", "fn main() {}\n"), []);
    }

    #[test]
    fn long_files_are_refused() {
        let text = |lines: usize| "//!\n".repeat(lines);
        assert_eq!(lines("mamba2/src/a.rs", &text(MAX_LINES)), []);
        assert_eq!(lines("mamba2/src/a.rs", &text(MAX_LINES + 1)), [0]);
    }

    #[test]
    fn unsafe_has_one_crate_and_a_reason() {
        let bare = "//! a\nfn f() {\n    unsafe { g() }\n}\n";
        let reasoned = "//! a\nfn f() {\n    // SAFETY: g asks for nothing.\n    unsafe { g() }\n}\n";
        let far = "//! a\n// SAFETY: of another.\n\nunsafe impl Send for A {}\n";
        assert_eq!(lines("mamba2/src/a.rs", reasoned), [3 + 1]);
        assert_eq!(lines("tile-runtime/src/a.rs", reasoned), []);
        assert_eq!(lines("tile-runtime/src/a.rs", bare), [3]);
        assert_eq!(lines("tile-runtime/src/a.rs", far), [4]);
        assert_eq!(lines("tile-runtime/src/a.rs", "//! a\npub unsafe fn f();\n"), []);
    }

    #[test]
    fn nothing_is_left_undone() {
        let text = "//! a\nfn f() { todo!() }\n#[test]\n#[ignore]\nfn g() {}\n// todo!() in words\n";
        assert_eq!(lines("mamba2/src/a.rs", text), [2, 4]);
    }
}
