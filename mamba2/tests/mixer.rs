//! A whole mixer on the CPU against its definition in float64: prefill, packed sequences, pieces and decoding.

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
use tile_runtime::{Device, DeviceTensor};

const SIZES: Sizes = Sizes { model: 48, heads: 4, head_dim: 24, groups: 2, state: 20, width: 4 };

fn options() -> MixerOptions {
    MixerOptions { groups: SIZES.groups, chunk: Some(16), ..MixerOptions::default() }
}

/// Normal values, rounded to `dtype`.
fn tokens(dtype: Dtype, batch: usize, tokens: usize) -> Vec<f32> {
    let shape = Shape { batch, tokens, groups: 1, heads: 1, head_dim: SIZES.model, state: 1 };
    inputs::generate(shape, dtype, 9).x
}

fn upload<T: HostFloat>(u: &[f32], batch: usize) -> DeviceTensor<T> {
    let values: Vec<T> = u.iter().map(|&v| T::from_f32(v)).collect();
    let shape = [batch, u.len() / batch / SIZES.model, SIZES.model];
    DeviceTensor::from_slice(&Device::cpu(), &shape, &values).unwrap()
}

fn host<T: HostFloat>(tensor: &DeviceTensor<T>) -> Vec<f32> {
    tensor.to_vec().unwrap().into_iter().map(T::to_f32).collect()
}

fn expected(
    weights: &MixerWeights,
    options: &MixerOptions,
    (batch, u): (usize, &[f32]),
    offsets: Option<&[i32]>,
) -> MixerReference {
    let wide: Vec<f64> = u.iter().map(|&v| v.into()).collect();
    let tokens = u.len() / batch / SIZES.model;
    reference::mixer(weights, options, (batch, tokens), &wide, offsets).unwrap()
}

#[track_caller]
fn near<T: HostFloat>(dtype: Dtype, out: &DeviceTensor<T>, state: &MixerState<T>, expected: &MixerReference) {
    let limits = tolerance::layer(dtype);
    let y = relative_l2(&host(out), &expected.out);
    let ssm = relative_l2(&state.ssm.to_vec().unwrap(), &expected.ssm_state);
    let conv = relative_l2(&host(&state.conv), &expected.conv_state);
    assert!(y <= limits.y, "{dtype}: out {y:e}");
    assert!(ssm <= limits.state && conv <= limits.state, "{dtype}: state {ssm:e}, {conv:e}");
}

fn prefill<T: HostFloat>(dtype: Dtype, change: impl Fn(&mut MixerWeights, &mut MixerOptions)) {
    let (mut weights, mut options) = (MixerWeights::random(SIZES, dtype, 3), options());
    change(&mut weights, &mut options);
    let mixer = Mixer::<T>::new(&Device::cpu(), &weights, options).unwrap();
    for (batch, length) in [(2, 37), (1, 1), (3, 3)] {
        let u = tokens(dtype, batch, length);
        let out = mixer.forward(&upload(&u, batch), None, None, None).unwrap();
        near(dtype, &out.out, &out.state, &expected(&weights, &options, (batch, &u), None));
    }
}

#[test]
fn prefill_matches_float64_in_every_type() {
    prefill::<f32>(Dtype::F32, |_, _| {});
    prefill::<f16>(Dtype::F16, |_, _| {});
    prefill::<bf16>(Dtype::BF16, |_, _| {});
}

#[test]
fn every_kind_of_layer_matches_float64() {
    prefill::<f32>(Dtype::F32, |_, options| options.norm_before_gate = true);
    prefill::<f32>(Dtype::F32, |weights, _| weights.norm = None);
    prefill::<f32>(Dtype::F32, |weights, _| weights.conv_bias = None);
    prefill::<f32>(Dtype::F32, |_, options| options.dt_limit = (0.01, 0.05));
    prefill::<f32>(Dtype::F32, |weights, _| {
        weights.d = (0..SIZES.inner()).map(|i| i as f32 / 50.0 - 1.0).collect();
    });
    prefill::<f32>(Dtype::F32, |weights, _| {
        weights.in_bias = Some((0..SIZES.in_rows()).map(|i| (i % 7) as f32 / 10.0 - 0.3).collect());
        weights.out_bias = Some((0..SIZES.model).map(|i| (i % 5) as f32 / 10.0).collect());
    });
}

#[test]
fn packed_sequences_see_nothing_of_each_other() {
    let (weights, options) = (MixerWeights::random(SIZES, Dtype::F32, 3), options());
    let mixer = Mixer::<f32>::new(&Device::cpu(), &weights, options).unwrap();
    let offsets = [0, 2, 2, 16, 17, 45];
    let u = tokens(Dtype::F32, 1, 45);
    let sequences = Sequences::from_cu_seqlens(&Device::cpu(), &offsets).unwrap();
    let out = mixer.forward(&upload(&u, 1), None, Some(&sequences), None).unwrap();
    near(Dtype::F32, &out.out, &out.state, &expected(&weights, &options, (1, &u), Some(&offsets)));

    // By index: the same outputs, and the states of the last sequence.
    let index: Vec<u8> = (0..45).map(|t| offsets.iter().filter(|&&o| o <= t).count() as u8).collect();
    let by_index = Sequences::from_seq_idx(&Device::cpu(), 1, 45, &index).unwrap();
    let last = mixer.forward(&upload(&u, 1), None, Some(&by_index), None).unwrap();
    assert_eq!(host(&last.out), host(&out.out));
    assert_eq!(host(&last.state.conv), host(&out.state.conv.slice(0, 4..5).unwrap()));
    assert_eq!(host(&last.state.ssm), host(&out.state.ssm.slice(0, 4..5).unwrap()));
}

#[test]
fn pieces_and_steps_equal_one_prefill() {
    let (weights, options) = (MixerWeights::random(SIZES, Dtype::F32, 3), options());
    let mixer = Mixer::<f32>::new(&Device::cpu(), &weights, options).unwrap();
    let u = upload::<f32>(&tokens(Dtype::F32, 2, 41), 2);
    let whole = mixer.forward(&u, None, None, None).unwrap();
    let part = |range| u.slice(1, range).unwrap();
    let expected = |range: std::ops::Range<usize>| host(&whole.out.slice(1, range).unwrap());
    let same = |found: &DeviceTensor<f32>, expected: &[f32]| {
        let error = relative_l2(&host(found), expected);
        assert!(error <= tolerance::LAYER_F32, "{error:e}");
    };
    let first = mixer.forward(&part(0..2), None, None, None).unwrap();
    same(&first.out, &expected(0..2));
    let second = mixer.forward(&part(2..30), Some(&first.state), None, None).unwrap();
    same(&second.out, &expected(2..30));
    let mut state = second.state;
    for token in 30..35 {
        same(
            &mixer.step(&part(token..token + 1), &mut state, None, None).unwrap(),
            &expected(token..token + 1),
        );
    }
    // Several tokens at once, of a pool in another order.
    let swap = |state: &MixerState<f32>| {
        let flip = |t: &DeviceTensor<f32>| {
            let halves: Vec<f32> = t.to_vec().unwrap();
            let (a, b) = halves.split_at(halves.len() / 2);
            DeviceTensor::from_slice(&Device::cpu(), t.shape(), &[b, a].concat()).unwrap()
        };
        MixerState { conv: flip(&state.conv), ssm: flip(&state.ssm) }
    };
    let mut pool = swap(&state);
    let slots = Slots::new(&Device::cpu(), 2, &[1, 0]).unwrap();
    same(&mixer.step(&part(35..41), &mut pool, Some(&slots), None).unwrap(), &expected(35..41));
    let end = swap(&pool);
    same(&end.ssm, &host(&whole.state.ssm));
    same(&end.conv, &host(&whole.state.conv));
}

#[test]
fn padding_slots_leave_every_state_alone() {
    let weights = MixerWeights::random(SIZES, Dtype::F32, 3);
    let mixer = Mixer::<f32>::new(&Device::cpu(), &weights, options()).unwrap();
    let mut state = mixer.new_state(3).unwrap();
    state.conv.fill(0.5).unwrap();
    state.ssm.fill(0.25).unwrap();
    let u = upload::<f32>(&tokens(Dtype::F32, 2, 1), 2);
    let slots = Slots::new(&Device::cpu(), 3, &[-1, 1]).unwrap();
    let out = mixer.step(&u, &mut state, Some(&slots), None).unwrap();
    for (pool, value) in [(&state.conv, 0.5), (&state.ssm, 0.25)] {
        for row in [0, 2] {
            assert!(host(&pool.slice(0, row..row + 1).unwrap()).iter().all(|&v| v == value));
        }
        assert!(host(&pool.slice(0, 1..2).unwrap()).iter().any(|&v| v != value));
    }
    assert!(host(&out.slice(0, 0..1).unwrap()).iter().all(|&v| v == 0.0), "no bias: 0 in, 0 out");
    assert!(host(&out.slice(0, 1..2).unwrap()).iter().any(|&v| v != 0.0));
}

#[test]
fn weights_survive_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("layer.safetensors");
    for dtype in [Dtype::F32, Dtype::BF16] {
        let weights = MixerWeights::random(SIZES, dtype, 5);
        weights.write(&path, "backbone.layers.0.mixer.", dtype).unwrap();
        assert_eq!(MixerWeights::read(&path, "backbone.layers.0.mixer.", &options()).unwrap(), weights);
    }
    let error = |prefix: &str, groups: usize| {
        MixerWeights::read(&path, prefix, &MixerOptions { groups, ..options() }).unwrap_err().to_string()
    };
    assert!(error("layers.0.", 2).contains("no tensor called 'layers.0.in_proj.weight'"));
    assert!(error("backbone.layers.0.mixer.", 3).contains("is the number of groups 3?"));
}

#[test]
fn arguments_that_do_not_fit_are_errors() {
    let weights = MixerWeights::random(SIZES, Dtype::F32, 3);
    let mixer = Mixer::<f32>::new(&Device::cpu(), &weights, options()).unwrap();
    let error = |result: mamba2::Result<()>| result.unwrap_err().to_string();
    let u = upload::<f32>(&tokens(Dtype::F32, 1, 4), 1);
    let narrow = u.slice(2, 0..40).unwrap();
    let text = error(mixer.forward(&narrow, None, None, None).map(drop));
    assert!(text.contains("`u` has shape [1, 4, 40]; expected [batch, tokens, 48]"), "{text}");
    let mut two = mixer.new_state(2).unwrap();
    let text = error(mixer.forward(&u, Some(&two), None, None).map(drop));
    assert!(text.contains("`state.conv` has shape [2, 176, 4]; expected [1, 176, 4]"), "{text}");
    let text = error(mixer.step(&u, &mut two, None, None).map(drop));
    assert!(text.contains("state.conv"), "{text}");
    let text = error(Mixer::<f32>::new(&Device::cpu(), &weights, MixerOptions::default()).map(drop));
    assert!(text.contains("`groups` is 1; expected 2"), "{text}");
}
