//! The float64 reference against numbers derived by hand from the recurrence.

use mamba2::{
    problem::Shape,
    reference::{self, Inputs, Outputs, Skip, softplus},
};

/// A problem whose values are easy to state: one head unless said, every tensor filled with one value.
struct Plain {
    shape: Shape,
    x: Vec<f64>,
    dt: Vec<f64>,
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

impl Plain {
    fn new(tokens: usize, a: f64, dt: f64, x: f64) -> Plain {
        Plain::of(Shape { batch: 1, tokens, groups: 1, heads: 1, head_dim: 16, state: 16 }, a, dt, x)
    }

    fn of(shape: Shape, a: f64, dt: f64, x: f64) -> Plain {
        Plain {
            shape,
            x: vec![x; shape.x_len()],
            dt: vec![dt; shape.dt_len()],
            a: vec![a; shape.heads],
            b: vec![1.0; shape.b_len()],
            c: vec![1.0; shape.b_len()],
        }
    }

    fn inputs(&self) -> Inputs<'_, f64> {
        Inputs::new(self.shape, &self.x, &self.dt, &self.a, &self.b, &self.c)
    }

    /// The output of channel 0 of head 0 at each token, after checking that all channels agree.
    fn channel(&self, out: &Outputs) -> Vec<f64> {
        let width = self.shape.heads * self.shape.head_dim;
        out.y
            .chunks(width)
            .map(|row| {
                assert!(row[..self.shape.head_dim].iter().all(|&v| v == row[0]));
                row[0]
            })
            .collect()
    }
}

fn forward(inputs: &Inputs<'_, f64>) -> Outputs {
    reference::forward(inputs).unwrap()
}

#[track_caller]
fn near(found: f64, expected: f64) {
    // The expected numbers have six digits.
    assert!(
        (found - expected).abs() <= 1e-5 * expected.abs().max(1e-12),
        "found {found}, expected {expected}"
    );
}

#[test]
fn each_packed_sequence_decays_from_its_own_start() {
    let plain = Plain::new(100, -0.1, 1.0, 0.0);
    let states = vec![1.0; 2 * 16 * 16];
    let inputs = Inputs { initial_states: Some(&states), cu_seqlens: Some(&[0, 40, 100]), ..plain.inputs() };
    let out = forward(&inputs);
    let y = plain.channel(&out);
    for (token, expected) in
        [(0, 14.4774), (40, 14.4774), (39, 0.29305), (63, 1.45149), (64, 1.31336), (99, 0.03966)]
    {
        assert!((y[token] - expected).abs() < 6e-6 + 1e-5 * expected, "{token}: {}", y[token]);
    }
    let ends = out.sequence_states.unwrap();
    near(ends[0], (-4.0f64).exp());
    near(ends[256], (-6.0f64).exp());
    assert_eq!(out.final_states, ends[256..]);
}

#[test]
fn empty_sequences_keep_their_initial_state() {
    let plain = Plain::new(70, -0.1, 1.0, 0.0);
    let states: Vec<f64> = (0..6 * 256).map(|i| (i / 256 + 1) as f64).collect();
    let offsets = [0, 0, 5, 5, 64, 64, 70];
    let inputs = Inputs { initial_states: Some(&states), cu_seqlens: Some(&offsets), ..plain.inputs() };
    let ends = forward(&inputs).sequence_states.unwrap();
    for (sequence, pair) in offsets.windows(2).enumerate() {
        let length = f64::from(pair[1] - pair[0]);
        near(ends[sequence * 256], (sequence + 1) as f64 * (-0.1 * length).exp());
    }
    let ends = forward(&Inputs { initial_states: None, ..inputs }).sequence_states.unwrap();
    assert!(ends.iter().all(|&s| s == 0.0));
}

#[test]
fn no_tokens_leave_the_state_alone() {
    let plain = Plain::new(0, -0.1, 1.0, 0.0);
    let states = vec![3.0; 256];
    let out = forward(&Inputs { initial_states: Some(&states), ..plain.inputs() });
    assert!(out.y.is_empty());
    assert_eq!(out.final_states, states);
    let single =
        forward(&Inputs { initial_states: Some(&states), cu_seqlens: Some(&[0, 0]), ..plain.inputs() });
    assert_eq!(single.sequence_states.unwrap(), states);
    let none = Plain::of(Shape { batch: 0, ..plain.shape }, -0.1, 1.0, 0.0);
    assert!(forward(&none.inputs()).final_states.is_empty());
}

#[test]
fn a_strong_decay_forgets_all_but_the_last_token() {
    let plain = Plain::new(65, -16.0, 2.0, 1.0);
    let out = forward(&plain.inputs());
    for y in plain.channel(&out) {
        near(y, 32.0);
    }
    out.final_states.iter().for_each(|&s| near(s, 2.0));
}

#[test]
fn softplus_follows_the_bias_and_the_clamp_follows_softplus() {
    let plain = Plain::new(5, -1.0, 0.0, 1.0);
    for dt_limit in [(0.0, f64::INFINITY), (0.5, f64::INFINITY)] {
        let inputs = Inputs { dt_bias: Some(&[1.0]), dt_softplus: true, dt_limit, ..plain.inputs() };
        let out = forward(&inputs);
        for (y, expected) in
            plain.channel(&out).into_iter().zip([21.0122, 26.6632, 28.1830, 28.5918, 28.7017])
        {
            near(y, expected);
        }
        near(out.final_states[0], 1.79386);
    }
}

#[test]
fn decays_are_measured_between_tokens_not_from_the_start() {
    let mut plain = Plain::new(2, -1.0, 0.0, 0.0);
    plain.dt = vec![100.0, 0.1];
    plain.x[..16].fill(1.0);
    let y = plain.channel(&forward(&plain.inputs()));
    near(y[0], 1600.0);
    near(y[1], 1447.74);
}

#[test]
fn heads_of_a_group_stand_beside_each_other() {
    for (heads, groups) in [(4, 2), (6, 3), (4, 4)] {
        let shape = Shape { batch: 1, tokens: 1, groups, heads, head_dim: 16, state: 16 };
        let mut plain = Plain::of(shape, -1.0, 1.0, 1.0);
        for (group, b) in plain.b.chunks_mut(16).enumerate() {
            b.fill((group + 1) as f64);
        }
        let y = forward(&plain.inputs()).y;
        let expected: Vec<f64> = (0..heads).map(|h| 16.0 * (1 + h / (heads / groups)) as f64).collect();
        assert_eq!(y.chunks(16).map(|head| head[0]).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn softplus_is_right_at_both_ends() {
    for (v, expected) in [
        (-30.0, 9.3576e-14),
        (0.0, std::f64::consts::LN_2),
        (19.999, 19.999),
        (20.001, 20.001),
        (89.0, 89.0),
        (200.0, 200.0),
    ] {
        near(softplus(v), expected);
    }
}

#[test]
fn the_clamp_applies_without_softplus_too() {
    let plain = Plain::new(1, -1.0, 10.0, 0.0);
    let states = vec![1.0; 256];
    let inputs = Inputs { initial_states: Some(&states), ..plain.inputs() };
    near(forward(&Inputs { dt_limit: (0.0, 1.0), ..inputs }).final_states[0], 0.367879);
    near(forward(&inputs).final_states[0], 4.539993e-5);
}

#[test]
fn the_initial_state_feeds_the_first_run_whatever_its_index() {
    let plain = Plain::new(4, -0.1, 1.0, 0.0);
    let states = vec![1.0; 256];
    let inputs = Inputs { initial_states: Some(&states), seq_idx: Some(&[7, 7, 7, 7]), ..plain.inputs() };
    near(plain.channel(&forward(&inputs))[0], 14.4774);
    // A later run starts from zero, also when it has the index of an earlier one.
    let y = plain.channel(&forward(&Inputs { seq_idx: Some(&[0, 1, 0, 0]), ..inputs }));
    near(y[0], 14.4774);
    assert_eq!(y[1..], [0.0, 0.0, 0.0]);
}

#[test]
fn runs_of_an_index_equal_separate_passes() {
    let mut plain = Plain::new(9, -0.3, 0.7, 1.0);
    for (i, b) in plain.b.iter_mut().enumerate() {
        *b = (i as f64 * 0.37).sin();
    }
    let packed = forward(&Inputs { seq_idx: Some(&[0, 0, 0, 1, 0, 0, 5, 5, 5]), ..plain.inputs() });
    let by_offset = forward(&Inputs { cu_seqlens: Some(&[0, 3, 4, 6, 9]), ..plain.inputs() });
    assert_eq!(packed.y, by_offset.y);
    assert_eq!(packed.final_states, by_offset.final_states);
    for range in [0..3, 3..4, 4..6, 6..9] {
        let shape = Shape { tokens: range.len(), ..plain.shape };
        let rows = range.start * 16..range.end * 16;
        let single = forward(&Inputs::new(
            shape,
            &plain.x[rows.clone()],
            &plain.dt[range.clone()],
            &plain.a,
            &plain.b[rows.clone()],
            &plain.c[rows.clone()],
        ));
        assert_eq!(single.y, packed.y[rows]);
    }
}

#[test]
fn a_pass_in_pieces_equals_one_pass() {
    let mut plain = Plain::new(30, -0.2, 0.4, 1.0);
    for (i, x) in plain.x.iter_mut().enumerate() {
        *x = (i as f64 * 0.11).cos();
    }
    let whole = forward(&plain.inputs());
    let mut states = vec![0.0; 256];
    let mut y = Vec::new();
    for range in [0..7, 7..8, 8..30] {
        let shape = Shape { tokens: range.len(), ..plain.shape };
        let rows = range.start * 16..range.end * 16;
        let piece = forward(&Inputs {
            initial_states: Some(&states),
            ..Inputs::new(
                shape,
                &plain.x[rows.clone()],
                &plain.dt[range],
                &plain.a,
                &plain.b[rows.clone()],
                &plain.c[rows],
            )
        });
        y.extend(piece.y);
        states = piece.final_states;
    }
    assert_eq!(y, whole.y);
    assert_eq!(states, whole.final_states);
}

#[test]
fn skip_and_gate() {
    let shape = Shape { batch: 1, tokens: 1, groups: 1, heads: 2, head_dim: 2, state: 1 };
    let mut plain = Plain::of(shape, -1.0, 0.5, 0.0);
    plain.x = vec![1.0, 2.0, 3.0, 4.0];
    // The state is dt x B = x / 2, and so is y without a skip.
    let head = forward(&Inputs { d: Some(Skip::PerHead(&[10.0, 20.0])), ..plain.inputs() });
    assert_eq!(head.y, [10.5, 21.0, 61.5, 82.0]);
    let z = [0.0, 1.0, -1.0, 100.0];
    let per_dim = Some(Skip::PerDim(&[1.0, 2.0, 3.0, 4.0][..]));
    let gated = forward(&Inputs { d: per_dim, z: Some(&z), ..plain.inputs() });
    // silu(1) = 0.7310586, silu(-1) = -0.2689414
    for (y, expected) in gated.y.into_iter().zip([0.0, 5.0 * 0.7310586, 10.5 * -0.2689414, 18.0 * 100.0]) {
        assert!((y - expected).abs() < 1e-6, "{y} {expected}");
    }
}

#[test]
fn a_positive_decay_acts_as_none_and_nan_stays() {
    let plain = Plain::new(3, 1.0, 1.0, 1.0);
    assert_eq!(plain.channel(&forward(&plain.inputs())), [16.0, 32.0, 48.0]);
    let mut plain = Plain::new(3, -1.0, 1.0, 1.0);
    plain.dt[1] = f64::NAN;
    let y = plain.channel_nan(&forward(&plain.inputs()));
    assert_eq!(y, [false, true, true]);
}

impl Plain {
    fn channel_nan(&self, out: &Outputs) -> Vec<bool> {
        out.y.chunks(self.shape.head_dim).map(|row| row[0].is_nan()).collect()
    }
}

#[test]
fn selected_heads_are_those_of_the_whole() {
    let shape = Shape { batch: 2, tokens: 5, groups: 2, heads: 4, head_dim: 3, state: 2 };
    let mut plain = Plain::of(shape, -0.5, 0.3, 0.0);
    for (i, x) in plain.x.iter_mut().enumerate() {
        *x = (i as f64).sin();
    }
    let whole = forward(&plain.inputs());
    let pairs = reference::corner_heads(shape);
    assert_eq!(pairs, [(0, 0), (0, 3), (1, 0), (1, 3)]);
    for head in reference::heads(&plain.inputs(), &pairs).unwrap() {
        for token in 0..5 {
            let from = ((head.batch * 5 + token) * 4 + head.head) * 3;
            assert_eq!(head.y[token * 3..][..3], whole.y[from..from + 3]);
        }
        assert_eq!(head.final_state, whole.final_states[(head.batch * 4 + head.head) * 6..][..6]);
    }
    assert_eq!(reference::corner_heads(Shape { batch: 1, heads: 1, ..shape }), [(0, 0)]);
}

#[test]
fn wrong_inputs_are_named() {
    let plain = Plain::new(4, -1.0, 1.0, 1.0);
    let message = |inputs: &Inputs<'_, f64>| reference::forward(inputs).unwrap_err().to_string();
    let short = Inputs { dt: &plain.dt[..3], ..plain.inputs() };
    assert!(message(&short).contains("dt has 3 values, expected 4"));
    for (offsets, part) in [
        (&[1, 4][..], "from 0 to 4"),
        (&[0, 3], "from 0 to 4"),
        (&[0, 3, 2, 4], "not decrease"),
        (&[], "from 0 to 4"),
    ] {
        let found = message(&Inputs { cu_seqlens: Some(offsets), ..plain.inputs() });
        assert!(found.contains(part), "{found}");
    }
    let both = Inputs { cu_seqlens: Some(&[0, 2, 4]), seq_idx: Some(&[0, 0, 0, 1]), ..plain.inputs() };
    assert!(message(&both).contains("disagree"));
    assert!(message(&Inputs { dt_limit: (1.0, 0.5), ..plain.inputs() }).contains("low <= high"));
    assert!(reference::heads(&plain.inputs(), &[(0, 1)]).is_err());
}
