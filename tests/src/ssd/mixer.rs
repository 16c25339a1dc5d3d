//! A whole mixer against its definition in float64: prefill, packed sequences, pieces and decoding.

use half::{bf16, f16};
use mamba2::{
    Mixer, MixerOptions, MixerState, MixerWeights, Sequences, Slots,
    case::Dtype,
    inputs,
    mixer::{
        Sizes,
        reference::{self, MixerReference},
    },
    problem::Shape,
    resident::HostFloat,
    tolerance::{self, relative_l2},
};
use tile_runtime::DeviceTensor;

use super::bench::Bench;

const SIZES: Sizes = Sizes { model: 48, heads: 4, head_dim: 24, groups: 2, state: 20, width: 4 };

fn options(bench: &Bench) -> MixerOptions {
    MixerOptions { groups: SIZES.groups, chunk: Some(16), target: bench.target, ..MixerOptions::default() }
}

/// Normal values, rounded to `dtype`.
fn tokens(dtype: Dtype, batch: usize, tokens: usize) -> Vec<f32> {
    let shape = Shape { batch, tokens, groups: 1, heads: 1, head_dim: SIZES.model, state: 1 };
    inputs::generate(shape, dtype, 9).x
}

fn upload<T: HostFloat>(bench: &Bench, u: &[f32], batch: usize) -> DeviceTensor<T> {
    let values: Vec<T> = u.iter().map(|&v| T::from_f32(v)).collect();
    let shape = [batch, u.len() / batch / SIZES.model, SIZES.model];
    bench.tensor(&shape, &values)
}

fn host<T: HostFloat>(tensor: &DeviceTensor<T>) -> Vec<f32> {
    tensor.to_vec().expect("what fits").into_iter().map(T::to_f32).collect()
}

fn expected(
    weights: &MixerWeights,
    options: &MixerOptions,
    (batch, u): (usize, &[f32]),
    offsets: Option<&[i32]>,
) -> MixerReference {
    let wide: Vec<f64> = u.iter().map(|&v| v.into()).collect();
    let tokens = u.len() / batch / SIZES.model;
    reference::mixer(weights, options, (batch, tokens), &wide, offsets).expect("what fits")
}

#[track_caller]
fn near<T: HostFloat>(dtype: Dtype, out: &DeviceTensor<T>, state: &MixerState<T>, expected: &MixerReference) {
    let limits = tolerance::layer(dtype);
    let y = relative_l2(&host(out), &expected.out);
    let ssm = relative_l2(&state.ssm.to_vec().expect("what fits"), &expected.ssm_state);
    let conv = relative_l2(&host(&state.conv), &expected.conv_state);
    assert!(y <= limits.y, "{dtype}: out {y:e}");
    assert!(ssm <= limits.state && conv <= limits.state, "{dtype}: state {ssm:e}, {conv:e}");
}

fn prefill<T: HostFloat>(bench: &Bench, dtype: Dtype, change: impl Fn(&mut MixerWeights, &mut MixerOptions)) {
    let (mut weights, mut options) = (MixerWeights::random(SIZES, dtype, 3), options(bench));
    change(&mut weights, &mut options);
    let mixer = Mixer::<T>::new(&bench.device, &weights, options).expect("what fits");
    for (batch, length) in [(2, 37), (1, 1), (3, 3)] {
        let u = tokens(dtype, batch, length);
        let out = mixer.forward(&upload(bench, &u, batch), None, None, None).expect("what fits");
        near(dtype, &out.out, &out.state, &expected(&weights, &options, (batch, &u), None));
    }
}

/// Several batch elements, lengths below and above a chunk.
pub fn prefill_matches_float64_in_every_type(bench: &Bench) {
    prefill::<f32>(bench, Dtype::F32, |_, _| {});
    prefill::<f16>(bench, Dtype::F16, |_, _| {});
    prefill::<bf16>(bench, Dtype::BF16, |_, _| {});
}

/// Both orders of norm and gate, no norm, no bias, limits of dt, skip weights a channel, biases of projections.
pub fn every_kind_of_layer_matches_float64(bench: &Bench) {
    prefill::<f32>(bench, Dtype::F32, |_, options| options.norm_before_gate = true);
    prefill::<f32>(bench, Dtype::F32, |weights, _| weights.norm = None);
    prefill::<f32>(bench, Dtype::F32, |weights, _| weights.conv_bias = None);
    prefill::<f32>(bench, Dtype::F32, |_, options| options.dt_limit = (0.01, 0.05));
    prefill::<f32>(bench, Dtype::F32, |weights, _| {
        weights.d = (0..SIZES.inner()).map(|i| i as f32 / 50.0 - 1.0).collect();
    });
    prefill::<f32>(bench, Dtype::F32, |weights, _| {
        weights.in_bias = Some((0..SIZES.in_rows()).map(|i| (i % 7) as f32 / 10.0 - 0.3).collect());
        weights.out_bias = Some((0..SIZES.model).map(|i| (i % 5) as f32 / 10.0).collect());
    });
}

/// Neither in the convolution nor in the scan, by offsets and by index.
pub fn packed_sequences_see_nothing_of_each_other(bench: &Bench) {
    let (weights, options) = (MixerWeights::random(SIZES, Dtype::F32, 3), options(bench));
    let mixer = Mixer::<f32>::new(&bench.device, &weights, options).expect("what fits");
    let offsets = [0, 2, 2, 16, 17, 45];
    let u = tokens(Dtype::F32, 1, 45);
    let sequences = Sequences::from_cu_seqlens(&bench.device, &offsets).expect("what fits");
    let out = mixer.forward(&upload(bench, &u, 1), None, Some(&sequences), None).expect("what fits");
    near(Dtype::F32, &out.out, &out.state, &expected(&weights, &options, (1, &u), Some(&offsets)));

    // By index: the same outputs, and the states of the last sequence.
    let index: Vec<u8> = (0..45).map(|t| offsets.iter().filter(|&&o| o <= t).count() as u8).collect();
    let by_index = Sequences::from_seq_idx(&bench.device, 1, 45, &index).expect("what fits");
    let last = mixer.forward(&upload(bench, &u, 1), None, Some(&by_index), None).expect("what fits");
    assert_eq!(host(&last.out), host(&out.out));
    assert_eq!(host(&last.state.conv), host(&out.state.conv.slice(0, 4..5).expect("what fits")));
    assert_eq!(host(&last.state.ssm), host(&out.state.ssm.slice(0, 4..5).expect("what fits")));
}

/// The states go from pass to pass, to single steps, and to several tokens a step from a pool.
pub fn pieces_and_steps_equal_one_prefill(bench: &Bench) {
    let (weights, options) = (MixerWeights::random(SIZES, Dtype::F32, 3), options(bench));
    let mixer = Mixer::<f32>::new(&bench.device, &weights, options).expect("what fits");
    let u = upload::<f32>(bench, &tokens(Dtype::F32, 2, 41), 2);
    let whole = mixer.forward(&u, None, None, None).expect("what fits");
    let part = |range| u.slice(1, range).expect("what fits");
    let expected = |range: std::ops::Range<usize>| host(&whole.out.slice(1, range).expect("what fits"));
    let same = |found: &DeviceTensor<f32>, expected: &[f32]| {
        let error = relative_l2(&host(found), expected);
        assert!(error <= tolerance::LAYER_F32, "{error:e}");
    };
    let first = mixer.forward(&part(0..2), None, None, None).expect("what fits");
    same(&first.out, &expected(0..2));
    let second = mixer.forward(&part(2..30), Some(&first.state), None, None).expect("what fits");
    same(&second.out, &expected(2..30));
    let mut state = second.state;
    for token in 30..35 {
        same(
            &mixer.step(&part(token..token + 1), &mut state, None, None).expect("what fits"),
            &expected(token..token + 1),
        );
    }
    // Several tokens at once, of a pool in another order.
    let swap = |state: &MixerState<f32>| {
        let flip = |t: &DeviceTensor<f32>| {
            let halves: Vec<f32> = t.to_vec().expect("what fits");
            let (a, b) = halves.split_at(halves.len() / 2);
            bench.tensor(t.shape(), &[b, a].concat())
        };
        MixerState { conv: flip(&state.conv), ssm: flip(&state.ssm) }
    };
    let mut pool = swap(&state);
    let slots = Slots::new(&bench.device, 2, &[1, 0]).expect("what fits");
    same(&mixer.step(&part(35..41), &mut pool, Some(&slots), None).expect("what fits"), &expected(35..41));
    let end = swap(&pool);
    same(&end.ssm, &host(&whole.state.ssm));
    same(&end.conv, &host(&whole.state.conv));
}

/// Elements without a row of the pool give 0.
pub fn padding_slots_leave_every_state_alone(bench: &Bench) {
    let weights = MixerWeights::random(SIZES, Dtype::F32, 3);
    let mixer = Mixer::<f32>::new(&bench.device, &weights, options(bench)).expect("what fits");
    let mut state = mixer.new_state(3).expect("what fits");
    state.conv.fill(0.5).expect("what fits");
    state.ssm.fill(0.25).expect("what fits");
    let u = upload::<f32>(bench, &tokens(Dtype::F32, 2, 1), 2);
    let slots = Slots::new(&bench.device, 3, &[-1, 1]).expect("what fits");
    let out = mixer.step(&u, &mut state, Some(&slots), None).expect("what fits");
    for (pool, value) in [(&state.conv, 0.5), (&state.ssm, 0.25)] {
        for row in [0, 2] {
            assert!(host(&pool.slice(0, row..row + 1).expect("what fits")).iter().all(|&v| v == value));
        }
        assert!(host(&pool.slice(0, 1..2).expect("what fits")).iter().any(|&v| v != value));
    }
    assert!(host(&out.slice(0, 0..1).expect("what fits")).iter().all(|&v| v == 0.0), "no bias: 0 in, 0 out");
    assert!(host(&out.slice(0, 1..2).expect("what fits")).iter().any(|&v| v != 0.0));
}
