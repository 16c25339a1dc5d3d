//! Packed sequences, with boundaries wherever chunks do not expect them.

use mamba2::case::{Case, Dtype};
use mamba2::inputs::generate;
use mamba2::tolerance::{F32_EXACT, relative_l2};
use mamba2::{Inputs, Sequences, Workspace, forward, forward_into};

use super::bench::{Bench, full, near, plain, shape};

/// A sequence that begins inside of a chunk with a state of its own decays from its own start.
pub fn each_sequence_decays_from_its_own_start(bench: &Bench) {
    let case = Case {
        initial_states: Some(vec![1.0; 2 * 256]),
        cu_seqlens: Some(vec![0, 40, 100]),
        ..plain(shape(1, 100, 1, 16, 16, 1), -0.1, 1.0, 0.0)
    };
    let out = bench.run(&case, 64);
    for (token, expected) in
        [(0, 14.4774), (40, 14.4774), (39, 0.29305), (63, 1.45149), (64, 1.31336), (99, 0.03966)]
    {
        for &y in &out.y[token * 16..][..16] {
            // The expected numbers have five decimals.
            assert!((y - expected).abs() <= 6e-6 + 1e-5 * expected, "{token}: {y}");
        }
    }
    let ends = out.sequence_states.expect("packed by offsets");
    ends[..256].iter().for_each(|&s| near(s, (-4.0_f32).exp()));
    ends[256..].iter().for_each(|&s| near(s, (-6.0_f32).exp()));
    assert_eq!(out.final_states, ends[256..]);
}

/// An index need not begin with 0, and a later run with an earlier value is a new sequence.
pub fn the_initial_state_feeds_the_first_run_whatever_its_index(bench: &Bench) {
    let case = |index: [i32; 4]| Case {
        initial_states: Some(vec![1.0; 256]),
        seq_idx: Some(index.to_vec()),
        ..plain(shape(1, 4, 1, 16, 16, 1), -0.1, 1.0, 0.0)
    };
    near(bench.run(&case([7; 4]), 64).y[0], 14.4774);
    let y = bench.run(&case([0, 1, 0, 0]), 64).y;
    near(y[0], 14.4774);
    assert!(y[16..].iter().all(|&y| y == 0.0));
}

/// Empty sequences before, between and after others.
pub fn empty_sequences_keep_their_initial_state(bench: &Bench) {
    let offsets = vec![0, 0, 5, 5, 64, 64, 70, 70];
    let states: Vec<f32> = (0..7 * 256).map(|i| (i / 256 + 1) as f32).collect();
    let case = Case {
        initial_states: Some(states),
        cu_seqlens: Some(offsets.clone()),
        ..plain(shape(1, 70, 1, 16, 16, 1), -0.1, 1.0, 0.0)
    };
    let out = bench.run(&case, 64);
    let ends = out.sequence_states.expect("packed by offsets");
    for (sequence, pair) in offsets.windows(2).enumerate() {
        let right = (sequence + 1) as f32 * (-0.1 * (pair[1] - pair[0]) as f32).exp();
        ends[sequence * 256..][..256].iter().for_each(|&s| near(s, right));
    }
    // The last sequence with tokens is the sixth.
    assert_eq!(out.final_states, ends[5 * 256..6 * 256]);
    let without = bench.run(&Case { initial_states: None, ..case }, 64);
    assert!(without.sequence_states.expect("packed by offsets").iter().all(|&s| s == 0.0));
    let none = plain(shape(1, 0, 1, 16, 16, 1), -0.1, 1.0, 0.0);
    for (initial_states, right) in [(Some(vec![3.0; 256]), 3.0), (None, 0.0)] {
        let single = Case { initial_states, cu_seqlens: Some(vec![0, 0]), ..none.clone() };
        assert_eq!(bench.run(&single, 64).sequence_states, Some(vec![right; 256]));
    }
    // By index too: memory is dirty before, so that nobody may leave the states unwritten.
    let none = plain(shape(2, 0, 1, 16, 16, 1), -0.1, 1.0, 0.0);
    for (initial_states, right) in [(Some(vec![3.0; 512]), 3.0), (None, 0.0)] {
        let case = Case { initial_states, seq_idx: Some(Vec::new()), ..none.clone() };
        let problem = bench.load(&case);
        let mut outputs = forward(&problem.inputs(), &bench.options(64)).expect("a pass");
        outputs.final_states.fill(7.0).expect("its own");
        let mut workspace = Workspace::new(&bench.device);
        forward_into(&problem.inputs(), &bench.options(64), &mut outputs, &mut workspace).expect("a pass");
        assert_eq!(outputs.final_states.to_vec().expect("on the host"), vec![right; 512]);
    }
}

/// Documents of 781 and 1267 tokens in chunks of 32, together and one by one.
pub fn documents_may_end_anywhere_in_a_chunk(bench: &Bench) {
    let size = shape(1, 2048, 2, 16, 16, 1);
    let case = Case { cu_seqlens: Some(vec![0, 781, 2048]), ..generate(size, Dtype::F32, 31) };
    bench.matches_reference(&case, 32);
    let together = bench.run(&case, 32);
    let by_index = Case {
        seq_idx: Some((0..2048).map(|t| i32::from(t >= 781)).collect()),
        cu_seqlens: None,
        ..case.clone()
    };
    assert_eq!(bench.run(&by_index, 32).y, together.y);
    for range in [0..781, 781..2048] {
        let part = |values: &[f32], width: usize| values[range.start * width..range.end * width].to_vec();
        let single = Case {
            shape: shape(1, range.len(), 2, 16, 16, 1),
            x: part(&case.x, 32),
            dt: part(&case.dt, 2),
            b: part(&case.b, 16),
            c: part(&case.c, 16),
            cu_seqlens: None,
            ..case.clone()
        };
        let y = bench.run(&single, 32).y;
        assert!(relative_l2(&y, &together.y[range.start * 32..range.end * 32]) <= F32_EXACT);
    }
}

/// Offsets as i32 and i64, indices as i32, i64 and u8; with and without states at the boundaries.
pub fn offsets_and_indices_of_every_width_agree(bench: &Bench) {
    let size = shape(1, 90, 2, 8, 8, 1);
    let case = Case { initial_states: None, ..full(size, Dtype::F32, 32) };
    let problem = bench.load(&case);
    let y = |sequences: &Sequences| {
        let inputs: Inputs<'_, f32> = problem.inputs().sequences(sequences);
        mamba2::forward(&inputs, &bench.options(16)).expect("a pass").y.to_vec().expect("values")
    };
    let device = &bench.device;
    let index: Vec<u8> = (0..90).map(|t| u8::from(t >= 17) + u8::from(t >= 64)).collect();
    let wide: Vec<i32> = index.iter().map(|&i| i32::from(i) * 1000 - 5).collect();
    let first = y(&Sequences::from_cu_seqlens(device, &[0_i32, 17, 64, 90]).expect("offsets"));
    for other in [
        Sequences::from_cu_seqlens(device, &[0_i64, 17, 64, 90]),
        Sequences::from_cu_seqlens(device, &[0_u8, 17, 64, 90]),
        Sequences::from_seq_idx(device, 1, 90, &index),
        Sequences::from_seq_idx(device, 1, 90, &wide),
    ] {
        assert_eq!(y(&other.expect("sequences")), first);
    }
    bench.matches_reference(&Case { seq_idx: Some(wide), ..case }, 16);
}
