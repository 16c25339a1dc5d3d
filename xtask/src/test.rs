//! `cargo xtask test`: every check, in the order from cheap to dear.

use std::process::Command;

use anyhow::Result;

use crate::process::{cargo, run, succeeds};
use crate::steps::Steps;
use crate::{ptxas, tidy};

/// Runs all checks up to the first that fails.
pub(crate) fn run_all() -> Result<()> {
    let mut steps = Steps::new();
    steps.run("format", || run(&mut cargo(["fmt", "--all", "--check"])))?;
    steps.run("tidy", tidy::run)?;
    steps.run("clippy", || {
        run(&mut cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
        run(&mut cargo(["clippy", "-p", "tile-codegen", "--no-default-features", "--", "-D", "warnings"]))
    })?;
    steps.run("tests", || run(&mut runner()?))?;
    steps.run("doc tests", || run(&mut cargo(["test", "--workspace", "--doc"])))?;
    steps.run("rustdoc", || {
        run(cargo(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    if ptxas::installed() {
        steps.run("ptxas", ptxas::check)?;
    } else {
        println!("ptxas: skipped: not installed (cargo xtask ptxas)");
    }
    steps.times();
    println!("all checks passed");
    Ok(())
}

/// The command that runs unit, integration and UI tests: cargo-nextest where installed, else cargo's own.
pub(crate) fn runner() -> Result<Command> {
    if succeeds(&mut cargo(["nextest", "--version"]))? {
        return Ok(cargo(["nextest", "run", "--workspace", "--no-fail-fast"]));
    }
    Ok(cargo(["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"]))
}
