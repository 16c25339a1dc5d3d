//! NaN and infinities in the inputs reach the outputs and states that the recurrence says, and no others.

use mamba2::case::{Case, Dtype, Skip};
use mamba2::inputs;
use mamba2::problem::Shape;
use mamba2::tolerance;

use super::bench::{Bench, plain, reference_of, shape};

/// Values that are not finite.
const VALUES: [f32; 3] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
const SIZE: Shape = Shape { batch: 1, tokens: 70, groups: 2, heads: 4, head_dim: 5, state: 6 };
/// The head whose inputs change; it reads group 1.
const HEAD: usize = 2;

/// One sequence, or several with boundaries on, before and after the edges of chunks, and one of them empty.
const PACKED: [Option<&[i32]>; 3] = [None, Some(&[0, 5, 37, 37, 38, 64, 70]), Some(&[0, 16, 63, 65, 70])];

fn case(packed: Option<&[i32]>) -> Case {
    let rows = packed.map_or(1, |offsets| offsets.len() - 1);
    let states = (0..rows * SIZE.state_len()).map(|i| (i % 13) as f32 - 6.0).collect();
    Case {
        initial_states: Some(states),
        cu_seqlens: packed.map(<[i32]>::to_vec),
        z: Some(inputs::generate(SIZE, Dtype::F32, 4).x),
        ..inputs::generate(SIZE, Dtype::F32, 3)
    }
}

/// Runs a case for several chunks and compares which values are finite, and those that are.
#[track_caller]
fn agrees(bench: &Bench, case: &Case, what: &str) {
    let expected = reference_of(case);
    let none = Vec::new();
    let expected_ends = expected.sequence_states.as_ref().unwrap_or(&none);
    let passes = [16, 64, 128].map(|chunk| (chunk, bench.run(case, chunk)));
    let single = case.seq_idx.is_none() && case.cu_seqlens.is_none();
    let step = single.then(|| (0, bench.run(&Case { step: true, ..case.clone() }, None)));
    for (chunk, out) in passes.into_iter().chain(step) {
        let ends = out.sequence_states.unwrap_or_default();
        for (name, found, right) in [
            ("y", &out.y, &expected.y),
            ("the final states", &out.final_states, &expected.final_states),
            ("the states of the sequences", &ends, expected_ends),
        ] {
            assert_eq!(found.len(), right.len());
            for (at, (&found, &right)) in found.iter().zip(right).enumerate() {
                let near = (f64::from(found) - right).abs() <= tolerance::F32_ELEMENT * (1.0 + right.abs());
                let agree = found.is_finite() == right.is_finite() && (!right.is_finite() || near);
                assert!(agree, "{what}, chunk {chunk}, {name} at {at}: {found}, expected {right}");
            }
        }
    }
    if let Some(offsets) = &case.cu_seqlens {
        // The same sequences by an index, where only the first has an initial state.
        let number = |token: i32| offsets.iter().filter(|&&start| start <= token).count() as i32;
        let by_index = Case {
            seq_idx: Some((0..SIZE.tokens as i32).map(number).collect()),
            cu_seqlens: None,
            initial_states: case.initial_states.as_ref().map(|states| states[..SIZE.state_len()].to_vec()),
            ..case.clone()
        };
        agrees(bench, &by_index, &format!("{what}, by index"));
    }
}

/// Tokens before it, and what comes after.
pub fn nan_spreads_to_later_tokens_only(bench: &Bench) {
    let mut case = plain(shape(1, 130, 1, 16, 16, 1), -1.0, 1.0, 1.0);
    case.dt[70] = f32::NAN;
    let problem = bench.load(&case);
    for (y, states) in [bench.pass(&problem, 64), bench.step(&problem)] {
        assert!(y[..70 * 16].iter().all(|y| y.is_finite()), "tokens before it");
        assert!(y[70 * 16..].iter().all(|y| y.is_nan()));
        assert!(states.iter().all(|s| s.is_nan()));
    }
}

/// A change of one input, and its name.
type Change<'a> = (&'static str, &'a dyn Fn(&mut Case));

/// The tokens at which an input changes: first and last, and around the edges of chunks and sequences.
const TOKENS: [usize; 8] = [0, 4, 15, 16, 37, 63, 64, 69];

/// x, at every kind of token.
pub fn x_that_is_not_finite_reaches_what_depends_on_it(bench: &Bench) {
    for value in VALUES {
        for packed in PACKED {
            for token in TOKENS {
                let mut case = case(packed);
                case.x[(token * SIZE.heads + HEAD) * SIZE.head_dim + 1] = value;
                agrees(bench, &case, &format!("{value} at token {token}, packed {packed:?}"));
            }
        }
    }
}

/// dt, B, C and z, at every kind of token.
pub fn other_inputs_of_tokens_reach_what_depends_on_them(bench: &Bench) {
    for value in VALUES {
        for packed in PACKED {
            for token in TOKENS {
                let group = (token * SIZE.groups + 1) * SIZE.state + 3;
                let changes: [Change<'_>; 4] = [
                    ("dt", &|case| case.dt[token * SIZE.heads + HEAD] = value),
                    ("b", &|case| case.b[group] = value),
                    ("c", &|case| case.c[group] = value),
                    ("z", &|case| {
                        case.z.as_mut().expect("an input")[(token * SIZE.heads + HEAD) * SIZE.head_dim + 1] =
                            value;
                    }),
                ];
                for (name, change) in changes {
                    let mut case = case(packed);
                    change(&mut case);
                    agrees(bench, &case, &format!("{value} in {name} at token {token}, packed {packed:?}"));
                }
            }
        }
    }
}

/// Initial states, D and A.
pub fn states_and_weights_reach_what_depends_on_them(bench: &Bench) {
    for value in VALUES {
        for packed in PACKED {
            let state = (HEAD * SIZE.head_dim + 1) * SIZE.state + 3;
            let rows = packed.map_or(1, |offsets| offsets.len() - 1);
            for row in 0..rows {
                let mut case = case(packed);
                case.initial_states.as_mut().expect("an input")[row * SIZE.state_len() + state] = value;
                agrees(bench, &case, &format!("{value} in the initial state {row}, packed {packed:?}"));
            }
            let mut skip = case(packed);
            skip.d = Some(Skip::PerHead(vec![1.0, 2.0, value, 4.0]));
            agrees(bench, &skip, &format!("{value} in D, packed {packed:?}"));
            if value.is_nan() {
                let mut decay = case(packed);
                decay.a[HEAD] = value;
                agrees(bench, &decay, &format!("{value} in A, packed {packed:?}"));
            }
        }
    }
}
