//! The weights of a mixer on the host: read from a checkpoint, written to one, or drawn at random.

use std::collections::HashMap;
use std::path::Path;

use rand::{Rng, SeedableRng, rngs::StdRng};
use rand_distr::StandardNormal;
use safetensors::tensor::TensorView;

use super::{MixerOptions, Sizes};
use crate::case::Dtype;
use crate::file::{self, FileError};

/// Weights as published checkpoints hold them, in f32.
#[derive(Debug, Clone, PartialEq)]
pub struct MixerWeights {
    /// Sizes.
    pub sizes: Sizes,
    /// `in_proj.weight`: `[2 inner + 2 groups state + heads, model]`, rows in the order z, x, B, C, dt.
    pub in_proj: Vec<f32>,
    /// `in_proj.bias`
    pub in_bias: Option<Vec<f32>>,
    /// `conv1d.weight`: `[inner + 2 groups state, 1, width]`
    pub conv: Vec<f32>,
    /// `conv1d.bias`
    pub conv_bias: Option<Vec<f32>>,
    /// `dt_bias`: `[heads]`
    pub dt_bias: Vec<f32>,
    /// `A_log`: `[heads]`; the decay is `-exp(A_log)`.
    pub a_log: Vec<f32>,
    /// `D`: `[heads]`, or `[inner]` for one value a channel.
    pub d: Vec<f32>,
    /// `norm.weight`: `[inner]`; without it z gates the output of the scan.
    pub norm: Option<Vec<f32>>,
    /// `out_proj.weight`: `[model, inner]`
    pub out_proj: Vec<f32>,
    /// `out_proj.bias`
    pub out_bias: Option<Vec<f32>>,
}

impl MixerWeights {
    /// Reads the tensors whose names begin with `prefix`, such as `backbone.layers.0.mixer.`, in f32, f16 or bf16. Sizes follow
    /// from their shapes and the number of groups in `options`.
    ///
    /// # Errors
    /// If the file cannot be read, or a tensor is missing or does not fit the others.
    pub fn read(path: &Path, prefix: &str, options: &MixerOptions) -> Result<MixerWeights, FileError> {
        file::open(path, |tensors, _| {
            let shape = |name: &str| {
                tensors.shape(&format!("{prefix}{name}")).ok_or_else(|| {
                    format!("there is no tensor called '{prefix}{name}'; which prefix do the mixer's tensors have?")
                })
            };
            let sizes = Sizes::of(
                &shape("in_proj.weight")?,
                &shape("conv1d.weight")?,
                &shape("A_log")?,
                &shape("out_proj.weight")?,
                options.groups,
            )?;
            let Sizes { model, heads, width, .. } = sizes;
            let (inner, rows, channels) = (sizes.inner(), sizes.in_rows(), sizes.channels());
            let optional = |name: &str, shape: &[usize]| tensors.any_float(&format!("{prefix}{name}"), shape);
            let required = |name: &str, shape: &[usize]| {
                optional(name, shape)?.ok_or_else(|| format!("there is no tensor called '{prefix}{name}'"))
            };
            let per_channel = shape("D")? == [inner] && inner != heads;
            Ok(MixerWeights {
                sizes,
                in_proj: required("in_proj.weight", &[rows, model])?,
                in_bias: optional("in_proj.bias", &[rows])?,
                conv: required("conv1d.weight", &[channels, 1, width])?,
                conv_bias: optional("conv1d.bias", &[channels])?,
                dt_bias: required("dt_bias", &[heads])?,
                a_log: required("A_log", &[heads])?,
                d: required("D", &[if per_channel { inner } else { heads }])?,
                norm: optional("norm.weight", &[inner])?,
                out_proj: required("out_proj.weight", &[model, inner])?,
                out_bias: optional("out_proj.bias", &[model])?,
            })
        })
    }

    /// Writes them in `dtype`, the values of a head in f32, with the names that [`MixerWeights::read`] looks for.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path, prefix: &str, dtype: Dtype) -> Result<(), FileError> {
        let Sizes { model, heads, width, .. } = self.sizes;
        let (inner, rows, channels) = (self.sizes.inner(), self.sizes.in_rows(), self.sizes.channels());
        let all = [
            ("in_proj.weight", vec![rows, model], dtype, Some(&self.in_proj)),
            ("in_proj.bias", vec![rows], dtype, self.in_bias.as_ref()),
            ("conv1d.weight", vec![channels, 1, width], dtype, Some(&self.conv)),
            ("conv1d.bias", vec![channels], dtype, self.conv_bias.as_ref()),
            ("dt_bias", vec![heads], Dtype::F32, Some(&self.dt_bias)),
            ("A_log", vec![heads], Dtype::F32, Some(&self.a_log)),
            ("D", vec![self.d.len()], Dtype::F32, Some(&self.d)),
            ("norm.weight", vec![inner], dtype, self.norm.as_ref()),
            ("out_proj.weight", vec![model, inner], dtype, Some(&self.out_proj)),
            ("out_proj.bias", vec![model], dtype, self.out_bias.as_ref()),
        ];
        let fail = |reason: String| FileError::new(path, reason);
        let given =
            all.iter().filter_map(|(name, shape, dtype, values)| Some((name, shape, *dtype, (*values)?)));
        let encoded: Vec<_> = given
            .map(|(name, shape, dtype, values)| {
                (format!("{prefix}{name}"), shape, file::encode(dtype, values))
            })
            .collect();
        let views = encoded
            .iter()
            .map(|(name, shape, (dtype, bytes))| {
                Ok((name, TensorView::new(*dtype, (*shape).clone(), bytes).map_err(|e| fail(e.to_string()))?))
            })
            .collect::<Result<Vec<_>, FileError>>()?;
        let nothing: Option<HashMap<String, String>> = None;
        safetensors::serialize_to_file(views, nothing, path).map_err(|e| fail(e.to_string()))
    }

    /// The weights that are kept in the type of activations, rounded to it.
    #[must_use]
    pub fn rounded(&self, dtype: Dtype) -> MixerWeights {
        let round = |values: &[f32]| values.iter().map(|&v| dtype.round(v)).collect::<Vec<f32>>();
        MixerWeights {
            in_proj: round(&self.in_proj),
            in_bias: self.in_bias.as_deref().map(round),
            out_proj: round(&self.out_proj),
            out_bias: self.out_bias.as_deref().map(round),
            ..self.clone()
        }
    }

    /// Random weights, initialised as models are before training: rounded to `dtype` where they are stored in it.
    /// `A` is -1 to -16, steps are 0.001 to 0.1.
    pub fn random(sizes: Sizes, dtype: Dtype, seed: u64) -> MixerWeights {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut normal = |len: usize, fan_in: usize| -> Vec<f32> {
            let scale = (fan_in as f32).sqrt().recip();
            (0..len).map(|_| dtype.round(scale * rng.sample::<f32, _>(StandardNormal))).collect()
        };
        let Sizes { model, heads, width, .. } = sizes;
        let (inner, rows, channels) = (sizes.inner(), sizes.in_rows(), sizes.channels());
        let in_proj = normal(rows * model, model);
        let conv = normal(channels * width, width);
        let conv_bias = normal(channels, 100);
        let out_proj = normal(model * inner, inner);
        let norm = normal(inner, 100).into_iter().map(|w| dtype.round(1.0 + w)).collect();
        let d = normal(heads, 1);
        let mut uniform = |low: f32, high: f32| low + (high - low) * rng.random::<f32>();
        let a_log = (0..heads).map(|_| uniform(1.0, 16.0).ln()).collect();
        // The inverse of softplus.
        let step = |step: f32| step + (-(-step).exp_m1()).ln();
        let dt_bias = (0..heads).map(|_| step(uniform(1e-3f32.ln(), 0.1f32.ln()).exp())).collect();
        MixerWeights {
            sizes,
            in_proj,
            in_bias: None,
            conv,
            conv_bias: Some(conv_bias),
            dt_bias,
            a_log,
            d,
            norm: Some(norm),
            out_proj,
            out_bias: None,
        }
    }
}
