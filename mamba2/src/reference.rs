//! The definition of the forward pass: a plain float64 recurrence, one token after another.
//!
//! For batch element and head `h`, with `g` the group of `h` and `delta_t` the step size after bias, softplus and clamp:
//!
//! ```text
//! S_t = exp(min(A[h] delta_t, 0)) S_{t-1} + delta_t x_t ⊗ B_t[g]
//! y_t = S_t C_t[g] + D x_t,   times silu(z_t) where z is given
//! ```

use rayon::prelude::*;

use crate::problem::{ProblemError, Shape};

/// The skip weight.
#[derive(Debug, Clone, Copy)]
pub enum Skip<'a, T> {
    /// `[heads]`
    PerHead(&'a [T]),
    /// `[heads, head_dim]`
    PerDim(&'a [T]),
}

/// Inputs of the reference, row-major and without gaps, in any type that converts to f64 exactly.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a, T> {
    /// Sizes. One decode step is a pass over one token.
    pub shape: Shape,
    /// `[batch, tokens, heads, head_dim]`
    pub x: &'a [T],
    /// `[batch, tokens, heads]`
    pub dt: &'a [T],
    /// `[heads]`; a positive value acts as 0 (no decay).
    pub a: &'a [T],
    /// `[batch, tokens, groups, state]`
    pub b: &'a [T],
    /// `[batch, tokens, groups, state]`
    pub c: &'a [T],
    /// Weight of `x` in the output.
    pub d: Option<Skip<'a, T>>,
    /// `[batch, tokens, heads, head_dim]`
    pub z: Option<&'a [T]>,
    /// `[heads]`
    pub dt_bias: Option<&'a [T]>,
    /// Whether dt goes through softplus.
    pub dt_softplus: bool,
    /// dt is clamped to this range after bias and softplus.
    pub dt_limit: (f64, f64),
    /// `[batch, heads, head_dim, state]`; with `cu_seqlens`, `[sequences, heads, head_dim, state]`.
    pub initial_states: Option<&'a [T]>,
    /// `[batch, tokens]`; each run of equal values is a sequence of its own.
    pub seq_idx: Option<&'a [i32]>,
    /// `[sequences + 1]`, from 0 to `tokens`, never decreasing; batch must be 1.
    pub cu_seqlens: Option<&'a [i32]>,
}

/// Results of the reference over all heads, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs {
    /// `[batch, tokens, heads, head_dim]`
    pub y: Vec<f64>,
    /// State after the last token: `[batch, heads, head_dim, state]`
    pub final_states: Vec<f64>,
    /// With `cu_seqlens`, the state at the end of each sequence: `[sequences, heads, head_dim, state]`
    pub sequence_states: Option<Vec<f64>>,
}

/// Results of the reference for one head of one batch element.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadOutputs {
    /// Batch element.
    pub batch: usize,
    /// Head.
    pub head: usize,
    /// `[tokens, head_dim]`
    pub y: Vec<f64>,
    /// State after the last token: `[head_dim, state]`
    pub final_state: Vec<f64>,
    /// With `cu_seqlens`, the state at the end of each sequence: `[sequences, head_dim, state]`
    pub sequence_states: Vec<f64>,
}

/// A stretch of tokens through which one state is carried.
struct Sequence {
    tokens: std::ops::Range<usize>,
    /// Row of `initial_states` that it starts from; zero without.
    initial: Option<usize>,
}

impl<'a, T: Copy + Into<f64> + Sync> Inputs<'a, T> {
    /// The inputs that a forward pass cannot do without; no bias, softplus, skip, gate, initial state or packing, and dt
    /// clamped to be not negative.
    pub fn new(shape: Shape, x: &'a [T], dt: &'a [T], a: &'a [T], b: &'a [T], c: &'a [T]) -> Inputs<'a, T> {
        Inputs {
            shape,
            x,
            dt,
            a,
            b,
            c,
            d: None,
            z: None,
            dt_bias: None,
            dt_softplus: false,
            dt_limit: (0.0, f64::INFINITY),
            initial_states: None,
            seq_idx: None,
            cu_seqlens: None,
        }
    }

    fn check(&self) -> Result<(), ProblemError> {
        let Shape { batch, tokens, heads, head_dim, state, .. } = self.shape;
        self.shape.check()?;
        let rows = self.cu_seqlens.map_or(batch, |offsets| offsets.len().saturating_sub(1));
        let d = self.d.map(|d| match d {
            Skip::PerHead(d) => (d.len(), heads),
            Skip::PerDim(d) => (d.len(), heads * head_dim),
        });
        let lengths = [
            ("x", Some((self.x.len(), self.shape.x_len()))),
            ("dt", Some((self.dt.len(), self.shape.dt_len()))),
            ("a", Some((self.a.len(), heads))),
            ("b", Some((self.b.len(), self.shape.b_len()))),
            ("c", Some((self.c.len(), self.shape.b_len()))),
            ("d", d),
            ("z", self.z.map(|z| (z.len(), self.shape.x_len()))),
            ("dt_bias", self.dt_bias.map(|bias| (bias.len(), heads))),
            ("initial_states", self.initial_states.map(|s| (s.len(), rows * heads * head_dim * state))),
            ("seq_idx", self.seq_idx.map(|index| (index.len(), batch * tokens))),
        ];
        for (name, lengths) in lengths {
            if let Some((found, expected)) = lengths
                && found != expected
            {
                return Err(ProblemError(format!(
                    "{name} has {found} values, expected {expected} for {}",
                    self.shape
                )));
            }
        }
        let (low, high) = self.dt_limit;
        if low.is_nan() || high.is_nan() || low > high {
            return Err(ProblemError(format!("dt_limit is ({low}, {high}), expected low <= high")));
        }
        self.cu_seqlens.map_or(Ok(()), |offsets| self.check_offsets(offsets))
    }

    fn check_offsets(&self, offsets: &[i32]) -> Result<(), ProblemError> {
        let Shape { batch, tokens, .. } = self.shape;
        let error = |text: String| Err(ProblemError(text));
        if batch != 1 {
            return error(format!(
                "cu_seqlens packs sequences into one row, but batch is {batch}; pass batch 1"
            ));
        }
        if offsets.first() != Some(&0) || offsets.last().map(|&end| i64::from(end)) != Some(tokens as i64) {
            return error(format!("cu_seqlens must run from 0 to {tokens} tokens, found {offsets:?}"));
        }
        if !offsets.is_sorted() {
            return error(format!("cu_seqlens must not decrease, found {offsets:?}"));
        }
        if let Some(index) = self.seq_idx {
            for token in 1..tokens {
                let by_offset = offsets.contains(&(token as i32));
                if by_offset != (index[token] != index[token - 1]) {
                    return error(format!(
                        "seq_idx and cu_seqlens disagree on whether a sequence starts at token {token}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The sequences of one batch element, in order. Empty ones appear with `cu_seqlens` only.
    fn sequences(&self, batch: usize) -> Vec<Sequence> {
        let tokens = self.shape.tokens;
        if let Some(offsets) = self.cu_seqlens {
            let ranges = offsets.windows(2).map(|pair| pair[0] as usize..pair[1] as usize);
            return ranges
                .enumerate()
                .map(|(i, tokens)| Sequence { tokens, initial: self.initial_states.map(|_| i) })
                .collect();
        }
        let mut starts = vec![0];
        if let Some(index) = self.seq_idx {
            let index = &index[batch * tokens..(batch + 1) * tokens];
            starts.extend((1..tokens).filter(|&t| index[t] != index[t - 1]));
        }
        let ends = starts.iter().skip(1).copied().chain([tokens]);
        let initial = |start| if start == 0 { self.initial_states.map(|_| batch) } else { None };
        starts
            .iter()
            .zip(ends)
            .map(|(&start, end)| Sequence { tokens: start..end, initial: initial(start) })
            .collect()
    }

    /// dt of one token after bias, softplus and clamp.
    fn step_size(&self, batch: usize, token: usize, head: usize) -> f64 {
        let mut dt: f64 = self.dt[(batch * self.shape.tokens + token) * self.shape.heads + head].into();
        if let Some(bias) = self.dt_bias {
            dt += bias[head].into();
        }
        if self.dt_softplus {
            dt = softplus(dt);
        }
        dt.clamp(self.dt_limit.0, self.dt_limit.1)
    }

    fn skip_weight(&self, head: usize, channel: usize) -> Option<f64> {
        self.d.map(|d| match d {
            Skip::PerHead(d) => d[head].into(),
            Skip::PerDim(d) => d[head * self.shape.head_dim + channel].into(),
        })
    }

    /// Row `row` of the initial states for `head`, transposed to `[state, head_dim]`; zeros without.
    fn initial_state(&self, row: Option<usize>, head: usize) -> Vec<f64> {
        let Shape { heads, head_dim, state, .. } = self.shape;
        let mut carried = vec![0.0; state * head_dim];
        if let (Some(row), Some(states)) = (row, self.initial_states) {
            let from = &states[(row * heads + head) * head_dim * state..][..head_dim * state];
            for p in 0..head_dim {
                for n in 0..state {
                    carried[n * head_dim + p] = from[p * state + n].into();
                }
            }
        }
        carried
    }

    fn head(&self, batch: usize, head: usize) -> HeadOutputs {
        let Shape { tokens, head_dim, state, .. } = self.shape;
        let mut out = HeadOutputs {
            batch,
            head,
            y: vec![0.0; tokens * head_dim],
            final_state: Vec::new(),
            sequence_states: Vec::new(),
        };
        // Without a token, the state stays what it was.
        let mut last = self
            .initial_state(self.initial_states.filter(|_| self.cu_seqlens.is_none()).map(|_| batch), head);
        for sequence in self.sequences(batch) {
            let mut carried = self.initial_state(sequence.initial, head);
            for token in sequence.tokens.clone() {
                self.token(batch, token, head, &mut carried, &mut out.y[token * head_dim..][..head_dim]);
            }
            if self.cu_seqlens.is_some() {
                out.sequence_states.extend(transposed(&carried, head_dim, state));
            }
            if !sequence.tokens.is_empty() {
                last = carried;
            }
        }
        out.final_state = transposed(&last, head_dim, state);
        out
    }

    /// One step of the recurrence. `carried` is `[state, head_dim]`, so that the inner loop runs over channels, which are
    /// independent of each other.
    fn token(&self, batch: usize, token: usize, head: usize, carried: &mut [f64], y: &mut [f64]) {
        let Shape { tokens, groups, heads, head_dim, state, .. } = self.shape;
        let row = batch * tokens + token;
        let x = &self.x[(row * heads + head) * head_dim..][..head_dim];
        let bc = (row * groups + self.shape.group_of(head)) * state;
        let (b, c) = (&self.b[bc..][..state], &self.c[bc..][..state]);
        let delta = self.step_size(batch, token, head);
        let exponent = self.a[head].into() * delta;
        let decay = if exponent > 0.0 { 1.0 } else { exponent.exp() };
        let scaled: Vec<f64> = x.iter().map(|&x| delta * x.into()).collect();
        for n in 0..state {
            let (b, c): (f64, f64) = (b[n].into(), c[n].into());
            let carried = &mut carried[n * head_dim..][..head_dim];
            for ((s, y), x) in carried.iter_mut().zip(&mut *y).zip(&scaled) {
                *s = decay * *s + b * x;
                *y += c * *s;
            }
        }
        for (p, y) in y.iter_mut().enumerate() {
            if let Some(weight) = self.skip_weight(head, p) {
                let x: f64 = x[p].into();
                *y += weight * x;
            }
            if let Some(z) = self.z {
                *y *= silu(z[(row * heads + head) * head_dim + p].into());
            }
        }
    }
}

/// `[state, head_dim]` as `[head_dim, state]`.
fn transposed(carried: &[f64], head_dim: usize, state: usize) -> Vec<f64> {
    (0..head_dim * state).map(|i| carried[(i % state) * head_dim + i / state]).collect()
}

/// `log(1 + exp(v))`, and `v` itself above 20, where the two differ by less than 2.1e-9.
pub fn softplus(v: f64) -> f64 {
    if v > 20.0 { v } else { v.exp().ln_1p() }
}

/// `v` times its logistic function.
pub fn silu(v: f64) -> f64 {
    v / (1.0 + (-v).exp())
}

/// The (batch element, head) pairs that stand for the whole of a large problem: the first and last head of the first and
/// last batch element, without repeats.
pub fn corner_heads(shape: Shape) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for batch in [0, shape.batch.saturating_sub(1)] {
        for head in [0, shape.heads.saturating_sub(1)] {
            if batch < shape.batch && head < shape.heads && !pairs.contains(&(batch, head)) {
                pairs.push((batch, head));
            }
        }
    }
    pairs
}

/// The reference for the given (batch element, head) pairs alone, in their order, over all tokens.
///
/// # Errors
/// If an input does not have the length that the shape asks for, a pair lies outside the shape, the heads do not divide
/// into the groups, or the packed sequences do not cover the tokens.
pub fn heads<T: Copy + Into<f64> + Sync>(
    inputs: &Inputs<'_, T>,
    pairs: &[(usize, usize)],
) -> Result<Vec<HeadOutputs>, ProblemError> {
    inputs.check()?;
    if let Some(pair) = pairs.iter().find(|pair| pair.0 >= inputs.shape.batch || pair.1 >= inputs.shape.heads)
    {
        return Err(ProblemError(format!("there is no batch element and head {pair:?} in {}", inputs.shape)));
    }
    Ok(pairs.par_iter().map(|&(batch, head)| inputs.head(batch, head)).collect())
}

/// The reference for the whole problem.
///
/// # Errors
/// As [`heads`].
pub fn forward<T: Copy + Into<f64> + Sync>(inputs: &Inputs<'_, T>) -> Result<Outputs, ProblemError> {
    let Shape { batch, tokens, heads: head_count, head_dim, state, .. } = inputs.shape;
    let pairs: Vec<_> = (0..batch).flat_map(|b| (0..head_count).map(move |h| (b, h))).collect();
    let results = heads(inputs, &pairs)?;
    let size = head_dim * state;
    let mut y = vec![0.0; inputs.shape.x_len()];
    let mut final_states = Vec::with_capacity(inputs.shape.state_len());
    let sequences = inputs.cu_seqlens.map_or(0, |offsets| offsets.len() - 1);
    let mut sequence_states = vec![0.0; sequences * head_count * size];
    for result in results {
        for token in 0..tokens {
            let to = ((result.batch * tokens + token) * head_count + result.head) * head_dim;
            y[to..to + head_dim].copy_from_slice(&result.y[token * head_dim..][..head_dim]);
        }
        for sequence in 0..sequences {
            let to = (sequence * head_count + result.head) * size;
            sequence_states[to..to + size]
                .copy_from_slice(&result.sequence_states[sequence * size..][..size]);
        }
        final_states.extend(result.final_state);
    }
    let sequence_states = inputs.cu_seqlens.is_some().then_some(sequence_states);
    Ok(Outputs { y, final_states, sequence_states })
}
