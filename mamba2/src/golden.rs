//! Golden files: inputs with float64 results, and the errors that an independent GPU implementation made on them.
//!
//! Beside the inputs of [`crate::file`], a golden file holds `y_ref` and `state_ref`, with `cu_seqlens` also
//! `varlen_state_ref` `[sequences, heads, head_dim, state]`, all stored as f32.

use std::path::Path;

use crate::{
    case::{Case, Dtype},
    file::{self, FileError},
    problem::Shape,
    tolerance::{self, Limits, PeerErrors, relative_l2},
};

/// One golden file.
#[derive(Debug, Clone, PartialEq)]
pub struct Golden {
    /// The inputs.
    pub case: Case,
    /// `[batch, tokens, heads, head_dim]`
    pub y: Vec<f32>,
    /// State after the last token: `[batch, heads, head_dim, state]`
    pub final_states: Vec<f32>,
    /// State at the end of each packed sequence: `[sequences, heads, head_dim, state]`
    pub sequence_states: Option<Vec<f32>>,
    /// Errors of the independent implementation, where the file gives them.
    pub peer: Option<PeerErrors>,
}

/// Relative L2 errors of one result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// Of the outputs.
    pub y: f64,
    /// Of the states after the last token, or of those at the end of each packed sequence if they are worse.
    pub state: f64,
}

impl Errors {
    /// Whether both errors are within the limits. NaN never is.
    pub fn within(&self, limits: &Limits) -> bool {
        self.y <= limits.y && self.state <= limits.state
    }
}

impl Golden {
    /// The largest errors that pass.
    pub fn limits(&self) -> Limits {
        if self.case.step {
            tolerance::step(self.case.dtype)
        } else {
            tolerance::forward(self.case.dtype, self.peer)
        }
    }

    /// The errors of a result against the file's. Sequence states that the file has and the result lacks are an infinite
    /// error.
    pub fn errors<T: Copy + Into<f64>, S: Copy + Into<f64>>(
        &self,
        y: &[T],
        final_states: &[S],
        sequence_states: Option<&[S]>,
    ) -> Errors {
        let mut state = relative_l2(final_states, &self.final_states);
        if let Some(want) = &self.sequence_states {
            let sequences = sequence_states.map_or(f64::INFINITY, |found| relative_l2(found, want));
            // `f64::max` would let a NaN in one of the two pass.
            state = if state.is_nan() || sequences.is_nan() { f64::NAN } else { state.max(sequences) };
        }
        Errors { y: relative_l2(y, &self.y), state }
    }
}

/// Reads a golden file.
///
/// # Errors
/// If the file cannot be read, or a tensor is missing or has another shape or type than the others call for.
pub fn read(path: &Path) -> Result<Golden, FileError> {
    file::open(path, |tensors, options| {
        let case = tensors.case(options)?;
        let Shape { batch, tokens, heads, head_dim, state, .. } = case.shape;
        let y = if case.step { vec![batch, heads, head_dim] } else { vec![batch, tokens, heads, head_dim] };
        let sequences = case.cu_seqlens.as_ref().map(|offsets| offsets.len().saturating_sub(1));
        let sequence_states = sequences
            .map(|n| tensors.required("varlen_state_ref", &[n, heads, head_dim, state], Dtype::F32))
            .transpose()?;
        Ok(Golden {
            y: tensors.required("y_ref", &y, Dtype::F32)?,
            final_states: tensors.required("state_ref", &[batch, heads, head_dim, state], Dtype::F32)?,
            sequence_states,
            peer: options
                .peer_rel_err_y
                .zip(options.peer_rel_err_state)
                .map(|(y, state)| PeerErrors { y, state }),
            case,
        })
    })
}
