//! One problem on the host: all inputs of a forward pass or decode step, whichever way they were made or read.

use std::{fmt, str::FromStr};

use half::{bf16, f16};

use crate::{problem::ProblemError, problem::Shape, reference};

/// Element type of `x`, `b`, `c`, `z` and `y`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// 32-bit float.
    F32,
    /// 16-bit float with 11 bits of precision.
    F16,
    /// 16-bit float with 8 bits of precision and the range of f32.
    BF16,
}

impl Dtype {
    /// `value` rounded to nearest in this type.
    pub fn round(self, value: f32) -> f32 {
        match self {
            Dtype::F32 => value,
            Dtype::F16 => f16::from_f32(value).to_f32(),
            Dtype::BF16 => bf16::from_f32(value).to_f32(),
        }
    }

    /// The name as written in Rust and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "f32",
            Dtype::F16 => "f16",
            Dtype::BF16 => "bf16",
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Dtype {
    type Err = ProblemError;

    fn from_str(text: &str) -> Result<Self, ProblemError> {
        match text {
            "f32" => Ok(Dtype::F32),
            "f16" => Ok(Dtype::F16),
            "bf16" => Ok(Dtype::BF16),
            other => Err(ProblemError(format!("'{other}' is not an element type; write f32, f16 or bf16"))),
        }
    }
}

/// The weight of `x` that is added to the output.
#[derive(Debug, Clone, PartialEq)]
pub enum Skip {
    /// One weight a head: `[heads]`.
    PerHead(Vec<f32>),
    /// One weight a channel: `[heads, head_dim]`.
    PerDim(Vec<f32>),
}

/// All inputs of one problem, row-major. Values are held as f32 and already rounded to their element type.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Sizes; `tokens` is 1 for a decode step.
    pub shape: Shape,
    /// Type of `x`, `b`, `c`, `z` and of the output.
    pub dtype: Dtype,
    /// Type of `dt`.
    pub dt_dtype: Dtype,
    /// Whether this is one decode step, which updates its state in place.
    pub step: bool,
    /// Chunk length, where one is asked for.
    pub chunk: Option<usize>,
    /// `[batch, tokens, heads, head_dim]`
    pub x: Vec<f32>,
    /// `[batch, tokens, heads]`
    pub dt: Vec<f32>,
    /// `[heads]`, not positive
    pub a: Vec<f32>,
    /// `[batch, tokens, groups, state]`
    pub b: Vec<f32>,
    /// `[batch, tokens, groups, state]`
    pub c: Vec<f32>,
    /// Skip weights.
    pub d: Option<Skip>,
    /// `[batch, tokens, heads, head_dim]`; the output is multiplied with `silu(z)`.
    pub z: Option<Vec<f32>>,
    /// `[heads]`, added to `dt` first.
    pub dt_bias: Option<Vec<f32>>,
    /// Whether `dt` goes through softplus after the bias.
    pub dt_softplus: bool,
    /// `dt` is clamped to this range last.
    pub dt_limit: (f64, f64),
    /// `[batch, heads, head_dim, state]`, or one a sequence with `cu_seqlens`.
    pub initial_states: Option<Vec<f32>>,
    /// `[batch, tokens]`; a change starts a new sequence.
    pub seq_idx: Option<Vec<i32>>,
    /// `[sequences + 1]`; sequence `i` is tokens `cu_seqlens[i]..cu_seqlens[i + 1]`. Batch must be 1.
    pub cu_seqlens: Option<Vec<i32>>,
}

impl Case {
    /// The same problem as the float64 reference takes it.
    pub fn reference_inputs(&self) -> reference::Inputs<'_, f32> {
        reference::Inputs {
            d: self.d.as_ref().map(|d| match d {
                Skip::PerHead(d) => reference::Skip::PerHead(d),
                Skip::PerDim(d) => reference::Skip::PerDim(d),
            }),
            z: self.z.as_deref(),
            dt_bias: self.dt_bias.as_deref(),
            dt_softplus: self.dt_softplus,
            dt_limit: self.dt_limit,
            initial_states: self.initial_states.as_deref(),
            seq_idx: self.seq_idx.as_deref(),
            cu_seqlens: self.cu_seqlens.as_deref(),
            ..reference::Inputs::new(self.shape, &self.x, &self.dt, &self.a, &self.b, &self.c)
        }
    }
}
