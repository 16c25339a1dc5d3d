//! Files that appear whole or not at all, whoever else writes to the folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Ending of the name of a file that is being written.
pub(crate) const TEMPORARY: &str = ".tmp";
/// Age from which a file that is being written was left behind by a process that ended.
pub(crate) const ABANDONED: Duration = Duration::from_secs(3600);

/// Writes `parts` to `folder/{stem}{ending}`, first under a name of its own, `{stem}-..`[`TEMPORARY`], which is then renamed: no one
/// ever sees a part of it, and the last of several writers wins. The folder is made where it is missing.
pub(crate) fn write(folder: &Path, stem: &str, ending: &str, parts: &[&[u8]]) -> io::Result<()> {
    make_folder(folder)?;
    let (temporary, file) = new_file(folder, stem)?;
    let fill = |mut file: File| {
        parts.iter().try_for_each(|part| file.write_all(part))?;
        // Else a crash could leave the new name with old or no content.
        file.sync_all()
    };
    let place = folder.join(format!("{stem}{ending}"));
    let outcome = fill(file).and_then(|()| fs::rename(&temporary, place));
    if outcome.is_err() {
        // The disk may be full: what was written is of no use.
        let _ = fs::remove_file(&temporary);
    }
    outcome
}

/// A new file to write, which no other thread, process or host has.
fn new_file(folder: &Path, stem: &str) -> io::Result<(PathBuf, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let process = std::process::id();
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{stem}-{process}-{number}{TEMPORARY}"));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            // Left by an earlier process of this number, or in use on another host.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            outcome => return outcome.map(|file| (path, file)),
        }
    }
}

/// Makes a folder that only its owner can use, since code is loaded from it; one that exists keeps its permissions.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
