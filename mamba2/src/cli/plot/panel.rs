//! The two panels of the figure: which points each has, its axes and their ticks.

use mamba2::problem::{self, Shape};

use super::series::Series;

/// The axis along which a panel goes; all other sizes are those of the shape `seed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Along {
    Tokens,
    State,
}

impl Along {
    fn size(self, shape: Shape) -> usize {
        match self {
            Along::Tokens => shape.tokens,
            Along::State => shape.state,
        }
    }

    fn with(self, seed: Shape, size: usize) -> Shape {
        match self {
            Along::Tokens => Shape { tokens: size, ..seed },
            Along::State => Shape { state: size, ..seed },
        }
    }

    /// What stands above the panel.
    pub(super) fn title(self, seed: Shape) -> String {
        match self {
            Along::Tokens => format!("state {}", seed.state),
            Along::State => format!("{} tokens", seed.tokens),
        }
    }

    /// What stands below its axis.
    pub(super) fn axis(self) -> &'static str {
        match self {
            Along::Tokens => "sequence length, tokens",
            Along::State => "state size, values a channel",
        }
    }
}

/// Points as (base-2 logarithm of the size, base-10 logarithm of the time in microseconds).
pub(super) type Points = Vec<(f64, f64)>;

/// A panel, ready to be drawn.
#[derive(Debug)]
pub(super) struct Panel {
    pub(super) along: Along,
    /// The points of each series of the figure, by size.
    pub(super) lines: Vec<Points>,
    /// The lower bound, if it says anything of the devices in the figure.
    pub(super) floor: Option<Points>,
    pub(super) x: (f64, f64),
    pub(super) y: (f64, f64),
}

impl Panel {
    /// The panel along an axis; none if no series has a point on it.
    pub(super) fn new(along: Along, series: &[Series]) -> Option<Panel> {
        let seed = seed();
        let place = |shape: Shape, us: f64| ((along.size(shape) as f64).log2(), us.log10());
        let mut lines = Vec::new();
        let mut sizes = Vec::new();
        for one in series {
            let mut on: Vec<(Shape, f64)> = one.points.clone();
            on.retain(|&(shape, _)| along.with(seed, along.size(shape)) == shape);
            on.sort_by_key(|&(shape, _)| along.size(shape));
            sizes.extend(on.iter().map(|&(shape, _)| along.size(shape)));
            lines.push(on.into_iter().map(|(shape, us)| place(shape, us)).collect::<Points>());
        }
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.is_empty() {
            return None;
        }
        let floor = |size: &usize| {
            let shape = along.with(seed, *size);
            place(shape, shape.floor().us())
        };
        // The bound is that of a GPU, far below the times of a CPU.
        let floor = series.iter().any(|one| !one.on_cpu).then(|| sizes.iter().map(floor).collect::<Points>());
        let all = || lines.iter().chain(&floor).flatten();
        let x = padded(all().map(|point| point.0), 0.25);
        let y = padded(all().map(|point| point.1), 0.1);
        Some(Panel { along, lines, floor, x, y })
    }

    /// Places of ticks on the axis of sizes: powers of two.
    pub(super) fn x_ticks(&self) -> Vec<f64> {
        (self.x.0.ceil() as i32..=self.x.1.floor() as i32).map(f64::from).collect()
    }

    /// Places of ticks on the axis of times: 1, 2 and 5 times powers of ten, or the powers alone where these are many.
    pub(super) fn y_ticks(&self) -> Vec<f64> {
        let steps: &[f64] = if self.y.1 - self.y.0 > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let decades = self.y.0.floor() as i32..=self.y.1.ceil() as i32;
        let ticks = decades.flat_map(|decade| steps.iter().map(move |step| f64::from(decade) + step.log10()));
        ticks.filter(|tick| (self.y.0..=self.y.1).contains(tick)).collect()
    }
}

/// The shape at which the two panels meet.
pub(super) fn seed() -> Shape {
    problem::named("seed").expect("the shape has this name")
}

/// The range of values, and so much on either side.
fn padded(values: impl Iterator<Item = f64>, by: f64) -> (f64, f64) {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
    (low - by, high + by)
}

/// 2^`log2` as it is written at a tick: 512, 1k, 64k.
pub(super) fn size_label(log2: f64) -> String {
    let size = log2.exp2().round() as u64;
    if size >= 1024 && size.is_multiple_of(1024) { format!("{}k", size / 1024) } else { size.to_string() }
}

/// 10^`log10` microseconds as they are written at a tick.
pub(super) fn time_label(log10: f64) -> String {
    let us = 10f64.powf(log10);
    if us >= 1.0 { format!("{us:.0}") } else { format!("{us:.*}", (-log10).ceil() as usize) }
}
