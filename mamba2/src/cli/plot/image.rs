//! The figure as a file: SVG text, or the bytes of a PNG.

use std::path::Path;

use plotters::{
    backend::{BitMapBackend, SVGBackend},
    style::{FontStyle, register_font},
};

use super::super::Result;
use super::draw;
use super::series::Series;

/// What kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Svg,
    Png,
}

/// Pixels of a PNG for each point of the figure.
pub(super) const SCALE: u32 = 2;

impl Format {
    /// The kind that the ending of a file name says.
    ///
    /// # Errors
    /// For any other ending than .svg and .png.
    pub(super) fn of(path: &Path) -> Result<Format> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        match ending.as_str() {
            "svg" => Ok(Format::Svg),
            "png" => Ok(Format::Png),
            _ => Err(format!("{}: a figure's file name must end in .svg or .png", path.display()).into()),
        }
    }
}

/// Makes the font known that text is measured and, in a PNG, drawn with.
fn load_font() -> Result<()> {
    register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular())
        .map_err(|_| "the font of the figure cannot be read".into())
}

/// The figure as SVG.
///
/// # Errors
/// If there is nothing to draw.
pub(super) fn svg(series: &[Series]) -> Result<String> {
    load_font()?;
    let mut text = String::new();
    draw::figure(SVGBackend::with_string(&mut text, draw::size(series)), 1, series)?;
    Ok(text)
}

/// The figure as a PNG of [`SCALE`] pixels a point. It is drawn twice as large, so that edges come out smooth.
///
/// # Errors
/// If there is nothing to draw.
pub(super) fn png(series: &[Series]) -> Result<Vec<u8>> {
    const SMOOTH: u32 = 2;
    load_font()?;
    let (width, height) = draw::size(series);
    let (width, height) = (width * SCALE, height * SCALE);
    let large = (width * SMOOTH, height * SMOOTH);
    let mut pixels = vec![0; 3 * large.0 as usize * large.1 as usize];
    draw::figure(BitMapBackend::with_buffer(&mut pixels, large), SCALE * SMOOTH, series)?;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&halve(&pixels, large.0 as usize))?;
    Ok(file)
}

/// An image of half the width and height, each pixel the mean of four.
fn halve(pixels: &[u8], width: usize) -> Vec<u8> {
    let mut half = Vec::with_capacity(pixels.len() / 4);
    for rows in pixels.chunks_exact(2 * 3 * width) {
        let (upper, lower) = rows.split_at(3 * width);
        for (upper, lower) in upper.chunks_exact(6).zip(lower.chunks_exact(6)) {
            for colour in 0..3 {
                let four = [upper[colour], upper[colour + 3], lower[colour], lower[colour + 3]];
                half.push((four.into_iter().map(u32::from).sum::<u32>() / 4) as u8);
            }
        }
    }
    half
}
