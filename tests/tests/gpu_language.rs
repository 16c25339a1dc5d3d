//! Every case of the language on a GPU gives what it gives on the CPU. Each test says "skipped: no device" where there
//! is none.
//!
//! All failures of a group are printed before it fails. A case that makes the device unusable ends its process; a new
//! one goes on with the next case.

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use tile_runtime::Device;
use tile_tests::lab::Cases;
use tile_tests::language;

/// One group at a time: a lost device would fail the others.
static DEVICE: Mutex<()> = Mutex::new(());
/// The number of the first case of a process that goes on where another ended.
const FIRST: &str = "GPU_LANGUAGE_FIRST";
/// Set, every case runs with every number of warps instead of two.
const ALL: &str = "GPU_LANGUAGE_ALL";

fn check(test: &str, cases: &Cases) {
    let _held = DEVICE.lock().unwrap_or_else(PoisonError::into_inner);
    let gpu = match Device::cuda(0) {
        Ok(gpu) => gpu,
        Err(error) => {
            println!("skipped: no device ({error})");
            return;
        }
    };
    let first = std::env::var(FIRST).ok().and_then(|first| first.parse().ok()).unwrap_or(0);
    if gpu.synchronize().is_err() {
        // An earlier group of this process lost the device.
        assert!(go_on(test, first), "`{test}` failed in a process of its own");
        return;
    }
    let all = std::env::var_os(ALL).is_some();
    let started = std::time::Instant::now();
    let report = cases.run_on(&gpu, first, all);
    println!("{test}: {} runs in {:.1} s", report.runs, started.elapsed().as_secs_f64());
    if let Some(number) = report.lost_at
        && number + 1 < cases.len()
    {
        go_on(test, number + 1);
    }
    report.assert_clean();
}

/// Runs the cases from `first` on in a new process; whether they passed.
fn go_on(test: &str, first: usize) -> bool {
    let program = std::env::current_exe().expect("the path of this program");
    let status =
        Command::new(program).args([test, "--exact", "--nocapture"]).env(FIRST, first.to_string()).status();
    status.expect("a process").success()
}

macro_rules! groups {
    ($($group:ident)*) => {$(
        #[test]
        fn $group() {
            check(stringify!($group), &language::$group());
        }
    )*};
}
groups! { elementwise conversions movement reductions scans products chains control windows indexed atomics }
