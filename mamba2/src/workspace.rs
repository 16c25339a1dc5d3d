//! The memory between the kernels of a forward pass, kept from one call to the next.

use tile_runtime::{Device, DeviceTensor, Element};

use crate::arguments::{StateType, Value};
use crate::error::Result;
use crate::plan::Plan;
use crate::problem::Shape;

/// Intermediate results of forward passes whose x has elements `T`, for [`forward_into`](crate::forward_into). It grows to the
/// largest pass that uses it, so that later calls allocate nothing. Calls that share one must be on one stream.
///
/// It holds, with tokens rounded up to whole chunks, dt and the sums of `A dt`, both `[batch, heads, tokens]` in f32, and the
/// state at the start of each chunk, `[batch, heads, chunks, head_dim, state]` in the type of x or in f32.
pub struct Workspace<T> {
    device: Device,
    steps: Vec<Kept<f32>>,
    states: Kept<T>,
    wide_states: Kept<f32>,
}

/// Memory that is at least as large as what was last asked for, and the view that was.
struct Kept<T> {
    all: Option<DeviceTensor<T>>,
    view: Option<DeviceTensor<T>>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { all: None, view: None }
    }
}

impl<T: Element> Kept<T> {
    fn get(&mut self, device: &Device, shape: &[usize]) -> Result<DeviceTensor<T>> {
        if let Some(view) = self.view.as_ref().filter(|view| view.shape() == shape) {
            return Ok(view.clone());
        }
        let numel: usize = shape.iter().product();
        let all = match self.all.take().filter(|all| all.numel() >= numel) {
            Some(all) => all,
            None => DeviceTensor::uninit(device, &[numel])?,
        };
        let view = all.slice(0, 0..numel)?.reshape(shape)?;
        self.all = Some(all);
        self.view = Some(view.clone());
        Ok(view)
    }
}

/// The states that chunks start with.
pub(crate) enum ChunkStates<T> {
    AsX(DeviceTensor<T>),
    F32(DeviceTensor<f32>),
}

/// Views of a workspace for one problem.
pub(crate) struct Intermediates<T> {
    /// `[batch, heads, padded tokens]`
    pub(crate) dt: DeviceTensor<f32>,
    /// As `dt`.
    pub(crate) decay: DeviceTensor<f32>,
    /// `[batch, heads, chunks, head_dim, state]`
    pub(crate) states: ChunkStates<T>,
}

impl<T: Value> Workspace<T> {
    /// An empty workspace on the device that holds the inputs.
    pub fn new(device: &Device) -> Self {
        let steps = vec![Kept::default(), Kept::default()];
        Self { device: device.clone(), steps, states: Kept::default(), wide_states: Kept::default() }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        let floats = self.steps.iter().chain([&self.wide_states]);
        let floats: usize =
            floats.filter_map(|kept| kept.all.as_ref()).map(|all| all.storage().bytes()).sum();
        floats + self.states.all.as_ref().map_or(0, |all| all.storage().bytes())
    }

    pub(crate) fn views(
        &mut self,
        shape: Shape,
        plan: &Plan,
        state_type: StateType,
    ) -> Result<Intermediates<T>> {
        let Shape { batch, tokens, heads, head_dim, state, .. } = shape;
        let chunks = tokens.div_ceil(plan.chunk);
        let (device, padded) = (&self.device, [batch, heads, chunks * plan.chunk]);
        let states = [batch, heads, chunks, head_dim, state];
        Ok(Intermediates {
            dt: self.steps[0].get(device, &padded)?,
            decay: self.steps[1].get(device, &padded)?,
            states: match state_type {
                StateType::AsX => ChunkStates::AsX(self.states.get(device, &states)?),
                StateType::F32 => ChunkStates::F32(self.wide_states.get(device, &states)?),
            },
        })
    }
}
