//! NVIDIA's assembler as a check of the PTX snapshots and of the forward pass. It is no part of the product and never needed to build or run.

mod check;
mod defaults;
mod install;
mod report;

use std::path::PathBuf;

pub(crate) use check::check;
pub(crate) use install::{install, installed};

use crate::process::root;

/// Where the tools are installed.
fn folder() -> PathBuf {
    root().join("target/ptxas")
}
