//! Kernels with products on the PTX executor: for `sm_90a`, and where tiles come through rings for `sm_80`; in every
//! configuration, on several schedules, exactly as on the CPU.

mod control;
mod flow;
mod memory;
mod named;
mod once;
mod padding;
mod products;
mod rings;

pub use control::control;
pub use flow::flow;
pub use memory::memory;
pub use named::named;
pub use once::once;
pub use padding::padding;
pub use products::products;
pub use rings::rings;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tile_runtime::ExecutorOptions;
use tile_runtime::codegen::explain::Reason;
use tile_runtime::prelude::*;

use crate::lab::Report;

/// One run of a case: where its tensors are, and how it is compiled.
#[derive(Debug)]
pub struct Run<'a> {
    device: &'a Device,
    target: Target,
    config: Option<Config>,
    wide: Cell<bool>,
    once: Cell<bool>,
    ring: Cell<bool>,
}

impl<'a> Run<'a> {
    fn new(device: &'a Device, target: Target, config: Option<Config>) -> Self {
        let [wide, once, ring] = [(); 3].map(|()| Cell::new(false));
        Run { device, target, config, wide, once, ring }
    }

    fn device(&self) -> &Device {
        self.device
    }

    fn launch(&self, launch: Launch<'_>, grid: impl Into<Grid>) -> Result<()> {
        let Some(config) = self.config else { return launch.launch(grid) };
        let launch = launch.config(config);
        let ptx = launch.ptx(&self.target)?;
        self.wide.set(ptx.contains("wgmma.mma_async") && ptx.contains("cp.async.bulk.tensor"));
        self.ring.set(ptx.contains("cp.async.cg.shared.global"));
        let compiled = launch.compile(&self.target)?;
        let whole = compiled.explanation.no_roles == Some(Reason::LoadedOnce);
        self.once.set(whole && config.num_warps.is_some_and(|warps| compiled.threads as usize == 32 * warps));
        launch.launch(grid)
    }
}

/// What a case may be compiled to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Path {
    /// Products of warpgroups and bulk tensor copies, where the target has them.
    Wide,
    /// The same without roles: copies are started before anything else.
    Once,
    /// Asynchronous copies into a ring.
    Ring,
    /// Whatever is right.
    Any,
}

/// Runs cases and lists what failed.
#[derive(Debug)]
struct Lab {
    target: Target,
    executor: Device,
    report: Report,
}

impl Lab {
    /// A lab for Hopper that runs every launch on the schedules 0 to `seeds`.
    fn new(seeds: u64) -> Lab {
        Lab::of(Target::SM_90A, seeds)
    }

    /// A lab for a target.
    fn of(target: Target, seeds: u64) -> Lab {
        let options = ExecutorOptions { seeds: (0..seeds).collect(), ..ExecutorOptions::default() };
        Lab { target, executor: Device::ptx_executor_with(&target, options), report: Report::default() }
    }

    /// Runs a case in each configuration and compares with `expected`, or with the CPU if there is none.
    fn check(
        &mut self,
        name: &str,
        path: Path,
        configs: &[Config],
        expected: Option<&[f32]>,
        case: impl Fn(&Run<'_>) -> Result<Vec<f32>>,
    ) {
        let path = if path == Path::Wide && !self.target.warpgroups { Path::Any } else { path };
        let cpu = Device::cpu();
        let on_cpu = attempt(&case, &Run::new(&cpu, self.target, None));
        if let (Some(expected), Ok(found)) = (expected, &on_cpu)
            && let Some(text) = differences(found, expected)
        {
            self.report.fail(format!("{name} on the CPU: {text}"));
        }
        for &config in configs {
            let run = Run::new(&self.executor, self.target, Some(config));
            self.report.runs += 1;
            let fault = match (&on_cpu, attempt(&case, &run)) {
                (Err(error), _) => Some(format!("the CPU refuses it: {error}")),
                (Ok(_), Err(error)) => Some(error),
                (Ok(_), Ok(_)) if matches!(path, Path::Wide | Path::Once) && !run.wide.get() => {
                    Some("neither warpgroups nor bulk tensor copies".to_owned())
                }
                (Ok(_), Ok(_)) if path == Path::Once && !run.once.get() => Some("there are roles".to_owned()),
                (Ok(_), Ok(_)) if path == Path::Ring && !run.ring.get() => {
                    Some("there is no ring".to_owned())
                }
                (Ok(on_cpu), Ok(found)) => differences(&found, expected.unwrap_or(on_cpu)),
            };
            if let Some(fault) = fault {
                self.report.fail(format!("{name}, {config:?}: {fault}"));
            }
        }
    }

    /// Checks that a kernel is refused, with such words.
    fn refused(&mut self, name: &str, found: Result<String>, says: &str) {
        self.report.runs += 1;
        match found {
            Ok(_) => self.report.fail(format!("{name}: it compiles")),
            Err(error) if error.to_string().contains(says) => {}
            Err(error) => self.report.fail(format!("{name}: expected `{says}`, found: {error}")),
        }
    }
}

fn attempt(case: &impl Fn(&Run<'_>) -> Result<Vec<f32>>, run: &Run<'_>) -> Result<Vec<f32>, String> {
    match catch_unwind(AssertUnwindSafe(|| case(run))) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Err(format!("panic: {}", text.unwrap_or_default()))
        }
    }
}

/// The first differences, in words; none if all is well.
fn differences(found: &[f32], expected: &[f32]) -> Option<String> {
    let wrong: Vec<usize> = (0..found.len()).filter(|&i| Some(&found[i]) != expected.get(i)).collect();
    if found.len() == expected.len() && wrong.is_empty() {
        return None;
    }
    let list: Vec<String> =
        wrong.iter().take(6).map(|&i| format!("[{i}] {} for {:?}", found[i], expected.get(i))).collect();
    Some(format!("{} of {} values differ: {}", wrong.len(), expected.len(), list.join(", ")))
}

/// A configuration with so many warps and stages; 0 leaves the choice to the compiler.
fn config(warps: usize, stages: usize) -> Config {
    let some = |n: usize| (n > 0).then_some(n);
    Config { num_warps: some(warps), stages: some(stages), ..Config::default() }
}
