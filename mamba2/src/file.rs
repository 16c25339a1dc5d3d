//! Problems and results as safetensors files.
//!
//! Inputs are `x dt A B C`, optionally `D z dt_bias initial_states seq_idx cu_seqlens`, with the shapes that
//! [`Case`] documents. Metadata key `options` may hold a JSON object with `chunk`, `dt_softplus` and `dt_limit`. Where `x`
//! is `[batch, heads, head_dim]`, the file holds one decode step: no tensor has the axis of tokens, and `state_in` is the
//! state before it.

use std::{collections::HashMap, fs, path::Path};

use half::{bf16, f16};
use safetensors::{SafeTensors, tensor::TensorView};
use serde::Deserialize;

use crate::{
    case::{Case, Dtype, Skip},
    problem::Shape,
};

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct FileError {
    path: String,
    reason: String,
}

impl FileError {
    pub(crate) fn new(path: &Path, reason: impl ToString) -> FileError {
        FileError { path: path.display().to_string(), reason: reason.to_string() }
    }
}

/// The metadata key `options`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FileOptions {
    chunk: Option<usize>,
    dt_softplus: bool,
    dt_limit: Option<(f64, f64)>,
    pub(crate) peer_rel_err_y: Option<f64>,
    pub(crate) peer_rel_err_state: Option<f64>,
}

/// A dt limit from here on means that there is none; JSON has no infinity.
const NO_LIMIT: f64 = 1e30;

/// The host copy of one tensor of floats.
struct Floats {
    shape: Vec<usize>,
    dtype: Dtype,
    values: Vec<f32>,
}

type Parsed<T> = Result<T, String>;

/// One file, open for taking tensors out by name.
pub(crate) struct Tensors<'data>(SafeTensors<'data>);

impl Tensors<'_> {
    fn view(&self, name: &str) -> Option<TensorView<'_>> {
        self.0.tensor(name).ok()
    }

    fn floats(&self, name: &str) -> Parsed<Option<Floats>> {
        let Some(view) = self.view(name) else { return Ok(None) };
        let (dtype, values) = match view.dtype() {
            safetensors::Dtype::F32 => (Dtype::F32, decode(view.data(), f32::from_le_bytes)),
            safetensors::Dtype::F16 => (Dtype::F16, decode(view.data(), |b| f16::from_le_bytes(b).to_f32())),
            safetensors::Dtype::BF16 => {
                (Dtype::BF16, decode(view.data(), |b| bf16::from_le_bytes(b).to_f32()))
            }
            other => return Err(format!("{name} has type {other:?}, expected F32, F16 or BF16")),
        };
        Ok(Some(Floats { shape: view.shape().to_vec(), dtype, values }))
    }

    /// The tensor `name` if it is there, checked against the shape and type that the others call for.
    fn optional(&self, name: &str, shape: &[usize], dtype: Dtype) -> Parsed<Option<Vec<f32>>> {
        let Some(found) = self.floats(name)? else { return Ok(None) };
        if found.dtype != dtype {
            return Err(format!("{name} has type {}, expected {dtype}", found.dtype));
        }
        if found.shape != shape {
            return Err(format!("{name} has shape {:?}, expected {shape:?}", found.shape));
        }
        Ok(Some(found.values))
    }

    /// As [`Tensors::optional`], and an error where it is missing.
    pub(crate) fn required(&self, name: &str, shape: &[usize], dtype: Dtype) -> Parsed<Vec<f32>> {
        self.optional(name, shape, dtype)?.ok_or_else(|| missing(name))
    }

    /// The shape of the tensor `name`.
    pub(crate) fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.view(name).map(|view| view.shape().to_vec())
    }

    /// The tensor `name` if it is there, in any type of floats, checked against the shape that the others call for.
    pub(crate) fn any_float(&self, name: &str, shape: &[usize]) -> Parsed<Option<Vec<f32>>> {
        let Some(found) = self.floats(name)? else { return Ok(None) };
        if found.shape != shape {
            return Err(format!("{name} has shape {:?}, expected {shape:?}", found.shape));
        }
        Ok(Some(found.values))
    }

    fn integers(&self, name: &str) -> Parsed<Option<(Vec<usize>, Vec<i32>)>> {
        let Some(view) = self.view(name) else { return Ok(None) };
        if view.dtype() != safetensors::Dtype::I32 {
            return Err(format!("{name} has type {:?}, expected I32", view.dtype()));
        }
        Ok(Some((view.shape().to_vec(), decode(view.data(), i32::from_le_bytes))))
    }

    /// The inputs of the problem.
    pub(crate) fn case(&self, options: &FileOptions) -> Parsed<Case> {
        let sizes = |name: &str| self.view(name).map(|v| v.shape().to_vec()).ok_or_else(|| missing(name));
        let (x_sizes, b_sizes) = (sizes("x")?, sizes("B")?);
        let (step, shape) = sizes_of(&x_sizes, &b_sizes)?;
        let dtype = self.floats("x")?.map_or(Dtype::F32, |x| x.dtype);
        let dt_dtype = match self.floats("dt")?.ok_or_else(|| missing("dt"))?.dtype {
            dt if dt == Dtype::F32 || dt == dtype => dt,
            dt => return Err(format!("dt has type {dt}, expected f32 or the type of x, {dtype}")),
        };
        let Shape { batch, tokens, groups, heads, head_dim, state } = shape;
        let per_token = |rest: &[usize]| {
            let tokens = if step { None } else { Some(tokens) };
            [batch].into_iter().chain(tokens).chain(rest.iter().copied()).collect::<Vec<_>>()
        };
        let seq_idx = self.integers("seq_idx")?;
        if let Some((found, _)) = seq_idx.as_ref().filter(|(found, _)| *found != [batch, tokens]) {
            return Err(format!("seq_idx has shape {found:?}, expected {:?}", [batch, tokens]));
        }
        let cu_seqlens = self.integers("cu_seqlens")?;
        if let Some((found, _)) = cu_seqlens.as_ref().filter(|(found, _)| found.len() != 1) {
            return Err(format!("cu_seqlens has shape {found:?}, expected [sequences + 1]"));
        }
        let cu_seqlens = cu_seqlens.map(|(_, offsets)| offsets);
        let states = cu_seqlens.as_ref().map_or(batch, |offsets| offsets.len().saturating_sub(1));
        let initial = if step { "state_in" } else { "initial_states" };
        let low_high = options.dt_limit.unwrap_or((0.0, NO_LIMIT));
        let bc = per_token(&[groups, state]);
        let case = Case {
            shape,
            dtype,
            dt_dtype,
            step,
            chunk: options.chunk,
            x: self.required("x", &per_token(&[heads, head_dim]), dtype)?,
            dt: self.required("dt", &per_token(&[heads]), dt_dtype)?,
            a: self.required("A", &[heads], Dtype::F32)?,
            b: self.required("B", &bc, dtype)?,
            c: self.required("C", &bc, dtype)?,
            d: self.skip(heads, head_dim)?,
            z: self.optional("z", &per_token(&[heads, head_dim]), dtype)?,
            dt_bias: self.optional("dt_bias", &[heads], Dtype::F32)?,
            dt_softplus: options.dt_softplus,
            dt_limit: (low_high.0, if low_high.1 >= NO_LIMIT { f64::INFINITY } else { low_high.1 }),
            initial_states: self.optional(initial, &[states, heads, head_dim, state], Dtype::F32)?,
            seq_idx: seq_idx.map(|(_, values)| values),
            cu_seqlens,
        };
        if step && case.initial_states.is_none() {
            return Err(missing("state_in"));
        }
        Ok(case)
    }

    fn skip(&self, heads: usize, head_dim: usize) -> Parsed<Option<Skip>> {
        match self.view("D").map(|d| d.shape().len()) {
            None => Ok(None),
            Some(2) => Ok(self.optional("D", &[heads, head_dim], Dtype::F32)?.map(Skip::PerDim)),
            Some(_) => Ok(self.optional("D", &[heads], Dtype::F32)?.map(Skip::PerHead)),
        }
    }
}

/// Whether the file holds one step, and the sizes, from the shapes of `x` and `B`.
fn sizes_of(x: &[usize], b: &[usize]) -> Parsed<(bool, Shape)> {
    let (step, shape) = match (x, b) {
        (&[batch, tokens, heads, head_dim], &[_, _, groups, state]) => {
            (false, Shape { batch, tokens, groups, heads, head_dim, state })
        }
        (&[batch, heads, head_dim], &[_, groups, state]) => {
            (true, Shape { batch, tokens: 1, groups, heads, head_dim, state })
        }
        _ => {
            return Err(format!(
                "x and B have shapes {x:?} and {b:?}, expected [batch, tokens, heads, head_dim] and \
                 [batch, tokens, groups, state], both without tokens for one decode step"
            ));
        }
    };
    shape.check().map_err(|e| e.to_string())?;
    Ok((step, shape))
}

fn missing(name: &str) -> String {
    format!("there is no tensor called '{name}'")
}

fn decode<const N: usize, V>(bytes: &[u8], value: impl Fn([u8; N]) -> V) -> Vec<V> {
    bytes.as_chunks::<N>().0.iter().map(|chunk| value(*chunk)).collect()
}

/// Reads `path` and hands its tensors and options to `parse`.
pub(crate) fn open<T>(
    path: &Path,
    parse: impl FnOnce(&Tensors<'_>, &FileOptions) -> Parsed<T>,
) -> Result<T, FileError> {
    let fail = |reason: String| FileError::new(path, reason);
    let bytes = fs::read(path).map_err(|e| fail(e.to_string()))?;
    let not_safetensors = |e| fail(format!("not a safetensors file: {e}"));
    let tensors = SafeTensors::deserialize(&bytes).map_err(not_safetensors)?;
    let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(not_safetensors)?;
    let options = match metadata.metadata().as_ref().and_then(|m| m.get("options")) {
        None => FileOptions::default(),
        Some(json) => serde_json::from_str(json).map_err(|e| fail(format!("metadata key 'options': {e}")))?,
    };
    parse(&Tensors(tensors), &options).map_err(fail)
}

/// Reads the inputs of a problem.
///
/// # Errors
/// If the file cannot be read or a tensor is missing or has another shape or type than the others call for.
pub fn read_case(path: &Path) -> Result<Case, FileError> {
    open(path, |tensors, options| tensors.case(options))
}

/// Writes the results of a forward pass: `y` `[batch, tokens, heads, head_dim]` in `dtype` and `state`
/// `[batch, heads, head_dim, state]` in f32.
///
/// # Errors
/// If the file cannot be written, or a result does not have the length that `shape` calls for.
pub fn write_outputs(
    path: &Path,
    shape: Shape,
    dtype: Dtype,
    y: &[f32],
    state: &[f32],
) -> Result<(), FileError> {
    let fail = |e: &dyn ToString| FileError::new(path, e.to_string());
    let Shape { batch, tokens, heads, head_dim, state: n, .. } = shape;
    let (y_type, y_bytes) = encode(dtype, y);
    let (state_type, state_bytes) = encode(Dtype::F32, state);
    let y = TensorView::new(y_type, vec![batch, tokens, heads, head_dim], &y_bytes).map_err(|e| fail(&e))?;
    let state =
        TensorView::new(state_type, vec![batch, heads, head_dim, n], &state_bytes).map_err(|e| fail(&e))?;
    let nothing: Option<HashMap<String, String>> = None;
    safetensors::serialize_to_file([("y", y), ("state", state)], nothing, path).map_err(|e| fail(&e))
}

pub(crate) fn encode(dtype: Dtype, values: &[f32]) -> (safetensors::Dtype, Vec<u8>) {
    match dtype {
        Dtype::F32 => (safetensors::Dtype::F32, values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        Dtype::F16 => {
            (safetensors::Dtype::F16, values.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect())
        }
        Dtype::BF16 => {
            (safetensors::Dtype::BF16, values.iter().flat_map(|&v| bf16::from_f32(v).to_le_bytes()).collect())
        }
    }
}
