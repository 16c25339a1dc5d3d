//! Decode steps: after a pass, several tokens at a time, and with a pool of states.

use mamba2::case::{Case, Dtype, Skip};
use mamba2::inputs::generate;
use mamba2::resident::{HostFloat, Resident, Work, with_resident};
use mamba2::tolerance::{F32_EXACT, forward, relative_l2};
use mamba2::{Slots, StepOptions};

use super::bench::{Bench, full, reference_of, shape, tokens};

struct Continued<'a> {
    bench: &'a Bench,
    prefill: usize,
}

impl Work for Continued<'_> {
    type Out = (Vec<f32>, Vec<f32>);
    fn on<T: HostFloat, Dt: HostFloat>(self, whole: Resident<T, Dt>) -> mamba2::Result<Self::Out> {
        let Self { bench, prefill } = self;
        let length = whole.x.shape()[1];
        let start = tokens(&whole, 0..prefill, whole.initial_states.clone());
        let outputs = mamba2::forward(&start.inputs(), &bench.options(64))?;
        let mut y: Vec<f32> = outputs.y.to_vec()?.into_iter().map(T::to_f32).collect();
        let mut states = outputs.final_states;
        for token in prefill..length {
            let one = tokens(&whole, token..token + 1, None);
            let out = mamba2::step(&one.inputs(), &mut states, &bench.step_options())?;
            y.extend(out.to_vec()?.into_iter().map(T::to_f32));
        }
        Ok((y, states.to_vec()?))
    }
}

/// A prefill followed by single steps equals one longer prefill, with every option.
pub fn steps_continue_a_pass(bench: &Bench) {
    for (dtype, length, prefill) in [(Dtype::BF16, 256, 255), (Dtype::F32, 80, 70), (Dtype::F16, 70, 1)] {
        let case = full(shape(2, length, 2, 64, 64, 1), dtype, 41);
        let expected = reference_of(&case);
        let (y, states) =
            with_resident(&bench.device, &case, Continued { bench, prefill }).expect("a pass and steps");
        let limits = forward(dtype, None);
        // y of one batch element after the other, in both parts.
        let (width, at) = (2 * 64, prefill * 2 * 64);
        let mut right = Vec::new();
        for row in expected.y.chunks(length * width) {
            right.extend_from_slice(&row[..at]);
        }
        for token in prefill..length {
            for row in expected.y.chunks(length * width) {
                right.extend_from_slice(&row[token * width..][..width]);
            }
        }
        let (y, state) = (relative_l2(&y, &right), relative_l2(&states, &expected.final_states));
        assert!(y <= limits.y && state <= limits.state, "{dtype}: y {y:e}, state {state:e}");
    }
}

/// Four tokens in one step, as speculative decoding takes them.
pub fn several_tokens_a_step_equal_single_ones(bench: &Bench) {
    let case = full(shape(3, 4, 4, 24, 40, 2), Dtype::F32, 42);
    let whole = bench.load(&case);
    let together = bench.step(&whole);
    let mut states = whole.initial_states.clone().expect("initial states").to_vec().expect("values");
    let mut single = vec![0.0; together.0.len()];
    for token in 0..4 {
        let carried = bench.tensor(&[3, 4, 24, 40], &states);
        let (y, next) = bench.step(&tokens(&whole, token..token + 1, Some(carried)));
        for (batch, y) in y.chunks(96).enumerate() {
            single[(batch * 4 + token) * 96..][..96].copy_from_slice(y);
        }
        states = next;
    }
    bench.same(&(single, states), &together);
    let expected = reference_of(&case);
    assert!(relative_l2(&together.0, &expected.y) <= F32_EXACT);
}

/// Padding elements give 0 and touch no state; others find theirs in the pool.
pub fn the_states_of_other_slots_are_untouched(bench: &Bench) {
    let size = shape(4, 1, 2, 16, 16, 1);
    let case = Case { initial_states: None, ..full(size, Dtype::F32, 43) };
    let problem = bench.load(&case);
    let pool: Vec<f32> = (0..4 * 512).map(|i| (i / 512 + 1) as f32).collect();
    let mut states = bench.tensor(&[4, 2, 16, 16], &pool);
    let mut slots = Slots::new(&bench.device, 4, &[2, -1, 0, -1]).expect("rows of the pool");
    let row = |values: &[f32], index: usize, width: usize| values[index * width..][..width].to_vec();
    let after = {
        let options = StepOptions { slots: Some(&slots), ..bench.step_options() };
        let y = mamba2::step(&problem.inputs(), &mut states, &options).expect("a step");
        (y.to_vec().expect("values"), states.to_vec().expect("values"))
    };
    let expected = reference_of(&Case {
        initial_states: Some([3.0, 9.0, 1.0, 9.0].into_iter().flat_map(|s| vec![s; 512]).collect()),
        ..case
    });
    let right = |index: usize, width: usize, of: &[f64]| of[index * width..][..width].to_vec();
    for (element, slot) in [(0, 2), (2, 0)] {
        let y = relative_l2(&row(&after.0, element, 32), &right(element, 32, &expected.y));
        let state = relative_l2(&row(&after.1, slot, 512), &right(element, 512, &expected.final_states));
        assert!(y <= F32_EXACT && state <= F32_EXACT, "element {element}: y {y:e}, state {state:e}");
    }
    for element in [1, 3] {
        assert_eq!(row(&after.0, element, 32), vec![0.0; 32]);
        // The slots of these numbers have no user.
        assert_eq!(row(&after.1, element, 512), row(&pool, element, 512));
    }
    // Other rows through the same memory.
    slots.update(&[1, 3, -7, -1]).expect("rows of the pool");
    let options = StepOptions { slots: Some(&slots), ..bench.step_options() };
    mamba2::step(&problem.inputs(), &mut states, &options).expect("a step");
    let last = states.to_vec().expect("values");
    for slot in [0, 2] {
        assert_eq!(row(&last, slot, 512), row(&after.1, slot, 512));
        assert_ne!(row(&last, slot + 1, 512), row(&after.1, slot + 1, 512));
    }
}

/// Every option of a pass that a step has, alone and together, in every type.
pub fn steps_know_every_option(bench: &Bench) {
    for dtype in [Dtype::F32, Dtype::F16, Dtype::BF16] {
        let size = shape(2, 3, 6, 80, 33, 3);
        let all = Case { step: true, ..full(size, dtype, 44) };
        let bare = Case { step: true, ..generate(size, dtype, 44) };
        let variants = [
            Case { d: None, ..all.clone() },
            Case { d: Some(Skip::PerHead(vec![1.5; 6])), ..all.clone() },
            Case { z: None, ..all.clone() },
            Case { initial_states: None, dt_bias: None, ..all.clone() },
            Case { dt_softplus: false, ..all.clone() },
            Case { dt_limit: (0.0, f64::INFINITY), ..all.clone() },
            all,
            bare,
        ];
        for case in variants {
            bench.matches_reference(&case, None);
        }
    }
}
