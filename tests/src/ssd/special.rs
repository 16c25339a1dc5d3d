//! NaN and infinities stay where the mathematics puts them.

use mamba2::case::{Case, Dtype, Skip};
use mamba2::inputs::generate;

use super::bench::{Bench, full, plain, reference_of, shape};

const VALUES: [f32; 3] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];

/// Chunks before it, and what comes after.
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

/// Inputs that are not finite reach the outputs and states that the recurrence says, at every position of a chunk.
pub fn nan_and_infinity_reach_what_the_recurrence_says(bench: &Bench) {
    let size = shape(1, 70, 4, 5, 6, 2);
    let states: Vec<f32> = (0..size.state_len()).map(|i| (i % 13) as f32 - 6.0).collect();
    for value in VALUES {
        let changes: [&dyn Fn(&mut Case); 6] = [
            &|case| case.dt[37 * 4 + 2] = value,
            &|case| case.a[2] = f32::NAN,
            &|case| case.b[(37 * 2 + 1) * 6 + 3] = value,
            &|case| case.c[(37 * 2 + 1) * 6 + 3] = value,
            &|case| case.d = Some(Skip::PerHead(vec![1.0, 2.0, value, 4.0])),
            &|case| case.initial_states.as_mut().expect("states")[(2 * 5 + 1) * 6 + 3] = value,
        ];
        for (i, change) in changes.iter().enumerate() {
            let mut case = generate(size, Dtype::F32, 3);
            case.initial_states = Some(states.clone());
            change(&mut case);
            let expected = reference_of(&case);
            let problem = bench.load(&case);
            let passes = [16, 64, 128].map(|chunk| (bench.pass(&problem, chunk), chunk));
            for ((y, states), chunk) in passes.into_iter().chain([(bench.step(&problem), 0)]) {
                let right = expected.y.iter().chain(&expected.final_states);
                for (at, (found, right)) in y.iter().chain(&states).zip(right).enumerate() {
                    let agree = found.is_finite() == right.is_finite()
                        && (!right.is_finite()
                            || (f64::from(*found) - right).abs() <= 1e-3 * (1.0 + right.abs()));
                    assert!(
                        agree,
                        "change {i} to {value}, chunk {chunk}, value {at}: {found}, expected {right}"
                    );
                }
            }
        }
    }
}

/// Whatever one packed sequence holds, the others have the bits that they have without it.
pub fn nothing_crosses_from_one_sequence_to_another(bench: &Bench) {
    let size = shape(1, 100, 2, 5, 6, 1);
    // In chunks of 32: sequences that end inside of one, at its edge, and that lie within one.
    let offsets = [0, 20, 32, 40, 50, 100];
    let clean = Case { cu_seqlens: Some(offsets.to_vec()), ..full(size, Dtype::F32, 71) };
    let clean =
        Case { initial_states: Some((0..5 * 2 * 5 * 6).map(|i| (i % 11) as f32 - 5.0).collect()), ..clean };
    let by_offsets = bench.run(&clean, 32);
    let index: Vec<i32> =
        (0..100).map(|t| offsets.iter().filter(|&&start| start <= t).count() as i32).collect();
    let by_index = |case: &Case| Case {
        seq_idx: Some(index.clone()),
        cu_seqlens: None,
        initial_states: None,
        ..case.clone()
    };
    let indexed = bench.run(&by_index(&clean), 32);
    for value in VALUES {
        for (sequence, pair) in offsets.windows(2).enumerate() {
            let (start, end) = (pair[0] as usize, pair[1] as usize);
            for token in [start, (start + end) / 2, end - 1] {
                let changes: [&dyn Fn(&mut Case); 5] = [
                    &|case| case.dt[token * 2..][..2].fill(value),
                    &|case| case.b[token * 6..][..6].fill(value),
                    &|case| case.c[token * 6..][..6].fill(value),
                    &|case| case.z.as_mut().expect("a gate")[token * 10..][..10].fill(value),
                    &|case| case.initial_states.as_mut().expect("states")[sequence * 60..][..60].fill(value),
                ];
                for (i, change) in changes.iter().enumerate() {
                    let mut case = clean.clone();
                    change(&mut case);
                    let what = format!("change {i} to {value} at {token}");
                    let out = bench.run(&case, 32);
                    let others = |t: usize| !(start..end).contains(&t);
                    for t in (0..100).filter(|&t| others(t)) {
                        assert_eq!(out.y[t * 10..][..10], by_offsets.y[t * 10..][..10], "{what}: token {t}");
                    }
                    let (found, right) = (
                        out.sequence_states.as_ref().expect("packed by offsets"),
                        by_offsets.sequence_states.as_ref().expect("packed by offsets"),
                    );
                    for other in (0..5).filter(|&other| other != sequence) {
                        assert_eq!(found[other * 60..][..60], right[other * 60..][..60], "{what}: {other}");
                    }
                    let out = bench.run(&by_index(&case), 32);
                    for t in (0..100).filter(|&t| others(t)) {
                        assert_eq!(out.y[t * 10..][..10], indexed.y[t * 10..][..10], "{what}: token {t}");
                    }
                }
                // x: the states of other sequences.
                let mut case = clean.clone();
                case.x[token * 10..][..10].fill(value);
                let found = bench.run(&case, 32).sequence_states.expect("packed by offsets");
                let right = by_offsets.sequence_states.as_ref().expect("packed by offsets");
                for other in (0..5).filter(|&other| other != sequence) {
                    assert_eq!(found[other * 60..][..60], right[other * 60..][..60], "x at {token}: {other}");
                }
            }
        }
    }
}
