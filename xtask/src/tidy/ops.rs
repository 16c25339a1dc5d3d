//! Every operation of the tile IR has a text case.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Fault;
use crate::process::root;

/// The list of operations, in the macro `for_each_op`.
const LIST: &str = "tile-codegen/src/ops/mod.rs";
/// The cases: one file an operation's module.
const CASES: &str = "tests/cases/ops";
/// Modules whose operations only passes make: the CPU never sees them, or does nothing of its own. Kernels that passes
/// put them into are run by the PTX executor.
const MADE_BY_PASSES: [&str; 15] = [
    "barrier",
    "convert_layout",
    "copied",
    "copy_async",
    "copy_commit",
    "copy_wait",
    "from_shared",
    "mma_wait",
    "receive",
    "release",
    "roles",
    "send",
    "send_tile",
    "to_shared",
    "view_shared",
];

/// Modules without a case. Nothing before the folder of cases exists.
pub(super) fn cases(files: &BTreeSet<PathBuf>) -> Result<Vec<Fault>> {
    if !files.iter().any(|file| file.starts_with(CASES)) {
        return Ok(Vec::new());
    }
    let modules = modules(&fs::read_to_string(root().join(LIST)).context(LIST)?);
    let mut faults = Vec::new();
    if modules.is_empty() {
        faults.push(Fault::new(Path::new(LIST), 0, "no operations found: each is `Name module::Name,`"));
    }
    for module in modules.iter().filter(|module| !MADE_BY_PASSES.contains(&module.as_str())) {
        let case = Path::new(CASES).join(module).with_extension("tir");
        if !files.contains(&case) {
            faults.push(Fault::new(&case, 0, format!("the operations of `{module}` need a case here")));
        }
    }
    Ok(faults)
}

/// The modules in the list of operations.
fn modules(list: &str) -> BTreeSet<String> {
    let body = list.split_once("macro_rules! for_each_op").map_or("", |(_, rest)| rest);
    let body = body.split_once("$then! {").map_or("", |(_, rest)| rest);
    let body = body.split_once('}').map_or("", |(body, _)| body);
    body.split(',')
        .filter_map(|entry| Some(entry.split_whitespace().nth(1)?.split_once("::")?.0.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_operations_is_read() {
        let list = "mod a;\nmacro_rules! for_each_op {\n ($then:ident) => {\n $then! {\n Bid bid::Bid, If control::If,\n \
                    For control::For,\n }\n };\n}\n";
        assert_eq!(modules(list), ["bid", "control"].map(String::from).into());
    }

    #[test]
    fn the_list_of_this_repository_is_read() {
        let modules = modules(&fs::read_to_string(root().join(LIST)).expect("the list is there"));
        for module in MADE_BY_PASSES.iter().chain(&["mma", "load", "store", "cumsum"]) {
            assert!(modules.contains(*module), "{module}");
        }
    }
}
