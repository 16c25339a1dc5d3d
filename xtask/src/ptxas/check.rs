//! Assembles every PTX snapshot, and the forward pass in every default configuration, for each GPU that it is meant for.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};

use super::defaults::Text;
use super::report::{Usage, complaints, usages};
use super::{folder, installed};
use crate::process::{command, root};
use crate::tidy::files;

/// One snapshot for one GPU.
#[derive(Debug)]
struct Job {
    name: String,
    ptx: PathBuf,
    arch: &'static str,
}

/// What came of a job: what its kernels use, or what is wrong.
type Outcome = Result<Vec<Usage>, String>;

/// Assembles all snapshots, prints what each uses, and fails on errors, warnings and spills.
///
/// # Errors
/// Also when there is no snapshot at all, for then nothing was checked.
pub(crate) fn check() -> Result<()> {
    if !installed() {
        bail!("ptxas is not installed: run `cargo xtask ptxas` first");
    }
    let mut jobs = jobs()?;
    if jobs.is_empty() {
        bail!("no PTX snapshots found (files `*.snap` in a folder `snapshots`): nothing was checked");
    }
    jobs.extend(default_jobs()?);
    let outcomes = assemble_all(&jobs);
    let failed = print(&jobs, &outcomes);
    if failed > 0 {
        bail!("{failed} of {} texts and targets failed", jobs.len());
    }
    println!("{} texts and targets assembled without warnings or spills", jobs.len());
    Ok(())
}

/// Every snapshot that holds PTX, written as plain PTX below the target folder, for every GPU.
fn jobs() -> Result<Vec<Job>> {
    let scratch = folder().join("check");
    fs::create_dir_all(&scratch)?;
    let mut jobs = Vec::new();
    for path in files()? {
        if path.extension().is_none_or(|e| e != "snap") {
            continue;
        }
        let text = fs::read_to_string(root().join(&path)).with_context(|| path.display().to_string())?;
        let ptx = body(&text);
        let Some(target) = target(ptx) else { continue };
        let name = path.with_extension("").display().to_string().replace("/snapshots/", "/");
        let file = scratch.join(name.replace('/', "+")).with_added_extension("ptx");
        fs::write(&file, ptx)?;
        for arch in arches(target) {
            jobs.push(Job { name: name.clone(), ptx: file.clone(), arch });
        }
    }
    Ok(jobs)
}

/// The kernels of the forward pass in every default configuration, for the GPU that they are compiled for.
fn default_jobs() -> Result<Vec<Job>> {
    let texts = super::defaults::texts()?;
    let job = |text: Text| Job { name: text.name, ptx: text.ptx, arch: text.target };
    Ok(texts.into_iter().map(job).collect())
}

/// The snapshot without insta's header, which stands between two lines of `---`.
fn body(snapshot: &str) -> &str {
    match snapshot.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")) {
        Some((_, body)) => body,
        None => snapshot,
    }
}

/// The `.target` of a PTX module; none if the text is no PTX.
fn target(text: &str) -> Option<&str> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.next().filter(|line| line.starts_with(".version "))?;
    lines.next()?.strip_prefix(".target ")
}

/// The GPUs to assemble for: portable code must be accepted on Hopper too.
fn arches(target: &str) -> &'static [&'static str] {
    if target.starts_with("sm_90a") { &["sm_90a"] } else { &["sm_80", "sm_90a"] }
}

/// One thread a processor, each taking the next job.
fn assemble_all(jobs: &[Job]) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::from_iter(jobs.iter().map(|_| Err("not run".to_owned()))));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { return };
                    let outcome = assemble(job);
                    outcomes.lock().expect("no thread panics with the lock")[index] = outcome;
                }
            });
        }
    });
    outcomes.into_inner().expect("no thread panics with the lock")
}

fn assemble(job: &Job) -> Outcome {
    let Job { ptx, arch, .. } = job;
    let output = command(folder().join("ptxas"))
        .args(["-v", "--warn-on-spills", "--warning-as-error", "--output-file", "/dev/null"])
        .arg(format!("--gpu-name={arch}"))
        .arg(ptx)
        .output()
        .map_err(|error| format!("could not start ptxas: {error}"))?;
    let log =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let complaints = complaints(&log);
    let usages = usages(&log);
    if !output.status.success() || !complaints.is_empty() {
        let said = if complaints.is_empty() { log.clone() } else { complaints.join("\n") };
        return Err(format!("{said}\n(the text is {})", ptx.display()));
    }
    if let Some(usage) = usages.iter().find(|usage| usage.spills > 0) {
        return Err(format!("{} spills {} bytes", usage.kernel, usage.spills));
    }
    if usages.is_empty() {
        return Err("no kernel in the module".to_owned());
    }
    Ok(usages)
}

/// Prints the table and the faults below it; returns the number of failed jobs.
fn print(jobs: &[Job], outcomes: &[Outcome]) -> usize {
    let width = jobs.iter().map(|job| job.name.len()).max().unwrap_or(0);
    println!(
        "{:width$}  {:6}  {:>9}  {:>6}  {:>5}  {:>6}",
        "snapshot", "target", "registers", "shared", "stack", "spills"
    );
    for (job, outcome) in jobs.iter().zip(outcomes) {
        match outcome {
            Ok(usages) => {
                for u in usages {
                    let (name, arch) = (&job.name, job.arch);
                    println!(
                        "{name:width$}  {arch:6}  {:>9}  {:>6}  {:>5}  {:>6}",
                        u.registers, u.shared, u.stack, u.spills
                    );
                }
            }
            Err(_) => println!("{:width$}  {:6}  FAILED", job.name, job.arch),
        }
    }
    let mut failed = 0;
    for (job, outcome) in jobs.iter().zip(outcomes) {
        if let Err(what) = outcome {
            println!("{} for {}: {what}", job.name, job.arch);
            failed += 1;
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_a_snapshot_is_dropped() {
        let ptx = ".version 7.0\n.target sm_80\n.address_size 64\n";
        let snapshot = format!("---\nsource: tests/tests/ptx.rs\nexpression: ptx\n---\n{ptx}");
        assert_eq!(body(&snapshot), ptx);
        assert_eq!(body(ptx), ptx);
        assert_eq!(target(body(&snapshot)), Some("sm_80"));
    }

    #[test]
    fn only_ptx_is_assembled() {
        assert_eq!(target("kernel @k() { stage = tile } {\n"), None);
        assert_eq!(target("// made by hand\n\n.version 8.0\n.target sm_90a\n"), Some("sm_90a"));
        assert_eq!(arches("sm_80"), ["sm_80", "sm_90a"]);
        assert_eq!(arches("sm_90a"), ["sm_90a"]);
    }
}
