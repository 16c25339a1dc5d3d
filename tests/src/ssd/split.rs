//! The same tokens in one call and in several, in other places of a batch, and again.

use mamba2::case::{Case, Dtype};
use mamba2::inputs::generate;
use mamba2::resident::{HostFloat, Resident, Work, with_resident};
use mamba2::tolerance::{forward, relative_l2};

use super::bench::{Bench, full, reference_of, shape, tokens};

struct Pieces<'a> {
    bench: &'a Bench,
    lengths: &'a [usize],
    chunk: usize,
}

impl Work for Pieces<'_> {
    type Out = (Vec<f32>, Vec<f32>);
    fn on<T: HostFloat, Dt: HostFloat>(self, whole: Resident<T, Dt>) -> mamba2::Result<Self::Out> {
        let mut carried = whole.initial_states.clone();
        let (mut y, mut start) = (Vec::new(), 0);
        for length in self.lengths {
            let piece = tokens(&whole, start..start + length, carried);
            let out = mamba2::forward(&piece.inputs(), &self.bench.options(self.chunk))?;
            y.extend(out.y.to_vec()?.into_iter().map(T::to_f32));
            carried = Some(out.final_states);
            start += length;
        }
        Ok((y, carried.expect("the states after a piece").to_vec()?))
    }
}

fn pieces_match(bench: &Bench, case: &Case, lengths: &[usize], chunk: usize, state_limit: f64) {
    let whole = bench.run(case, chunk);
    let pieces = Pieces { bench, lengths, chunk };
    let (y, states) = with_resident(&bench.device, case, pieces).expect("passes");
    let (expected, limits) = (reference_of(case), forward(case.dtype, None));
    for (name, found) in [("one call", &whole.y), ("pieces", &y)] {
        let error = relative_l2(found, &expected.y);
        assert!(error <= limits.y, "{} in {lengths:?}: y of {name} {error:e}", case.dtype);
    }
    // Two results, each within its limit of float64.
    let error = relative_l2(&y, &whole.y);
    assert!(error <= 2.0 * limits.y, "{} in {lengths:?}: y {error:e}", case.dtype);
    let error = relative_l2(&states, &whole.final_states);
    assert!(error <= state_limit, "{} in {lengths:?}: states {error:e}", case.dtype);
    let error = relative_l2(&states, &expected.final_states);
    assert!(error <= limits.state, "{} in {lengths:?}: states {error:e}", case.dtype);
}

const LENGTHS: [&[usize]; 6] =
    [&[64, 64, 64, 64], &[37, 63, 156], &[255, 1], &[1, 255], &[16, 80, 32, 127, 1], &[128, 128]];

/// Two to five pieces of 256 tokens, with every option.
pub fn a_pass_in_pieces_equals_one_pass(bench: &Bench) {
    let case = full(shape(1, 256, 2, 64, 64, 1), Dtype::F32, 9);
    let bare = generate(shape(1, 256, 2, 64, 64, 1), Dtype::F32, 9);
    for lengths in LENGTHS {
        for chunk in [32, 64, 256] {
            pieces_match(bench, &case, lengths, chunk, 2e-5);
        }
        pieces_match(bench, &bare, lengths, 64, 1e-5);
    }
}

/// In 16 bits the factors of a chunk are rounded relative to its end, so that other pieces are other roundings.
pub fn pieces_in_bf16_equal_one_pass(bench: &Bench) {
    for dtype in [Dtype::BF16, Dtype::F16] {
        let case = generate(shape(1, 256, 2, 64, 64, 1), dtype, 9);
        for lengths in LENGTHS {
            pieces_match(bench, &case, lengths, 64, 2.0 * forward(dtype, None).state);
        }
        // Pieces of whole chunks are the same roundings, but for the states carried in f32 instead of 16 bits.
        pieces_match(bench, &case, &[64, 64, 64, 64], 64, 1e-4);
    }
}

/// Equal rows give equal bits wherever they stand in a batch, and every run gives the bits of the first.
pub fn runs_and_batch_positions_give_the_same_bits(bench: &Bench) {
    for dtype in [Dtype::F32, Dtype::F16, Dtype::BF16] {
        let one = full(shape(1, 100, 4, 40, 48, 2), dtype, 61);
        let other = full(shape(1, 100, 4, 40, 48, 2), dtype, 62);
        // The row at 0, 2 and 3, another at 1.
        let rows = |of: fn(&Case) -> &Vec<f32>| {
            [&one, &other, &one, &one].into_iter().flat_map(|case| of(case).clone()).collect::<Vec<_>>()
        };
        let batch = Case {
            shape: shape(4, 100, 4, 40, 48, 2),
            x: rows(|case| &case.x),
            dt: rows(|case| &case.dt),
            b: rows(|case| &case.b),
            c: rows(|case| &case.c),
            z: Some(rows(|case| case.z.as_ref().expect("a gate"))),
            initial_states: Some(rows(|case| case.initial_states.as_ref().expect("states"))),
            ..one.clone()
        };
        for step in [false, true] {
            let batch = Case { step, ..batch.clone() };
            let first = bench.run(&batch, 32);
            let (y, states) = (first.y.len() / 4, first.final_states.len() / 4);
            for row in [2, 3] {
                assert_eq!(first.y[row * y..][..y], first.y[..y], "{dtype}, row {row}");
                assert_eq!(first.final_states[row * states..][..states], first.final_states[..states]);
            }
            assert_ne!(first.y[y..2 * y], first.y[..y]);
            for _ in 0..3 {
                assert_eq!(bench.run(&batch, 32), first, "{dtype}");
            }
        }
    }
}
