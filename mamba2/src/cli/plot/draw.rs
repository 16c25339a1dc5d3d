//! The figure on any canvas: two panels beside each other, and below them what each line is.

use mamba2::problem::{self, Shape};
use plotters::{
    coord::{
        Shift,
        ranged1d::{DefaultFormatting, KeyPointHint, Ranged},
    },
    element::DashedPathElement,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::super::Result;
use super::panel::{Along, Panel, seed, size_label, time_label};
use super::series::Series;

/// Width in points.
const WIDTH: u32 = 1200;
/// Height of the title, of the panels, and of a row of the legend.
const TITLE: u32 = 44;
const PANELS: u32 = 440;
const ROW: u32 = 26;
/// Space below the legend.
const BOTTOM: u32 = 14;

/// Colours that people with any colour vision tell apart.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];
const FLOOR: RGBColor = RGBColor(110, 110, 110);
const MESH: RGBColor = RGBColor(222, 222, 222);
const FONT: &str = "sans-serif";

/// What the dashed line is.
pub(super) const FLOOR_LABEL: &str =
    "floor of an H200: each byte moved once, or bf16 products at chunk 128, whichever takes longer";

/// Width and height of the figure with so many rows in its legend, in points.
pub(super) fn size(series: &[Series]) -> (u32, u32) {
    (WIDTH, TITLE + PANELS + ROW * rows(series) + BOTTOM)
}

fn rows(series: &[Series]) -> u32 {
    (series.len() + 1) as u32
}

/// Draws at `scale` pixels a point.
///
/// # Errors
/// If nothing is to be drawn, or the canvas fails.
pub(super) fn figure<B: DrawingBackend>(canvas: B, scale: u32, series: &[Series]) -> Result<()>
where
    B::ErrorType: 'static,
{
    let panels = [Along::Tokens, Along::State].map(|along| Panel::new(along, series));
    if panels.iter().all(Option::is_none) {
        let shapes: Vec<&str> = problem::sweep().map(|(name, _)| name).collect();
        return Err(format!("there is no time to draw; time some of {}", shapes.join(", ")).into());
    }
    let area = canvas.into_drawing_area();
    let draw = || -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        area.fill(&WHITE)?;
        let (title, rest) = area.split_vertically(TITLE * scale);
        let (middle, legend) = rest.split_vertically(PANELS * scale);
        heading(&title, scale)?;
        for (panel, area) in panels.iter().zip(middle.split_evenly((1, 2))) {
            if let Some(panel) = panel {
                draw_panel(panel, &area, scale)?;
            }
        }
        let has_floor = panels.iter().flatten().any(|panel| panel.floor.is_some());
        draw_legend(series, has_floor, &legend, scale)?;
        area.present()
    };
    draw().map_err(|error| format!("the figure cannot be drawn: {error}").into())
}

type Drawn<B> = Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

fn heading<B: DrawingBackend>(area: &DrawingArea<B, Shift>, scale: u32) -> Drawn<B> {
    let Shape { batch, groups, heads, head_dim, .. } = seed();
    let text =
        format!("Mamba-2 forward pass: batch {batch}, groups {groups}, heads {heads}, head_dim {head_dim}");
    let style = (FONT, 24 * scale).into_text_style(area).pos(centred());
    area.draw_text(&text, &style, ((WIDTH * scale / 2) as i32, (TITLE * scale / 2) as i32))
}

/// Text whose middle is where it is placed.
fn centred() -> Pos {
    Pos::new(HPos::Center, VPos::Center)
}

/// An axis of logarithms, with ticks where they are wanted.
struct Axis {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let part = (value - self.low) / (self.high - self.low);
        from + (part * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.low..self.high
    }
}

fn draw_panel<B: DrawingBackend>(panel: &Panel, area: &DrawingArea<B, Shift>, scale: u32) -> Drawn<B> {
    let x = Axis { low: panel.x.0, high: panel.x.1, ticks: panel.x_ticks() };
    let y = Axis { low: panel.y.0, high: panel.y.1, ticks: panel.y_ticks() };
    let mut chart = ChartBuilder::on(area)
        .margin(8 * scale)
        .margin_right(24 * scale)
        .caption(panel.along.title(seed()), (FONT, 19 * scale))
        .x_label_area_size(52 * scale)
        .y_label_area_size(74 * scale)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .bold_line_style(MESH.stroke_width(scale))
        .light_line_style(TRANSPARENT)
        .axis_style(BLACK.stroke_width(scale))
        .set_all_tick_mark_size(6 * scale)
        .label_style((FONT, 16 * scale))
        .axis_desc_style((FONT, 17 * scale))
        .x_label_formatter(&|&x| size_label(x))
        .y_label_formatter(&|&y| time_label(y))
        .x_desc(panel.along.axis())
        .y_desc("time of one pass, µs")
        .draw()?;
    if let Some(floor) = &panel.floor {
        let dashes = (7 * scale, 5 * scale);
        let style = FLOOR.stroke_width(2 * scale);
        chart.draw_series(DashedLineSeries::new(floor.clone(), dashes.0, dashes.1, style))?;
    }
    for (index, points) in panel.lines.iter().enumerate().filter(|(_, points)| !points.is_empty()) {
        let style = colour(index).stroke_width(2 * scale);
        chart.draw_series(LineSeries::new(points.clone(), style))?;
        for &point in points {
            chart.plotting_area().draw(&marker(index, point, scale))?;
        }
    }
    Ok(())
}

fn colour(series: usize) -> RGBColor {
    COLOURS[series % COLOURS.len()]
}

/// A filled mark of the series' own form and colour.
fn marker<'b, B: DrawingBackend + 'b, C: Clone + 'b>(
    series: usize,
    at: C,
    scale: u32,
) -> DynElement<'b, B, C> {
    let style = colour(series).filled();
    let r = 5 * scale as i32;
    match series % 3 {
        0 => (EmptyElement::at(at) + Circle::new((0, 0), r, style)).into_dyn(),
        1 => {
            let corners = vec![(0, -r - 1), (r + 1, r - 1), (-r - 1, r - 1)];
            (EmptyElement::at(at) + Polygon::new(corners, style)).into_dyn()
        }
        _ => (EmptyElement::at(at) + Rectangle::new([(1 - r, 1 - r), (r - 1, r - 1)], style)).into_dyn(),
    }
}

/// A row for each line of the figure: a piece of it, and what it is.
fn draw_legend<B: DrawingBackend>(
    series: &[Series],
    has_floor: bool,
    area: &DrawingArea<B, Shift>,
    scale: u32,
) -> Drawn<B> {
    let scaled = |n: u32| (n * scale) as i32;
    let (left, right) = (scaled(90), scaled(140));
    let row = |index: usize| scaled(ROW) * index as i32 + scaled(ROW) / 2;
    let style = (FONT, 17 * scale).into_text_style(area).pos(Pos::new(HPos::Left, VPos::Center));
    for (index, one) in series.iter().enumerate() {
        let y = row(index);
        area.draw(&PathElement::new([(left, y), (right, y)], colour(index).stroke_width(2 * scale)))?;
        area.draw(&marker::<B, _>(index, ((left + right) / 2, y), scale))?;
        area.draw_text(&one.label, &style, (right + scaled(12), y))?;
    }
    if has_floor {
        let y = row(series.len());
        let style_of_line = FLOOR.stroke_width(2 * scale);
        let ends = [(left, y), (right, y)];
        area.draw(&DashedPathElement::new(ends, 7 * scale, 5 * scale, style_of_line))?;
        area.draw_text(FLOOR_LABEL, &style, (right + scaled(12), y))?;
    }
    Ok(())
}
