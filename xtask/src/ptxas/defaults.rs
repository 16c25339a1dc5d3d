//! The kernels of the forward pass in every configuration that its default choice of block sizes can return, and those with
//! optional inputs, as well as the decode step, for some sizes.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};

use super::folder;
use crate::process::{cargo, command, root, run};

/// Sizes that lead to different blocks: the choice depends on nothing finer than the next power of two.
const CHUNKS: [usize; 5] = [16, 32, 64, 128, 256];
const STATES: [usize; 5] = [16, 32, 64, 128, 256];
const HEAD_DIMS: [usize; 3] = [16, 32, 64];
const DTYPES: [&str; 3] = ["bf16", "f16", "f32"];

/// Targets that the choice knows.
const TARGETS: [&str; 2] = ["sm_80", "sm_90a"];

/// The PTX of one kernel in one configuration.
#[derive(Debug)]
pub(super) struct Text {
    /// What was asked for, in words.
    pub(super) name: String,
    /// The file that holds it.
    pub(super) ptx: PathBuf,
    /// The only GPU that it is for.
    pub(super) target: &'static str,
}

/// Writes the PTX of each configuration; each different text once.
pub(super) fn texts() -> Result<Vec<Text>> {
    run(&mut cargo(["build", "--quiet", "--package", "mamba2"]))?;
    let program = target_folder().join("debug/mamba2");
    let requests = requests();
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(request) = requests.get(index) else { return };
                    let output = command(&program).arg("show").args(&request.args).output();
                    results.lock().expect("no thread panics with the lock").push((index, output));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no thread panics with the lock");
    results.sort_by_key(|(index, _)| *index);
    let scratch = folder().join("defaults");
    fs::create_dir_all(&scratch)?;
    let mut texts = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (index, output) in results {
        let output = output.with_context(|| format!("could not start {}", program.display()))?;
        let (request, target) = (requests[index].args.join(" "), requests[index].target);
        if !output.status.success() {
            bail!("`mamba2 show {request}`: {}", String::from_utf8_lossy(&output.stderr));
        }
        if seen.insert(output.stdout.clone()) {
            let ptx = scratch.join(format!("{}.ptx", request.replace([' ', '-', ','], "_")));
            fs::write(&ptx, &output.stdout)?;
            texts.push(Text { name: request, ptx, target });
        }
    }
    Ok(texts)
}

/// What `mamba2 show` is asked for.
#[derive(Debug)]
struct Request {
    args: Vec<String>,
    target: &'static str,
}

/// Optional inputs of each kernel that change its code, alone and together; they are combined with the block sizes of the shape
/// `seed`, a batch of one, and with its largest state.
const VARIANTS: [(&str, &[&str]); 4] = [
    ("chunk_cumsum", &["bias", "softplus", "seq-idx", "bias,softplus,cu-seqlens"]),
    (
        "fwd_pass_state",
        &["initial", "f32-states", "seq-idx", "cu-seqlens", "cu-seqlens,initial", "initial,f32-states"],
    ),
    (
        "compute_out",
        &[
            "d-per-channel",
            "z",
            "f32-states",
            "seq-idx",
            "cu-seqlens,initial",
            "d-per-channel,z,cu-seqlens,initial",
        ],
    ),
    ("step", &["limit", "bias,softplus,d-per-channel,z", "bias,softplus,d-per-channel,z,slots"]),
];

/// The requests for kernels without options, and for those with.
fn requests() -> Vec<Request> {
    let mut requests = plain_requests();
    for (target, dtype) in TARGETS.into_iter().flat_map(|target| DTYPES.map(|dtype| (target, dtype))) {
        for (kernel, lists) in VARIANTS {
            // The state size changes no block of chunk_cumsum.
            let states: &[&str] = if kernel == "chunk_cumsum" { &["128"] } else { &["128", "256"] };
            for (with, state) in lists.iter().flat_map(|with| states.iter().map(move |state| (with, state))) {
                let flags =
                    ["--target", target, "--dtype", dtype, "--batch", "1", "--state", state, "--with", with];
                let args = [kernel].into_iter().chain(flags).map(str::to_owned).collect();
                requests.push(Request { args, target });
            }
        }
    }
    requests
}

fn plain_requests() -> Vec<Request> {
    let mut requests = Vec::new();
    for (target, dtype) in TARGETS.into_iter().flat_map(|target| DTYPES.map(|dtype| (target, dtype))) {
        for chunk in CHUNKS {
            let mut ask = |kernel: &str, sizes: &[(&str, usize)]| {
                let sizes = [("--chunk", chunk)].into_iter().chain(sizes.iter().copied());
                let sizes = sizes.map(|(flag, n)| (flag, n.to_string()));
                let flags = [("--target", target.to_owned()), ("--dtype", dtype.to_owned())];
                let flags = flags.into_iter().chain(sizes).flat_map(|(flag, value)| [flag.to_owned(), value]);
                requests
                    .push(Request { args: [kernel.to_owned()].into_iter().chain(flags).collect(), target });
            };
            for heads in [1, 2, 4, 8] {
                ask("chunk_cumsum", &[("--heads", heads)]);
            }
            for (state, head_dim) in STATES.into_iter().flat_map(|s| HEAD_DIMS.map(|h| (s, h))) {
                let sizes = [("--state", state), ("--head-dim", head_dim)];
                ask("compute_out", &sizes);
                for &heads in busy(target, dtype, head_dim) {
                    ask("fwd_pass_state", &[&sizes[..], &[("--batch", 1), ("--heads", heads)]].concat());
                }
            }
        }
    }
    requests
}

/// Numbers of heads that lead to different blocks: products of warpgroups have larger ones where these keep the GPU busy.
fn busy(target: &str, dtype: &str, head_dim: usize) -> &'static [usize] {
    match (target, dtype, head_dim) {
        ("sm_80", ..) | (_, "f32", _) => &[8],
        (_, _, 64) => &[1, 20, 40, 128],
        _ => &[1, 128],
    }
}

/// Where cargo builds.
fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_type_and_kernel_is_asked_for_once() {
        let lines: Vec<String> = requests().iter().map(|request| request.args.join(" ")).collect();
        let different: std::collections::BTreeSet<&String> = lines.iter().collect();
        assert_eq!(different.len(), lines.len());
        for (target, dtype) in TARGETS.into_iter().flat_map(|t| DTYPES.map(|d| (t, d))) {
            for (kernel, least) in [("chunk_cumsum", 20), ("fwd_pass_state", 75), ("compute_out", 75)] {
                let start = format!("{kernel} --target {target} --dtype {dtype} --chunk ");
                let found = lines.iter().filter(|line| line.starts_with(&start)).count();
                assert!(found >= least, "{found} of {start}");
            }
            for (kernel, lists) in VARIANTS {
                let start =
                    format!("{kernel} --target {target} --dtype {dtype} --batch 1 --state 128 --with ");
                assert_eq!(
                    lines.iter().filter(|line| line.starts_with(&start)).count(),
                    lists.len(),
                    "{start}"
                );
            }
        }
    }
}
