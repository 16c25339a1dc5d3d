//! Whether the arguments of a pass fit each other, before anything runs.

use tile_runtime::{Device, DeviceTensor, Element};

use crate::arguments::Inputs;
use crate::error::{Error, Result};
use crate::problem::Shape;

pub(crate) fn fault<T>(argument: &'static str, found: String, expected: impl Into<String>) -> Result<T> {
    Err(Error::Argument { argument, found, expected: expected.into() })
}

/// Checks an argument's shape and device.
pub(crate) fn fits<T: Element>(
    argument: &'static str,
    t: &DeviceTensor<T>,
    shape: &[usize],
    device: &Device,
) -> Result<()> {
    if t.shape() != shape {
        return fault(argument, format!("has shape {:?}", t.shape()), format!("{shape:?}"));
    }
    on(argument, t.device(), device)
}

fn on(argument: &'static str, found: &Device, device: &Device) -> Result<()> {
    if found == device {
        return Ok(());
    }
    fault(argument, format!("is on {found}"), format!("{device}, where x is; copy it with `to_device`"))
}

/// Checks a range of dt.
pub(crate) fn dt_limit((low, high): (f32, f32)) -> Result<()> {
    if low <= high {
        return Ok(());
    }
    fault("dt_limit", format!("is ({low}, {high})"), "a lower limit that is at most the upper one")
}

/// The problem's sizes, if all inputs agree on them.
pub(crate) fn check<T: Element, Dt: Element, D: Element, Z: Element, S: Element>(
    inputs: &Inputs<'_, T, Dt, D, Z, S>,
) -> Result<Shape> {
    let shape = sizes(inputs)?;
    let Shape { batch, tokens, groups, heads, head_dim, state } = shape;
    let device = inputs.x.device();
    fits("dt", inputs.dt, &[batch, tokens, heads], device)?;
    fits("a", inputs.a, &[heads], device)?;
    fits("b", inputs.b, &[batch, tokens, groups, state], device)?;
    fits("c", inputs.c, &[batch, tokens, groups, state], device)?;
    if let Some(bias) = inputs.dt_bias {
        fits("dt_bias", bias, &[heads], device)?;
    }
    dt_limit(inputs.dt_limit)?;
    if let Some(d) = inputs.d {
        if d.shape() != [heads] && d.shape() != [heads, head_dim] {
            let expected = format!("[{heads}] or [{heads}, {head_dim}]");
            return fault("d", format!("has shape {:?}", d.shape()), expected);
        }
        on("d", d.device(), device)?;
    }
    if let Some(z) = inputs.z {
        fits("z", z, &[batch, tokens, heads, head_dim], device)?;
    }
    let mut rows = batch;
    if let Some(sequences) = inputs.sequences {
        let (found, expected) = ([sequences.batch(), sequences.tokens()], [batch, tokens]);
        if found != expected {
            return fault(
                "sequences",
                format!("describe {} batch elements of {} tokens", found[0], found[1]),
                format!("{batch} of {tokens}, as x has"),
            );
        }
        on("sequences", sequences.device(), device)?;
        if sequences.own_states() {
            rows = sequences.count();
        }
    }
    if let Some(initial) = inputs.initial_states {
        fits("initial_states", initial, &[rows, heads, head_dim, state], device)?;
    }
    Ok(shape)
}

/// The sizes that x and B give.
fn sizes<T, Dt, D, Z, S>(inputs: &Inputs<'_, T, Dt, D, Z, S>) -> Result<Shape> {
    let &[batch, tokens, heads, head_dim] = inputs.x.shape() else {
        let found = format!("has shape {:?}", inputs.x.shape());
        return fault("x", found, "[batch, tokens, heads, head_dim]");
    };
    let &[_, _, groups, state] = inputs.b.shape() else {
        let found = format!("has shape {:?}", inputs.b.shape());
        return fault("b", found, "[batch, tokens, groups, state]");
    };
    if groups == 0 || heads % groups != 0 {
        let found = format!("has {groups} groups");
        return fault("b", found, format!("a number of groups that divides the {heads} heads"));
    }
    for (argument, size, of) in [("x", head_dim, "head_dim"), ("b", state, "state")] {
        if !(1..=256).contains(&size) {
            return fault(argument, format!("has {of} {size}"), "1 to 256");
        }
    }
    Ok(Shape { batch, tokens, groups, heads, head_dim, state })
}
