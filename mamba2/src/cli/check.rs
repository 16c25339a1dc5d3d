//! `mamba2 check`: golden files, one line each.

use std::path::{Path, PathBuf};

use mamba2::{
    golden::{self, Golden},
    resident::HostOutputs,
};

use super::{Result, text};
use crate::engine::Engine;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Golden files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where to run: best, cpu, cuda, cuda:N, or ptx:sm_80 to execute the PTX on the CPU with checks for races and others
    #[arg(long, default_value = "best")]
    device: String,
    /// Compile for this target, such as sm_80, instead of the one that suits the device
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Tokens of one chunk instead of the number that the file asks for
    #[arg(long, value_name = "N")]
    chunk: Option<usize>,
}

/// What came of one file.
#[derive(Debug, Clone, PartialEq)]
enum Verdict {
    Pass(String),
    Fail(String),
    Error(String),
}

/// Runs all files, whatever comes of one. False unless all pass.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let engine = Engine::open(&args.device)?.with_target(args.target.as_deref())?;
    println!("{}, target {}", engine.device_name(), engine.target_name());
    let width = args.files.iter().map(|path| name(path).len()).max().unwrap_or(0);
    let mut passed = 0;
    for path in &args.files {
        let verdict = check(&engine, path, args.chunk);
        let (word, detail) = match &verdict {
            Verdict::Pass(detail) => ("pass", detail),
            Verdict::Fail(detail) => ("FAIL", detail),
            Verdict::Error(detail) => ("ERROR", detail),
        };
        println!("{:width$}  {word}  {detail}", name(path));
        passed += usize::from(matches!(verdict, Verdict::Pass(_)));
    }
    println!("{passed} of {} passed", args.files.len());
    Ok(passed == args.files.len())
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn check(engine: &Engine, path: &Path, chunk: Option<usize>) -> Verdict {
    let golden = match golden::read(path) {
        Ok(golden) => golden,
        Err(error) => return Verdict::Error(error.to_string()),
    };
    let output = engine.load(&golden.case, chunk.or(golden.case.chunk)).and_then(|loaded| loaded.run());
    match output {
        Ok(output) => judge(&golden, &output),
        Err(error) => Verdict::Error(error.to_string()),
    }
}

fn judge(golden: &Golden, output: &HostOutputs) -> Verdict {
    let limits = golden.limits();
    let errors = golden.errors(&output.y, &output.final_states, output.sequence_states.as_deref());
    let detail = text::errors(&errors, &limits);
    if errors.within(&limits) { Verdict::Pass(detail) } else { Verdict::Fail(detail) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judging_compares_with_the_file() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/golden/tail.safetensors");
        let golden = golden::read(&path).unwrap();
        let right = HostOutputs {
            y: golden.y.clone(),
            final_states: golden.final_states.clone(),
            sequence_states: None,
        };
        assert_eq!(
            judge(&golden, &right),
            Verdict::Pass("y 0.00e0 (limit 2.40e-3), state 0.00e0 (limit 2.20e-3)".into())
        );
        let mut y = golden.y.clone();
        y.rotate_left(1);
        assert!(matches!(judge(&golden, &HostOutputs { y, ..right }), Verdict::Fail(_)));
    }
}
