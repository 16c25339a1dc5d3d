//! The definition of a mixer in float64, one step after another.

use super::MixerWeights;
use super::{MixerOptions, Sizes};
use crate::problem::{ProblemError, Shape};
use crate::reference::{self, Inputs, Skip, silu};

/// What a mixer gives, in float64.
#[derive(Debug, Clone, PartialEq)]
pub struct MixerReference {
    /// `[batch, tokens, model]`
    pub out: Vec<f64>,
    /// `[batch, channels, width]`, or one a sequence: the last inputs of the convolution, the latest last.
    pub conv_state: Vec<f64>,
    /// `[batch, heads, head_dim, state]`, or one a sequence.
    pub ssm_state: Vec<f64>,
}

/// `x W^T + bias`: `x` `[rows, inputs]`, `weight` `[outputs, inputs]`.
pub fn linear(x: &[f64], weight: &[f32], bias: Option<&[f32]>, inputs: usize) -> Vec<f64> {
    let outputs = weight.len() / inputs;
    let mut y = Vec::with_capacity(x.len() / inputs * outputs);
    for row in x.chunks(inputs) {
        for output in 0..outputs {
            let weights = &weight[output * inputs..][..inputs];
            let sum: f64 = row.iter().zip(weights).map(|(x, &w)| x * f64::from(w)).sum();
            y.push(sum + bias.map_or(0.0, |bias| f64::from(bias[output])));
        }
    }
    y
}

/// A causal convolution and silu over tokens `range` of `x` `[tokens, channels]`, whose first token is the first of its sequence.
fn conv(x: &[f64], y: &mut [f64], range: std::ops::Range<usize>, weights: &MixerWeights) {
    let Sizes { width, .. } = weights.sizes;
    let channels = weights.sizes.channels();
    for token in range.clone() {
        for channel in 0..channels {
            let mut sum = weights.conv_bias.as_ref().map_or(0.0, |bias| f64::from(bias[channel]));
            for k in 0..width {
                if token + k + 1 >= range.start + width {
                    let at = token + k + 1 - width;
                    sum += f64::from(weights.conv[channel * width + k]) * x[at * channels + channel];
                }
            }
            y[token * channels + channel] = silu(sum);
        }
    }
}

/// `v / sqrt(mean(v^2) + epsilon) * weight` over each of `groups` groups of a row, with the gate before or after.
pub fn gated_norm(y: &[f64], z: &[f64], weight: &[f32], groups: usize, options: &MixerOptions) -> Vec<f64> {
    let channels = weight.len() / groups;
    let mut out = Vec::with_capacity(y.len());
    for (at, (y, z)) in y.chunks(channels).zip(z.chunks(channels)).enumerate() {
        let weight = &weight[at % groups * channels..][..channels];
        let gate: Vec<f64> = z.iter().map(|&z| silu(z)).collect();
        let value: Vec<f64> = match options.norm_before_gate {
            true => y.to_vec(),
            false => y.iter().zip(&gate).map(|(y, gate)| y * gate).collect(),
        };
        let mean = value.iter().map(|v| v * v).sum::<f64>() / channels as f64;
        let scale = (mean + f64::from(options.epsilon)).sqrt().recip();
        out.extend(value.iter().zip(weight).zip(&gate).map(|((v, &w), gate)| {
            let normed = v * scale * f64::from(w);
            if options.norm_before_gate { normed * gate } else { normed }
        }));
    }
    out
}

/// The mixer over `u` `[batch, tokens, model]`, from zero states. With `cu_seqlens` batch is 1 and nothing flows between sequences.
///
/// # Errors
/// As [`reference::forward`].
pub fn mixer(
    weights: &MixerWeights,
    options: &MixerOptions,
    (batch, tokens): (usize, usize),
    u: &[f64],
    cu_seqlens: Option<&[i32]>,
) -> Result<MixerReference, ProblemError> {
    let Sizes { model, heads, head_dim, groups, state, width } = weights.sizes;
    let (inner, channels) = (weights.sizes.inner(), weights.sizes.channels());
    let rows = linear(u, &weights.in_proj, weights.in_bias.as_deref(), model);
    let row_len = weights.sizes.in_rows();
    let part = |from: usize, len: usize| -> Vec<f64> {
        rows.chunks(row_len).flat_map(|row| row[from..from + len].iter().copied()).collect()
    };
    let (z, before, dt) = (part(0, inner), part(inner, channels), part(inner + channels, heads));
    let ranges: Vec<_> = match cu_seqlens {
        Some(offsets) => offsets.windows(2).map(|pair| pair[0] as usize..pair[1] as usize).collect(),
        None => (0..batch).map(|b| b * tokens..(b + 1) * tokens).collect(),
    };
    let mut after = vec![0.0; before.len()];
    let mut conv_state = Vec::new();
    for range in &ranges {
        conv(&before, &mut after, range.clone(), weights);
        for channel in 0..channels {
            conv_state.extend((0..width).map(|k| {
                let token = (range.end + k).checked_sub(width).filter(|&token| token >= range.start);
                token.map_or(0.0, |token| before[token * channels + channel])
            }));
        }
    }
    let of = |from: usize, len: usize| -> Vec<f64> {
        after.chunks(channels).flat_map(|row| row[from..from + len].iter().copied()).collect()
    };
    let (x, b, c) = (of(0, inner), of(inner, groups * state), of(inner + groups * state, groups * state));
    let wide = |values: &[f32]| -> Vec<f64> { values.iter().map(|&v| v.into()).collect() };
    let a: Vec<f64> = weights.a_log.iter().map(|&a| -f64::from(a).exp()).collect();
    let (bias, d) = (wide(&weights.dt_bias), wide(&weights.d));
    let shape = Shape { batch, tokens, groups, heads, head_dim, state };
    let out = reference::forward(&Inputs {
        dt_bias: Some(&bias),
        dt_softplus: true,
        dt_limit: (options.dt_limit.0.into(), options.dt_limit.1.into()),
        d: Some(if d.len() == heads { Skip::PerHead(&d) } else { Skip::PerDim(&d) }),
        z: weights.norm.is_none().then_some(&z),
        cu_seqlens,
        ..Inputs::new(shape, &x, &dt, &a, &b, &c)
    })?;
    let y = match &weights.norm {
        Some(norm) => gated_norm(&out.y, &z, norm, groups, options),
        None => out.y,
    };
    Ok(MixerReference {
        out: linear(&y, &weights.out_proj, weights.out_bias.as_deref(), inner),
        conv_state,
        ssm_state: out.sequence_states.unwrap_or(out.final_states),
    })
}
