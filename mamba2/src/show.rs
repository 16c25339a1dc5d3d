//! `Variant`: the tile IR or PTX of a kernel of this crate, for given sizes and options, without a device.

use std::str::FromStr;
use std::time::{Duration, Instant};

use tile_runtime::prelude::*;
use tile_runtime::{Config, DeviceTensor, Launch, Target, codegen};

use crate::arguments::{Inputs, Options, StateType, Value};
use crate::case::Dtype;
use crate::check::fault;
use crate::error::{Error, Result};
use crate::pass::{d_matrix, whole};
use crate::problem::Shape;
use crate::sequences::Sequences;
use crate::step::{Slots, StepOptions, check_step, step_launch};

/// The kernels of the forward pass, in order.
pub const KERNELS: [&str; 3] = ["chunk_cumsum", "fwd_pass_state", "compute_out"];

/// The kernel of [`step`](crate::step()).
const STEP: &str = "step";

/// An optional input, for which kernels are specialised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum With {
    /// A bias of dt.
    Bias,
    /// Softplus of dt.
    Softplus,
    /// Limits of dt. They are run-time values, so that the code is the same without.
    Limit,
    /// D a channel, `[heads, head_dim]`, instead of a head.
    DPerChannel,
    /// The gate.
    Z,
    /// Sequences by an index a token.
    SeqIdx,
    /// Sequences by offsets, in one batch element.
    CuSeqlens,
    /// Initial states.
    Initial,
    /// States between chunks in f32.
    F32States,
    /// Rows of a pool of states; of `step` alone.
    Slots,
}

impl With {
    /// All of them.
    pub const ALL: [With; 10] = [
        With::Bias,
        With::Softplus,
        With::Limit,
        With::DPerChannel,
        With::Z,
        With::SeqIdx,
        With::CuSeqlens,
        With::Initial,
        With::F32States,
        With::Slots,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            With::Bias => "bias",
            With::Softplus => "softplus",
            With::Limit => "limit",
            With::DPerChannel => "d-per-channel",
            With::Z => "z",
            With::SeqIdx => "seq-idx",
            With::CuSeqlens => "cu-seqlens",
            With::Initial => "initial",
            With::F32States => "f32-states",
            With::Slots => "slots",
        }
    }
}

impl FromStr for With {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        With::ALL.into_iter().find(|with| with.name() == name).ok_or_else(|| Error::Unknown {
            what: "option",
            name: name.into(),
            known: With::ALL.map(With::name).join(", "),
        })
    }
}

/// One kernel for given sizes, element type and options, to be looked into without a device. The block sizes are those that
/// [`forward`](crate::forward()) or [`step`](crate::step()) would choose.
///
/// ```
/// use mamba2::{Variant, With, case::Dtype, problem};
/// # fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let shape = problem::named("seed")?;
/// let gated = Variant { with: &[With::Z], ..Variant::new("compute_out", "sm_90a", shape, Dtype::BF16) };
/// assert!(gated.show("ptx")?.contains("wgmma.mma_async"));
/// # Ok(()) }
/// # run().unwrap();
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Variant<'a> {
    /// One of [`KERNELS`], or `step`.
    pub kernel: &'a str,
    /// The name of a target, such as `sm_80`.
    pub target: &'a str,
    /// The sizes.
    pub shape: Shape,
    /// The type of x, B, C, z and y; that of dt, D and initial states is f32.
    pub dtype: Dtype,
    /// Tokens in a chunk; chosen when not given.
    pub chunk: Option<usize>,
    /// What the kernel has beside x, dt, A, B, C and D.
    pub with: &'a [With],
}

impl<'a> Variant<'a> {
    /// A kernel without further options.
    pub fn new(kernel: &'a str, target: &'a str, shape: Shape, dtype: Dtype) -> Self {
        Self { kernel, target, shape, dtype, chunk: None, with: &[] }
    }

    /// The text of the kernel at `stage`: the tile IR after a pass, or as `staged`, or `ptx`.
    ///
    /// # Errors
    /// If a name is unknown, options do not fit the kernel or each other, or the kernel does not compile.
    pub fn show(&self, stage: &str) -> Result<String> {
        let target = self.target()?;
        self.with_launch(&target, |launch| text(&launch, &target, stage))
    }

    /// What became of the kernel: which path each load, product and store takes, and why no faster one.
    ///
    /// # Errors
    /// As [`Variant::show`].
    pub fn explain(&self) -> Result<String> {
        let target = self.target()?;
        self.with_launch(&target, |launch| Ok(launch.explain(&target)?))
    }

    /// The time from the staged kernel to its PTX, as the median of `repeats` compilations.
    ///
    /// # Errors
    /// As [`Variant::show`].
    pub fn compile_time(&self, repeats: usize) -> Result<Duration> {
        let target = self.target()?;
        self.with_launch(&target, |launch| {
            launch.ptx(&target)?;
            let staged = launch.stage()?;
            let mut times = Vec::new();
            for _ in 0..repeats.max(1) {
                let start = Instant::now();
                let compiled = codegen::compile::compile(&staged.kernel, &target, &Config::default());
                times.push(start.elapsed());
                drop(compiled);
            }
            times.sort_unstable();
            Ok(times[times.len() / 2])
        })
    }

    fn target(&self) -> Result<Target> {
        Target::by_name(self.target).ok_or_else(|| Error::Unknown {
            what: "target",
            name: self.target.into(),
            known: codegen::target::TARGETS.iter().map(|t| t.name).collect::<Vec<_>>().join(", "),
        })
    }

    fn has(&self, with: With) -> bool {
        self.with.contains(&with)
    }

    fn with_launch<R>(&self, target: &Target, work: impl FnOnce(Launch<'_>) -> Result<R>) -> Result<R> {
        if self.kernel != STEP && !KERNELS.contains(&self.kernel) {
            let known = [&KERNELS[..], &[STEP]].concat().join(", ");
            return Err(Error::Unknown { what: "kernel", name: self.kernel.into(), known });
        }
        if self.has(With::SeqIdx) && self.has(With::CuSeqlens) {
            return fault("with", "names seq-idx and cu-seqlens".into(), "one of the two");
        }
        if self.has(With::Slots) && self.kernel != STEP {
            return fault("with", format!("names slots for `{}`", self.kernel), "slots for `step` alone");
        }
        match self.dtype {
            Dtype::F32 => self.with_launch_of::<f32, R>(target, work),
            Dtype::F16 => self.with_launch_of::<f16, R>(target, work),
            Dtype::BF16 => self.with_launch_of::<bf16, R>(target, work),
        }
    }

    /// A launch on tensors of the meta device.
    fn with_launch_of<T: Value, R>(
        &self,
        target: &Target,
        work: impl FnOnce(Launch<'_>) -> Result<R>,
    ) -> Result<R> {
        let Shape { batch, tokens, groups, heads, head_dim, state } = self.shape;
        let x = DeviceTensor::<T>::meta(&[batch, tokens, heads, head_dim])?;
        let dt = DeviceTensor::<f32>::meta(&[batch, tokens, heads])?;
        let per_head = DeviceTensor::<f32>::meta(&[heads])?;
        let per_channel = DeviceTensor::<f32>::meta(&[heads, head_dim])?;
        let b = DeviceTensor::<T>::meta(&[batch, tokens, groups, state])?;
        let sequences = match (self.has(With::SeqIdx), self.has(With::CuSeqlens)) {
            (true, _) => Some(Sequences::meta(batch, tokens, false)?),
            (_, true) => Some(Sequences::meta(1, tokens, true)?),
            (false, false) => None,
        };
        let rows = sequences.as_ref().filter(|s| s.own_states()).map_or(batch, Sequences::count);
        let mut states = DeviceTensor::<f32>::meta(&[rows, heads, head_dim, state])?;
        let initial = states.clone();
        let d = if self.has(With::DPerChannel) { &per_channel } else { &per_head };
        let mut inputs = Inputs::new(&x, &dt, &per_head, &b, &b).d(d).dt_softplus(self.has(With::Softplus));
        if self.has(With::Limit) {
            inputs = inputs.dt_limit(1e-3, 0.1);
        }
        inputs.dt_bias = self.has(With::Bias).then_some(&per_head);
        inputs.z = self.has(With::Z).then_some(&x);
        inputs.initial_states = self.has(With::Initial).then_some(&initial);
        inputs.sequences = sequences.as_ref();
        if self.kernel == STEP {
            let slots = self.has(With::Slots).then(|| Slots::meta(batch)).transpose()?;
            let options = StepOptions { slots: slots.as_ref(), ..StepOptions::default() };
            let mut y = DeviceTensor::<T>::meta(x.shape())?;
            check_step(&inputs, &states, &options)?;
            let d = d_matrix(inputs.d)?;
            return work(step_launch(&inputs, d.as_ref(), &mut states, &options, &mut y).0);
        }
        let state_type = if self.has(With::F32States) { StateType::F32 } else { StateType::AsX };
        let options = Options { chunk: self.chunk, state_type, target: Some(*target), ..Options::default() };
        let mut pass = whole(&inputs, &options, Some(*target))?;
        let (launch, _) = pass.launch(self.kernel)?;
        work(launch)
    }
}

fn text(launch: &Launch<'_>, target: &Target, stage: &str) -> Result<String> {
    let staged = launch.stage()?;
    if stage == "staged" {
        return Ok(codegen::ir::print(&staged.kernel));
    }
    if stage == "ptx" {
        return Ok(launch.ptx(target)?);
    }
    let mut found = None;
    // A kernel that does not fit the target still has the stages before that is found out.
    let compiled = codegen::compile::compile_observed(
        &staged.kernel,
        target,
        &Config::default(),
        &mut |pass, kernel| {
            if pass == stage {
                found = Some(codegen::ir::print(kernel));
            }
        },
    );
    match (found, compiled) {
        (Some(text), _) => Ok(text),
        (None, Err(_)) => Ok(launch.ptx(target)?),
        (None, Ok(_)) => {
            let passes = codegen::passes::PASSES.iter().map(|p| p.id);
            let known: Vec<&str> = ["staged"].into_iter().chain(passes).chain(["ptx"]).collect();
            Err(Error::Unknown { what: "stage", name: stage.into(), known: known.join(", ") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::named;

    fn ptx(kernel: &str, with: &[With]) -> String {
        let shape = Shape { batch: 1, ..named("seed").expect("a known name") };
        Variant { with, ..Variant::new(kernel, "sm_80", shape, Dtype::BF16) }
            .show("ptx")
            .expect("it compiles")
    }

    #[test]
    fn each_option_changes_the_kernels_that_read_it_alone() {
        let plain = KERNELS.map(|kernel| ptx(kernel, &[]));
        for (with, changed) in [
            (With::Bias, [true, false, false]),
            (With::Softplus, [true, false, false]),
            (With::Limit, [false, false, false]),
            (With::DPerChannel, [false, false, true]),
            (With::Z, [false, false, true]),
            (With::SeqIdx, [true, true, true]),
            (With::CuSeqlens, [true, true, true]),
            (With::Initial, [false, true, false]),
            (With::F32States, [false, true, true]),
        ] {
            for ((kernel, plain), changed) in KERNELS.into_iter().zip(&plain).zip(changed) {
                assert_eq!(ptx(kernel, &[with]) != *plain, changed, "{} of {kernel}", with.name());
            }
        }
        for with in [With::Bias, With::Softplus, With::DPerChannel, With::Z, With::Slots] {
            assert_ne!(ptx(STEP, &[with]), ptx(STEP, &[]), "{}", with.name());
        }
    }

    #[test]
    fn names_are_read_back() {
        for with in With::ALL {
            assert_eq!(with.name().parse::<With>().expect("its own name"), with);
        }
    }
}
