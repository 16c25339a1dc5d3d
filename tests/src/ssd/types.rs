//! Element types that differ from input to input, and options that one call must not leave to the next.

use half::{bf16, f16};
use mamba2::case::{Case, Dtype};
use mamba2::resident::HostFloat;
use mamba2::tolerance::{self, relative_l2};
use mamba2::{Inputs, Options, Outputs, StateType, Workspace};
use tile_runtime::DeviceTensor;

use super::bench::{Bench, full, reference_of, shape};

/// Runs a case whose values are held in these types, as a pass and as a step.
fn run<T: HostFloat, Dt: HostFloat, D: HostFloat, Z: HostFloat, S: HostFloat>(bench: &Bench) {
    let rounded = |values: &mut Vec<f32>, round: fn(f32) -> f32| {
        values.iter_mut().for_each(|value| *value = round(*value));
    };
    let size = shape(2, 40, 4, 24, 32, 2);
    let mut case = full(size, Dtype::F32, 51);
    let mamba2::case::Skip::PerDim(mut d) = case.d.take().expect("skip weights") else {
        unreachable!("weights a channel")
    };
    for values in [&mut case.x, &mut case.b, &mut case.c] {
        rounded(values, |value| T::from_f32(value).to_f32());
    }
    rounded(&mut case.dt, |value| Dt::from_f32(value).to_f32());
    rounded(&mut d, |value| D::from_f32(value).to_f32());
    rounded(case.z.as_mut().expect("a gate"), |value| Z::from_f32(value).to_f32());
    rounded(case.initial_states.as_mut().expect("states"), |value| S::from_f32(value).to_f32());
    case.d = Some(mamba2::case::Skip::PerDim(d.clone()));

    fn held<V: HostFloat>(bench: &Bench, shape: &[usize], values: &[f32]) -> DeviceTensor<V> {
        bench.tensor(shape, &values.iter().map(|&value| V::from_f32(value)).collect::<Vec<_>>())
    }
    let of_x = [2, 40, 4, 24];
    let (x, b, c) = (
        held::<T>(bench, &of_x, &case.x),
        held::<T>(bench, &[2, 40, 2, 32], &case.b),
        held::<T>(bench, &[2, 40, 2, 32], &case.c),
    );
    let dt = held::<Dt>(bench, &[2, 40, 4], &case.dt);
    let (a, bias) = (bench.tensor(&[4], &case.a), bench.tensor(&[4], case.dt_bias.as_ref().expect("a bias")));
    let d = held::<D>(bench, &[4, 24], &d);
    let z = held::<Z>(bench, &of_x, case.z.as_ref().expect("a gate"));
    let start = held::<S>(bench, &[2, 4, 24, 32], case.initial_states.as_ref().expect("states"));
    let stepped = Inputs::new(&x, &dt, &a, &b, &c).dt_bias(&bias).dt_softplus(true).dt_limit(0.01, 0.5);
    let stepped = stepped.d(&d).z(&z);
    let out = mamba2::forward(&stepped.initial_states(&start), &bench.options(16)).expect("a pass");
    let mut states = bench.tensor(&[2, 4, 24, 32], &start.to_vec().expect("values"));
    let y = mamba2::step(&stepped, &mut states, &bench.step_options()).expect("a step");

    let values = |y: &DeviceTensor<T>| -> Vec<f32> {
        y.to_vec().expect("values").into_iter().map(T::to_f32).collect()
    };
    let expected = reference_of(&case);
    let of = |bytes: usize| match bytes {
        4 => Dtype::F32,
        _ => Dtype::BF16,
    };
    let limits = tolerance::forward(of(size_of::<T>()), None);
    let pass = relative_l2(&values(&out.y), &expected.y);
    let state = relative_l2(&out.final_states.to_vec().expect("values"), &expected.final_states);
    assert!(pass <= limits.y && state <= limits.state, "y {pass:e}, state {state:e}");
    let step = relative_l2(&values(&y), &expected.y);
    let held_state: Vec<f32> = states.to_vec().expect("values").into_iter().map(S::to_f32).collect();
    let state = relative_l2(&held_state, &expected.final_states);
    assert!(step <= tolerance::step(of(size_of::<T>())).y.max(1e-5), "y of steps {step:e}");
    // A state in 16 bits is rounded once, at the end.
    let limit = if size_of::<S>() == 4 { tolerance::STEP_F32 } else { tolerance::BF16_FLOOR };
    assert!(state <= limit, "states of steps {state:e}");
}

/// dt, D, z and initial states in types of their own, with x in each type.
pub fn types_may_differ(bench: &Bench) {
    run::<bf16, f32, f32, bf16, f32>(bench);
    run::<bf16, bf16, bf16, bf16, f16>(bench);
    run::<bf16, bf16, f32, f32, bf16>(bench);
    run::<bf16, f16, f16, f16, f32>(bench);
    run::<f16, f32, bf16, f16, bf16>(bench);
    run::<f16, f16, f32, bf16, f16>(bench);
    run::<f32, bf16, bf16, bf16, f32>(bench);
    run::<f32, f16, f16, f32, f16>(bench);
}

/// Calls with and without initial states, gate and skip weights, through one workspace and the same outputs.
pub fn initial_states_are_never_left_over(bench: &Bench) {
    let size = shape(2, 40, 2, 16, 16, 1);
    let with = full(size, Dtype::F32, 52);
    let without = Case { initial_states: None, z: None, d: None, ..with.clone() };
    let problems = [bench.load(&with), bench.load(&without)];
    let fresh = [bench.pass(&problems[0], 16), bench.pass(&problems[1], 16)];
    for (case, (y, states)) in [(&with, &fresh[0]), (&without, &fresh[1])] {
        let expected = reference_of(case);
        assert!(relative_l2(y, &expected.y) <= tolerance::F32_EXACT);
        assert!(relative_l2(states, &expected.final_states) <= tolerance::F32_EXACT);
    }
    let mut workspace = Workspace::new(&bench.device);
    let zeros = |shape: &[usize]| DeviceTensor::zeros(&bench.device, shape).expect("a small tensor");
    let mut outputs = Outputs::<f32> {
        y: zeros(&[2, 40, 2, 16]),
        final_states: zeros(&[2, 2, 16, 16]),
        sequence_states: None,
    };
    for turn in [1, 0, 1, 1, 0] {
        let inputs = problems[turn].inputs();
        mamba2::forward_into(&inputs, &bench.options(16), &mut outputs, &mut workspace).expect("a pass");
        let found = (outputs.y.to_vec().expect("values"), outputs.final_states.to_vec().expect("values"));
        assert_eq!(found, fresh[turn]);
    }
}

/// States between chunks in f32 instead of bf16: within the same limits, and no farther from float64.
pub fn states_between_chunks_may_be_f32(bench: &Bench) {
    for dtype in [Dtype::F16, Dtype::BF16, Dtype::F32] {
        let case = full(shape(1, 150, 2, 32, 64, 1), dtype, 53);
        let expected = reference_of(&case);
        let limits = tolerance::forward(dtype, None);
        for state_type in [StateType::AsX, StateType::F32] {
            let options = Options { state_type, ..bench.options(32) };
            let out = mamba2::resident::run(&bench.device, &case, &options).expect("a pass");
            let y = relative_l2(&out.y, &expected.y);
            let state = relative_l2(&out.final_states, &expected.final_states);
            assert!(y <= limits.y && state <= limits.state, "{dtype}, {state_type:?}: {y:e}, {state:e}");
        }
    }
}
