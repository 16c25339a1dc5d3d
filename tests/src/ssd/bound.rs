//! Whether each element of a result is within the errors that its roundings may have.

use mamba2::case::{Case, Skip};
use mamba2::reference::{Outputs, silu, softplus};
use mamba2::resident::HostOutputs;
use mamba2::tolerance::Roundings;

use super::bench::reference_of;

/// The first element of a result that is outside of its bound, in words; none if all is well.
pub fn fault(case: &Case, chunk: usize, found: &HostOutputs) -> Option<String> {
    let (right, size) = (reference_of(case), reference_of(&absolute(case)));
    let chunk = if case.step { 1 } else { chunk };
    let roundings = Roundings {
        dtype: case.dtype,
        state: case.shape.state,
        chunk,
        // A packed sequence may reach into one chunk more at both ends.
        chunks: case.shape.tokens.div_ceil(chunk) + 1,
        exponent: largest_exponent(case, chunk),
        softplus: case.dt_softplus,
        step: case.step,
    };
    let x = largest_sum(&case.x, case.shape.heads * case.shape.head_dim, case.shape.tokens);
    let c: f64 = case.c.chunks(case.shape.state).map(sum).fold(0.0, f64::max);
    // A least error of each weight of x, and of each state, that y sums.
    let least = (roundings.least() * (x + c * (1.0 + x)), roundings.least() * (1.0 + x));
    y_fault(case, &roundings, least.0, found, (&right, &size))
        .or_else(|| state_fault(&roundings, least.1, found, (&right, &size)))
}

fn y_fault(
    case: &Case,
    roundings: &Roundings,
    least: f64,
    found: &HostOutputs,
    (right, size): (&Outputs, &Outputs),
) -> Option<String> {
    if found.y.len() != right.y.len() {
        return Some(format!("{} values of y", found.y.len()));
    }
    let (c1, c2, unit) = (roundings.c1(), roundings.c2(), roundings.unit());
    (0..right.y.len()).find_map(|i| {
        let gate = case.z.as_ref().map_or(1.0, |z| silu(z[i].into()).abs());
        let bound = unit * (c1 * right.y[i].abs() + c2 * size.y[i] * gate) + least * gate + roundings.least();
        outside(found.y[i], right.y[i], bound).map(|text| format!("y[{i}] {text}"))
    })
}

fn state_fault(
    roundings: &Roundings,
    least: f64,
    found: &HostOutputs,
    (right, size): (&Outputs, &Outputs),
) -> Option<String> {
    let bound = |size: f64| roundings.unit() * roundings.c2_of_states() * size + least;
    let compare = |name: &str, found: &[f32], right: &[f64], size: &[f64]| {
        if found.len() != right.len() {
            return Some(format!("{} values of {name}", found.len()));
        }
        (0..right.len()).find_map(|i| {
            outside(found[i], right[i], bound(size[i])).map(|text| format!("{name}[{i}] {text}"))
        })
    };
    let finals = compare("final_states", &found.final_states, &right.final_states, &size.final_states);
    let (found, right, size) = (&found.sequence_states, &right.sequence_states, &size.sequence_states);
    finals.or_else(|| match (found, right, size) {
        (Some(found), Some(right), Some(size)) => compare("sequence_states", found, right, size),
        (None, None, _) => None,
        _ => Some("sequence_states are there, or not, against the rule".into()),
    })
}

fn outside(found: f32, right: f64, bound: f64) -> Option<String> {
    let difference = (f64::from(found) - right).abs();
    (difference.is_nan() || difference > bound)
        .then(|| format!("is {found:e}, expected {right:e} within {bound:e}"))
}

/// The case over absolute values and without gate. Its decays are the same.
fn absolute(case: &Case) -> Case {
    let abs = |values: &[f32]| values.iter().map(|value| value.abs()).collect::<Vec<_>>();
    Case {
        x: abs(&case.x),
        b: abs(&case.b),
        c: abs(&case.c),
        d: case.d.as_ref().map(|d| match d {
            Skip::PerHead(d) => Skip::PerHead(abs(d)),
            Skip::PerDim(d) => Skip::PerDim(abs(d)),
        }),
        z: None,
        initial_states: case.initial_states.as_deref().map(abs),
        ..case.clone()
    }
}

/// The largest sum of -A dt over the tokens of a chunk, each term at most 200, as the kernels have it.
fn largest_exponent(case: &Case, chunk: usize) -> f64 {
    let (heads, mut largest) = (case.shape.heads, 0.0_f64);
    for row in case.dt.chunks(case.shape.tokens.max(1) * heads) {
        for tokens in row.chunks(chunk * heads) {
            for head in 0..heads {
                let terms = tokens.iter().skip(head).step_by(heads).map(|&dt| {
                    let dt = f64::from(dt) + case.dt_bias.as_ref().map_or(0.0, |bias| bias[head].into());
                    let dt = if case.dt_softplus { softplus(dt) } else { dt };
                    (f64::from(-case.a[head]) * dt.clamp(case.dt_limit.0, case.dt_limit.1)).clamp(0.0, 200.0)
                });
                largest = largest.max(terms.sum());
            }
        }
    }
    largest
}

fn sum(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value.abs())).sum()
}

/// The largest sum of absolute values of a channel over the tokens of a batch element.
fn largest_sum(values: &[f32], width: usize, tokens: usize) -> f64 {
    let channel = |row: &[f32], at: usize| -> f64 {
        row.iter().skip(at).step_by(width).map(|&value| f64::from(value.abs())).sum()
    };
    let rows = values.chunks((width * tokens).max(1));
    rows.flat_map(|row| (0..width).map(move |at| channel(row, at))).fold(0.0, f64::max)
}
