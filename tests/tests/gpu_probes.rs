//! A GPU gives for every probe what the data file holds. It says "skipped: no device" where there is none.
//!
//! * `PROBES_OUT=FILE` writes a new data file instead, after printing where the executor differs from this GPU.
//! * `PROBES_ONLY=A;B` and `PROBES_SKIP=A;B` choose probes by what their names begin with.
//!
//! Probes run in a process of their own, which is started again behind a probe that ended it or took too long. What each
//! gives is kept in a folder of its own at once, so that nothing is lost with the others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use tile_runtime::Device;
use tile_tests::probes::{self, Probe};

const TEST: &str = "this_gpu_gives_what_the_data_file_holds";
const DATA: &[u8] = include_bytes!("../data/probes/h200.safetensors");
const OUT: &str = "PROBES_OUT";
const ONLY: &str = "PROBES_ONLY";
const SKIP: &str = "PROBES_SKIP";
/// Set for the process that runs probes: the folder that it writes to.
const PARTS: &str = "PROBES_PARTS";
/// The longest that one probe may take, the start of a process included.
const LIMIT: Duration = Duration::from_secs(30);

/// The results of probes as files, by their numbers: `.begun` before a probe runs, then `.out` with its bytes, `.failed` or
/// `.unfit` with the reason.
struct Parts(PathBuf);

impl Parts {
    fn path(&self, number: usize, what: &str) -> PathBuf {
        self.0.join(format!("{number}.{what}"))
    }

    fn write(&self, number: usize, what: &str, bytes: &[u8]) {
        let path = self.path(number, what);
        std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    fn has(&self, number: usize, what: &str) -> bool {
        self.path(number, what).exists()
    }

    fn is_over(&self, number: usize) -> bool {
        ["out", "failed", "unfit"].iter().any(|what| self.has(number, what))
    }

    fn text(&self, number: usize, what: &str) -> Option<String> {
        std::fs::read_to_string(self.path(number, what)).ok()
    }

    fn count(&self) -> usize {
        std::fs::read_dir(&self.0).map_or(0, Iterator::count)
    }
}

fn names(variable: &str) -> Option<Vec<String>> {
    Some(std::env::var(variable).ok()?.split(';').map(str::to_owned).collect())
}

/// The probes that the environment asks for.
fn chosen() -> Vec<Probe> {
    let (only, skip) = (names(ONLY), names(SKIP).unwrap_or_default());
    let begins = |probe: &Probe, list: &[String]| list.iter().any(|start| probe.name.starts_with(start));
    let wanted =
        |probe: &Probe| only.as_deref().is_none_or(|only| begins(probe, only)) && !begins(probe, &skip);
    probes::all().into_iter().filter(wanted).collect()
}

/// Why a GPU cannot run a probe.
fn unfit(device: &Device, probe: &Probe) -> Option<String> {
    let (target, found) = (probe.module.target, device.compute_capability()?);
    let needed = (target.number / 10, target.number % 10);
    let fits = if target.specific { found == needed } else { found >= needed };
    (!fits).then(|| format!("needs {target}"))
}

/// Runs what is not over yet, up to the first probe after which the device is lost.
fn run_rest(parts: &Parts) {
    let device = Device::cuda(0).expect("the process that started this one found a GPU");
    for (number, probe) in chosen().iter().enumerate() {
        if parts.is_over(number) {
            continue;
        }
        if let Some(reason) = unfit(&device, probe) {
            parts.write(number, "unfit", reason.as_bytes());
            continue;
        }
        parts.write(number, "begun", &[]);
        match probe.run(&device) {
            Ok(bytes) => {
                parts.write(number, "partial", &bytes);
                std::fs::rename(parts.path(number, "partial"), parts.path(number, "out"))
                    .expect("in one folder");
            }
            Err(error) => parts.write(number, "failed", error.as_bytes()),
        }
        device.synchronize().expect("the device is lost; the next process goes on");
    }
}

/// Runs all probes in processes of their own, as long as each begins some.
fn run_all(parts: &Parts, count: usize) {
    let program = std::env::current_exe().expect("this program has a path");
    while !(0..count).all(|number| parts.is_over(number)) {
        let before = parts.count();
        let mut command = Command::new(&program);
        command.args(["--exact", TEST, "--nocapture"]).env(PARTS, &parts.0);
        let mut child = command.spawn().expect("this program starts again");
        let (mut seen, mut since) = (before, Instant::now());
        let end = loop {
            if let Some(status) = child.try_wait().expect("a child of this process") {
                break format!("its process ended: {status}");
            }
            let now = parts.count();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            if since.elapsed() > LIMIT {
                child.kill().expect("a child of this process");
                child.wait().expect("a child of this process");
                break format!("it took more than {LIMIT:?}");
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        for number in 0..count {
            if parts.has(number, "begun") && !parts.is_over(number) {
                parts.write(number, "failed", end.as_bytes());
            }
        }
        if parts.count() == before {
            println!("no further probe has begun: {end}");
            return;
        }
    }
}

fn save(path: &Path, outputs: &BTreeMap<String, Vec<u8>>) {
    let view =
        |bytes| TensorView::new(Dtype::U8, vec![<[u8]>::len(bytes)], bytes).expect("bytes of a known length");
    let tensors = outputs.iter().map(|(key, bytes)| (key, view(bytes)));
    let file = safetensors::serialize(tensors, None).expect("names are unique");
    std::fs::write(path, file).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Says where the executor differs from a GPU.
fn show_differences(all: &[Probe], outputs: &BTreeMap<String, Vec<u8>>) {
    for probe in all {
        let Some(chip) = outputs.get(&probe.key()) else { continue };
        match probe.execute(0) {
            Err(report) => println!("{}: the executor reports {report}", probe.name),
            Ok(ours) => {
                let found = probe.differences(&ours, chip);
                if let Some(first) = found.first() {
                    println!(
                        "{}: the executor differs in {} forms, first in {first}",
                        probe.name,
                        found.len()
                    );
                }
            }
        }
    }
}

/// Where a GPU differs from the data file, in words.
fn against_data(all: &[Probe], outputs: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let data = SafeTensors::deserialize(DATA).expect("a file in safetensors format");
    let mut failed = Vec::new();
    for probe in all {
        let Some(chip) = outputs.get(&probe.key()) else { continue };
        match data.tensor(&probe.key()) {
            Ok(held) => {
                let found = probe.differences(chip, held.data());
                failed.extend(
                    found
                        .iter()
                        .map(|found| format!("{} (executor: this GPU, chip: the file): {found}", probe.name)),
                );
            }
            Err(error) => failed.push(format!("{}: no data: {error}", probe.name)),
        }
    }
    failed
}

#[test]
fn this_gpu_gives_what_the_data_file_holds() {
    if let Some(folder) = std::env::var_os(PARTS) {
        return run_rest(&Parts(folder.into()));
    }
    if let Err(error) = Device::cuda(0) {
        println!("skipped: no device ({error})");
        return;
    }
    let out = std::env::var_os(OUT).map(PathBuf::from);
    let here = std::env::temp_dir().join(format!("probes-{}", std::process::id()));
    let parts = Parts(out.as_ref().map_or(here, |out| out.with_extension("parts")));
    std::fs::create_dir(&parts.0)
        .unwrap_or_else(|error| panic!("the new folder {}: {error}", parts.0.display()));
    let (all, started) = (chosen(), Instant::now());
    run_all(&parts, all.len());
    let mut failed = Vec::new();
    let mut outputs = BTreeMap::new();
    for (number, probe) in all.iter().enumerate() {
        if let Some(reason) = parts.text(number, "failed") {
            failed.push(format!("{}: {reason}", probe.name));
        } else if let Some(reason) = parts.text(number, "unfit") {
            println!("{}: not run, {reason}", probe.name);
        } else if let Ok(bytes) = std::fs::read(parts.path(number, "out")) {
            outputs.insert(probe.key(), bytes);
        } else {
            failed.push(format!("{}: not run", probe.name));
        }
    }
    println!("{} of {} probes in {:.1} s", outputs.len(), all.len(), started.elapsed().as_secs_f64());
    match out {
        Some(out) => {
            save(&out, &outputs);
            show_differences(&all, &outputs);
        }
        None => failed.extend(against_data(&all, &outputs)),
    }
    std::fs::remove_dir_all(&parts.0).expect("this test made the folder");
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}
