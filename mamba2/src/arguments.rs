//! What a forward pass takes and gives: inputs of any float types, options, outputs.

use tile_runtime::prelude::*;
use tile_runtime::{DeviceTensor, Element, Stream, Target, target_of};

use crate::sequences::Sequences;

/// Element types of x, B, C and y: f32 (exact products), f16 and bf16 (products on tensor cores, sums in f32).
pub trait Value: Element + Storable + MmaOperand + Float {}
impl<T: Element + Storable + MmaOperand + Float> Value for T {}

/// Element types of dt, D, z and initial states: f32, f16 and bf16. All are computed with in f32.
pub trait FloatElement: Element + Storable + Float {}
impl<T: Element + Storable + Float> FloatElement for T {}

/// The inputs of a forward pass, or of a decode step. Any strides are fine, also 0 and below.
///
/// Made by [`Inputs::new`]; what is optional is added by methods:
///
/// ```
/// # use mamba2::Inputs;
/// # use tile_runtime::{Device, DeviceTensor};
/// # fn run() -> mamba2::Result<()> {
/// # let cpu = Device::cpu();
/// # let x = DeviceTensor::<f32>::zeros(&cpu, &[1, 8, 2, 16])?;
/// # let (dt, a) = (DeviceTensor::<f32>::zeros(&cpu, &[1, 8, 2])?, DeviceTensor::<f32>::zeros(&cpu, &[2])?);
/// # let (b, z) = (DeviceTensor::<f32>::zeros(&cpu, &[1, 8, 1, 16])?, x.clone());
/// let inputs = Inputs::new(&x, &dt, &a, &b, &b).dt_softplus(true).z(&z);
/// let outputs = mamba2::forward(&inputs, &Default::default())?;
/// # Ok(()) }
/// # run().unwrap();
/// ```
///
/// Types may differ: `Dt` is that of dt, `D` of the skip weights, `Z` of the gate, `S` of the initial states.
pub struct Inputs<'a, T, Dt = f32, D = f32, Z = T, S = f32> {
    pub(crate) x: &'a DeviceTensor<T>,
    pub(crate) dt: &'a DeviceTensor<Dt>,
    pub(crate) a: &'a DeviceTensor<f32>,
    pub(crate) b: &'a DeviceTensor<T>,
    pub(crate) c: &'a DeviceTensor<T>,
    pub(crate) dt_bias: Option<&'a DeviceTensor<f32>>,
    pub(crate) dt_softplus: bool,
    pub(crate) dt_limit: (f32, f32),
    pub(crate) d: Option<&'a DeviceTensor<D>>,
    pub(crate) z: Option<&'a DeviceTensor<Z>>,
    pub(crate) initial_states: Option<&'a DeviceTensor<S>>,
    pub(crate) sequences: Option<&'a Sequences>,
}

// References are copied whatever the element types are.
impl<T, Dt, D, Z, S> Clone for Inputs<'_, T, Dt, D, Z, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, Dt, D, Z, S> Copy for Inputs<'_, T, Dt, D, Z, S> {}

impl<'a, T, Dt> Inputs<'a, T, Dt> {
    /// The inputs that a pass cannot do without:
    ///
    /// | argument | shape | meaning |
    /// |---|---|---|
    /// | `x` | `[batch, tokens, heads, head_dim]` | the input |
    /// | `dt` | `[batch, tokens, heads]` | step sizes; negative ones count as 0 unless [`dt_limit`](Self::dt_limit) says otherwise. Products take `dt B` and `dt C B` in x's type: in f16 these should lie between 6e-5 and 65504 |
    /// | `a` | `[heads]`, negative | the decay of each head; where `a dt` is positive it counts as 0. Weights of tokens after decays that sum up to s in their chunk are off by up to s 2^-23, which f32 shows where s reaches hundreds: shorter chunks help |
    /// | `b`, `c` | `[batch, tokens, groups, state]` | heads must be a multiple of groups; head h reads group h / (heads / groups) |
    pub fn new(
        x: &'a DeviceTensor<T>,
        dt: &'a DeviceTensor<Dt>,
        a: &'a DeviceTensor<f32>,
        b: &'a DeviceTensor<T>,
        c: &'a DeviceTensor<T>,
    ) -> Self {
        Self {
            x,
            dt,
            a,
            b,
            c,
            dt_bias: None,
            dt_softplus: false,
            dt_limit: (0.0, f32::INFINITY),
            d: None,
            z: None,
            initial_states: None,
            sequences: None,
        }
    }
}

impl<'a, T, Dt, D, Z, S> Inputs<'a, T, Dt, D, Z, S> {
    /// `[heads]`, added to dt before anything else.
    #[must_use]
    pub fn dt_bias(self, dt_bias: &'a DeviceTensor<f32>) -> Self {
        Self { dt_bias: Some(dt_bias), ..self }
    }

    /// Whether dt goes through softplus, `log(1 + exp(dt))`, after the bias; above 20 it stays as it is.
    #[must_use]
    pub fn dt_softplus(self, dt_softplus: bool) -> Self {
        Self { dt_softplus, ..self }
    }

    /// The range that dt is clamped to after bias and softplus; `(0, infinity)` unless said.
    #[must_use]
    pub fn dt_limit(self, low: f32, high: f32) -> Self {
        Self { dt_limit: (low, high), ..self }
    }

    /// `[heads]` or `[heads, head_dim]`: the skip connection `y += D x`.
    #[must_use]
    pub fn d<D2>(self, d: &'a DeviceTensor<D2>) -> Inputs<'a, T, Dt, D2, Z, S> {
        let Self { x, dt, a, b, c, dt_bias, dt_softplus, dt_limit, d: _, z, initial_states, sequences } =
            self;
        let d = Some(d);
        Inputs { x, dt, a, b, c, dt_bias, dt_softplus, dt_limit, d, z, initial_states, sequences }
    }

    /// `[batch, tokens, heads, head_dim]`: the gate, `y *= z / (1 + exp(-z))`, applied last.
    #[must_use]
    pub fn z<Z2>(self, z: &'a DeviceTensor<Z2>) -> Inputs<'a, T, Dt, D, Z2, S> {
        let Self { x, dt, a, b, c, dt_bias, dt_softplus, dt_limit, d, z: _, initial_states, sequences } =
            self;
        let z = Some(z);
        Inputs { x, dt, a, b, c, dt_bias, dt_softplus, dt_limit, d, z, initial_states, sequences }
    }

    /// `[batch, heads, head_dim, state]`: the state before the first token; zero if absent. With sequences by offsets there is
    /// one a sequence: `[sequences, heads, head_dim, state]`.
    #[must_use]
    pub fn initial_states<S2>(self, states: &'a DeviceTensor<S2>) -> Inputs<'a, T, Dt, D, Z, S2> {
        let Self { x, dt, a, b, c, dt_bias, dt_softplus, dt_limit, d, z, initial_states: _, sequences } =
            self;
        let initial_states = Some(states);
        Inputs { x, dt, a, b, c, dt_bias, dt_softplus, dt_limit, d, z, initial_states, sequences }
    }

    /// Which tokens belong together; without, each batch element is one sequence.
    #[must_use]
    pub fn sequences(self, sequences: &'a Sequences) -> Self {
        Self { sequences: Some(sequences), ..self }
    }
}

/// The type in which the states between chunks are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StateType {
    /// That of x.
    #[default]
    AsX,
    /// f32. Products round them to the type of x.
    F32,
}

/// Choices of a forward pass that do not change the result beyond rounding.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Tokens in a chunk: a power of two from 16 to 256. Chosen when not given.
    pub chunk: Option<usize>,
    /// How states between chunks are stored.
    pub state_type: StateType,
    /// The stream to launch on; the device's default one when not given.
    pub stream: Option<Stream>,
    /// What GPUs' code is generated for; what suits the device when not given. See [`Launch::target`](tile_runtime::Launch::target).
    pub target: Option<Target>,
}

impl Options {
    /// The target of the code that `device` will run, or that is generated for a meta device, if any is.
    pub(crate) fn target_on(&self, device: &Device) -> Option<Target> {
        match device.is_meta() {
            true => self.target,
            false => target_of(device).map(|own| self.target.unwrap_or(own)),
        }
    }
}

/// The results of a forward pass.
#[derive(Clone)]
pub struct Outputs<T> {
    /// `[batch, tokens, heads, head_dim]`
    pub y: DeviceTensor<T>,
    /// `[batch, heads, head_dim, state]`: the state after the last token. Without tokens it is the initial state; zero
    /// where sequences are packed and none has tokens.
    pub final_states: DeviceTensor<f32>,
    /// `[sequences, heads, head_dim, state]`: the state after each sequence, where they are packed by offsets. That of an
    /// empty one is its initial state.
    pub sequence_states: Option<DeviceTensor<f32>>,
}
