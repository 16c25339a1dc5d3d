//! `step`: decoding, one token or a few at a time.

use tile_runtime::{Config, Device, DeviceTensor, Launch, Stream, Target};

use crate::arguments::{FloatElement, Inputs, Value};
use crate::check::{check, fault, fits};
use crate::error::{Error, Result};
use crate::kernels;
use crate::pass::d_matrix;
use crate::problem::Shape;

/// Elements of the state that a block updates, a thread of it, and blocks that share a multiprocessor: the fastest of those
/// tried on an H200. Threads have their 32 elements in flight together, and registers for all of them.
const BLOCK: usize = 4096;
const THREAD: usize = 32;
const BLOCKS: u32 = 4;

/// Which row of a pool of states each batch element has; elements without a row are skipped.
#[derive(Debug, Clone)]
pub struct Slots {
    rows: usize,
    table: DeviceTensor<i32>,
}

impl Slots {
    /// `indices` has one value a batch element: a row of a pool of `rows`, or a negative value for a padding element, whose
    /// outputs are 0.
    ///
    /// # Errors
    /// If an index is not below `rows`, or two elements have one row; if the device fails.
    pub fn new(device: &Device, rows: usize, indices: &[i32]) -> Result<Self> {
        check_indices(rows, indices)?;
        Ok(Self { rows, table: DeviceTensor::from_slice(device, &[indices.len()], indices)? })
    }

    /// Rows of the pool.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// `[batch]`
    pub(crate) fn table(&self) -> &DeviceTensor<i32> {
        &self.table
    }

    /// Whether there is one index a batch element, on the device.
    pub(crate) fn check(&self, batch: usize, device: &Device) -> Result<()> {
        if self.table.shape() != [batch] {
            let found = format!("has {} values", self.table.numel());
            return fault("state_indices", found, format!("{batch}, one a batch element"));
        }
        fits("state_indices", &self.table, &[batch], device)
    }

    /// Rows of a pool of `batch`, on the meta device.
    pub(crate) fn meta(batch: usize) -> Result<Self> {
        Ok(Self { rows: batch, table: DeviceTensor::meta(&[batch])? })
    }

    /// Writes other indices for as many batch elements to the same memory, which a captured graph goes on to read.
    ///
    /// # Errors
    /// As [`Slots::new`], and for another number of indices.
    pub fn update(&mut self, indices: &[i32]) -> Result<()> {
        check_indices(self.rows, indices)?;
        Ok(self.table.copy_from_slice(indices)?)
    }
}

fn check_indices(rows: usize, indices: &[i32]) -> Result<()> {
    let wrong = |at: usize, expected: String| {
        Err(Error::Argument {
            argument: "state_indices",
            found: format!("has {} at {at}", indices[at]),
            expected,
        })
    };
    let mut users = std::collections::BTreeMap::new();
    for (at, &index) in indices.iter().enumerate() {
        let Ok(index) = usize::try_from(index) else { continue };
        if index >= rows {
            return wrong(at, format!("a row of the pool, 0 to {}, or a negative value", rows as i64 - 1));
        }
        if let Some(other) = users.insert(index, at) {
            return wrong(at, format!("another row than element {other} has"));
        }
    }
    Ok(())
}

/// Choices of a decode step.
#[derive(Clone, Debug, Default)]
pub struct StepOptions<'a> {
    /// The rows of the batch elements; row i for element i if absent.
    pub slots: Option<&'a Slots>,
    /// The stream to launch on; the device's default one when not given.
    pub stream: Option<Stream>,
    /// As in [`Options::target`](crate::Options::target).
    pub target: Option<Target>,
}

/// Decodes the tokens of `inputs`, usually one, from `states` `[rows, heads, head_dim, state]`, which it updates in place;
/// gives y, `[batch, tokens, heads, head_dim]`. For each token in turn, with S the state of its head in f32:
///
/// ```text
/// dt = clamp(softplus?(dt + dt_bias?), dt_limit)
/// S  = exp(A dt) S + dt x B^T
/// y  = (S C + D? x) silu(z)?
/// ```
///
/// The states are rounded to their type after the last token. There is a row for each batch element, or for each slot of a pool with
/// [`StepOptions::slots`].
///
/// The mathematics is that of [`forward`](crate::forward()), so that a forward pass followed by steps equals one longer pass
/// up to rounding. Initial states and sequences are not for steps: the state is in `states`.
///
/// # Errors
/// If shapes or devices do not fit each other, before anything runs; or if the device fails.
pub fn step<
    T: Value,
    Dt: FloatElement,
    D: FloatElement,
    Z: FloatElement,
    I: FloatElement,
    S: FloatElement,
>(
    inputs: &Inputs<'_, T, Dt, D, Z, I>,
    states: &mut DeviceTensor<S>,
    options: &StepOptions<'_>,
) -> Result<DeviceTensor<T>> {
    let Shape { batch, tokens, heads, head_dim, .. } = check_step(inputs, states, options)?;
    let mut y = DeviceTensor::uninit(inputs.x.device(), &[batch, tokens, heads, head_dim])?;
    launch(inputs, states, options, &mut y)?;
    Ok(y)
}

/// As [`step`], with y written to an existing tensor: nothing is allocated, and the launch can be captured into a graph.
///
/// # Errors
/// As [`step`], and if y does not fit x.
pub fn step_into<
    T: Value,
    Dt: FloatElement,
    D: FloatElement,
    Z: FloatElement,
    I: FloatElement,
    S: FloatElement,
>(
    inputs: &Inputs<'_, T, Dt, D, Z, I>,
    states: &mut DeviceTensor<S>,
    options: &StepOptions<'_>,
    y: &mut DeviceTensor<T>,
) -> Result<()> {
    check_step(inputs, states, options)?;
    fits("y", y, inputs.x.shape(), inputs.x.device())?;
    launch(inputs, states, options, y)
}

pub(crate) fn check_step<
    T: Value,
    Dt: FloatElement,
    D: FloatElement,
    Z: FloatElement,
    I: FloatElement,
    S: FloatElement,
>(
    inputs: &Inputs<'_, T, Dt, D, Z, I>,
    states: &DeviceTensor<S>,
    options: &StepOptions<'_>,
) -> Result<Shape> {
    let shape = check(inputs)?;
    let Shape { batch, heads, head_dim, state, .. } = shape;
    if inputs.initial_states.is_some() {
        return fault(
            "initial_states",
            "are given".into(),
            "none: the states of a step are its argument `states`",
        );
    }
    if inputs.sequences.is_some() {
        return fault(
            "sequences",
            "are given".into(),
            "none: the tokens of a step are one sequence a batch element",
        );
    }
    let device = inputs.x.device();
    let rows = match options.slots {
        None => batch,
        Some(slots) => {
            slots.check(batch, device)?;
            slots.rows
        }
    };
    fits("states", states, &[rows, heads, head_dim, state], device)?;
    Ok(shape)
}

fn launch<T: Value, Dt: FloatElement, D: FloatElement, Z: FloatElement, I: FloatElement, S: FloatElement>(
    inputs: &Inputs<'_, T, Dt, D, Z, I>,
    states: &mut DeviceTensor<S>,
    options: &StepOptions<'_>,
    y: &mut DeviceTensor<T>,
) -> Result<()> {
    let d = d_matrix(inputs.d)?;
    let stream = options.stream.clone().unwrap_or_else(|| inputs.x.device().default_stream());
    let (launch, grid) = step_launch(inputs, d.as_ref(), states, options, y);
    Ok(launch.on(&stream).launch(grid)?)
}

/// The launch of a step whose arguments fit, with D as a matrix, and its grid.
pub(crate) fn step_launch<
    'l,
    T: Value,
    Dt: FloatElement,
    D: FloatElement,
    Z: FloatElement,
    I: FloatElement,
    S: FloatElement,
>(
    inputs: &Inputs<'l, T, Dt, D, Z, I>,
    d: Option<&'l DeviceTensor<D>>,
    states: &'l mut DeviceTensor<S>,
    options: &StepOptions<'l>,
    y: &'l mut DeviceTensor<T>,
) -> (Launch<'l>, [usize; 2]) {
    let (&[batch, _, heads, head_dim], &[_, _, groups, state]) = (inputs.x.shape(), inputs.b.shape()) else {
        unreachable!("the shapes are checked")
    };
    let block_state = state.next_power_of_two();
    let block_head_dim = head_dim.next_power_of_two().min((BLOCK / block_state).max(1));
    let warps = (block_head_dim * block_state / (32 * THREAD)).clamp(1, BLOCK / (32 * THREAD));
    let config = Config { num_warps: Some(warps), occupancy: Some(BLOCKS), ..Config::default() };
    let launch = kernels::step(
        inputs.x,
        inputs.dt,
        inputs.a,
        inputs.b,
        inputs.c,
        inputs.dt_bias,
        d,
        inputs.z,
        options.slots.map(|slots| &slots.table),
        states,
        y,
        (heads / groups.max(1)) as i32,
        inputs.dt_limit.0,
        inputs.dt_limit.1,
        inputs.dt_softplus,
        inputs.d.is_some_and(|d| d.rank() == 2),
        block_head_dim,
        block_state,
    );
    let mut launch = launch.config(config);
    if let Some(target) = &options.target {
        launch = launch.target(target);
    }
    (launch, [head_dim.div_ceil(block_head_dim), batch * heads])
}
