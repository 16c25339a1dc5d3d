//! Times drawn against sequence length and state size: the lines of a benchmark as a figure, SVG or PNG.

mod draw;
mod image;
mod panel;
mod series;

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::Result;
use image::Format;
use series::Series;

/// A figure that is asked for: where it goes, and what is in it beside the lines of this run.
pub(crate) struct Figure<'a> {
    path: &'a Path,
    format: Format,
    peers: Vec<Series>,
}

impl<'a> Figure<'a> {
    /// Reads the timings of peers, before anything is timed.
    ///
    /// # Errors
    /// If the file name ends in neither .svg nor .png, or a file of peers cannot be read.
    pub(crate) fn new(path: &'a Path, peers: &[PathBuf]) -> Result<Figure<'a>> {
        Ok(Figure { path, format: Format::of(path)?, peers: read(peers)? })
    }

    /// Draws JSON lines of this run.
    ///
    /// # Errors
    /// If nothing among them is of the sweep, or the file cannot be written.
    pub(crate) fn draw_lines(&self, lines: &str) -> Result<()> {
        let series = series::parse("this run", lines)?;
        self.draw(series)
    }

    /// Draws the JSON lines of earlier runs.
    ///
    /// # Errors
    /// As [`Figure::draw_lines`], and for a file that cannot be read.
    pub(crate) fn draw_files(&self, files: &[PathBuf]) -> Result<()> {
        let series = read(files)?;
        self.draw(series)
    }

    fn draw(&self, mut series: Vec<Series>) -> Result<()> {
        series.extend(self.peers.iter().cloned());
        let series = series::merge(series);
        let file = match self.format {
            Format::Svg => image::svg(&series)?.into_bytes(),
            Format::Png => image::png(&series)?,
        };
        fs::write(self.path, file).map_err(|e| format!("{}: {e}", self.path.display()).into())
    }
}

fn read(files: &[PathBuf]) -> Result<Vec<Series>> {
    let mut all = Vec::new();
    for file in files {
        let name = file.display().to_string();
        let text = fs::read_to_string(file).map_err(|e| format!("{name}: {e}"))?;
        all.extend(series::parse(&name, &text)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
