//! The text cases of the tile IR in `tests/cases`.

use std::path::{Path, PathBuf};

use tile_tests::harness::{run_case, run_faulty};

/// The cases of a folder, in order.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join(folder);
    let entries = std::fs::read_dir(&folder).expect("the folder of cases");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "tir"));
    files.sort();
    assert!(!files.is_empty(), "no cases in {}", folder.display());
    files
}

fn check(folder: &str, run: fn(&str, &str) -> Result<(), String>) {
    let mut faults = Vec::new();
    for file in files(folder) {
        let name = file.file_name().expect("a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).expect("a text file");
        if let Err(fault) = run(&name, &text) {
            faults.push(format!("{folder}/{name}: {fault}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn operations() {
    check("ops", run_case);
}

#[test]
fn passes() {
    check("passes", run_case);
}

#[test]
fn faulty_kernels() {
    check("verify", run_faulty);
}
