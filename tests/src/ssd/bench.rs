//! Where cases run, and the problems that most of them start from.

use mamba2::case::{Case, Dtype, Skip};
use mamba2::inputs::generate;
use mamba2::problem::Shape;
use mamba2::reference::{self, Outputs};
use mamba2::resident::{HostOutputs, Resident, run};
use mamba2::tolerance::{self, relative_l2};
use mamba2::{Options, StepOptions};
use tile_runtime::{Device, DeviceTensor, Element, Target};

/// A problem in f32 on a device, whose tensors may be replaced by views.
pub type Problem = Resident<f32, f32>;

/// A device, and the target of the code that it runs.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The device.
    pub device: Device,
    /// The device's own, if absent.
    pub target: Option<Target>,
}

impl Bench {
    /// The CPU.
    pub fn cpu() -> Self {
        Self { device: Device::cpu(), target: None }
    }

    /// Whether results repeat bit for bit where only strides differ.
    pub fn is_cpu(&self) -> bool {
        self.device.is_cpu()
    }

    /// Options of a pass with chunks of `chunk` tokens, or the default.
    pub fn options(&self, chunk: impl Into<Option<usize>>) -> Options {
        Options { chunk: chunk.into(), target: self.target, ..Options::default() }
    }

    /// Options of a decode step.
    pub fn step_options(&self) -> StepOptions<'static> {
        StepOptions { target: self.target, ..StepOptions::default() }
    }

    /// The inputs of a case on the device, in f32.
    pub fn load(&self, case: &Case) -> Problem {
        Resident::new(&self.device, case).expect("a case whose parts fit")
    }

    /// A tensor on the device.
    pub fn tensor<T: Element>(&self, shape: &[usize], values: &[T]) -> DeviceTensor<T> {
        DeviceTensor::from_slice(&self.device, shape, values).expect("one value an element")
    }

    /// y and the final states of a pass.
    pub fn pass(&self, problem: &Problem, chunk: usize) -> (Vec<f32>, Vec<f32>) {
        let out = problem.forward(&self.options(chunk)).expect("a pass");
        (out.y, out.final_states)
    }

    /// y and the states after the tokens, taken as one decode step.
    pub fn step(&self, problem: &Problem) -> (Vec<f32>, Vec<f32>) {
        let out = problem.step(&self.step_options()).expect("a step");
        (out.y, out.final_states)
    }

    /// A pass or a step over a case in its own types.
    pub fn run(&self, case: &Case, chunk: impl Into<Option<usize>>) -> HostOutputs {
        run(&self.device, case, &self.options(chunk)).expect("a case that runs")
    }

    /// Fails unless two results are the same: bit for bit on the CPU; elsewhere code for other strides may sum in another
    /// order, and agrees as well as f32 does with float64.
    #[track_caller]
    pub fn same(&self, found: &(Vec<f32>, Vec<f32>), expected: &(Vec<f32>, Vec<f32>)) {
        if self.is_cpu() {
            assert_eq!(found, expected);
        }
        let (y, state) = (relative_l2(&found.0, &expected.0), relative_l2(&found.1, &expected.1));
        assert!(y <= tolerance::F32_EXACT && state <= tolerance::F32_EXACT, "y {y:e}, state {state:e}");
    }

    /// Runs a case in its types and compares with float64.
    #[track_caller]
    pub fn matches_reference(&self, case: &Case, chunk: impl Into<Option<usize>>) {
        let out = self.run(case, chunk);
        let limits =
            if case.step { tolerance::step(case.dtype) } else { tolerance::forward(case.dtype, None) };
        let expected = reference_of(case);
        let y = relative_l2(&out.y, &expected.y);
        let state = relative_l2(&out.final_states, &expected.final_states);
        assert!(y <= limits.y && state <= limits.state, "{}: y {y:e}, state {state:e}", case.shape);
        match (&out.sequence_states, &expected.sequence_states) {
            (Some(found), Some(expected)) => {
                let state = relative_l2(found, expected);
                assert!(state <= limits.state, "{}: states of sequences {state:e}", case.shape);
            }
            (found, expected) => assert_eq!(found.is_some(), expected.is_some()),
        }
    }
}

/// The float64 recurrence over a case.
pub fn reference_of(case: &Case) -> Outputs {
    reference::forward(&case.reference_inputs()).expect("a case whose parts fit")
}

/// A shape, in the order of the published kernels' arguments.
pub fn shape(
    batch: usize,
    tokens: usize,
    heads: usize,
    head_dim: usize,
    state: usize,
    groups: usize,
) -> Shape {
    Shape { batch, tokens, groups, heads, head_dim, state }
}

/// One value for all of each tensor, B and C 1, and no skip weight, in f32.
pub fn plain(shape: Shape, a: f32, dt: f32, x: f32) -> Case {
    Case {
        shape,
        dtype: Dtype::F32,
        dt_dtype: Dtype::F32,
        step: false,
        chunk: None,
        x: vec![x; shape.x_len()],
        dt: vec![dt; shape.dt_len()],
        a: vec![a; shape.heads],
        b: vec![1.0; shape.b_len()],
        c: vec![1.0; shape.b_len()],
        d: None,
        z: None,
        dt_bias: None,
        dt_softplus: false,
        dt_limit: (0.0, f64::INFINITY),
        initial_states: None,
        seq_idx: None,
        cu_seqlens: None,
    }
}

/// Random inputs of a shape, with every option of one sequence: bias, softplus, limits, skip weights a channel, a gate and
/// initial states.
pub fn full(shape: Shape, dtype: Dtype, seed: u64) -> Case {
    let other = |seed, len: usize| {
        let shape = Shape { batch: 1, tokens: 1, groups: 1, heads: 1, head_dim: len.max(1), state: 1 };
        let mut values = generate(shape, Dtype::F32, seed).x;
        values.truncate(len);
        values
    };
    let width = shape.heads * shape.head_dim;
    Case {
        dt: other(seed + 1, shape.dt_len()),
        dt_bias: Some(other(seed + 2, shape.heads).iter().map(|bias| bias - 2.0).collect()),
        dt_softplus: true,
        dt_limit: (0.01, 0.5),
        d: Some(Skip::PerDim(other(seed + 3, width))),
        z: Some(other(seed + 4, shape.x_len()).iter().map(|&z| dtype.round(z)).collect()),
        initial_states: Some(other(seed + 5, shape.state_len())),
        ..generate(shape, dtype, seed)
    }
}

/// Fails unless a number in f32 is the expected one of six digits.
#[track_caller]
pub fn near(found: f32, expected: f32) {
    assert!((found - expected).abs() <= 2e-5 * expected.abs(), "found {found}, expected {expected}");
}

/// The tokens `start..end` of a problem as views.
pub fn tokens<T: mamba2::resident::HostFloat, Dt: mamba2::resident::HostFloat>(
    whole: &Resident<T, Dt>,
    range: std::ops::Range<usize>,
    initial_states: Option<DeviceTensor<f32>>,
) -> Resident<T, Dt> {
    let part = |tensor: &DeviceTensor<T>| tensor.slice(1, range.clone()).expect("a range of tokens");
    Resident {
        x: part(&whole.x),
        dt: whole.dt.slice(1, range.clone()).expect("a range of tokens"),
        a: whole.a.clone(),
        b: part(&whole.b),
        c: part(&whole.c),
        dt_bias: whole.dt_bias.clone(),
        dt_softplus: whole.dt_softplus,
        dt_limit: whole.dt_limit,
        d: whole.d.clone(),
        z: whole.z.as_ref().map(part),
        initial_states,
        sequences: None,
    }
}
