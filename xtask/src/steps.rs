//! A list of steps: each announced, timed, the first failure the last step.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// The steps run so far.
#[derive(Debug)]
pub(crate) struct Steps {
    start: Instant,
    done: Vec<(&'static str, Duration)>,
}

impl Steps {
    /// No steps yet; the clock starts.
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), done: Vec::new() }
    }

    /// Runs one step. Its error names the step.
    pub(crate) fn run(&mut self, name: &'static str, step: impl FnOnce() -> Result<()>) -> Result<()> {
        println!("==> {name}");
        let start = Instant::now();
        let outcome = step();
        let time = start.elapsed();
        self.done.push((name, time));
        if outcome.is_err() {
            println!("==> {name}: FAILED after {:.1} s", time.as_secs_f64());
            self.times();
        }
        outcome.with_context(|| format!("step \"{name}\" failed"))
    }

    /// Prints the time of each step and of all.
    pub(crate) fn times(&self) {
        println!("==> times");
        for (name, time) in &self.done {
            println!("{:>8.1} s  {name}", time.as_secs_f64());
        }
        println!("{:>8.1} s  total", self.start.elapsed().as_secs_f64());
    }
}
