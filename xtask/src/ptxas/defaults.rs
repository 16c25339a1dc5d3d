//! The kernels of the forward pass in every configuration that its default choice of block sizes can return.

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

/// Writes the PTX of each, and returns a name and a file for each different text.
pub(super) fn texts() -> Result<Vec<(String, PathBuf)>> {
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
                    let output = command(&program).arg("show").args(request).output();
                    results.lock().expect("no thread panics with the lock").push((index, output));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no thread panics with the lock");
    results.sort_by_key(|(index, _)| *index);
    let scratch = folder().join("defaults");
    fs::create_dir_all(&scratch)?;
    let mut texts: Vec<(String, PathBuf)> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (index, output) in results {
        let output = output.with_context(|| format!("could not start {}", program.display()))?;
        let request = requests[index].join(" ");
        if !output.status.success() {
            bail!("`mamba2 show {request}`: {}", String::from_utf8_lossy(&output.stderr));
        }
        if seen.insert(output.stdout.clone()) {
            let file = scratch.join(format!("{}.ptx", request.replace([' ', '-'], "_")));
            fs::write(&file, &output.stdout)?;
            texts.push((request, file));
        }
    }
    Ok(texts)
}

fn requests() -> Vec<Vec<String>> {
    let mut requests = Vec::new();
    for dtype in DTYPES {
        for chunk in CHUNKS {
            for heads in [1, 2, 4, 8] {
                let sizes = [
                    ("--dtype", dtype.to_owned()),
                    ("--chunk", chunk.to_string()),
                    ("--heads", heads.to_string()),
                ];
                requests.push(request("chunk_cumsum", &sizes));
            }
            for state in STATES {
                for head_dim in HEAD_DIMS {
                    let sizes = [
                        ("--dtype", dtype.to_owned()),
                        ("--chunk", chunk.to_string()),
                        ("--state", state.to_string()),
                        ("--head-dim", head_dim.to_string()),
                    ];
                    requests.extend(["fwd_pass_state", "compute_out"].map(|kernel| request(kernel, &sizes)));
                }
            }
        }
    }
    requests
}

fn request(kernel: &str, sizes: &[(&str, String)]) -> Vec<String> {
    let flags = sizes.iter().flat_map(|(flag, value)| [(*flag).to_owned(), value.clone()]);
    [kernel.to_owned()].into_iter().chain(flags).collect()
}

/// Where cargo builds.
fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
