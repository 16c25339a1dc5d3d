//! NaN and infinities in the inputs reach the outputs and states that the recurrence says, and no others.

use mamba2::{
    Options,
    case::{Case, Dtype, Skip},
    inputs,
    problem::Shape,
    reference, resident, tolerance,
};
use tile_runtime::Device;

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
fn agrees(case: &Case, what: &str) {
    let expected = reference::forward(&case.reference_inputs()).unwrap();
    let none = Vec::new();
    let expected_ends = expected.sequence_states.as_ref().unwrap_or(&none);
    for chunk in [16, 64, 128] {
        let options = Options { chunk: Some(chunk), ..Options::default() };
        let out = resident::run(&Device::cpu(), case, &options).unwrap();
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
}

/// A change of one input, and its name.
type Change<'a> = (&'static str, &'a dyn Fn(&mut Case));

/// The tokens at which an input changes: first and last, and around the edges of chunks and sequences.
const TOKENS: [usize; 8] = [0, 4, 15, 16, 37, 63, 64, 69];

#[test]
fn of_x() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for packed in PACKED {
            for token in TOKENS {
                let mut case = case(packed);
                case.x[(token * SIZE.heads + HEAD) * SIZE.head_dim + 1] = value;
                agrees(&case, &format!("{value} at token {token}, packed {packed:?}"));
            }
        }
    }
}

#[test]
fn of_dt_b_c_and_z() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for packed in PACKED {
            for token in TOKENS {
                let group = (token * SIZE.groups + 1) * SIZE.state + 3;
                let changes: [Change<'_>; 4] = [
                    ("dt", &|case| case.dt[token * SIZE.heads + HEAD] = value),
                    ("b", &|case| case.b[group] = value),
                    ("c", &|case| case.c[group] = value),
                    ("z", &|case| {
                        case.z.as_mut().unwrap()[(token * SIZE.heads + HEAD) * SIZE.head_dim + 1] = value;
                    }),
                ];
                for (name, change) in changes {
                    let mut case = case(packed);
                    change(&mut case);
                    agrees(&case, &format!("{value} in {name} at token {token}, packed {packed:?}"));
                }
            }
        }
    }
}

#[test]
fn of_what_has_no_tokens() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for packed in PACKED {
            let state = (HEAD * SIZE.head_dim + 1) * SIZE.state + 3;
            let rows = packed.map_or(1, |offsets| offsets.len() - 1);
            for row in 0..rows {
                let mut case = case(packed);
                case.initial_states.as_mut().unwrap()[row * SIZE.state_len() + state] = value;
                agrees(&case, &format!("{value} in the initial state {row}, packed {packed:?}"));
            }
            let mut skip = case(packed);
            skip.d = Some(Skip::PerHead(vec![1.0, 2.0, value, 4.0]));
            agrees(&skip, &format!("{value} in D, packed {packed:?}"));
            if value.is_nan() {
                let mut decay = case(packed);
                decay.a[HEAD] = value;
                agrees(&decay, &format!("{value} in A, packed {packed:?}"));
            }
        }
    }
}
