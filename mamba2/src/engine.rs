//! The one place where the program meets devices and kernels.

use std::{convert::Infallible, time::Duration};

use mamba2::{
    case::{Case, Dtype, Feature},
    problem::Shape,
};

use crate::cli::Result;

/// Says that the kernels are not part of the program yet.
const NO_KERNELS: &str = "this version has no kernels yet; only the float64 reference exists";

/// Results of a forward pass on the host. Values of a 16-bit type are held as f32.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    /// `[batch, tokens, heads, head_dim]`
    pub(crate) y: Vec<f32>,
    /// `[batch, heads, head_dim, state]`
    pub(crate) final_states: Vec<f32>,
}

/// A device on which forward passes run.
pub(crate) struct Engine(Infallible);

/// A problem whose inputs lie on the device.
pub(crate) struct Loaded(Infallible);

/// What `show` prints.
pub(crate) struct ShowRequest<'a> {
    pub(crate) kernel: &'a str,
    pub(crate) target: &'a str,
    pub(crate) stage: &'a str,
    pub(crate) shape: Shape,
    pub(crate) dtype: Dtype,
    pub(crate) chunk: Option<usize>,
}

impl Engine {
    /// Opens `best`, `cpu`, `cuda` or `cuda:N`.
    pub(crate) fn open(device: &str) -> Result<Engine> {
        Err(format!("cannot run on {device}: {NO_KERNELS}").into())
    }

    /// What `case` needs and the forward pass does not have yet.
    pub(crate) fn missing(case: &Case) -> Vec<Feature> {
        case.features()
    }

    /// Whether the device is a GPU.
    pub(crate) fn is_gpu(&self) -> bool {
        match self.0 {}
    }

    /// The device as users know it, such as "NVIDIA H200 (cuda:0)" or "CPU, 8 threads".
    pub(crate) fn device_name(&self) -> String {
        match self.0 {}
    }

    /// The target that kernels are compiled for, such as "sm_80".
    pub(crate) fn target_name(&self) -> String {
        match self.0 {}
    }

    /// Copies the inputs to the device.
    pub(crate) fn load(&self, _case: &Case, _chunk: Option<usize>) -> Result<Loaded> {
        match self.0 {}
    }
}

impl Loaded {
    /// The chunk length in use.
    pub(crate) fn chunk(&self) -> usize {
        match self.0 {}
    }

    /// Runs once and copies the results back.
    pub(crate) fn run(&self) -> Result<Output> {
        match self.0 {}
    }

    /// Runs once and gives the time from the first kernel's start to the last one's end.
    pub(crate) fn time_once(&self) -> Result<Duration> {
        match self.0 {}
    }

    /// Median time of 30 replays of a graph, with 256 MiB written before each. On a GPU only.
    pub(crate) fn time_replays(&self) -> Result<Duration> {
        match self.0 {}
    }
}

/// The tile IR after a pass, or the PTX, of one kernel.
pub(crate) fn show(request: &ShowRequest<'_>) -> Result<String> {
    let ShowRequest { kernel, target, stage, shape, dtype, chunk } = request;
    let chunk = chunk.map_or("a chosen chunk".to_owned(), |chunk| format!("chunk {chunk}"));
    Err(format!("cannot show {kernel} for {target} at {stage} ({shape}, {dtype}, {chunk}): {NO_KERNELS}")
        .into())
}
