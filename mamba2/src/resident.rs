//! A problem of the host on a device: its inputs as tensors, and what comes of a pass or step over them.

use half::{bf16, f16};
use tile_runtime::{Device, DeviceTensor};

use crate::arguments::{FloatElement, Inputs, Options, Value};
use crate::case::{Case, Dtype, Skip};
use crate::error::Result;
use crate::problem::Shape;
use crate::sequences::Sequences;
use crate::step::{StepOptions, step};

/// Results on the host; 16-bit values as f32.
#[derive(Debug, Clone, PartialEq)]
pub struct HostOutputs {
    /// `[batch, tokens, heads, head_dim]`
    pub y: Vec<f32>,
    /// `[batch, heads, head_dim, state]`: the state after the last token.
    pub final_states: Vec<f32>,
    /// `[sequences, heads, head_dim, state]`, with `cu_seqlens`.
    pub sequence_states: Option<Vec<f32>>,
}

/// An element type with conversions from and to f32.
pub trait HostFloat: Value {
    /// Rounded to nearest even.
    fn from_f32(value: f32) -> Self;
    /// Exactly.
    fn to_f32(self) -> f32;
}

macro_rules! host_floats {
    ($($ty:ty: $from:expr, $to:expr;)*) => {$(
        impl HostFloat for $ty {
            fn from_f32(value: f32) -> Self { $from(value) }
            fn to_f32(self) -> f32 { $to(self) }
        }
    )*};
}
host_floats! {
    f32: std::convert::identity, std::convert::identity;
    f16: f16::from_f32, f16::to_f32;
    bf16: bf16::from_f32, bf16::to_f32;
}

/// The inputs of a case on a device: x, B, C, z of type `T`, dt of type `Dt`, the rest f32.
pub struct Resident<T, Dt> {
    /// `[batch, tokens, heads, head_dim]`
    pub x: DeviceTensor<T>,
    /// `[batch, tokens, heads]`
    pub dt: DeviceTensor<Dt>,
    /// `[heads]`
    pub a: DeviceTensor<f32>,
    /// `[batch, tokens, groups, state]`
    pub b: DeviceTensor<T>,
    /// As `b`.
    pub c: DeviceTensor<T>,
    /// `[heads]`
    pub dt_bias: Option<DeviceTensor<f32>>,
    /// Whether dt goes through softplus.
    pub dt_softplus: bool,
    /// The range of dt.
    pub dt_limit: (f32, f32),
    /// `[heads]` or `[heads, head_dim]`
    pub d: Option<DeviceTensor<f32>>,
    /// As `x`.
    pub z: Option<DeviceTensor<T>>,
    /// `[batch or sequences, heads, head_dim, state]`
    pub initial_states: Option<DeviceTensor<f32>>,
    /// Packed sequences.
    pub sequences: Option<Sequences>,
}

fn tensor<T: HostFloat>(device: &Device, shape: &[usize], values: &[f32]) -> Result<DeviceTensor<T>> {
    let values: Vec<T> = values.iter().map(|&value| T::from_f32(value)).collect();
    Ok(DeviceTensor::from_slice(device, shape, &values)?)
}

impl<T: HostFloat, Dt: HostFloat> Resident<T, Dt> {
    /// Copies the inputs to the device.
    ///
    /// # Errors
    /// If a tensor does not have as many values as its shape, sequences are malformed, or the device fails.
    pub fn new(device: &Device, case: &Case) -> Result<Self> {
        let Shape { batch, tokens, groups, heads, head_dim, state } = case.shape;
        let of_x = [batch, tokens, heads, head_dim];
        let of_b = [batch, tokens, groups, state];
        let d = case.d.as_ref().map(|d| match d {
            Skip::PerHead(d) => tensor(device, &[heads], d),
            Skip::PerDim(d) => tensor(device, &[heads, head_dim], d),
        });
        let rows = case.cu_seqlens.as_ref().map_or(batch, |offsets| offsets.len().saturating_sub(1));
        let sequences = match (&case.cu_seqlens, &case.seq_idx) {
            (Some(offsets), _) => Some(Sequences::from_cu_seqlens(device, offsets)?),
            (None, Some(index)) => Some(Sequences::from_seq_idx(device, batch, tokens, index)?),
            (None, None) => None,
        };
        Ok(Self {
            x: tensor(device, &of_x, &case.x)?,
            dt: tensor(device, &[batch, tokens, heads], &case.dt)?,
            a: tensor(device, &[heads], &case.a)?,
            b: tensor(device, &of_b, &case.b)?,
            c: tensor(device, &of_b, &case.c)?,
            dt_bias: case.dt_bias.as_ref().map(|bias| tensor(device, &[heads], bias)).transpose()?,
            dt_softplus: case.dt_softplus,
            dt_limit: (case.dt_limit.0 as f32, case.dt_limit.1 as f32),
            d: d.transpose()?,
            z: case.z.as_ref().map(|z| tensor(device, &of_x, z)).transpose()?,
            initial_states: case
                .initial_states
                .as_ref()
                .map(|states| tensor(device, &[rows, heads, head_dim, state], states))
                .transpose()?,
            sequences,
        })
    }

    /// The same as arguments of [`forward`](crate::forward()).
    pub fn inputs(&self) -> Inputs<'_, T, Dt> {
        Inputs {
            dt_bias: self.dt_bias.as_ref(),
            dt_softplus: self.dt_softplus,
            dt_limit: self.dt_limit,
            d: self.d.as_ref(),
            z: self.z.as_ref(),
            initial_states: self.initial_states.as_ref(),
            sequences: self.sequences.as_ref(),
            ..Inputs::new(&self.x, &self.dt, &self.a, &self.b, &self.c)
        }
    }

    /// A forward pass, with its results on the host.
    ///
    /// # Errors
    /// As [`forward`](crate::forward()).
    pub fn forward(&self, options: &Options) -> Result<HostOutputs> {
        let outputs = crate::forward(&self.inputs(), options)?;
        Ok(HostOutputs {
            y: values(&outputs.y)?,
            final_states: outputs.final_states.to_vec()?,
            sequence_states: outputs.sequence_states.map(|states| states.to_vec()).transpose()?,
        })
    }

    /// A decode step from the initial states (zeros without), with its results on the host.
    ///
    /// # Errors
    /// As [`step`].
    pub fn step(&self, options: &StepOptions<'_>) -> Result<HostOutputs> {
        let (x, b) = (self.x.shape(), self.b.shape());
        let mut states = match &self.initial_states {
            // The step writes to them, and they serve again.
            Some(states) => DeviceTensor::from_slice(states.device(), states.shape(), &states.to_vec()?)?,
            None => DeviceTensor::zeros(self.x.device(), &[x[0], x[2], x[3], b[3]])?,
        };
        let inputs = Inputs { initial_states: None, ..self.inputs() };
        let y = step(&inputs, &mut states, options)?;
        Ok(HostOutputs { y: values(&y)?, final_states: states.to_vec()?, sequence_states: None })
    }
}

fn values<T: HostFloat>(tensor: &DeviceTensor<T>) -> Result<Vec<f32>> {
    Ok(tensor.to_vec()?.into_iter().map(T::to_f32).collect())
}

/// Work on a problem whose element types are known.
pub trait Work {
    /// What comes of it.
    type Out;
    /// Does it.
    ///
    /// # Errors
    /// As the work says.
    fn on<T: HostFloat, Dt: HostFloat + FloatElement>(self, resident: Resident<T, Dt>) -> Result<Self::Out>;
}

/// Copies a case to the device with the element types that it names, and works on it.
///
/// # Errors
/// As [`Resident::new`], and the work's own.
pub fn with_resident<W: Work>(device: &Device, case: &Case, work: W) -> Result<W::Out> {
    match (case.dtype, case.dt_dtype) {
        (Dtype::F32, _) => work.on(Resident::<f32, f32>::new(device, case)?),
        (Dtype::F16, Dtype::F16) => work.on(Resident::<f16, f16>::new(device, case)?),
        (Dtype::F16, _) => work.on(Resident::<f16, f32>::new(device, case)?),
        (Dtype::BF16, Dtype::BF16) => work.on(Resident::<bf16, bf16>::new(device, case)?),
        (Dtype::BF16, _) => work.on(Resident::<bf16, f32>::new(device, case)?),
    }
}

struct Run<'a> {
    step: bool,
    options: &'a Options,
}

impl Work for Run<'_> {
    type Out = HostOutputs;
    fn on<T: HostFloat, Dt: HostFloat + FloatElement>(
        self,
        resident: Resident<T, Dt>,
    ) -> Result<HostOutputs> {
        if !self.step {
            return resident.forward(self.options);
        }
        let Options { stream, target, .. } = self.options.clone();
        resident.step(&StepOptions { stream, target, slots: None })
    }
}

/// Runs a case on a device: a decode step where the case is one, else a forward pass with the case's chunk unless the
/// options name one.
///
/// # Errors
/// As [`Resident::new`], [`forward`](crate::forward()) and [`step`].
pub fn run(device: &Device, case: &Case, options: &Options) -> Result<HostOutputs> {
    let options = &Options { chunk: options.chunk.or(case.chunk), ..options.clone() };
    with_resident(device, case, Run { step: case.step, options })
}
