//! The house rules, each a function from a file to its faults.

mod code;
mod docs;
mod ops;
mod rust;
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{command, output, root};

/// A breach of a rule: path, line (from 1; 0 for the file as a whole) and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    path: PathBuf,
    line: usize,
    message: String,
}

impl Fault {
    fn new(path: &Path, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

/// The files of the repository, as paths from its root: all that git tracks, and new ones that it does not ignore.
pub(crate) fn files() -> Result<BTreeSet<PathBuf>> {
    let list = output(command("git").args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]))?;
    let root = root();
    Ok(list
        .split('\0')
        .filter(|p| !p.is_empty())
        .map(PathBuf::from)
        .filter(|p| root.join(p).is_file())
        .collect())
}

/// Checks every rule and prints every fault.
pub(crate) fn run() -> Result<()> {
    let files = files()?;
    let mut faults = Vec::new();
    for path in &files {
        let bytes = fs::read(root().join(path)).with_context(|| path.display().to_string())?;
        // Binary files, such as tensors, have no rules.
        let Ok(text) = String::from_utf8(bytes) else { continue };
        faults.extend(words::check(path, &text));
        match path.extension().and_then(|e| e.to_str()) {
            Some("rs") => faults.extend(rust::check(path, &text)),
            Some("md") => faults.extend(docs::paths(path, &text, &files)),
            _ => {}
        }
    }
    faults.extend(docs::codes()?);
    faults.extend(ops::cases(&files)?);
    for Fault { path, line, message } in &faults {
        println!("{}:{line}: {message}", path.display());
    }
    if !faults.is_empty() {
        bail!("{} house rules broken", faults.len());
    }
    println!("tidy: {} files keep the house rules", files.len());
    Ok(())
}
