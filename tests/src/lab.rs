//! Runs cases of the language on a backend, compares them with the CPU and keeps a list of what failed.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tile_runtime::prelude::*;

use crate::held::{Held, Value};
use crate::tolerance::Tolerance;

/// Numbers of warps that cases run with.
pub const WARPS: [usize; 4] = [1, 2, 4, 8];
/// The most elements of one tile in a thread: with more, nearly all of them live in local memory, which takes the driver
/// seconds to compile and says nothing new.
const ELEMENTS_A_THREAD: usize = 128;

/// What is done with a launch.
#[derive(Clone, Copy, Debug)]
enum Mode {
    /// It runs on the CPU.
    Cpu,
    /// It runs on a GPU or a PTX executor, with so many warps.
    Gpu(usize),
    /// It is compiled for `sm_80`, with so many warps.
    Compile(usize),
}

/// One run of a case.
#[derive(Debug)]
pub struct Run {
    device: Device,
    mode: Mode,
}

impl Run {
    /// Where the case's tensors are to be.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Launches.
    ///
    /// # Errors
    /// As [`Launch::launch`] and [`Launch::compile`].
    pub fn launch(&self, launch: Launch<'_>, grid: impl Into<Grid>) -> Result<()> {
        let config = |warps| Config { num_warps: Some(warps), ..Config::default() };
        match self.mode {
            Mode::Cpu => launch.launch(grid),
            Mode::Gpu(warps) => launch.config(config(warps)).launch(grid),
            Mode::Compile(warps) => launch.config(config(warps)).compile(&Target::SM_80).map(drop),
        }
    }
}

/// The values of a tensor, as they are compared.
///
/// # Errors
/// As [`DeviceTensor::to_vec`].
pub fn values<T: Held>(tensor: &DeviceTensor<T>) -> Result<Vec<Value>> {
    Ok(tensor.to_vec()?.into_iter().map(T::value).collect())
}

type Body = Box<dyn Fn(&Run) -> Result<Vec<Value>>>;

/// One kernel with its inputs.
pub struct Case {
    name: String,
    tolerance: Tolerance,
    largest_tile: usize,
    body: Body,
}

/// A list of cases.
#[derive(Default)]
pub struct Cases {
    list: Vec<Case>,
}

impl std::fmt::Debug for Cases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} cases", self.list.len())
    }
}

impl Cases {
    /// Adds a case: `body` makes its tensors on the run's device, launches, and returns the values to compare.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        tolerance: Tolerance,
        largest_tile: usize,
        body: impl Fn(&Run) -> Result<Vec<Value>> + 'static,
    ) {
        self.list.push(Case { name: name.into(), tolerance, largest_tile, body: Box::new(body) });
    }

    /// The number of cases.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Runs every case from number `first` on on the GPU and compares with the CPU: with every sensible number of warps, or
    /// with two of them, others for the next case.
    pub fn run_on(&self, gpu: &Device, first: usize, all: bool) -> Report {
        let mut report = Report::default();
        for (number, case) in self.list.iter().enumerate().skip(first) {
            let expected = case.attempt(&Device::cpu(), Mode::Cpu);
            for warps in case.warps(number, all) {
                let found = case.attempt(gpu, Mode::Gpu(warps));
                report.runs += 1;
                if let Some(fault) = case.fault(&expected, found) {
                    report.fail(format!("{} with {warps} warps: {fault}", case.name));
                }
                if let Err(error) = gpu.synchronize() {
                    report.fail(format!("{} with {warps} warps: the device is lost: {error}", case.name));
                    report.lost_at = Some(number);
                    return report;
                }
            }
        }
        report
    }

    /// Runs every `step`-th case on a PTX executor, with one number of warps, another for the next case, and compares with
    /// the CPU.
    pub fn execute(&self, target: &Target, step: usize) -> Report {
        let executor = Device::ptx_executor(target);
        let mut report = Report::default();
        for (number, case) in self.list.iter().enumerate().step_by(step) {
            let warps = case.warps(number, false)[0];
            let expected = case.attempt(&Device::cpu(), Mode::Cpu);
            report.runs += 1;
            if let Some(fault) = case.fault(&expected, case.attempt(&executor, Mode::Gpu(warps))) {
                report.fail(format!("{} with {warps} warps: {fault}", case.name));
            }
        }
        report
    }

    /// Compiles every case for `sm_80`, with numbers of warps as in [`Cases::run_on`].
    pub fn compile(&self, all: bool) -> Report {
        let mut report = Report::default();
        for (number, case) in self.list.iter().enumerate() {
            for warps in case.warps(number, all) {
                report.runs += 1;
                if let Err(error) = case.attempt(&Device::cpu(), Mode::Compile(warps)) {
                    report.fail(format!("{} with {warps} warps: {error}", case.name));
                }
            }
        }
        report
    }

    /// Runs every case on the CPU.
    pub fn run_on_cpu(&self) -> Report {
        let mut report = Report::default();
        for case in &self.list {
            report.runs += 1;
            if let Err(error) = case.attempt(&Device::cpu(), Mode::Cpu) {
                report.fail(format!("{}: {error}", case.name));
            }
        }
        report
    }
}

impl Case {
    fn warps(&self, number: usize, all: bool) -> Vec<usize> {
        let most = ELEMENTS_A_THREAD * 32;
        let sensible: Vec<_> = WARPS.into_iter().filter(|&warps| self.largest_tile <= most * warps).collect();
        let count = sensible.len();
        if all || count <= 2 {
            return sensible;
        }
        [number % count, (number + count / 2) % count].map(|i| sensible[i]).to_vec()
    }

    /// The values of a run; a panic in it is an error as well.
    fn attempt(&self, device: &Device, mode: Mode) -> Result<Vec<Value>, String> {
        let run = Run { device: device.clone(), mode };
        match catch_unwind(AssertUnwindSafe(|| (self.body)(&run))) {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
                Err(format!("panic: {}", text.unwrap_or_default()))
            }
        }
    }

    /// What is wrong with a run, in words; none if all is well.
    fn fault(
        &self,
        expected: &Result<Vec<Value>, String>,
        found: Result<Vec<Value>, String>,
    ) -> Option<String> {
        match (expected, found) {
            (Err(error), _) => Some(format!("the CPU refuses it: {error}")),
            (Ok(_), Err(error)) => Some(error),
            (Ok(expected), Ok(found)) => self.differences(&found, expected),
        }
    }

    /// The first differences, in words; none if all is well.
    fn differences(&self, found: &[Value], expected: &[Value]) -> Option<String> {
        if found.len() != expected.len() {
            return Some(format!("{} values, expected {}", found.len(), expected.len()));
        }
        let wrong: Vec<usize> =
            (0..found.len()).filter(|&i| !self.tolerance.accepts(found[i], expected[i])).collect();
        if wrong.is_empty() {
            return None;
        }
        let mut text = format!("{} of {} values differ ({:?}):", wrong.len(), found.len(), self.tolerance);
        for &i in wrong.iter().take(6) {
            write!(text, " [{i}] {} for {};", show(found[i]), show(expected[i])).expect("a string");
        }
        Some(text)
    }
}

fn show(value: Value) -> String {
    match value {
        Value::Int(x) => x.to_string(),
        Value::Float(x) => format!("{x:?}"),
    }
}

/// What a list of cases gave.
#[derive(Debug, Default)]
pub struct Report {
    /// Runs made.
    pub runs: usize,
    /// One entry for each that failed.
    pub failures: Vec<String>,
    /// The number of the case that made the device unusable.
    pub lost_at: Option<usize>,
}

impl Report {
    /// Prints the failure at once, so that a later hang does not hide it.
    pub(crate) fn fail(&mut self, text: String) {
        println!("FAILED {text}");
        self.failures.push(text);
    }

    /// Fails with the list of failures, if there is any.
    ///
    /// # Panics
    /// If there is one.
    #[track_caller]
    pub fn assert_clean(&self) {
        let shown = self.failures.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
        let (count, runs) = (self.failures.len(), self.runs);
        assert!(self.failures.is_empty(), "{count} failures in {runs} runs:\n{shown}");
    }
}
