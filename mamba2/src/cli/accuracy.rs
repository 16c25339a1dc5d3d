//! The error of a result against the float64 reference, over the heads that stand for the whole.

use mamba2::{
    case::Case,
    golden::Errors,
    reference::{self, HeadOutputs},
    resident::HostOutputs,
    tolerance::ErrorSum,
};

use super::Result;

/// The reference for the first and last head of the first and last batch element, over all tokens.
pub(crate) fn reference_heads(case: &Case) -> Result<Vec<HeadOutputs>> {
    Ok(reference::heads(&case.reference_inputs(), &reference::corner_heads(case.shape))?)
}

/// Relative L2 errors of `output` over the heads in `expected`.
pub(crate) fn errors(case: &Case, expected: &[HeadOutputs], output: &HostOutputs) -> Errors {
    let shape = case.shape;
    if output.y.len() != shape.x_len() || output.final_states.len() != shape.state_len() {
        return Errors { y: f64::INFINITY, state: f64::INFINITY };
    }
    let (mut y, mut state) = (ErrorSum::default(), ErrorSum::default());
    let size = shape.head_dim * shape.state;
    for head in expected {
        for (token, expected) in head.y.chunks(shape.head_dim).enumerate() {
            let row = (head.batch * shape.tokens + token) * shape.heads + head.head;
            for (&found, &expected) in output.y[row * shape.head_dim..].iter().zip(expected) {
                y.add(found.into(), expected);
            }
        }
        let from = (head.batch * shape.heads + head.head) * size;
        for (&found, &expected) in output.final_states[from..].iter().zip(&head.final_state) {
            state.add(found.into(), expected);
        }
    }
    Errors { y: y.relative(), state: state.relative() }
}

#[cfg(test)]
mod tests {
    use mamba2::{case::Dtype, inputs, problem::Shape};

    use super::*;

    #[test]
    fn an_error_in_a_checked_head_is_seen() {
        let shape = Shape { batch: 2, tokens: 9, groups: 1, heads: 3, head_dim: 4, state: 2 };
        let case = inputs::generate(shape, Dtype::F32, 1);
        let whole = reference::forward(&case.reference_inputs()).unwrap();
        let as_f32 = |values: &[f64]| values.iter().map(|&v| v as f32).collect::<Vec<_>>();
        let right = HostOutputs {
            y: as_f32(&whole.y),
            final_states: as_f32(&whole.final_states),
            sequence_states: None,
        };
        let expected = reference_heads(&case).unwrap();
        let found = errors(&case, &expected, &right);
        assert!(found.y < 1e-6 && found.state < 1e-6, "{found:?}");
        let mut y = right.y.clone();
        *y.last_mut().unwrap() += 1.0;
        assert!(errors(&case, &expected, &HostOutputs { y, ..right.clone() }).y > 1e-3);
        let mut final_states = right.final_states.clone();
        final_states[0] = f32::NAN;
        assert!(errors(&case, &expected, &HostOutputs { final_states, ..right.clone() }).state.is_nan());
        assert!(errors(&case, &expected, &HostOutputs { y: Vec::new(), ..right }).y.is_infinite());
    }
}
