//! Launches of the kernels around the state space model, with their block sizes.

use tile_runtime::prelude::*;
use tile_runtime::{DeviceTensor, Grid, Launch, Stream, Target, target_of};

use crate::arguments::Value;
use crate::error::Result;
use crate::kernels;
use crate::sequences::Sequences;

/// Rows of tiles that blocks of a product go down before they go right.
const GROUP: usize = 16;
/// Elements of a block of the convolution.
const CONV_BLOCK: usize = 4096;

/// Part `range` of the last axis of `t`, seen as axes `shape`.
pub(super) fn part<T: Element>(
    t: &DeviceTensor<T>,
    range: std::ops::Range<usize>,
    shape: &[usize],
) -> Result<DeviceTensor<T>> {
    let last = t.rank() - 1;
    let slice = t.slice(last, range)?;
    let (mut shapes, mut strides) = (t.shape()[..last].to_vec(), t.strides()[..last].to_vec());
    for (axis, &size) in shape.iter().enumerate() {
        let inner: usize = shape[axis + 1..].iter().product();
        shapes.push(size);
        strides.push(inner as i64 * t.strides()[last]);
    }
    Ok(t.with_strides(&shapes, &strides, slice.offset_elements())?)
}

/// Where the kernels of one call are queued, and what their code is generated for.
#[derive(Clone)]
pub(super) struct Queue {
    pub(super) stream: Stream,
    /// As in the options.
    pub(super) target: Option<Target>,
}

impl Queue {
    fn launch(&self, launch: Launch<'_>, grid: impl Into<Grid>) -> Result<()> {
        let launch = launch.on(&self.stream);
        let launch = if let Some(target) = &self.target { launch.target(target) } else { launch };
        Ok(launch.launch(grid)?)
    }
}

/// `y = x W^T + bias` for `x` `[.., inputs]`: each matrix of its last two axes.
pub(super) fn linear<T: Value>(
    x: &DeviceTensor<T>,
    weight: &DeviceTensor<T>,
    bias: Option<&DeviceTensor<T>>,
    queue: &Queue,
) -> Result<DeviceTensor<T>> {
    let &[batch, tokens, inputs] = x.shape() else { unreachable!("the shape is checked") };
    let outputs = weight.shape()[0];
    let y = DeviceTensor::uninit(x.device(), &[batch, tokens, outputs])?;
    // One product of all rows where they lie at equal distances.
    if x.strides()[0] == tokens as i64 * x.strides()[1] || batch <= 1 {
        let strides = [x.strides()[1], x.strides()[2]];
        let rows = x.with_strides(&[batch * tokens, inputs], &strides, x.offset_elements())?;
        let mut y = y.reshape(&[batch * tokens, outputs])?;
        product(&rows, weight, bias, &mut y, queue)?;
    } else {
        for element in 0..batch {
            product(&x.select(0, element)?, weight, bias, &mut y.select(0, element)?, queue)?;
        }
    }
    Ok(y)
}

fn product<T: Value>(
    x: &DeviceTensor<T>,
    weight: &DeviceTensor<T>,
    bias: Option<&DeviceTensor<T>>,
    y: &mut DeviceTensor<T>,
    queue: &Queue,
) -> Result<()> {
    let (rows, outputs) = (x.shape()[0], weight.shape()[0]);
    let few = rows.next_power_of_two().clamp(16, 64);
    let (tiles, warps) = match (T::TYPE.bytes(), queue.target.or(target_of(x.device()))) {
        (4, _) => ([few, 64, 32], 4),
        (_, Some(Target::SM_90A)) if rows > 1024 && outputs > 128 => ([128, 256, 64], 8),
        _ if rows > 64 => ([128, 128, 64], 4),
        _ => ([few, 128, 64], 4),
    };
    let [m, n, k] = tiles;
    let grid = rows.div_ceil(m) * outputs.div_ceil(n);
    let config = Config { num_warps: Some(warps), ..Config::default() };
    queue.launch(kernels::linear(x, weight, bias, y, m, n, k, GROUP).config(config), grid)
}

/// The filters of a convolution, a row a channel.
pub(super) struct Filters<'a> {
    /// `[channels, width]`
    pub(super) weight: &'a DeviceTensor<f32>,
    /// `[channels]`
    pub(super) bias: Option<&'a DeviceTensor<f32>>,
}

/// The convolution and silu of `x` `[batch, tokens, channels]`, and the inputs that later tokens need: of each sequence that has
/// a state of its own, or else of each batch element.
pub(super) fn conv1d<T: Value>(
    x: &DeviceTensor<T>,
    filters: &Filters<'_>,
    before: Option<&DeviceTensor<T>>,
    sequences: Option<&Sequences>,
    queue: &Queue,
) -> Result<(DeviceTensor<T>, DeviceTensor<T>)> {
    let &[batch, tokens, channels] = x.shape() else { unreachable!("the shape is checked") };
    let width = filters.weight.shape()[1];
    let own_rows = sequences.is_some_and(Sequences::own_states);
    let count = sequences.map_or(batch, Sequences::count);
    let rows = if own_rows { count } else { batch };
    let (block_width, block_channels) = (width.next_power_of_two(), channels.next_power_of_two().min(64));
    let block_tokens = tokens.next_power_of_two().clamp(1, CONV_BLOCK / block_channels);
    let mut y = DeviceTensor::uninit(x.device(), &[batch, tokens, channels])?;
    let grid = [tokens.div_ceil(block_tokens), channels.div_ceil(block_channels), batch];
    let number = sequences.map(|s| &s.number);
    let table = sequences.map(|s| &s.table);
    let (weight, bias) = (filters.weight, filters.bias);
    let silu = true;
    queue.launch(
        kernels::conv1d(x, weight, bias, before, number, &mut y, silu, width, block_tokens, block_channels),
        grid,
    )?;
    let mut state = DeviceTensor::uninit(x.device(), &[rows, channels, width])?;
    queue.launch(
        kernels::conv1d_state(x, before, table, &mut state, own_rows, width, block_width, block_channels),
        [channels.div_ceil(block_channels), count],
    )?;
    Ok((y, state))
}

/// The convolution and silu of a few tokens, whose state is updated in place.
pub(super) fn conv1d_step<T: Value>(
    x: &DeviceTensor<T>,
    filters: &Filters<'_>,
    slots: Option<&DeviceTensor<i32>>,
    state: &mut DeviceTensor<T>,
    queue: &Queue,
) -> Result<DeviceTensor<T>> {
    let &[batch, _, channels] = x.shape() else { unreachable!("the shape is checked") };
    let width = filters.weight.shape()[1];
    let (block_width, block_channels) = (width.next_power_of_two(), channels.next_power_of_two().min(128));
    let mut y = DeviceTensor::uninit(x.device(), x.shape())?;
    let (weight, bias) = (filters.weight, filters.bias);
    let silu = true;
    queue.launch(
        kernels::conv1d_step(x, weight, bias, slots, state, &mut y, silu, width, block_width, block_channels),
        [channels.div_ceil(block_channels), batch],
    )?;
    Ok(y)
}

/// The gated norm over groups: `x` and `z` `[rows, groups, channels]`.
pub(super) fn gated_norm<T: Value>(
    x: &DeviceTensor<T>,
    z: &DeviceTensor<T>,
    weight: &DeviceTensor<f32>,
    (epsilon, norm_first): (f32, bool),
    queue: &Queue,
) -> Result<DeviceTensor<T>> {
    let &[rows, groups, channels] = x.shape() else { unreachable!("the shape is checked") };
    let mut y = DeviceTensor::uninit(x.device(), &[rows, groups, channels])?;
    let block = channels.next_power_of_two();
    queue.launch(
        kernels::gated_norm(x, Some(z), weight, &mut y, epsilon, norm_first, block),
        [rows, groups],
    )?;
    Ok(y)
}
