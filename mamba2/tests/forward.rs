//! The forward pass on the CPU: numbers derived by hand, the float64 reference, and views of every kind.

use mamba2::{
    Options,
    case::{Case, Dtype},
    inputs,
    problem::Shape,
    reference,
    resident::{self, Resident},
    tolerance::{self, relative_l2},
};
use tile_runtime::{Device, DeviceTensor};

/// A problem in f32 on the CPU, whose tensors may be replaced by views.
type Problem = Resident<f32, f32>;

fn tensor(shape: &[usize], values: &[f32]) -> DeviceTensor<f32> {
    DeviceTensor::from_slice(&Device::cpu(), shape, values).unwrap()
}

fn on_cpu(case: &Case) -> Problem {
    Resident::new(&Device::cpu(), case).unwrap()
}

fn options(chunk: usize) -> Options {
    Options { chunk: Some(chunk), ..Options::default() }
}

/// y and the final states.
fn run(problem: &Problem, chunk: usize) -> (Vec<f32>, Vec<f32>) {
    let out = problem.forward(&options(chunk)).unwrap();
    (out.y, out.final_states)
}

fn shape(batch: usize, tokens: usize, heads: usize, head_dim: usize, state: usize, groups: usize) -> Shape {
    Shape { batch, tokens, groups, heads, head_dim, state }
}

/// One value for all of each tensor, and no skip weight.
fn plain(shape: Shape, a: f32, dt: f32, x: f32) -> Case {
    Case {
        x: vec![x; shape.x_len()],
        dt: vec![dt; shape.dt_len()],
        a: vec![a; shape.heads],
        b: vec![1.0; shape.b_len()],
        c: vec![1.0; shape.b_len()],
        d: None,
        ..inputs::generate(shape, Dtype::F32, 0)
    }
}

/// Runs `case` in f32 and compares with float64.
#[track_caller]
fn matches_reference(case: &Case, chunk: usize) {
    let (y, states) = run(&on_cpu(case), chunk);
    let expected = reference::forward(&case.reference_inputs()).unwrap();
    let limits = tolerance::forward(Dtype::F32, None);
    let (y, state) = (relative_l2(&y, &expected.y), relative_l2(&states, &expected.final_states));
    assert!(
        y <= limits.y && state <= limits.state,
        "{}, chunk {chunk}: y {y:e}, state {state:e}",
        case.shape
    );
}

#[track_caller]
fn near(found: f32, expected: f32) {
    assert!((found - expected).abs() <= 2e-5 * expected.abs(), "found {found}, expected {expected}");
}

#[test]
fn every_length_and_chunk_matches_float64() {
    for tokens in [1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 129, 200] {
        for chunk in [64, 256] {
            matches_reference(&inputs::generate(shape(1, tokens, 2, 16, 16, 1), Dtype::F32, 5), chunk);
        }
    }
}

#[test]
fn sizes_that_are_not_powers_of_two_match_float64() {
    for size in [shape(2, 70, 3, 24, 40, 3), shape(1, 33, 6, 80, 96, 2), shape(3, 20, 1, 1, 1, 1)] {
        matches_reference(&inputs::generate(size, Dtype::F32, 6), 64);
    }
    matches_reference(&inputs::generate(shape(1, 70, 1, 128, 256, 1), Dtype::F32, 6), 256);
}

#[test]
fn bf16_is_within_its_limit() {
    let case = inputs::generate(shape(2, 150, 4, 64, 64, 2), Dtype::BF16, 7);
    let limits = tolerance::forward(Dtype::BF16, None);
    let expected = reference::forward(&case.reference_inputs()).unwrap();
    for chunk in [Some(64), Some(128), None] {
        let out = resident::run(&Device::cpu(), &case, &Options { chunk, ..Options::default() }).unwrap();
        let y = relative_l2(&out.y, &expected.y);
        let state = relative_l2(&out.final_states, &expected.final_states);
        assert!(y <= limits.y && state <= limits.state, "chunk {chunk:?}: y {y:e}, state {state:e}");
    }
}

#[test]
fn rows_past_the_end_are_never_read() {
    // Views into buffers whose following rows are NaN.
    let size = shape(1, 65, 1, 16, 16, 1);
    let mut case = plain(shape(1, 80, 1, 16, 16, 1), -16.0, 2.0, 1.0);
    for (values, width) in [(&mut case.x, 16), (&mut case.dt, 1), (&mut case.b, 16), (&mut case.c, 16)] {
        values[size.tokens * width..].fill(f32::NAN);
    }
    let mut changed = on_cpu(&case);
    changed.x = changed.x.slice(1, 0..65).unwrap();
    changed.dt = changed.dt.slice(1, 0..65).unwrap();
    changed.b = changed.b.slice(1, 0..65).unwrap();
    changed.c = changed.c.slice(1, 0..65).unwrap();
    let (y, states) = run(&changed, 64);
    assert_eq!(y.len(), size.x_len());
    y.iter().for_each(|&y| near(y, 32.0));
    states.iter().for_each(|&s| near(s, 2.0));
}

#[test]
fn a_decay_beyond_the_range_of_exp_leaves_its_neighbours_alone() {
    let mut case = plain(shape(1, 2, 1, 16, 16, 1), -1.0, 0.0, 0.0);
    case.dt = vec![100.0, 0.1];
    case.x[..16].fill(1.0);
    let (y, _) = run(&on_cpu(&case), 64);
    near(y[0], 1600.0);
    near(y[16], 1447.74);
}

#[test]
fn a_strong_uneven_decay_stays_finite_and_bounded() {
    for (a, small) in [(-1e4, 1e-9), (-1e8, 1e-12)] {
        let mut case = plain(shape(1, 256, 1, 16, 16, 1), a, small, 1.0);
        for i in (0..256).step_by(3) {
            case.dt[i] = ((13 * i) % 509) as f32 / 509.0;
        }
        let (y, states) = run(&on_cpu(&case), 256);
        assert!(y.iter().all(|y| y.abs() <= 16.01), "a {a}");
        assert!(states.iter().all(|s| s.is_finite()), "a {a}");
    }
}

#[test]
fn heads_of_a_group_stand_beside_each_other() {
    for (heads, groups) in [(4, 2), (6, 3), (4, 4)] {
        let mut case = plain(shape(1, 1, heads, 16, 16, groups), -1.0, 1.0, 1.0);
        for (group, b) in case.b.chunks_mut(16).enumerate() {
            b.fill((group + 1) as f32);
        }
        let (y, _) = run(&on_cpu(&case), 64);
        for (head, y) in y.chunks(16).enumerate() {
            near(y[0], 16.0 * (1 + head / (heads / groups)) as f32);
        }
    }
}

#[test]
fn a_pass_in_pieces_equals_one_pass() {
    let case = inputs::generate(shape(1, 256, 2, 64, 64, 1), Dtype::F32, 9);
    let whole = on_cpu(&case);
    let (expected_y, expected_states) = run(&whole, 64);
    for pieces in [&[64, 64, 64, 64][..], &[37, 63, 156], &[255, 1]] {
        let mut states = None;
        let (mut y, mut start) = (Vec::new(), 0);
        for length in pieces {
            let range = start..start + length;
            let part = |tensor: &DeviceTensor<f32>| tensor.slice(1, range.clone()).unwrap();
            let piece = Problem {
                x: part(&whole.x),
                dt: part(&whole.dt),
                b: part(&whole.b),
                c: part(&whole.c),
                initial_states: states.as_deref().map(|states: &[f32]| tensor(&[1, 2, 64, 64], states)),
                ..on_cpu(&case)
            };
            let (piece_y, piece_states) = run(&piece, 64);
            y.extend(piece_y);
            states = Some(piece_states);
            start += length;
        }
        assert!(relative_l2(&y, &expected_y) < 1e-5, "{pieces:?}");
        assert!(relative_l2(&states.unwrap(), &expected_states) < 1e-5, "{pieces:?}");
    }
}

#[test]
fn slices_of_one_fused_row_are_taken_as_they_are() {
    // x, B, C and dt of one head in rows of 64 + 16 + 16 + 1 values, an odd number.
    let case = inputs::generate(shape(1, 70, 1, 64, 16, 1), Dtype::F32, 11);
    let mut rows = Vec::new();
    for t in 0..70 {
        rows.extend_from_slice(&case.x[t * 64..][..64]);
        rows.extend_from_slice(&case.b[t * 16..][..16]);
        rows.extend_from_slice(&case.c[t * 16..][..16]);
        rows.push(case.dt[t]);
    }
    let fused = tensor(&[1, 70, 97], &rows);
    let view = |shape: &[usize], strides: &[i64], offset| fused.with_strides(shape, strides, offset).unwrap();
    let strides = [70 * 97, 97, 16, 1];
    let contiguous = on_cpu(&case);
    let views = Problem {
        x: view(&[1, 70, 1, 64], &[70 * 97, 97, 64, 1], 0),
        b: view(&[1, 70, 1, 16], &strides, 64),
        c: view(&[1, 70, 1, 16], &strides, 80),
        dt: view(&[1, 70, 1], &[70 * 97, 97, 1], 96),
        ..on_cpu(&case)
    };
    assert_eq!(run(&views, 64), run(&contiguous, 64));
}

#[test]
fn strides_of_a_dimension_of_one_mean_nothing() {
    let case = inputs::generate(shape(1, 1, 2, 16, 16, 1), Dtype::F32, 12);
    let expected = run(&on_cpu(&case), 64);
    for stride in [0, 1, 1_000_000_000] {
        let base = on_cpu(&case);
        let views = Problem {
            x: base.x.with_strides(&[1, 1, 2, 16], &[stride, stride, 16, 1], 0).unwrap(),
            dt: base.dt.with_strides(&[1, 1, 2], &[stride, stride, 1], 0).unwrap(),
            b: base.b.with_strides(&[1, 1, 1, 16], &[stride, stride, stride, 1], 0).unwrap(),
            ..base
        };
        assert_eq!(run(&views, 64), expected, "stride {stride}");
    }
}

#[test]
fn equal_rows_of_a_transposed_batch_give_equal_results() {
    let one = inputs::generate(shape(1, 50, 2, 16, 16, 1), Dtype::F32, 13);
    let expected = run(&on_cpu(&one), 64);
    // Stored as [tokens, batch, ...] and seen as [batch, tokens, ...].
    let repeat = |values: &[f32], shape: &[usize]| {
        let width = values.len() / 50;
        let rows: Vec<f32> = values.chunks(width).flat_map(|row| row.repeat(3)).collect();
        let stored: Vec<usize> = [50, 3].iter().chain(shape).copied().collect();
        tensor(&stored, &rows).transpose(0, 1).unwrap()
    };
    let three = Problem {
        x: repeat(&one.x, &[2, 16]),
        dt: repeat(&one.dt, &[2]),
        b: repeat(&one.b, &[1, 16]),
        c: repeat(&one.c, &[1, 16]),
        ..on_cpu(&one)
    };
    let (y, states) = run(&three, 64);
    for row in y.chunks(expected.0.len()) {
        assert_eq!(row, expected.0);
    }
    for row in states.chunks(expected.1.len()) {
        assert_eq!(row, expected.1);
    }
}

#[test]
fn broadcast_dt_equals_its_copy() {
    let case = plain(shape(2, 40, 3, 16, 16, 1), -0.3, 0.25, 1.0);
    let base = on_cpu(&case);
    let expected = run(&base, 64);
    let dt = tensor(&[1, 1, 1], &[0.25]).broadcast_to(&[2, 40, 3]).unwrap();
    let a = tensor(&[1], &[-0.3]).broadcast_to(&[3]).unwrap();
    assert_eq!(run(&Problem { dt, a, ..base }, 64), expected);
}

#[test]
fn the_future_does_not_change_the_past() {
    let case = inputs::generate(shape(1, 128, 1, 64, 256, 1), Dtype::F32, 14);
    let whole = on_cpu(&case);
    let start = |tensor: &DeviceTensor<f32>| tensor.slice(1, 0..10).unwrap();
    let (long, _) = run(&whole, 64);
    let short = Problem {
        x: start(&whole.x),
        dt: start(&whole.dt),
        b: start(&whole.b),
        c: start(&whole.c),
        ..on_cpu(&case)
    };
    assert!(relative_l2(&run(&short, 64).0, &long[..10 * 64]) < 1e-6);
}

#[test]
fn the_result_does_not_depend_on_the_thread_count() {
    let case = inputs::generate(shape(2, 100, 4, 64, 64, 2), Dtype::F32, 15);
    let problem = on_cpu(&case);
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let one = pool(1).install(|| run(&problem, 64));
    assert_eq!(pool(16).install(|| run(&problem, 64)), one);
}

#[test]
fn a_long_tail_is_computed() {
    let case = inputs::generate(shape(1, 65537, 1, 16, 16, 1), Dtype::F32, 16);
    let (y, _) = run(&on_cpu(&case), 256);
    let expected = reference::forward(&case.reference_inputs()).unwrap();
    let tail = 65536 * 16 - 64;
    assert!(relative_l2(&y[tail..], &expected.y[tail..]) <= tolerance::F32_EXACT);
}

#[test]
fn no_tokens_and_no_batch_do_nothing() {
    let mut case = plain(shape(1, 0, 2, 16, 16, 1), -1.0, 1.0, 1.0);
    assert_eq!(run(&on_cpu(&case), 64), (vec![], vec![0.0; 512]));
    case.initial_states = Some(vec![3.0; 512]);
    assert_eq!(run(&on_cpu(&case), 64), (vec![], vec![3.0; 512]));
    let none = plain(shape(0, 5, 2, 16, 16, 1), -1.0, 1.0, 1.0);
    assert_eq!(run(&on_cpu(&none), 64), (vec![], vec![]));
}

#[test]
fn a_positive_decay_acts_as_none() {
    let (y, _) = run(&on_cpu(&plain(shape(1, 70, 1, 16, 16, 1), 0.5, 1.0, 1.0)), 64);
    for (token, y) in y.chunks(16).enumerate() {
        near(y[0], 16.0 * (token + 1) as f32);
    }
}

#[test]
fn nan_spreads_to_later_tokens_only() {
    let mut case = plain(shape(1, 130, 1, 16, 16, 1), -1.0, 1.0, 1.0);
    case.dt[70] = f32::NAN;
    let (y, states) = run(&on_cpu(&case), 64);
    assert!(y[..64 * 16].iter().all(|y| y.is_finite()), "chunks before it");
    assert!(y[70 * 16..].iter().all(|y| y.is_nan()));
    assert!(states.iter().all(|s| s.is_nan()));
}

/// Decays far beyond what exp holds are 0, and leave the tokens after them as they are.
#[test]
fn strong_decays_do_not_blur_the_tokens_after_them() {
    for a in [-1e4, -1e8, -1e38] {
        let mut case = plain(shape(1, 256, 1, 16, 16, 1), a, 1.0, 1.0);
        for (i, dt) in case.dt.iter_mut().enumerate() {
            *dt = if i % 3 == 0 { ((13 * i) % 509) as f32 / 509.0 } else { 0.1 / -a };
        }
        case.dt[0] = 10.0;
        let expected = reference::forward(&case.reference_inputs()).unwrap();
        for chunk in [16, 64, 256] {
            let (y, states) = run(&on_cpu(&case), chunk);
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

#[test]
fn inputs_that_do_not_fit_together_are_errors() {
    let case = inputs::generate(shape(1, 8, 4, 16, 16, 2), Dtype::F32, 0);
    let error = |change: fn(&mut Problem)| {
        let mut changed = on_cpu(&case);
        change(&mut changed);
        mamba2::forward(&changed.inputs(), &Options::default()).err().map(|error| error.to_string())
    };
    assert_eq!(error(|_| ()), None);
    let uneven = error(|problem| {
        problem.b = tensor(&[1, 8, 3, 16], &[0.0; 384]);
        problem.c = tensor(&[1, 8, 3, 16], &[0.0; 384]);
    });
    assert!(uneven.as_ref().is_some_and(|text| text.contains("groups")), "{uneven:?}");
    let changes: [fn(&mut Problem); 5] = [
        |problem| problem.dt = tensor(&[1, 7, 4], &[0.0; 28]),
        |problem| problem.a = tensor(&[3], &[0.0; 3]),
        |problem| problem.c = tensor(&[1, 8, 2, 8], &[0.0; 128]),
        |problem| problem.d = Some(tensor(&[3], &[0.0; 3])),
        |problem| problem.initial_states = Some(tensor(&[1, 4, 16, 15], &[0.0; 960])),
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let text = error(change);
        assert!(text.as_ref().is_some_and(|text| text.contains("expected")), "{i}: {text:?}");
    }
}
