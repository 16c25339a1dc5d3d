//! `Mixer`: the weights on a device, and what it does to a sequence or to the next tokens.

use tile_runtime::{Device, DeviceTensor, Stream};

use super::ops::{self, Filters, Queue, part};
use super::{MixerOptions, MixerWeights, Sizes};
use crate::arguments::{Inputs, Options};
use crate::check::{dt_limit, fault};
use crate::error::Result;
use crate::plan::Plan;
use crate::resident::HostFloat;
use crate::sequences::Sequences;
use crate::step::{Slots, StepOptions, step_into};

/// A Mamba-2 mixer on a device, with activations of type `T`.
pub struct Mixer<T> {
    sizes: Sizes,
    options: MixerOptions,
    in_proj: DeviceTensor<T>,
    in_bias: Option<DeviceTensor<T>>,
    conv: DeviceTensor<f32>,
    conv_bias: Option<DeviceTensor<f32>>,
    a: DeviceTensor<f32>,
    dt_bias: DeviceTensor<f32>,
    d: DeviceTensor<f32>,
    norm: Option<DeviceTensor<f32>>,
    out_proj: DeviceTensor<T>,
    out_bias: Option<DeviceTensor<T>>,
}

/// What a mixer remembers between tokens.
#[derive(Clone)]
pub struct MixerState<T> {
    /// `[rows, channels, width]`: the latest inputs of the convolution, the latest last.
    pub conv: DeviceTensor<T>,
    /// `[rows, heads, head_dim, state]`
    pub ssm: DeviceTensor<f32>,
}

/// What a mixer makes of a sequence.
#[derive(Clone)]
pub struct MixerOutputs<T> {
    /// `[batch, tokens, model]`
    pub out: DeviceTensor<T>,
    /// The states after each batch element, or after each sequence where they are packed by offsets.
    pub state: MixerState<T>,
}

impl<T: HostFloat> Mixer<T> {
    /// Copies weights to a device.
    ///
    /// # Errors
    /// If a tensor does not have as many values as the sizes say, or the device fails.
    pub fn new(device: &Device, weights: &MixerWeights, options: MixerOptions) -> Result<Self> {
        if let Err(found) = weights.sizes.check() {
            return fault("weights", format!("do not fit the kernels: {found}"), "sizes in these ranges");
        }
        dt_limit(options.dt_limit)?;
        if options.epsilon.is_nan() || options.epsilon < 0.0 {
            return fault("epsilon", format!("is {}", options.epsilon), "0 or more");
        }
        if let Some(chunk) = options.chunk {
            Plan::check_chunk(chunk)?;
        }
        let Sizes { model, heads, head_dim, groups, width, .. } = weights.sizes;
        let (inner, rows, channels) =
            (weights.sizes.inner(), weights.sizes.in_rows(), weights.sizes.channels());
        if groups != options.groups {
            return fault(
                "groups",
                format!("is {}", options.groups),
                format!("{groups}, as the weights have"),
            );
        }
        let narrow = |shape: &[usize], values: &[f32]| {
            let values: Vec<T> = values.iter().map(|&v| T::from_f32(v)).collect();
            DeviceTensor::from_slice(device, shape, &values)
        };
        let wide = |shape: &[usize], values: &[f32]| DeviceTensor::from_slice(device, shape, values);
        let a: Vec<f32> = weights.a_log.iter().map(|&a| -a.exp()).collect();
        let d = if weights.d.len() == heads { vec![heads] } else { vec![heads, head_dim] };
        Ok(Self {
            sizes: weights.sizes,
            options,
            in_proj: narrow(&[rows, model], &weights.in_proj)?,
            in_bias: weights.in_bias.as_ref().map(|bias| narrow(&[rows], bias)).transpose()?,
            conv: wide(&[channels, width], &weights.conv)?,
            conv_bias: weights.conv_bias.as_ref().map(|bias| wide(&[channels], bias)).transpose()?,
            a: wide(&[heads], &a)?,
            dt_bias: wide(&[heads], &weights.dt_bias)?,
            d: wide(&d, &weights.d)?,
            norm: weights.norm.as_ref().map(|norm| wide(&[groups, inner / groups], norm)).transpose()?,
            out_proj: narrow(&[model, inner], &weights.out_proj)?,
            out_bias: weights.out_bias.as_ref().map(|bias| narrow(&[model], bias)).transpose()?,
        })
    }

    /// The sizes.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Where it is.
    pub fn device(&self) -> &Device {
        self.a.device()
    }

    /// States of zeros for `rows` sequences.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new_state(&self, rows: usize) -> Result<MixerState<T>> {
        let Sizes { heads, head_dim, state, width, .. } = self.sizes;
        Ok(MixerState {
            conv: DeviceTensor::zeros(self.device(), &[rows, self.sizes.channels(), width])?,
            ssm: DeviceTensor::zeros(self.device(), &[rows, heads, head_dim, state])?,
        })
    }

    /// The mixer over `u` `[batch, tokens, model]`: from `state`, one row a batch element, or from zeros. Packed sequences begin
    /// with zeros.
    ///
    /// ```text
    /// z, xBC, dt = u W_in;   x, B, C = silu(conv(xBC));   y = norm(forward(x, dt, B, C), z) W_out
    /// ```
    ///
    /// # Errors
    /// If shapes or devices do not fit; if there are both a state and sequences; if the device fails.
    pub fn forward(
        &self,
        u: &DeviceTensor<T>,
        state: Option<&MixerState<T>>,
        sequences: Option<&Sequences>,
        stream: Option<&Stream>,
    ) -> Result<MixerOutputs<T>> {
        let [batch, ..] = self.check(u)?;
        let queue = self.queue(stream);
        if let Some(state) = state {
            self.check_state(state, batch)?;
            if sequences.is_some() {
                return fault("state", "is given".into(), "none: packed sequences begin with zeros");
            }
        }
        let rows = ops::linear(u, &self.in_proj, self.in_bias.as_ref(), &queue)?;
        let (inner, channels) = (self.sizes.inner(), self.sizes.channels());
        let before = part(&rows, inner..inner + channels, &[channels])?;
        let conv_state = state.map(|state| &state.conv);
        let (after, conv) = ops::conv1d(&before, &self.filters(), conv_state, sequences, &queue)?;
        let views = Views::of(&rows, &after, self.sizes)?;
        let inputs =
            Inputs { initial_states: state.map(|state| &state.ssm), sequences, ..self.inputs(&views) };
        let options = self.pass_options(&queue);
        let outputs = crate::forward(&inputs, &options)?;
        let out = self.finish(&outputs.y, &views.z, &queue)?;
        let ssm = outputs.sequence_states.unwrap_or(outputs.final_states);
        Ok(MixerOutputs { out, state: MixerState { conv, ssm } })
    }

    /// The mixer over the next tokens `u` `[batch, tokens, model]`, usually one, with `state` updated in place; rows of the
    /// state are chosen by `slots`, one a batch element otherwise. Gives `[batch, tokens, model]`.
    ///
    /// # Errors
    /// If shapes or devices do not fit, or the device fails.
    pub fn step(
        &self,
        u: &DeviceTensor<T>,
        state: &mut MixerState<T>,
        slots: Option<&Slots>,
        stream: Option<&Stream>,
    ) -> Result<DeviceTensor<T>> {
        let [batch, ..] = self.check(u)?;
        self.check_state(state, slots.map_or(batch, Slots::rows))?;
        let queue = self.queue(stream);
        let rows = ops::linear(u, &self.in_proj, self.in_bias.as_ref(), &queue)?;
        let (inner, channels) = (self.sizes.inner(), self.sizes.channels());
        let before = part(&rows, inner..inner + channels, &[channels])?;
        let table = slots.map(Slots::table);
        let options = StepOptions { slots, stream: Some(queue.stream.clone()), target: queue.target };
        if let Some(slots) = slots {
            slots.check(batch, self.device())?;
        }
        let after = ops::conv1d_step(&before, &self.filters(), table, &mut state.conv, &queue)?;
        let views = Views::of(&rows, &after, self.sizes)?;
        let mut y = DeviceTensor::uninit(self.device(), views.x.shape())?;
        step_into(&self.inputs(&views), &mut state.ssm, &options, &mut y)?;
        self.finish(&y, &views.z, &queue)
    }

    fn queue(&self, stream: Option<&Stream>) -> Queue {
        let stream = stream.cloned().unwrap_or_else(|| self.device().default_stream());
        Queue { stream, target: self.options.target }
    }

    fn pass_options(&self, queue: &Queue) -> Options {
        Options {
            chunk: self.options.chunk,
            stream: Some(queue.stream.clone()),
            target: queue.target,
            ..Options::default()
        }
    }

    fn filters(&self) -> Filters<'_> {
        Filters { weight: &self.conv, bias: self.conv_bias.as_ref() }
    }

    fn inputs<'a>(&'a self, views: &'a Views<T>) -> Inputs<'a, T, T> {
        let (low, high) = self.options.dt_limit;
        let inputs = Inputs::new(&views.x, &views.dt, &self.a, &views.b, &views.c);
        let inputs = inputs.dt_bias(&self.dt_bias).dt_softplus(true).dt_limit(low, high).d(&self.d);
        if self.norm.is_some() { inputs } else { inputs.z(&views.z) }
    }

    /// The norm, where there is one, and the output projection of `y` `[batch, tokens, heads, head_dim]`.
    fn finish(&self, y: &DeviceTensor<T>, z: &DeviceTensor<T>, queue: &Queue) -> Result<DeviceTensor<T>> {
        let &[batch, tokens, ..] = y.shape() else { unreachable!("y has the shape of x") };
        let inner = self.sizes.inner();
        let y = match &self.norm {
            None => y.clone(),
            Some(norm) => {
                let groups = self.sizes.groups;
                let rows = [batch * tokens, groups, inner / groups];
                let strides = [z.strides()[1], (inner / groups) as i64, 1];
                let z = z.with_strides(&rows, &strides, z.offset_elements())?;
                let how = (self.options.epsilon, self.options.norm_before_gate);
                ops::gated_norm(&y.reshape(&rows)?, &z, norm, how, queue)?
            }
        };
        let y = y.reshape(&[batch, tokens, inner])?;
        ops::linear(&y, &self.out_proj, self.out_bias.as_ref(), queue)
    }

    fn check(&self, u: &DeviceTensor<T>) -> Result<[usize; 3]> {
        let model = self.sizes.model;
        let found = format!("has shape {:?}", u.shape());
        match *u.shape() {
            [batch, tokens, channels] if channels == model && u.device() == self.device() => {
                Ok([batch, tokens, channels])
            }
            [_, _, channels] if channels == model => fault(
                "u",
                format!("is on {}", u.device()),
                format!("{}, where the mixer is; copy it with `to_device`", self.device()),
            ),
            _ => fault("u", found, format!("[batch, tokens, {model}]")),
        }
    }

    fn check_state(&self, state: &MixerState<T>, rows: usize) -> Result<()> {
        let Sizes { heads, head_dim, state: n, width, .. } = self.sizes;
        let conv = [rows, self.sizes.channels(), width];
        crate::check::fits("state.conv", &state.conv, &conv, self.device())?;
        crate::check::fits("state.ssm", &state.ssm, &[rows, heads, head_dim, n], self.device())
    }
}

/// Parts of the rows of the input projection, and of those of the convolution.
struct Views<T> {
    z: DeviceTensor<T>,
    dt: DeviceTensor<T>,
    x: DeviceTensor<T>,
    b: DeviceTensor<T>,
    c: DeviceTensor<T>,
}

impl<T: HostFloat> Views<T> {
    fn of(rows: &DeviceTensor<T>, after: &DeviceTensor<T>, sizes: Sizes) -> Result<Self> {
        let Sizes { heads, head_dim, groups, state, .. } = sizes;
        let (inner, shared) = (sizes.inner(), groups * state);
        let dt = inner + sizes.channels();
        Ok(Self {
            z: part(rows, 0..inner, &[heads, head_dim])?,
            dt: part(rows, dt..dt + heads, &[heads])?,
            x: part(after, 0..inner, &[heads, head_dim])?,
            b: part(after, inner..inner + shared, &[groups, state])?,
            c: part(after, inner + shared..inner + 2 * shared, &[groups, state])?,
        })
    }
}
