//! `mamba2 bench`: times of the named shapes, each checked before it is timed.
//!
//! On a GPU: the median of 30 replays of a graph, with 256 MiB written before each so that L2 is cold. On the CPU: the
//! median of a few runs, beside one f32 product with as many multiply-adds. `--plot` draws the times, or earlier ones.

use std::{fs, path::PathBuf, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use mamba2::{
    case::Dtype,
    golden::Errors,
    inputs,
    problem::{self, Shape},
    tolerance::{self, Limits},
};
use serde::Serialize;
use tile_runtime::timing::median;

use super::{Result, accuracy, plot::Figure, product::Product, text};
use crate::engine::{Engine, Loaded};

/// Runs of which the CPU's time is the median.
const CPU_RUNS: usize = 5;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to run: best, cpu, cuda or cuda:N
    #[arg(long, default_value = "best")]
    device: String,
    /// Compile for this target, such as sm_80, instead of the one that suits the device
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Named shapes, separated by commas [default: all ten on a GPU, m130m on the CPU]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    shape: Vec<String>,
    /// Element type of x, B, C and y: f32, f16 or bf16 [default: bf16 on a GPU, f32 on the CPU]
    #[arg(long)]
    dtype: Option<Dtype>,
    /// Tokens of one chunk; chosen where not given
    #[arg(long, value_name = "N")]
    chunk: Option<usize>,
    /// Time each of the three kernels alone as well; on a GPU
    #[arg(long)]
    kernels: bool,
    /// Write the JSON lines to a file instead of below the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the times against sequence length and state size, to .svg or .png; where no shape is named, time the 11 shapes
    /// of this figure, on a GPU
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// JSON lines of an earlier run to draw, instead of timing anything; may be repeated
    #[arg(
        long,
        value_name = "FILE",
        requires = "plot",
        conflicts_with_all = ["device", "target", "shape", "dtype", "chunk", "kernels", "json"]
    )]
    from: Vec<PathBuf>,
    /// JSON lines of a peer's times to draw as well; may be repeated
    #[arg(long, value_name = "FILE", requires = "plot")]
    peer: Vec<PathBuf>,
}

/// What is known of one timed shape; one JSON line.
#[derive(Debug, Clone, Serialize)]
struct Row {
    shape: String,
    /// Median time of one pass. Missing where the result was wrong.
    us: Option<f64>,
    dtype: &'static str,
    chunk: usize,
    /// Whether the block sizes are a result of tuning.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tuned: bool,
    device: String,
    target: String,
    error_y: f64,
    error_state: f64,
    floor_bytes_us: f64,
    floor_flops_us: f64,
    /// Time of the f32 product with the same multiply-adds, on the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    product_us: Option<f64>,
    /// Times of the kernels alone, in the order in which they run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kernel_us: Vec<f64>,
    #[serde(skip)]
    product: Option<String>,
    #[serde(skip)]
    passed: bool,
}

/// Times all shapes. False if any result is outside its limits.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let figure = args.plot.as_ref().map(|path| Figure::new(path, &args.peer)).transpose()?;
    if let (Some(figure), false) = (&figure, args.from.is_empty()) {
        figure.draw_files(&args.from)?;
        return Ok(true);
    }
    let engine = Engine::open(&args.device)?.with_target(args.target.as_deref())?;
    if engine.counts().is_some() {
        return Err("times of a PTX executor mean nothing; write best, cpu, cuda or cuda:N".into());
    }
    let shapes = shapes(&args.shape, engine.is_gpu(), figure.is_some())?;
    let dtype = args.dtype.unwrap_or(if engine.is_gpu() { Dtype::BF16 } else { Dtype::F32 });
    let progress = ProgressBar::new(shapes.len() as u64);
    progress.set_style(ProgressStyle::with_template("[{pos}/{len}] {elapsed} {msg}")?);
    let mut rows = Vec::new();
    for (name, shape) in &shapes {
        rows.push(time_shape(&engine, name, *shape, dtype, args, &progress)?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    print!("{}", table(&rows));
    let mut lines = String::new();
    for row in &rows {
        lines += &serde_json::to_string(row)?;
        lines.push('\n');
    }
    match &args.json {
        Some(path) => fs::write(path, &lines).map_err(|e| format!("{}: {e}", path.display()))?,
        None => print!("\n{lines}"),
    }
    if let Some(figure) = figure {
        figure.draw_lines(&lines)?;
    }
    Ok(rows.iter().all(|row| row.passed))
}

/// The asked-for shapes, or those that suit the device.
fn shapes(names: &[String], is_gpu: bool, plot: bool) -> Result<Vec<(String, Shape)>> {
    if !names.is_empty() {
        return names.iter().map(|name| Ok((name.clone(), problem::named(name)?))).collect();
    }
    if plot && !is_gpu {
        return Err(
            "the figure's shapes take a GPU; name some with --shape, or draw earlier JSON lines with \
                    --from FILE"
                .into(),
        );
    }
    if plot {
        return Ok(problem::sweep().map(|(name, shape)| (name.to_owned(), shape)).collect());
    }
    let suits = |name: &str| is_gpu || name == "m130m";
    let known = problem::NAMED.iter().filter(|(name, _)| suits(name));
    Ok(known.map(|(name, shape)| ((*name).to_owned(), *shape)).collect())
}

fn time_shape(
    engine: &Engine,
    name: &str,
    shape: Shape,
    dtype: Dtype,
    args: &Args,
    progress: &ProgressBar,
) -> Result<Row> {
    let step = |what: &str| progress.set_message(format!("{name}: {what}"));
    step("generating inputs");
    let case = inputs::generate(shape, dtype, 0);
    step("float64 reference");
    let expected = accuracy::reference_heads(&case)?;
    step("compiling and checking");
    let loaded = engine.load(&case, args.chunk)?;
    let choice = loaded.choice()?;
    let errors = accuracy::errors(&case, &expected, &loaded.run()?);
    let limits = tolerance::forward(dtype, None);
    let passed = errors.within(&limits);
    step("timing");
    let mut product = (!engine.is_gpu()).then(|| Product::of(shape.multiply_adds(problem::FLOOR_CHUNK)));
    let time = if passed { Some(time(engine, &loaded)?) } else { None };
    let mut kernels = Vec::new();
    if passed && args.kernels && engine.is_gpu() {
        for kernel in mamba2::KERNELS {
            kernels.push(loaded.time_kernel(kernel)?);
        }
    }
    let product_time = product.as_mut().map(|product| {
        product.time_once();
        median((0..CPU_RUNS).map(|_| product.time_once()).collect())
    });
    if !passed {
        progress.println(failure(name, &errors, &limits));
    }
    let floor = shape.floor();
    let us = |time: Duration| (time.as_secs_f64() * 1e7).round() / 10.0;
    Ok(Row {
        shape: name.to_owned(),
        us: time.map(us),
        dtype: dtype.name(),
        chunk: choice.chunk,
        tuned: choice.tuned,
        device: engine.device_name(),
        target: engine.target_name(),
        error_y: errors.y,
        error_state: errors.state,
        floor_bytes_us: floor.bytes_us,
        floor_flops_us: floor.flops_us,
        product_us: product_time.map(us),
        kernel_us: kernels.into_iter().map(us).collect(),
        product: product.map(|product| product.sizes()),
        passed,
    })
}

fn failure(name: &str, errors: &Errors, limits: &Limits) -> String {
    format!("{name} is wrong, so it was not timed: {}", text::errors(errors, limits))
}

fn time(engine: &Engine, loaded: &Loaded) -> Result<Duration> {
    if engine.is_gpu() {
        return loaded.time_replays();
    }
    loaded.time_once()?;
    Ok(median((0..CPU_RUNS).map(|_| loaded.time_once()).collect::<Result<_>>()?))
}

fn table(rows: &[Row]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let mut text = format!("{}, target {}, {}\n", first.device, first.target, first.dtype);
    text +=
        &format!("{:10} {:>5} {:>11} {:>9} {:>9} {:>9}", "shape", "chunk", "us", "floor us", "y", "state");
    let on_cpu = first.product_us.is_some();
    text += if on_cpu { "  f32 product of the same multiply-adds\n" } else { "\n" };
    for row in rows {
        let us = row.us.map_or("wrong".to_owned(), |us| format!("{us:.1}"));
        let floor = row.floor_bytes_us.max(row.floor_flops_us);
        text += &format!(
            "{:10} {:>5} {us:>11} {floor:>9.1} {:>9.2e} {:>9.2e}",
            row.shape, row.chunk, row.error_y, row.error_state
        );
        if let (Some(product_us), Some(sizes)) = (row.product_us, &row.product) {
            text += &format!("  {product_us:.1} us ({sizes})");
            if let Some(us) = row.us {
                text += &format!(", ratio {:.2}", us / product_us);
            }
        }
        if !row.kernel_us.is_empty() {
            let alone: Vec<String> = row.kernel_us.iter().map(|us| format!("{us:.1}")).collect();
            text += &format!("  {} us alone", alone.join(", "));
        }
        text.push('\n');
    }
    if !on_cpu {
        text += "floor: H200, each byte moved once or bf16 products at chunk 128, whichever takes longer\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            shape: "m130m".into(),
            us: Some(2000.0),
            dtype: "f32",
            chunk: 128,
            tuned: false,
            device: "CPU".into(),
            target: "cpu".into(),
            error_y: 1e-6,
            error_state: 2e-6,
            floor_bytes_us: 3.0,
            floor_flops_us: 2.0,
            product_us: Some(1000.0),
            kernel_us: Vec::new(),
            product: Some("4 x 1024 x 1024".into()),
            passed: true,
        }
    }

    #[test]
    fn the_default_shapes_suit_the_device() {
        assert_eq!(shapes(&[], true, false).unwrap().len(), 10);
        let cpu = shapes(&[], false, false).unwrap();
        assert_eq!(cpu.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["m130m"]);
        assert!(shapes(&["nothing".into()], true, false).is_err());
        assert_eq!(shapes(&[], true, true).unwrap().len(), 11);
        assert!(shapes(&[], false, true).unwrap_err().to_string().contains("--from FILE"));
        assert_eq!(shapes(&["t2k".into()], false, true).unwrap().len(), 1);
    }

    #[test]
    fn a_row_becomes_a_json_line_and_a_table_line() {
        let json: serde_json::Value = serde_json::from_str(&serde_json::to_string(&row()).unwrap()).unwrap();
        assert_eq!((&json["shape"], &json["us"]), (&"m130m".into(), &2000.0.into()));
        let text = table(&[row(), Row { us: None, passed: false, ..row() }]);
        assert!(text.contains("1000.0 us (4 x 1024 x 1024), ratio 2.00"), "{text}");
        assert!(text.lines().last().unwrap().contains("wrong"), "{text}");
    }
}
