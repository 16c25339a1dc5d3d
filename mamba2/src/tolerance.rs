//! How wrong a result may be: every error limit of the project with its reason, and the error measure itself.
//!
//! All limits are relative L2 errors against the float64 recurrence over the same rounded inputs, but those of single elements,
//! which [`Roundings`] derives.

use rayon::prelude::*;

use crate::case::Dtype;

/// Largest relative L2 errors that pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// For the outputs.
    pub y: f64,
    /// For the states after the last token, and after each packed sequence.
    pub state: f64,
}

/// Errors of an independent GPU implementation on the same inputs, in the same measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeerErrors {
    /// For the outputs.
    pub y: f64,
    /// For the states after the last token.
    pub state: f64,
}

/// A result may be this much worse than the independent implementation's: both round at the same places, and the order
/// of sums moves the error by some percent.
pub const PEER_FACTOR: f64 = 1.25;

/// bf16 when the peer does better: rounding y alone costs 1.6e-3, and one rounding of the factors of a product that
/// makes up most of y adds 1.5e-3 in quadrature.
pub const BF16_FLOOR: f64 = 2.2e-3;

/// f16 when the peer does better: the bf16 limit with three more bits, and a little for subnormal factors.
pub const F16_FLOOR: f64 = 2.8e-4;

/// f32 with exact products: 24-bit roundings along sums of some thousand terms stay below 1e-6, while exp2 of a decay
/// sum of magnitude 100 costs up to 1e-5.
pub const F32_EXACT: f64 = 2e-5;

/// f32 with products in tf32, on request only: factors have 11 bits, so 2^-12 each, and two factors meet.
pub const F32_TF32: f64 = 1e-3;

/// bf16 without a peer to compare with. A head with a small skip weight has y from products alone: rounding the factors
/// and rounding y cost 1.6e-3 each, 2.3e-3 together, and [`PEER_FACTOR`] on top.
pub const BF16_ALONE: f64 = 2.9e-3;

/// f16 without a peer: [`BF16_ALONE`] with three more bits.
pub const F16_ALONE: f64 = 3.6e-4;

/// y of one decode step in bf16: y is rounded after f32 arithmetic, and the gate is bf16 too.
pub const STEP_BF16_Y: f64 = 2.5e-3;

/// y of one decode step in f16: [`STEP_BF16_Y`] with three more bits.
pub const STEP_F16_Y: f64 = 3.2e-4;

/// y in f32, and the f32 state in every type, of one decode step: a handful of f32 roundings.
pub const STEP_F32: f64 = 1e-5;

/// A whole mixer in bf16, relative L2: z, x, B, C and dt round twice on the way to the scan, and their errors of 1.66e-3
/// (2^-8 / sqrt(12), over the mean of a binade) meet in products of up to four of them: 1.66e-3 sqrt(8) = 4.7e-3; the scan, the norm
/// and the output round again: sqrt(4.7^2 + 2.3^2 + 2 1.66^2) = 5.7e-3. A quarter on top for their spread.
pub const LAYER_BF16: f64 = 7.2e-3;

/// A whole mixer in f16: [`LAYER_BF16`] with three more bits.
pub const LAYER_F16: f64 = 9e-4;

/// A whole mixer in f32: two exact products, and the scan's [`F32_EXACT`].
pub const LAYER_F32: f64 = 3e-5;

/// The recurrence in f64 against its own result stored as f32: one f32 rounding is at most 6e-8, and exp of an f32 decay
/// computed elsewhere may differ in the last bit.
pub const STORED_REFERENCE: f64 = 1e-5;

/// One element in f32 against float64, relative to 1 + its size, where only finiteness is in question: sums of some hundred
/// terms of size 1 to 6 stay far below.
pub const F32_ELEMENT: f64 = 1e-3;

/// The limits of a whole forward pass in `dtype`. `peer` gives the errors of an independent implementation, where known.
pub fn forward(dtype: Dtype, peer: Option<PeerErrors>) -> Limits {
    let (floor, alone) = match dtype {
        Dtype::F32 => return Limits { y: F32_EXACT, state: F32_EXACT },
        Dtype::F16 => (F16_FLOOR, F16_ALONE),
        Dtype::BF16 => (BF16_FLOOR, BF16_ALONE),
    };
    match peer {
        Some(peer) => {
            Limits { y: floor.max(PEER_FACTOR * peer.y), state: floor.max(PEER_FACTOR * peer.state) }
        }
        None => Limits { y: alone, state: alone },
    }
}

/// The largest error of a block of one plan's results against another's, see [`blocks_differ`]. Both are within [`forward`]'s limit of
/// the same values, so that they differ by at most twice that.
pub fn plans(dtype: Dtype) -> f64 {
    2.0 * forward(dtype, None).y
}

/// Values that [`blocks_differ`] takes together.
const BLOCK: usize = 4096;

/// The largest error of a block of 4096 values: the norm of the difference over that of the block's reference, or over the norm of a
/// block on average where that is larger. So one wrong tile shows, however large the whole is. NaN counts as infinite.
pub fn blocks_differ(values: &[f32], reference: &[f32]) -> f64 {
    if values.len() != reference.len() {
        return f64::INFINITY;
    }
    let square = |x: f32| f64::from(x) * f64::from(x);
    let norms: Vec<[f64; 2]> = values
        .par_chunks(BLOCK)
        .zip(reference.par_chunks(BLOCK))
        .map(|(values, reference)| {
            let pairs = values.iter().zip(reference);
            let difference: f64 = pairs.filter(|(a, b)| a != b).map(|(&a, &b)| square(a - b)).sum();
            [difference, reference.iter().map(|&b| square(b)).sum()]
        })
        .collect();
    let average = norms.iter().map(|norm| norm[1]).sum::<f64>() / norms.len().max(1) as f64;
    let errors = norms.iter().map(|[difference, size]| match difference {
        0.0 => 0.0,
        _ => (difference / size.max(average)).sqrt(),
    });
    errors.fold(0.0, |most, error| if error.is_nan() { f64::INFINITY } else { most.max(error) })
}

/// The limits of one decode step in `dtype`.
pub fn step(dtype: Dtype) -> Limits {
    let y = match dtype {
        Dtype::F32 => STEP_F32,
        Dtype::F16 => STEP_F16_Y,
        Dtype::BF16 => STEP_BF16_Y,
    };
    Limits { y, state: STEP_F32 }
}

/// The limits of a whole mixer in `dtype`; the state of the scan, which is f32, sees all of the roundings before it.
pub fn layer(dtype: Dtype) -> Limits {
    let limit = match dtype {
        Dtype::F32 => LAYER_F32,
        Dtype::F16 => LAYER_F16,
        Dtype::BF16 => LAYER_BF16,
    };
    Limits { y: limit, state: limit }
}

/// What the rounding errors of single elements depend on.
///
/// An element passes if `|found - right| <= unit (c1 |right| + c2 abs) + least`: `right` is the float64 recurrence, `abs` the same
/// over the absolute values of x, B, C, D and the initial states, with the same decays (where there is a gate, times the absolute
/// value of its `silu`). `abs` is what the error of a sum is relative to, also where the sum itself cancels.
///
/// Each bound below holds for every input, in any order of summation; nothing is fitted. Errors are relative, in units of f32's
/// rounding `v = 2^-24` unless said:
///
/// | value | error | why |
/// |---|---|---|
/// | step size | [`STEP`], or [`SOFTPLUS`] | the bias is one sum; softplus as the language promises, of a rounded argument |
/// | `G` | chunk + step + 3 | the product `A dt`, a sum of as many terms of one sign as the chunk has tokens, log2(e) |
/// | decay | `9 + E (2 (chunk + step + 3) + 1)` | `exp2` is good to 5e-7; its argument is a difference of two `G`, rounded; an error of the argument is a relative one of the result. `E` is the largest sum of `-A dt` in a chunk |
/// | sum of n products | `s n` | one rounding a term; `s` is 1 for FMAs and 4 for tensor cores, which keep fewer bits of what they add |
/// | state | (chunks + 1) (`s` chunk + decay + 2) + step | each chunk multiplies it by a decay and adds as many terms as it has tokens |
/// | y, of the state | `s` state + decay + 1, and the state's | C times the state, times its decay |
/// | y, of the chunk | `s` (state + chunk) + decay + step + 3 | the weights, and their sum over tokens |
/// | skip and gate | [`EPILOGUE`] | one product and one sum; `z sigmoid(z)` and its product |
///
/// 16-bit types round, in their own unit, the weights of a chunk once (1), or the factors of B and the stored state (2); a term
/// of y passes one of the two. y is rounded once, which is c1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Roundings {
    /// Type of x.
    pub dtype: Dtype,
    /// Values of the state of a channel.
    pub state: usize,
    /// Tokens in a chunk; 1 for decode steps.
    pub chunk: usize,
    /// Chunks that a state passes through.
    pub chunks: usize,
    /// The largest sum of `-A dt` in a chunk.
    pub exponent: f64,
    /// Whether dt goes through softplus.
    pub softplus: bool,
    /// Whether these are decode steps, which compute in f32 whatever x is.
    pub step: bool,
}

/// Error of dt with a bias, in units of f32's rounding.
pub const STEP: f64 = 1.0;

/// Error of softplus, in units of f32's rounding: 3e-6 of the language, and 16 for arguments of up to 16, of whose rounding exp
/// makes a relative error.
pub const SOFTPLUS: f64 = 50.0 + 16.0;

/// Error of skip and gate, in units of f32's rounding: a product and a sum; 3e-6 of `sigmoid`, and two products.
pub const EPILOGUE: f64 = 2.0 + 50.0 + 2.0;

/// Half the distance of f16's subnormal values, which is the least error of a rounding to f16.
const F16_LEAST: f64 = 1.0 / (1 << 25) as f64;

/// Nothing of interest in f32 and bf16 is smaller; GPUs flush decays below 2^-126.
const LEAST: f64 = 1e-30;

impl Roundings {
    /// The rounding unit of x's type.
    pub fn unit(&self) -> f64 {
        match self.dtype {
            Dtype::F32 => 2.0_f64.powi(-24),
            Dtype::F16 => 2.0_f64.powi(-11),
            Dtype::BF16 => 2.0_f64.powi(-8),
        }
    }

    /// The least error of a value that is rounded to x's type.
    pub fn least(&self) -> f64 {
        if self.dtype == Dtype::F16 { F16_LEAST } else { LEAST }
    }

    fn step_size(&self) -> f64 {
        if self.softplus { SOFTPLUS } else { STEP }
    }

    /// Error of a sum of `terms` products.
    fn sum(&self, terms: usize) -> f64 {
        terms as f64 * if self.dtype == Dtype::F32 || self.step { 1.0 } else { 4.0 }
    }

    fn decay(&self) -> f64 {
        9.0 + self.exponent * (2.0 * (self.chunk as f64 + self.step_size() + 3.0) + 1.0)
    }

    /// Error of a state in f32's units.
    fn carried(&self) -> f64 {
        (self.chunks as f64 + 1.0) * (self.sum(self.chunk) + self.decay() + 2.0) + self.step_size()
    }

    /// `n` roundings to x's type and `errors` to f32, in units of x's type; products of two errors are a few units more.
    fn together(&self, n: f64, errors: f64) -> f64 {
        let wide = self.dtype == Dtype::F32 || self.step;
        let n = if wide { 0.0 } else { n };
        (n + errors * 2.0_f64.powi(-24) / self.unit()) * (1.0 + 4.0 * self.unit())
    }

    /// c1 of y.
    pub fn c1(&self) -> f64 {
        1.0
    }

    /// c2 of y.
    pub fn c2(&self) -> f64 {
        let of_state = self.sum(self.state) + self.decay() + 1.0 + self.carried();
        let of_chunk = self.sum(self.state + self.chunk) + self.decay() + self.step_size() + 3.0;
        self.together(2.0, of_state + of_chunk + EPILOGUE)
    }

    /// c2 of states, whose c1 is 0.
    pub fn c2_of_states(&self) -> f64 {
        self.together(1.0, self.carried())
    }
}

/// Squared error and squared size, summed over as many pieces of a result as are added.
#[derive(Debug, Clone, Copy, Default)]
pub struct ErrorSum {
    difference: f64,
    reference: f64,
}

impl ErrorSum {
    /// Adds one value and its reference.
    pub fn add(&mut self, value: f64, reference: f64) {
        self.difference += (value - reference) * (value - reference);
        self.reference += reference * reference;
    }

    /// Relative L2 error of all that was added. NaN if any value was NaN, which passes no limit; where the reference
    /// is zero throughout, 0 for an exact result and infinity for any other.
    pub fn relative(&self) -> f64 {
        if self.difference == 0.0 { 0.0 } else { (self.difference / self.reference).sqrt() }
    }
}

/// Relative L2 error of `values` against `reference`: the norm of the difference over the norm of the reference.
///
/// Infinity if the lengths differ.
pub fn relative_l2<A: Copy + Into<f64>, B: Copy + Into<f64>>(values: &[A], reference: &[B]) -> f64 {
    if values.len() != reference.len() {
        return f64::INFINITY;
    }
    let mut sum = ErrorSum::default();
    for (&value, &reference) in values.iter().zip(reference) {
        sum.add(value.into(), reference.into());
    }
    sum.relative()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_l2_is_a_ratio_of_norms() {
        assert_eq!(relative_l2(&[3.0, 4.0], &[3.0, 4.0]), 0.0);
        // |(0, 1)| / |(3, 4)| = 1 / 5
        assert!((relative_l2(&[3.0f32, 5.0], &[3.0f64, 4.0]) - 0.2).abs() < 1e-15);
        assert_eq!(relative_l2(&[0.0], &[0.0]), 0.0);
        assert_eq!(relative_l2(&[1e-9], &[0.0]), f64::INFINITY);
        assert_eq!(relative_l2(&[1.0, 2.0], &[1.0]), f64::INFINITY);
        let empty: [f64; 0] = [];
        assert_eq!(relative_l2(&empty, &empty), 0.0);
    }

    #[test]
    fn one_wrong_tile_of_many_shows() {
        let right = vec![1.0f32; 1 << 20];
        let mut wrong = right.clone();
        wrong[5000..5064].fill(2.0);
        // 64 of the 4096 values of a block are off by their own size: 1 / 8.
        assert_eq!(blocks_differ(&wrong, &right), 0.125);
        assert_eq!(relative_l2(&wrong, &right), 1.0 / 128.0);
        assert_eq!(blocks_differ(&right, &right), 0.0);
        wrong[7] = f32::NAN;
        assert_eq!(blocks_differ(&wrong, &right), f64::INFINITY);
        assert_eq!(blocks_differ(&right, &right[1..]), f64::INFINITY);
        assert_eq!(blocks_differ(&[f32::INFINITY], &[f32::INFINITY]), 0.0);
        assert_eq!(blocks_differ(&[1.0], &[0.0]), f64::INFINITY);
        assert_eq!(blocks_differ(&[], &[]), 0.0);
    }

    #[test]
    fn nan_and_infinity_pass_no_limit() {
        for bad in [f64::NAN, f64::INFINITY] {
            let error = relative_l2(&[1.0, bad], &[1.0, 1.0]);
            assert!(error.is_nan() || error.is_infinite());
            let passes = error <= 1e9;
            assert!(!passes);
        }
    }

    #[test]
    fn a_peer_can_only_widen_the_floor() {
        let worse = forward(Dtype::BF16, Some(PeerErrors { y: 2.4e-3, state: 1e-3 }));
        assert!((worse.y - 3e-3).abs() < 1e-12);
        assert_eq!(worse.state, BF16_FLOOR);
        let f32 = forward(Dtype::F32, Some(PeerErrors { y: 8e-4, state: 8e-4 }));
        assert_eq!(f32, Limits { y: 2e-5, state: 2e-5 }, "the peer's tf32 products excuse nothing");
    }
}
