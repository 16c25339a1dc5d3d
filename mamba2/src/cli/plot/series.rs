//! JSON lines of timings as series: what was timed, and a time for each shape.

use std::path::Path;

use mamba2::problem::{self, Shape};
use serde::Deserialize;

use super::super::Result;

/// The times of one program on one device.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) label: String,
    /// Whether it ran on a CPU.
    pub(super) on_cpu: bool,
    /// Each shape with its time in microseconds, in the order of the lines.
    pub(super) points: Vec<(Shape, f64)>,
}

/// What is read of a line; other fields are left alone.
#[derive(Debug, Deserialize)]
struct Line {
    shape: String,
    /// Missing or null where a result was wrong.
    us: Option<f64>,
    peer: Option<String>,
    device: Option<String>,
    target: Option<String>,
    dtype: Option<String>,
}

impl Line {
    /// The name in the legend. `file` names those that do not say what they are.
    fn label(&self, file: &str) -> String {
        if let Some(peer) = &self.peer {
            return peer.clone();
        }
        let Some(device) = &self.device else {
            return Path::new(file).file_stem().unwrap_or(file.as_ref()).to_string_lossy().into_owned();
        };
        let parts = [Some("mamba2"), Some(device), self.target.as_deref(), self.dtype.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// The series in the lines of `file`, in the order in which they begin. Empty lines and those that begin with `#` say nothing.
///
/// # Errors
/// For a line that is no JSON object with a known `shape` and a time `us`; it names the file and the line.
pub(super) fn parse(file: &str, text: &str) -> Result<Vec<Series>> {
    let mut all = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: String| format!("{file}, line {}: {what}", index + 1);
        let line: Line = serde_json::from_str(line).map_err(|e| {
            wrong(format!("{e}; expected a line such as {{\"shape\": \"seed\", \"us\": 245.2}}"))
        })?;
        let shape = problem::named(&line.shape).map_err(|e| wrong(e.to_string()))?;
        let Some(us) = line.us else { continue };
        if !us.is_finite() || us <= 0.0 {
            return Err(wrong(format!("`us` is {us}, expected a time above 0")).into());
        }
        let on_cpu = line.target.as_deref() == Some("cpu");
        all.push(Series { label: line.label(file), on_cpu, points: vec![(shape, us)] });
    }
    Ok(merge(all))
}

/// Series of one label as one. Where a shape was timed twice, the later time counts.
pub(super) fn merge(series: Vec<Series>) -> Vec<Series> {
    let mut merged: Vec<Series> = Vec::new();
    for one in series {
        match merged.iter_mut().find(|known| known.label == one.label) {
            Some(known) => known.points.extend(one.points),
            None => merged.push(one),
        }
    }
    for series in &mut merged {
        let mut points: Vec<(Shape, f64)> = Vec::new();
        for &(shape, us) in &series.points {
            match points.iter_mut().find(|(known, _)| *known == shape) {
                Some(point) => point.1 = us,
                None => points.push((shape, us)),
            }
        }
        series.points = points;
    }
    merged
}
