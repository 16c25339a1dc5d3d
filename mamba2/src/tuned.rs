//! Which plan a pass takes: what tuning found for its kind of problem on its device, else the default.

use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

use tile_runtime::cache::Key;
use tile_runtime::codegen::ir::print;
use tile_runtime::tune::{self, Question, Store};
use tile_runtime::{Device, DeviceKind, DeviceTensor, Elem, Target};

use crate::arguments::{FloatElement, Inputs, Options, Outputs, StateType, Value};
use crate::check::check;
use crate::error::{Error, Result};
use crate::pass::Pass;
use crate::plan::Plan;
use crate::problem::Shape;
use crate::sequences::Sequences;
use crate::workspace::Workspace;

/// What is tuned, as files name it.
const SUBJECT: &str = "mamba2::forward";
/// Kernels that tuning varies.
pub(crate) const TUNED: [&str; 2] = ["fwd_pass_state", "compute_out"];
/// Kinds of problems whose plan is remembered.
const CAPACITY: usize = 4096;

/// How sequences are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Packing {
    None,
    ByIndex,
    ByOffsets,
}

/// A kind of problem: passes of one kind share a plan. All that the tuned kernels are specialised by, and sizes rounded up to powers
/// of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    sizes: Shape,
    x: Elem,
    /// Type of D, and whether it has a value a channel.
    d: Option<(Elem, bool)>,
    z: Option<Elem>,
    initial: Option<Elem>,
    packing: Packing,
    state_type: StateType,
    chunk: Option<usize>,
    /// What code is generated for, if any is.
    target: Option<Target>,
}

impl Kind {
    pub(crate) fn of<T: Value, Dt, D: FloatElement, Z: FloatElement, S: FloatElement>(
        inputs: &Inputs<'_, T, Dt, D, Z, S>,
        options: &Options,
        shape: Shape,
    ) -> Self {
        let up = |size: usize| size.checked_next_power_of_two().unwrap_or(size);
        let Shape { batch, tokens, groups, heads, head_dim, state } = shape;
        let packing = inputs.sequences.map_or(Packing::None, |s| match s.own_states() {
            true => Packing::ByOffsets,
            false => Packing::ByIndex,
        });
        Self {
            sizes: Shape {
                batch: up(batch),
                tokens: up(tokens),
                groups: up(groups),
                heads: up(heads),
                head_dim: up(head_dim),
                state: up(state),
            },
            x: T::TYPE,
            d: inputs.d.map(|d| (D::TYPE, d.rank() == 2)),
            z: inputs.z.map(|_| Z::TYPE),
            initial: inputs.initial_states.map(|_| S::TYPE),
            packing,
            state_type: options.state_type,
            chunk: options.chunk,
            target: options.target_on(inputs.x.device()),
        }
    }

    /// In words, as files name it.
    pub(crate) fn bucket(&self) -> String {
        let Self { sizes, x, d, z, initial, packing, state_type, chunk, target } = self;
        let mut text = format!("{sizes}; x {x:?}");
        if let Some((d, per_channel)) = d {
            text += &format!(", D {d:?} a {}", if *per_channel { "channel" } else { "head" });
        }
        if let Some(z) = z {
            text += &format!(", z {z:?}");
        }
        if let Some(initial) = initial {
            text += &format!(", initial states {initial:?}");
        }
        text += match packing {
            Packing::None => "",
            Packing::ByIndex => ", sequences by index",
            Packing::ByOffsets => ", sequences by offsets",
        };
        text += match state_type {
            StateType::AsX => "",
            StateType::F32 => ", chunk states F32",
        };
        if let Some(chunk) = chunk {
            text += &format!(", chunk {chunk}");
        }
        if let Some(target) = target {
            text += &format!(", target {}", target.name);
        }
        text
    }

    /// The hash of the tuned kernels' tile IR under the default plan, for contiguous tensors of this kind's sizes. None if such tensors
    /// cannot be.
    pub(crate) fn kernels<T: Value, D: FloatElement, Z: FloatElement, S: FloatElement>(&self) -> Option<Key> {
        self.texts::<T, D, Z, S>().ok().map(tune::kernels)
    }

    fn texts<T: Value, D: FloatElement, Z: FloatElement, S: FloatElement>(&self) -> Result<Vec<String>> {
        let shape = self.sizes;
        let Shape { batch, tokens, groups, heads, head_dim, state } = shape;
        let x = DeviceTensor::<T>::meta(&[batch, tokens, heads, head_dim])?;
        let dt = DeviceTensor::<f32>::meta(&[batch, tokens, heads])?;
        let a = DeviceTensor::<f32>::meta(&[heads])?;
        let b = DeviceTensor::<T>::meta(&[batch, tokens, groups, state])?;
        let d = match self.d {
            Some((_, true)) => Some(DeviceTensor::<D>::meta(&[heads, head_dim])?),
            Some((_, false)) => Some(DeviceTensor::<D>::meta(&[heads])?),
            None => None,
        };
        let z = self.z.map(|_| DeviceTensor::<Z>::meta(&[batch, tokens, heads, head_dim])).transpose()?;
        let sequences = match self.packing {
            Packing::None => None,
            Packing::ByIndex => Some(Sequences::meta(batch, tokens, false)?),
            Packing::ByOffsets => Some(Sequences::meta(batch, tokens, true)?),
        };
        let rows = sequences.as_ref().filter(|s| s.own_states()).map_or(batch, Sequences::count);
        let states = [rows, heads, head_dim, state];
        let initial = self.initial.map(|_| DeviceTensor::<S>::meta(&states)).transpose()?;
        let inputs = Inputs::<T, f32, D, Z, S> {
            x: &x,
            dt: &dt,
            a: &a,
            b: &b,
            c: &b,
            dt_bias: None,
            dt_softplus: false,
            dt_limit: (0.0, f32::INFINITY),
            d: d.as_ref(),
            z: z.as_ref(),
            initial_states: initial.as_ref(),
            sequences: sequences.as_ref(),
        };
        let options = Options {
            chunk: self.chunk,
            state_type: self.state_type,
            target: self.target,
            ..Options::default()
        };
        let plan = Plan::new::<T>(shape, self.chunk, self.target)?;
        let outputs = Outputs::uninit(&inputs, shape)?;
        let mut workspace = Workspace::new(&Device::meta());
        let mut pass = Pass::new(&inputs, (shape, plan), &options, outputs, &mut workspace)?;
        TUNED.iter().map(|kernel| Ok(print(&pass.launch(kernel)?.0.stage()?.kernel))).collect()
    }
}

/// The question whose answer is the plan of a kind of problem.
pub(crate) fn question<'a>(device: &'a Device, bucket: &'a str) -> Question<'a> {
    Question { subject: SUBJECT, device, bucket }
}

/// A plan, and whether tuning found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) plan: Plan,
    pub(crate) tuned: bool,
}

/// The chunk length that a forward pass takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Tokens in a chunk.
    pub chunk: usize,
    /// Whether this and the other block sizes are a result of tuning, see [`tune`](crate::tune).
    pub tuned: bool,
}

/// What [`forward`](crate::forward()) chooses for these inputs.
///
/// # Errors
/// As [`forward`](crate::forward()), before anything runs.
pub fn choice<T: Value, Dt: FloatElement, D: FloatElement, Z: FloatElement, S: FloatElement>(
    inputs: &Inputs<'_, T, Dt, D, Z, S>,
    options: &Options,
) -> Result<Choice> {
    let shape = check(inputs)?;
    let Chosen { plan, tuned } = choose(inputs, options, shape, options.target_on(inputs.x.device()))?;
    Ok(Choice { chunk: plan.chunk, tuned })
}

/// What a remembered plan depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    kind: Kind,
    device: DeviceKind,
    /// Threads of the CPU.
    units: usize,
    generation: u64,
}

impl Place {
    /// None on devices that have no results.
    fn of(device: &Device, kind: Kind) -> Option<Self> {
        if !device.is_cpu() && !device.is_cuda() {
            return None;
        }
        let (device, units) = (device.kind(), device.multiprocessors());
        Some(Self { kind, device, units, generation: tune::generation() })
    }
}

/// The results of tuning that were looked for in this process, whether they were found or not.
static KNOWN: LazyLock<RwLock<HashMap<Place, Option<Plan>>>> = LazyLock::new(RwLock::default);

fn remember(place: Place, plan: Option<Plan>) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= CAPACITY {
        known.clear();
    }
    known.insert(place, plan);
}

/// The plan for these inputs: that of an earlier tuning of their kind, if there is one for this device and these kernels.
pub(crate) fn choose<T: Value, Dt: FloatElement, D: FloatElement, Z: FloatElement, S: FloatElement>(
    inputs: &Inputs<'_, T, Dt, D, Z, S>,
    options: &Options,
    shape: Shape,
    target: Option<Target>,
) -> Result<Chosen> {
    let default = Plan::new::<T>(shape, options.chunk, target)?;
    let device = inputs.x.device();
    let plan = Place::of(device, Kind::of(inputs, options, shape)).and_then(|place| {
        if let Some(known) = KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(&place) {
            return *known;
        }
        let kernels = || place.kind.kernels::<T, D, Z, S>();
        let found = Store::of_process().and_then(|store| load(store, device, &place.kind, default, kernels));
        remember(place, found);
        found
    });
    // Heads of a tile of `chunk_cumsum` are not tuned, and depend on the sizes themselves.
    let plan = plan.map(|plan| Plan { block_heads: default.block_heads, ..plan });
    Ok(Chosen { plan: plan.unwrap_or(default), tuned: plan.is_some() })
}

fn load(
    store: &Store,
    device: &Device,
    kind: &Kind,
    default: Plan,
    kernels: impl FnOnce() -> Option<Key>,
) -> Option<Plan> {
    let bucket = kind.bucket();
    let answer = store.load(&question(device, &bucket), kernels)?;
    let plan = default.all_of(&answer.point).and_then(|plan| match kind.chunk {
        Some(chunk) if chunk != plan.chunk => Err(format!("chunk is {}, asked for is {chunk}", plan.chunk)),
        _ => Ok(plan),
    });
    match plan {
        Ok(plan) => Some(plan),
        Err(fault) => {
            tracing::warn!("a result of tuning for {bucket} is ignored: {fault}");
            None
        }
    }
}

/// Does `work` with the plan for these inputs. A tuned plan that the device refuses, as an edited one may be, is dropped for the
/// rest of the process, and the default one taken.
pub(crate) fn with_plan<T: Value, Dt: FloatElement, D: FloatElement, Z: FloatElement, S: FloatElement, R>(
    inputs: &Inputs<'_, T, Dt, D, Z, S>,
    options: &Options,
    shape: Shape,
    mut work: impl FnMut(Plan) -> Result<R>,
) -> Result<R> {
    let (device, target) = (inputs.x.device(), options.target_on(inputs.x.device()));
    let chosen = choose(inputs, options, shape, target)?;
    match work(chosen.plan) {
        Err(error) if chosen.tuned && refuses(&error) => {
            tracing::warn!("a result of tuning is dropped, since the device refuses it: {error}");
            if let Some(place) = Place::of(device, Kind::of(inputs, options, shape)) {
                remember(place, None);
            }
            work(Plan::new::<T>(shape, options.chunk, target)?)
        }
        outcome => outcome,
    }
}

/// Whether an error may be the plan's fault.
fn refuses(error: &Error) -> bool {
    use tile_runtime::Error as Of;
    matches!(error, Error::Runtime(Of::Kernel(_) | Of::Module(_) | Of::Driver { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tensors {
        x: DeviceTensor<f32>,
        dt: DeviceTensor<f32>,
        a: DeviceTensor<f32>,
        b: DeviceTensor<f32>,
    }

    /// Zeros on the CPU, `tokens` of them in 2 heads of 16 channels and 16 states.
    fn tensors(tokens: usize) -> Tensors {
        let zeros = |shape: &[usize]| DeviceTensor::zeros(&Device::cpu(), shape).unwrap();
        Tensors {
            x: zeros(&[1, tokens, 2, 16]),
            dt: zeros(&[1, tokens, 2]),
            a: zeros(&[2]),
            b: zeros(&[1, tokens, 1, 16]),
        }
    }

    impl Tensors {
        fn inputs(&self) -> Inputs<'_, f32> {
            Inputs::new(&self.x, &self.dt, &self.a, &self.b, &self.b)
        }
    }

    #[test]
    fn near_sizes_are_one_kind_and_options_are_not() {
        let (one, near, far) = (tensors(600), tensors(1000), tensors(2000));
        let options = Options::default();
        let kind = |tensors: &Tensors| {
            let inputs = tensors.inputs();
            Kind::of(&inputs, &options, check(&inputs).unwrap())
        };
        assert_eq!(kind(&one), kind(&near));
        assert_ne!(kind(&one), kind(&far));
        let expected = "batch 1, tokens 1024, groups 1, heads 2, head_dim 16, state 16; x F32";
        assert_eq!(kind(&one).bucket(), expected);
        let inputs = one.inputs().d(&one.a).z(&one.x);
        let options = Options { chunk: Some(32), state_type: StateType::F32, ..Options::default() };
        let other = Kind::of(&inputs, &options, check(&inputs).unwrap()).bucket();
        assert_eq!(other, format!("{expected}, D F32 a head, z F32, chunk states F32, chunk 32"));
    }

    #[test]
    fn the_hash_is_that_of_the_kernels_and_of_nothing_else() {
        let (one, near) = (tensors(600), tensors(1000));
        let hash = |inputs: &Inputs<'_, f32>| {
            let kind = Kind::of(inputs, &Options::default(), check(inputs).unwrap());
            kind.kernels::<f32, f32, f32, f32>().unwrap()
        };
        assert_eq!(hash(&one.inputs()), hash(&near.inputs()));
        assert_ne!(hash(&one.inputs()), hash(&one.inputs().z(&one.x)));
    }

    #[test]
    fn a_plan_that_the_device_refuses_is_dropped() {
        // Sizes of this test alone, since what is remembered is the process's.
        let tensors = tensors(5000);
        let (inputs, options) = (tensors.inputs(), Options::default());
        let shape = check(&inputs).unwrap();
        let default = Plan::new::<f32>(shape, None, None).unwrap();
        let odd = Plan { chunk: 32, state_tokens: 16, out_tokens: 16, ..default };
        remember(Place::of(&Device::cpu(), Kind::of(&inputs, &options, shape)).unwrap(), Some(odd));
        assert_eq!(choose(&inputs, &options, shape, None).unwrap(), Chosen { plan: odd, tuned: true });
        let refusal = tile_runtime::Error::Driver {
            call: "cuLaunchKernel",
            context: String::new(),
            code: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES".into(),
            message: String::new(),
            remedy: String::new(),
        };
        let mut plans = Vec::new();
        let outcome = with_plan(&inputs, &options, shape, |plan| {
            plans.push(plan);
            if plan == odd { Err(refusal.clone().into()) } else { Ok(plan.chunk) }
        });
        assert_eq!(outcome.unwrap(), default.chunk);
        assert_eq!(plans, [odd, default]);
        assert_eq!(choose(&inputs, &options, shape, None).unwrap(), Chosen { plan: default, tuned: false });
        let failed = with_plan(&inputs, &options, shape, |_| Err::<(), _>(refusal.clone().into()));
        assert!(failed.is_err(), "the default's own errors are errors");
    }
}
