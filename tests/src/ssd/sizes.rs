//! Lengths, chunks, heads and states from nothing to beyond every axis of a grid.

use mamba2::case::{Case, Dtype};
use mamba2::inputs::generate;
use mamba2::tolerance::{F32_EXACT, relative_l2};

use super::bench::{Bench, near, plain, reference_of, shape, tokens};

/// Lengths on, before and after edges of tiles and chunks, in chunks that may be longer.
pub fn every_length_and_chunk_matches_float64(bench: &Bench) {
    for tokens in [1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 129, 200] {
        for chunk in [64, 256] {
            bench.matches_reference(&generate(shape(1, tokens, 2, 16, 16, 1), Dtype::F32, 5), chunk);
        }
    }
}

/// Sizes that tiles overhang.
pub fn sizes_that_are_not_powers_of_two_match_float64(bench: &Bench) {
    for size in [shape(2, 70, 3, 24, 40, 3), shape(1, 33, 6, 80, 96, 2), shape(3, 20, 1, 1, 1, 1)] {
        bench.matches_reference(&generate(size, Dtype::F32, 6), 64);
    }
}

/// What needs most memory on chip; anything larger is refused before a launch.
pub fn the_largest_sizes_run_in_f32(bench: &Bench) {
    for size in [shape(1, 256, 1, 128, 256, 1), shape(1, 70, 1, 256, 256, 1)] {
        bench.matches_reference(&generate(size, Dtype::F32, 6), 256);
    }
    let large = bench.load(&plain(shape(1, 128, 1, 512, 128, 1), -1.0, 1.0, 1.0));
    let error = large.forward(&bench.options(256)).expect_err("a head of 512 channels").to_string();
    assert_eq!(error, "argument `x` has head_dim 512; expected 1 to 256");
}

/// Head h reads group h / (heads / groups).
pub fn heads_of_a_group_stand_beside_each_other(bench: &Bench) {
    for (heads, groups) in [(4, 2), (6, 3), (4, 4)] {
        let mut case = plain(shape(1, 1, heads, 16, 16, groups), -1.0, 1.0, 1.0);
        for (group, b) in case.b.chunks_mut(16).enumerate() {
            b.fill((group + 1) as f32);
        }
        let problem = bench.load(&case);
        let packed = bench.run(&Case { cu_seqlens: Some(vec![0, 1]), ..case }, 64);
        let ends = packed.sequence_states.expect("packed by offsets");
        for (y, states) in [bench.pass(&problem, 64), bench.step(&problem), (packed.y, ends)] {
            for (head, (y, states)) in y.chunks(16).zip(states.chunks(256)).enumerate() {
                let group = (1 + head / (heads / groups)) as f32;
                y.iter().for_each(|&y| near(y, 16.0 * group));
                states.iter().for_each(|&s| near(s, group));
            }
        }
    }
}

/// The last tokens of 65537 and 65600, against float64 and against a pass that goes on from the 65536th.
pub fn a_tail_beyond_65536_tokens_is_computed(bench: &Bench) {
    for length in [65_537, 65_600] {
        let case = generate(shape(1, length, 1, 16, 16, 1), Dtype::F32, 16);
        let whole = bench.load(&case);
        let (y, states) = bench.pass(&whole, 256);
        let expected = reference_of(&case);
        let tail = 65_536 * 16;
        assert!(relative_l2(&y[tail - 64..], &expected.y[tail - 64..]) <= F32_EXACT);
        let (_, carried) = bench.pass(&tokens(&whole, 0..65_536, None), 256);
        let carried = bench.tensor(&[1, 1, 16, 16], &carried);
        let (rest, end) = bench.pass(&tokens(&whole, 65_536..length, Some(carried)), 256);
        assert!(relative_l2(&rest, &y[tail..]) <= F32_EXACT && relative_l2(&end, &states) <= F32_EXACT);
    }
}

/// Nothing to do is not an error.
pub fn no_tokens_and_no_batch_do_nothing(bench: &Bench) {
    let mut case = plain(shape(1, 0, 2, 16, 16, 1), -1.0, 1.0, 1.0);
    let none = || plain(shape(0, 5, 2, 16, 16, 1), -1.0, 1.0, 1.0);
    assert_eq!(bench.pass(&bench.load(&case), 64), (vec![], vec![0.0; 512]));
    case.initial_states = Some(vec![3.0; 512]);
    let problem = bench.load(&case);
    assert_eq!(bench.pass(&problem, 64), (vec![], vec![3.0; 512]));
    assert_eq!(bench.step(&problem), (vec![], vec![3.0; 512]));
    let problem = bench.load(&none());
    assert_eq!(bench.pass(&problem, 64), (vec![], vec![]));
    assert_eq!(bench.step(&problem), (vec![], vec![]));
    for (size, index) in [(shape(0, 5, 2, 16, 16, 1), vec![]), (shape(2, 0, 2, 16, 16, 1), vec![])] {
        let packed = Case { seq_idx: Some(index), ..plain(size, -1.0, 1.0, 1.0) };
        assert!(bench.run(&packed, 64).y.is_empty());
    }
}

/// 70000 rows of one token.
pub fn more_sequences_than_a_grid_axis_holds(bench: &Bench) {
    many(bench, shape(70_000, 1, 1, 16, 16, 1), 64);
}

/// 70000 heads.
pub fn more_heads_than_a_grid_axis_holds(bench: &Bench) {
    many(bench, shape(1, 1, 70_000, 1, 16, 1), 64);
}

/// 65537 chunks.
pub fn more_chunks_than_a_grid_axis_holds(bench: &Bench) {
    let case = generate(shape(1, 1_048_592, 1, 1, 1, 1), Dtype::F32, 8);
    let expected = reference_of(&case);
    let (y, states) = bench.pass(&bench.load(&case), 16);
    let tail = 1_048_576 - 64;
    assert!(relative_l2(&y[tail..], &expected.y[tail..]) <= F32_EXACT);
    assert!(relative_l2(&y, &expected.y) <= F32_EXACT);
    assert!(relative_l2(&states, &expected.final_states) <= F32_EXACT);
}

/// With one token and without a state, y is dt (C . B) x, and the state dt x B.
fn many(bench: &Bench, size: mamba2::problem::Shape, chunk: usize) {
    let mut case = plain(size, -1.0, 1.0, 1.0);
    case.x.iter_mut().enumerate().for_each(|(i, x)| *x = (i / size.head_dim % 97) as f32);
    let problem = bench.load(&case);
    for (y, states) in [bench.pass(&problem, chunk), bench.step(&problem)] {
        let width = size.head_dim * size.state;
        let wrong_y = y.iter().enumerate().find(|&(i, &y)| y != 16.0 * (i / size.head_dim % 97) as f32);
        let wrong_state = states.iter().enumerate().find(|&(i, &s)| s != (i / width % 97) as f32);
        assert_eq!((wrong_y, wrong_state), (None, None), "{size}");
    }
}
