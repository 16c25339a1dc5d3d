//! `cargo xtask bless`: the tests again, what they print accepted as the new snapshots.

use anyhow::Result;

use crate::process::run;
use crate::test::runner;

/// Runs the tests with updates of insta's snapshots and trybuild's expected messages. `args` go to the test runner.
pub(crate) fn run_tests(args: &[String]) -> Result<()> {
    run(runner()?.args(args).env("INSTA_UPDATE", "always").env("TRYBUILD", "overwrite"))?;
    println!("snapshots are up to date; read the differences before committing: git diff");
    Ok(())
}
