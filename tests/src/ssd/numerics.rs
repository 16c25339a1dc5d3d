//! Decays, step sizes and rounding, where other implementations lost digits.

use mamba2::case::{Case, Dtype};
use mamba2::inputs::generate;
use mamba2::reference;
use mamba2::resident::{HostFloat, Resident, Work, with_resident};
use mamba2::tolerance::forward;
use tile_runtime::DeviceTensor;

use super::bench::{Bench, near, plain, reference_of, shape, tokens};

/// Views into memory whose following rows are NaN, with decays whose masked differences would be infinite.
pub fn dead_rows_of_the_last_chunk_are_never_read(bench: &Bench) {
    let mut case = plain(shape(1, 80, 1, 16, 16, 1), -16.0, 2.0, 1.0);
    for (values, width) in [(&mut case.x, 16), (&mut case.dt, 1), (&mut case.b, 16), (&mut case.c, 16)] {
        values[65 * width..].fill(f32::NAN);
    }
    let part = tokens(&bench.load(&case), 0..65, None);
    for (y, states) in [bench.pass(&part, 64), bench.step(&part)] {
        assert_eq!(y.len(), 65 * 16);
        y.iter().for_each(|&y| near(y, 32.0));
        states.iter().for_each(|&s| near(s, 2.0));
    }
}

/// Tokens that only fill up a chunk have no step size, whatever bias, softplus and limits make of 0.
pub fn padding_tokens_do_not_decay_the_state(bench: &Bench) {
    for dt_limit in [(0.0, f64::INFINITY), (0.5, f64::INFINITY)] {
        let case = Case {
            dt_bias: Some(vec![1.0]),
            dt_softplus: true,
            dt_limit,
            ..plain(shape(1, 5, 1, 16, 16, 1), -1.0, 0.0, 1.0)
        };
        let problem = bench.load(&case);
        for (y, states) in [bench.pass(&problem, 64), bench.step(&problem)] {
            for (y, expected) in y.chunks(16).zip([21.0122, 26.6632, 28.1830, 28.5918, 28.7017]) {
                y.iter().for_each(|&y| near(y, expected));
            }
            states.iter().for_each(|&s| near(s, 1.79386));
        }
    }
}

/// exp(a - b) where exp(a) and exp(-b) are outside of f32.
pub fn a_decay_beyond_the_range_of_exp_leaves_its_neighbours_alone(bench: &Bench) {
    let mut case = plain(shape(1, 2, 1, 16, 16, 1), -1.0, 0.0, 0.0);
    case.dt = vec![100.0, 0.1];
    case.x[..16].fill(1.0);
    let problem = bench.load(&case);
    for (y, _) in [bench.pass(&problem, 64), bench.step(&problem)] {
        near(y[0], 1600.0);
        near(y[16], 1447.74);
    }
}

/// Sums of decays are not monotone in f32 when a strong one stands between weak ones; no factor may exceed 1 for that.
pub fn a_strong_uneven_decay_stays_finite_and_bounded(bench: &Bench) {
    for (a, small) in [(-1e4, 1e-9), (-1e8, 1e-12)] {
        let mut case = plain(shape(1, 256, 1, 16, 16, 1), a, small, 1.0);
        for i in (0..256).step_by(3) {
            case.dt[i] = ((13 * i) % 509) as f32 / 509.0;
        }
        let problem = bench.load(&case);
        for (y, states) in [bench.pass(&problem, 256), bench.step(&problem)] {
            assert!(y.iter().all(|y| y.abs() <= 16.01), "a {a}");
            assert!(states.iter().all(|s| s.is_finite()), "a {a}");
        }
        let packed = Case { cu_seqlens: Some(vec![0, 100, 256]), ..case };
        let out = bench.run(&packed, 256);
        assert!(out.y.iter().all(|y| y.abs() <= 16.01), "a {a}, packed");
        assert!(out.sequence_states.expect("packed").iter().all(|s| s.is_finite()), "a {a}, packed");
    }
}

/// Decays far beyond what exp holds are 0, and leave the tokens after them as they are.
pub fn strong_decays_do_not_blur_the_tokens_after_them(bench: &Bench) {
    for a in [-1e4, -1e8, -1e38] {
        let mut case = plain(shape(1, 256, 1, 16, 16, 1), a, 1.0, 1.0);
        for (i, dt) in case.dt.iter_mut().enumerate() {
            *dt = if i % 3 == 0 { ((13 * i) % 509) as f32 / 509.0 } else { 0.1 / -a };
        }
        case.dt[0] = 10.0;
        let expected = reference_of(&case);
        let problem = bench.load(&case);
        let passes = [16, 64, 256].map(|chunk| bench.pass(&problem, chunk));
        for (y, states) in passes.into_iter().chain([bench.step(&problem)]) {
            // The sums reach 200 log2(e) * 86 tokens, where f32 has steps of 2^-9.
            for (found, right) in y.iter().zip(&expected.y).chain(states.iter().zip(&expected.final_states)) {
                assert!(
                    (f64::from(*found) - right).abs() <= 0.01 * right.abs() + 1e-6,
                    "{a}: {found}, {right}"
                );
            }
        }
    }
}

struct StepSizes<'a>(&'a Bench);

impl Work for StepSizes<'_> {
    type Out = [Vec<f32>; 2];
    fn on<T: HostFloat, Dt: HostFloat>(self, resident: Resident<T, Dt>) -> mamba2::Result<Self::Out> {
        // One token a batch element: the state is dt x B = dt.
        let pass = resident.forward(&self.0.options(16))?.final_states;
        Ok([pass, resident.step(&self.0.step_options())?.final_states])
    }
}

/// Raw steps from far below 0 to far above where softplus is the identity, stored in f32, bf16 and f16.
pub fn softplus_is_right_at_both_ends_in_every_type(bench: &Bench) {
    let raw = [-30.0, 0.0, 19.999, 20.001, 89.0, 200.0];
    let expected = [9.3576e-14, std::f32::consts::LN_2, 19.999, 20.001, 89.0, 200.0];
    for (dtype, dt_dtype) in [(Dtype::F32, Dtype::F32), (Dtype::BF16, Dtype::BF16), (Dtype::F16, Dtype::F16)]
    {
        let size = shape(raw.len(), 1, 1, 1, 1, 1);
        let dt = raw.map(|dt| dt_dtype.round(dt)).to_vec();
        let case = Case { dtype, dt_dtype, dt: dt.clone(), dt_softplus: true, ..plain(size, -1.0, 0.0, 1.0) };
        let results = with_resident(&bench.device, &case, StepSizes(bench)).expect("a pass and a step");
        for (i, &dt) in dt.iter().enumerate() {
            // What 16-bit types make of 19.999 and 20.001 is known as it is rounded.
            let right = if (19.0..21.0).contains(&dt) { dt } else { expected[i] };
            // The step keeps f32; a pass rounds the factor of B to the type.
            let unit = match dtype {
                Dtype::F32 => 1e-5,
                Dtype::F16 => 1.0 / 2048.0,
                Dtype::BF16 => 1.0 / 256.0,
            };
            let (pass, step) = (results[0][i], results[1][i]);
            assert!((step - right).abs() <= 1e-5 * right, "{dtype}, {dt} in a step: {step}");
            // f16 has no 9e-14.
            let least = if dtype == Dtype::F16 { 6e-8 } else { 0.0 };
            assert!((pass - right).abs() <= unit * right + least, "{dtype}, {dt} in a pass: {pass}");
        }
    }
}

/// The clamp comes after softplus, and decode has it too.
pub fn the_clamp_is_that_of_prefill_and_decode(bench: &Bench) {
    let case = Case {
        initial_states: Some(vec![1.0; 256]),
        dt_limit: (0.0, 1.0),
        ..plain(shape(1, 1, 1, 16, 16, 1), -1.0, 10.0, 0.0)
    };
    for (limit, expected) in [((0.0, 1.0), 0.367_879), ((0.0, f64::INFINITY), 4.539_993e-5)] {
        let problem = bench.load(&Case { dt_limit: limit, ..case.clone() });
        for (_, states) in [bench.pass(&problem, 64), bench.step(&problem)] {
            states.iter().for_each(|&s| near(s, expected));
        }
    }
    // softplus(10) is above the limit, softplus(10 - 12) = 0.126928 below it.
    let soft = Case { dt_softplus: true, dt_bias: Some(vec![-12.0]), ..case };
    let problem = bench.load(&soft);
    for (_, states) in [bench.pass(&problem, 64), bench.step(&problem)] {
        states.iter().for_each(|&s| near(s, 0.880_797));
    }
}

/// Where A is positive, nothing decays and nothing grows.
pub fn a_positive_decay_acts_as_none(bench: &Bench) {
    let problem = bench.load(&plain(shape(1, 70, 1, 16, 16, 1), 0.5, 1.0, 1.0));
    for (y, _) in [bench.pass(&problem, 64), bench.step(&problem)] {
        for (token, y) in y.chunks(16).enumerate() {
            near(y[0], 16.0 * (token + 1) as f32);
        }
    }
}

struct Start<'a>(&'a Bench);

impl Work for Start<'_> {
    /// y of the first ten tokens, of a pass over all and of one over those alone.
    type Out = [Vec<f32>; 2];
    fn on<T: HostFloat, Dt: HostFloat>(self, whole: Resident<T, Dt>) -> mamba2::Result<Self::Out> {
        let options = self.0.options(64);
        let mut long = whole.forward(&options)?.y;
        long.truncate(10 * 64);
        Ok([long, tokens(&whole, 0..10, None).forward(&options)?.y])
    }
}

/// Ten tokens give what they give as the start of 128.
pub fn the_future_does_not_change_the_past(bench: &Bench) {
    for (dtype, unit) in [(Dtype::F32, 1e-5), (Dtype::BF16, 1.0 / 128.0)] {
        let case = generate(shape(1, 128, 1, 64, 256, 1), dtype, 14);
        let [long, short] = with_resident(&bench.device, &case, Start(bench)).expect("passes");
        if bench.is_cpu() {
            assert_eq!(long, short);
        }
        // One unit in the last place of bf16 is at most 2^-7 of the value.
        for (&long, &short) in long.iter().zip(&short) {
            assert!((long - short).abs() <= unit * long.abs() + 1e-5, "{dtype}: {long}, {short}");
        }
    }
}

struct Drift<'a>(&'a Bench);

impl Work for Drift<'_> {
    /// y by prefill and by steps.
    type Out = [Vec<f32>; 2];
    fn on<T: HostFloat, Dt: HostFloat>(self, whole: Resident<T, Dt>) -> mamba2::Result<Self::Out> {
        let Self(bench) = self;
        let prefill = whole.forward(&bench.options(None))?.y;
        let (x, b) = (whole.x.shape(), whole.b.shape());
        let mut states = DeviceTensor::<f32>::zeros(&bench.device, &[x[0], x[2], x[3], b[3]])?;
        let mut decoded = Vec::new();
        for token in 0..x[1] {
            let one = tokens(&whole, token..token + 1, None);
            let y = mamba2::step(&one.inputs(), &mut states, &bench.step_options())?;
            decoded.extend(y.to_vec()?.into_iter().map(T::to_f32));
        }
        Ok([prefill, decoded])
    }
}

/// Thousands of tokens by prefill and by steps, with an f32 state: neither is far from float64 in the mean, nor farther at the
/// end than at the start.
pub fn prefill_and_decode_do_not_drift(bench: &Bench) {
    let (length, heads) = if bench.is_cpu() { (192, 8) } else { (2048, 64) };
    let size = shape(1, length, heads, 64, 128, 8);
    // The mean error is below the root of the mean square, which the limits are for.
    for (dtype, limit) in [(Dtype::F16, 2e-3), (Dtype::BF16, forward(Dtype::BF16, None).y)] {
        let mut case = Case { d: None, ..generate(size, dtype, 21) };
        // Evenly over [1e-3, 0.1] and [-16, -1], in an order that repeats late.
        let spread = |i: usize, low: f32, high: f32| low + (high - low) * ((i * 37) % 101) as f32 / 100.0;
        (0..case.dt.len()).for_each(|i| case.dt[i] = spread(i, 1e-3, 0.1));
        (0..heads).for_each(|i| case.a[i] = -spread(i, 1.0, 16.0));
        let results = with_resident(&bench.device, &case, Drift(bench)).expect("a pass and steps");
        let pairs = reference::corner_heads(size);
        for right in reference::heads(&case.reference_inputs(), &pairs).expect("the case fits") {
            for (name, y) in ["prefill", "decode"].iter().zip(&results) {
                let mean = |range: std::ops::Range<usize>| {
                    let (mut difference, mut sum) = (0.0, 0.0);
                    for i in range.start * 64..range.end * 64 {
                        let found = y[(i / 64 * heads + right.head) * 64 + i % 64];
                        difference += (f64::from(found) - right.y[i]).abs();
                        sum += right.y[i].abs();
                    }
                    difference / sum
                };
                let (first, last) = (mean(0..length / 4), mean(length - length / 4..length));
                let what = format!("{dtype}, {name}, head {}: {first:e}, at the end {last:e}", right.head);
                assert!(first <= limit && last <= limit, "{what}");
                assert!(last <= 1.2 * first, "{what}");
            }
        }
    }
}
