//! `mamba2 tune`: every plan of the forward pass for one problem, the fastest of which later passes take.

use std::{fmt::Write, fs, path::PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use mamba2::{
    case::{Case, Dtype},
    file, inputs, tolerance,
    tune::{Progress, Round, Tuning},
};
use serde::Serialize;
use tile_runtime::timing::Time;
use tile_runtime::tune::{Outcome, Point, Tried};

use super::{Result, accuracy, shape_args::ShapeArgs, text};
use crate::engine::Engine;

/// Lines of each round that the table shows.
const SHOWN: usize = 3;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to run: best, cpu, cuda or cuda:N
    #[arg(long, default_value = "best")]
    device: String,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Element type of x, B, C and y: f32, f16 or bf16 [default: bf16 on a GPU, f32 on the CPU]
    #[arg(long)]
    dtype: Option<Dtype>,
    /// Try this chunk length alone, for passes that ask for it
    #[arg(long, value_name = "N")]
    chunk: Option<usize>,
    /// Read the inputs, and with them the options in use, from a safetensors file instead of generating them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ShapeArgs", "dtype"])]
    input: Option<PathBuf>,
    /// Write what became of every candidate to a file, as JSON lines
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Keep nothing
    #[arg(long)]
    dry_run: bool,
}

/// Tunes, prints and keeps the winner. False if the default is wrong, so that nothing can be held against it.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let engine = Engine::open(&args.device)?;
    let (name, case) = problem(args, engine.is_gpu())?;
    if case.step {
        return Err(format!("{name} holds a decode step, which has nothing to tune").into());
    }
    let loaded = engine.load(&case, args.chunk.or(case.chunk))?;
    println!("{name}: {}, {}", case.shape, case.dtype);
    println!("{}, target {}", engine.device_name(), engine.target_name());
    let progress = ProgressBar::new(0);
    progress.set_style(ProgressStyle::with_template("{wide_bar} {pos}/{len} {eta} {msg}")?);
    let tuning = loaded.tune(&mut |Progress { round, done, total, .. }| {
        progress.set_length(total as u64);
        progress.set_position(done as u64);
        progress.set_message(round.to_owned());
    })?;
    progress.finish_and_clear();
    print!("{}", table(&tuning));
    if let Some(path) = &args.json {
        fs::write(path, lines(&tuning)?).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if args.dry_run {
        return Ok(true);
    }
    let saved = tuning.save().map_err(|error| format!("the result cannot be kept: {error}"))?;
    let Some(path) = saved else {
        println!(
            "kept     nothing: TILE_TUNED is off, or no folder is known; set TILE_TUNED_DIR to name one"
        );
        return Ok(true);
    };
    println!("kept     {}", path.display());
    // As later passes find it.
    let output = loaded.run()?;
    let errors = accuracy::errors(&case, &accuracy::reference_heads(&case)?, &output);
    let limits = tolerance::forward(case.dtype, None);
    let passed = errors.within(&limits);
    if !passed {
        // No one is to meet it.
        fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let verdict = if passed { "ok:" } else { "TOO LARGE, so it is not kept after all:" };
    println!("error    {verdict} {}", text::errors(&errors, &limits));
    Ok(passed)
}

fn problem(args: &Args, gpu: bool) -> Result<(String, Case)> {
    if let Some(path) = &args.input {
        return Ok((path.display().to_string(), file::read_case(path)?));
    }
    let (name, shape) = args.shape.resolve(if gpu { "seed" } else { "m130m" })?;
    let dtype = args.dtype.unwrap_or(if gpu { Dtype::BF16 } else { Dtype::F32 });
    Ok((name, inputs::generate(shape, dtype, 0)))
}

/// The fastest of each round, the default beside it, how many have no time and the first reasons, then the winner.
fn table(tuning: &Tuning) -> String {
    let mut text = String::new();
    for Round { name, tried, winner } in tuning.rounds() {
        let mut timed: Vec<(Time, &Tried)> =
            tried.iter().filter_map(|tried| Some((tried.time()?, tried))).collect();
        timed.sort_by_key(|(time, _)| time.median);
        let count = |is: fn(&Outcome) -> bool| tried.iter().filter(|tried| is(&tried.outcome)).count();
        let _ = writeln!(
            text,
            "\n{name}: {} timed, {} wrong, {} failed, {} pruned",
            timed.len(),
            count(|outcome| matches!(outcome, Outcome::Wrong(_))),
            count(|outcome| matches!(outcome, Outcome::Failed(_))),
            count(|outcome| matches!(outcome, Outcome::Pruned(_))),
        );
        for (time, tried) in timed.iter().take(SHOWN) {
            let _ = writeln!(text, "  {}  {}", times(Some(*time)), tried.point);
        }
        if let Some(default) = tried.first() {
            let _ = writeln!(text, "  {}  the default: {}", times(default.time()), default.point);
        }
        if let Some(winner) = winner.filter(|&winner| winner > 0) {
            let _ = writeln!(text, "  {}  the winner: {}", times(tried[winner].time()), tried[winner].point);
        }
        for Tried { point, outcome } in tried {
            if matches!(outcome, Outcome::Wrong(_) | Outcome::Failed(_)) {
                let line = outcome.to_string();
                let _ = writeln!(text, "  {point}: {}", line.lines().next().unwrap_or_default());
            }
        }
    }
    let ((point, time), (default, default_time)) = (tuning.winner(), tuning.default());
    let _ = writeln!(text, "\nfor      {}", tuning.bucket());
    let _ = writeln!(text, "default  {}  {default}", times(default_time));
    let _ = write!(text, "winner   {}  {point}", times(Some(time)));
    if let Some(default) = default_time.filter(|time| !time.median.is_zero()) {
        let _ = write!(
            text,
            ", {:.3} of the default's time",
            time.median.as_secs_f64() / default.median.as_secs_f64()
        );
    }
    text.push('\n');
    text
}

fn times(time: Option<Time>) -> String {
    time.map_or(format!("{:>21}", "no time"), |time| {
        format!("{:>10} +-{:>9}", text::time(time.median), text::time(time.spread / 2))
    })
}

/// One candidate; one JSON line.
#[derive(Serialize)]
struct Line<'a> {
    round: &'a str,
    point: &'a Point,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spread_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    default: bool,
    winner: bool,
}

fn lines(tuning: &Tuning) -> Result<String> {
    let mut text = String::new();
    for Round { name, tried, winner } in tuning.rounds() {
        for (index, Tried { point, outcome }) in tried.iter().enumerate() {
            let (outcome, time, reason) = match outcome {
                Outcome::Time(time) => ("time", Some(*time), None),
                Outcome::Wrong(reason) => ("wrong", None, Some(reason.as_str())),
                Outcome::Failed(reason) => ("failed", None, Some(reason.as_str())),
                Outcome::Pruned(reason) => ("pruned", None, Some(reason.as_str())),
            };
            let us = |duration: std::time::Duration| duration.as_secs_f64() * 1e6;
            let line = Line {
                round: name,
                point,
                outcome,
                us: time.map(|time| us(time.median)),
                spread_us: time.map(|time| us(time.spread)),
                reason,
                default: index == 0,
                winner: Some(index) == *winner,
            };
            text += &serde_json::to_string(&line)?;
            text.push('\n');
        }
    }
    Ok(text)
}
