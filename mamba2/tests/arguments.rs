//! Arguments that do not fit: each is an error that names it, says what it is and what it must be, before anything runs.

use mamba2::{
    Inputs, Options, Outputs, Sequences, Slots, StepOptions, Workspace, forward, forward_into, step,
    step_into,
};
use tile_runtime::{Device, DeviceTensor, Target};

type Tensor = DeviceTensor<f32>;

fn zeros(shape: &[usize]) -> Tensor {
    DeviceTensor::zeros(&Device::cpu(), shape).unwrap()
}

/// The tensors of a problem: batch 2, 8 tokens, 4 heads of 16 channels, 2 groups of 12 states.
struct Args {
    x: Tensor,
    dt: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    dt_bias: Tensor,
    dt_limit: (f32, f32),
    d: Tensor,
    z: Tensor,
    initial: Tensor,
    sequences: Option<Sequences>,
    options: Options,
}

impl Args {
    fn new() -> Self {
        Self {
            x: zeros(&[2, 8, 4, 16]),
            dt: zeros(&[2, 8, 4]),
            a: zeros(&[4]),
            b: zeros(&[2, 8, 2, 12]),
            c: zeros(&[2, 8, 2, 12]),
            dt_bias: zeros(&[4]),
            dt_limit: (0.0, 1.0),
            d: zeros(&[4, 16]),
            z: zeros(&[2, 8, 4, 16]),
            initial: zeros(&[2, 4, 16, 12]),
            sequences: None,
            options: Options::default(),
        }
    }

    fn bare(&self) -> Inputs<'_, f32> {
        let inputs = Inputs::new(&self.x, &self.dt, &self.a, &self.b, &self.c).dt_bias(&self.dt_bias);
        inputs.dt_limit(self.dt_limit.0, self.dt_limit.1).d(&self.d).z(&self.z)
    }

    fn inputs(&self) -> Inputs<'_, f32> {
        let inputs = self.bare().initial_states(&self.initial);
        match &self.sequences {
            Some(sequences) => inputs.sequences(sequences),
            None => inputs,
        }
    }

    fn forward(&self) -> Result<(), String> {
        forward(&self.inputs(), &self.options).map(drop).map_err(|error| error.to_string())
    }

    fn step(&self) -> Result<(), String> {
        let mut states = zeros(&[2, 4, 16, 12]);
        step(&self.bare(), &mut states, &StepOptions::default()).map(drop).map_err(|error| error.to_string())
    }
}

/// A change of the arguments that needs a device.
type Change<'a> = &'a dyn Fn(&mut Args);

/// A change of the arguments, and the error that it is.
type Fault = (fn(&mut Args), &'static str);

const INPUTS: [Fault; 20] = [
    (
        |args| args.x = zeros(&[2, 8, 64]),
        "argument `x` has shape [2, 8, 64]; expected [batch, tokens, heads, head_dim]",
    ),
    (|args| args.x = zeros(&[2, 8, 4, 257]), "argument `x` has head_dim 257; expected 1 to 256"),
    (|args| args.x = zeros(&[2, 8, 4, 0]), "argument `x` has head_dim 0; expected 1 to 256"),
    (|args| args.x = zeros(&[2, 9, 4, 16]), "argument `dt` has shape [2, 8, 4]; expected [2, 9, 4]"),
    (|args| args.dt = zeros(&[2, 7, 4]), "argument `dt` has shape [2, 7, 4]; expected [2, 8, 4]"),
    (|args| args.dt = zeros(&[2, 8, 4, 1]), "argument `dt` has shape [2, 8, 4, 1]; expected [2, 8, 4]"),
    (|args| args.a = zeros(&[3]), "argument `a` has shape [3]; expected [4]"),
    (|args| args.a = zeros(&[4, 16]), "argument `a` has shape [4, 16]; expected [4]"),
    (
        |args| args.b = zeros(&[2, 8, 24]),
        "argument `b` has shape [2, 8, 24]; expected [batch, tokens, groups, state]",
    ),
    (
        |args| args.b = zeros(&[2, 8, 3, 12]),
        "argument `b` has 3 groups; expected a number of groups that divides the 4 heads",
    ),
    (
        |args| args.b = zeros(&[2, 8, 0, 12]),
        "argument `b` has 0 groups; expected a number of groups that divides the 4 heads",
    ),
    (|args| args.b = zeros(&[2, 8, 2, 300]), "argument `b` has state 300; expected 1 to 256"),
    (|args| args.b = zeros(&[2, 7, 2, 12]), "argument `b` has shape [2, 7, 2, 12]; expected [2, 8, 2, 12]"),
    (|args| args.c = zeros(&[2, 8, 1, 12]), "argument `c` has shape [2, 8, 1, 12]; expected [2, 8, 2, 12]"),
    (|args| args.dt_bias = zeros(&[1]), "argument `dt_bias` has shape [1]; expected [4]"),
    (
        |args| args.dt_limit = (0.5, 0.25),
        "argument `dt_limit` is (0.5, 0.25); expected a lower limit that is at most the upper one",
    ),
    (
        |args| args.dt_limit = (f32::NAN, 1.0),
        "argument `dt_limit` is (NaN, 1); expected a lower limit that is at most the upper one",
    ),
    (|args| args.d = zeros(&[16]), "argument `d` has shape [16]; expected [4] or [4, 16]"),
    (|args| args.d = zeros(&[1, 16]), "argument `d` has shape [1, 16]; expected [4] or [4, 16]"),
    (|args| args.z = zeros(&[2, 8, 4, 8]), "argument `z` has shape [2, 8, 4, 8]; expected [2, 8, 4, 16]"),
];

#[test]
fn inputs_are_checked_alike_by_passes_and_steps() {
    assert_eq!(Args::new().forward(), Ok(()));
    assert_eq!(Args::new().step(), Ok(()));
    for (change, expected) in INPUTS {
        let mut args = Args::new();
        change(&mut args);
        assert_eq!(args.forward(), Err(expected.into()));
        assert_eq!(args.step(), Err(expected.into()));
    }
}

#[test]
fn what_a_pass_alone_takes_is_checked() {
    let cpu = &Device::cpu();
    let faults: [(Change<'_>, &str); 9] = [
        (
            &|args| args.initial = zeros(&[2, 4, 12, 16]),
            "argument `initial_states` has shape [2, 4, 12, 16]; expected [2, 4, 16, 12]",
        ),
        (
            &|args| args.options.chunk = Some(0),
            "argument `chunk` is 0; expected a power of two from 16 to 256",
        ),
        (
            &|args| args.options.chunk = Some(8),
            "argument `chunk` is 8; expected a power of two from 16 to 256",
        ),
        (
            &|args| args.options.chunk = Some(48),
            "argument `chunk` is 48; expected a power of two from 16 to 256",
        ),
        (
            &|args| args.options.chunk = Some(512),
            "argument `chunk` is 512; expected a power of two from 16 to 256",
        ),
        (
            &|args| args.sequences = Some(Sequences::from_cu_seqlens(cpu, &[0, 3, 7]).unwrap()),
            "argument `sequences` describe 1 batch elements of 7 tokens; expected 2 of 8, as x has",
        ),
        (
            &|args| args.sequences = Some(Sequences::from_seq_idx(cpu, 2, 7, &[0; 14]).unwrap()),
            "argument `sequences` describe 2 batch elements of 7 tokens; expected 2 of 8, as x has",
        ),
        (
            &|args| args.sequences = Some(Sequences::from_seq_idx(cpu, 8, 2, &[0; 16]).unwrap()),
            "argument `sequences` describe 8 batch elements of 2 tokens; expected 2 of 8, as x has",
        ),
        (
            &|args| {
                *args = Args {
                    x: zeros(&[1, 8, 4, 16]),
                    dt: zeros(&[1, 8, 4]),
                    b: zeros(&[1, 8, 2, 12]),
                    c: zeros(&[1, 8, 2, 12]),
                    z: zeros(&[1, 8, 4, 16]),
                    initial: zeros(&[1, 4, 16, 12]),
                    sequences: Some(Sequences::from_cu_seqlens(cpu, &[0, 3, 8]).unwrap()),
                    ..Args::new()
                };
            },
            "argument `initial_states` has shape [1, 4, 16, 12]; expected [2, 4, 16, 12]",
        ),
    ];
    for (change, expected) in faults {
        let mut args = Args::new();
        change(&mut args);
        assert_eq!(args.forward(), Err(expected.into()));
    }
}

#[test]
fn tensors_elsewhere_are_named_with_both_devices() {
    let meta = |shape: &[usize]| Tensor::meta(shape).unwrap();
    let executor = Device::ptx_executor(&Target::SM_80);
    let changes: [(&str, Change<'_>); 10] = [
        ("dt", &|args| args.dt = meta(&[2, 8, 4])),
        ("a", &|args| args.a = meta(&[4])),
        ("b", &|args| args.b = meta(&[2, 8, 2, 12])),
        ("c", &|args| args.c = meta(&[2, 8, 2, 12])),
        ("dt_bias", &|args| args.dt_bias = meta(&[4])),
        ("d", &|args| args.d = meta(&[4, 16])),
        ("d", &|args| args.d = meta(&[4])),
        ("z", &|args| args.z = meta(&[2, 8, 4, 16])),
        ("initial_states", &|args| args.initial = meta(&[2, 4, 16, 12])),
        ("sequences", &|args| {
            args.sequences = Some(Sequences::from_seq_idx(&executor, 2, 8, &[0; 16]).unwrap());
        }),
    ];
    for (name, change) in changes {
        let mut args = Args::new();
        change(&mut args);
        let place = if name == "sequences" { "ptx:sm_80" } else { "meta" };
        let expected =
            format!("argument `{name}` is on {place}; expected cpu, where x is; copy it with `to_device`");
        assert_eq!(args.forward(), Err(expected));
    }
    // All on the meta device: there is nothing to compute with.
    let args = Args {
        x: meta(&[2, 8, 4, 16]),
        dt: meta(&[2, 8, 4]),
        a: meta(&[4]),
        b: meta(&[2, 8, 2, 12]),
        c: meta(&[2, 8, 2, 12]),
        dt_bias: meta(&[4]),
        d: meta(&[4]),
        z: meta(&[2, 8, 4, 16]),
        initial: meta(&[2, 4, 16, 12]),
        ..Args::new()
    };
    let error = args.forward().unwrap_err();
    assert!(error.contains("meta device"), "{error}");
}

#[test]
fn offsets_and_indices_are_checked_as_sequences_are_made() {
    let cpu = &Device::cpu();
    let offsets = |offsets: &[i64]| Sequences::from_cu_seqlens(cpu, offsets).unwrap_err().to_string();
    assert_eq!(
        offsets(&[]),
        "argument `cu_seqlens` is empty; expected one offset more than there are sequences, the first of them 0"
    );
    assert_eq!(offsets(&[1, 4]), "argument `cu_seqlens` begins with 1; expected 0 first");
    assert_eq!(offsets(&[-1, 4]), "argument `cu_seqlens` begins with -1; expected 0 first");
    assert_eq!(
        offsets(&[0, 5, 3, 8]),
        "argument `cu_seqlens` has 3 at 2 after 5; expected offsets that never decrease"
    );
    assert_eq!(
        offsets(&[0, 8, -8]),
        "argument `cu_seqlens` has -8 at 2 after 8; expected offsets that never decrease"
    );
    assert_eq!(
        offsets(&[0, 1 << 40]),
        "argument `sequences` has 1099511627776 tokens and 1 sequences; expected less than 2^31 of each"
    );
    let index = |batch, tokens, values: &[u8]| {
        Sequences::from_seq_idx(cpu, batch, tokens, values).unwrap_err().to_string()
    };
    assert_eq!(index(2, 8, &[0; 15]), "argument `seq_idx` has 15 values; expected [2, 8], one value a token");
    assert!(index(usize::MAX, 2, &[0; 4]).starts_with("argument `seq_idx` has 4 values; expected ["));
}

#[test]
fn rows_of_the_pool_are_checked() {
    let cpu = &Device::cpu();
    let fault = |rows, indices: &[i32]| Slots::new(cpu, rows, indices).unwrap_err().to_string();
    assert_eq!(
        fault(4, &[2, 4]),
        "argument `state_indices` has 4 at 1; expected a row of the pool, 0 to 3, or a negative value"
    );
    assert_eq!(
        fault(4, &[2, -1, 2]),
        "argument `state_indices` has 2 at 2; expected another row than element 0 has"
    );
    let mut slots = Slots::new(cpu, 4, &[2, -1]).unwrap();
    assert!(slots.update(&[1, 1]).is_err() && slots.update(&[0, 9]).is_err());
    assert!(slots.update(&[1]).is_err() && slots.update(&[1, 2, 3]).is_err());

    let args = Args::new();
    let run = |slots: &Slots, rows: usize| {
        let mut states = zeros(&[rows, 4, 16, 12]);
        let options = StepOptions { slots: Some(slots), ..StepOptions::default() };
        step(&args.bare(), &mut states, &options).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(run(&slots, 4), Ok(()));
    assert_eq!(
        run(&slots, 5),
        Err("argument `states` has shape [5, 4, 16, 12]; expected [4, 4, 16, 12]".into())
    );
    let three = Slots::new(cpu, 4, &[0, 1, 2]).unwrap();
    assert_eq!(
        run(&three, 4),
        Err("argument `state_indices` has 3 values; expected 2, one a batch element".into())
    );
    let executor = Device::ptx_executor(&Target::SM_80);
    let elsewhere = Slots::new(&executor, 4, &[0, 1]).unwrap();
    assert!(run(&elsewhere, 4).unwrap_err().starts_with("argument `state_indices` is on ptx:sm_80"));
}

#[test]
fn what_a_step_does_not_take_is_refused() {
    let args = Args::new();
    let mut states = zeros(&[2, 4, 16, 12]);
    let options = StepOptions::default();
    let error = step(&args.inputs(), &mut states, &options).unwrap_err().to_string();
    assert_eq!(
        error,
        "argument `initial_states` are given; expected none: the states of a step are its argument `states`"
    );
    let sequences = Sequences::from_seq_idx(&Device::cpu(), 2, 8, &[0; 16]).unwrap();
    let error = step(&args.bare().sequences(&sequences), &mut states, &options).unwrap_err().to_string();
    assert_eq!(
        error,
        "argument `sequences` are given; expected none: the tokens of a step are one sequence a batch element"
    );
    let mut y = zeros(&[2, 8, 4, 15]);
    let error = step_into(&args.bare(), &mut states, &options, &mut y).unwrap_err().to_string();
    assert_eq!(error, "argument `y` has shape [2, 8, 4, 15]; expected [2, 8, 4, 16]");
    // States that are x itself: a launch refuses what it writes and reads at once.
    let x = zeros(&[2, 2, 16, 12]);
    let mut shared = x.with_strides(&[2, 2, 12, 16], &[384, 192, 16, 1], 0).unwrap();
    let (dt, a, b) = (zeros(&[2, 2, 16]), zeros(&[16]), zeros(&[2, 2, 16, 12]));
    let inputs = Inputs::<f32>::new(&x, &dt, &a, &b, &b);
    assert!(step(&inputs, &mut shared, &options).is_err());
}

#[test]
fn outputs_and_workspaces_are_checked() {
    let args = Args::new();
    let outputs =
        || Outputs { y: zeros(&[2, 8, 4, 16]), final_states: zeros(&[2, 4, 16, 12]), sequence_states: None };
    let run = |mut outputs: Outputs<f32>, mut workspace: Workspace<f32>| {
        let result = forward_into(&args.inputs(), &Options::default(), &mut outputs, &mut workspace);
        result.map_err(|error| error.to_string())
    };
    let cpu = || Workspace::new(&Device::cpu());
    assert_eq!(run(outputs(), cpu()), Ok(()));
    assert_eq!(
        run(Outputs { y: zeros(&[2, 8, 4, 8]), ..outputs() }, cpu()),
        Err("argument `outputs.y` has shape [2, 8, 4, 8]; expected [2, 8, 4, 16]".into())
    );
    assert_eq!(
        run(Outputs { final_states: zeros(&[1, 4, 16, 12]), ..outputs() }, cpu()),
        Err("argument `outputs.final_states` has shape [1, 4, 16, 12]; expected [2, 4, 16, 12]".into())
    );
    assert_eq!(
        run(Outputs { sequence_states: Some(zeros(&[2, 4, 16, 12])), ..outputs() }, cpu()),
        Err("argument `outputs.sequence_states` is given; expected none, without sequences by offsets".into())
    );
    assert_eq!(
        run(outputs(), Workspace::new(&Device::ptx_executor(&Target::SM_80))),
        Err("argument `workspace` is on ptx:sm_80; expected cpu, where x is".into())
    );
    // Sequences by offsets have states of their own.
    let (x, dt, b) = (zeros(&[1, 8, 4, 16]), zeros(&[1, 8, 4]), zeros(&[1, 8, 2, 12]));
    let sequences = Sequences::from_cu_seqlens(&Device::cpu(), &[0, 3, 8]).unwrap();
    let inputs = Inputs::<f32>::new(&x, &dt, &args.a, &b, &b).sequences(&sequences);
    let mut single = Outputs { y: x.clone(), final_states: zeros(&[1, 4, 16, 12]), sequence_states: None };
    let error = forward_into(&inputs, &Options::default(), &mut single, &mut cpu()).unwrap_err().to_string();
    assert_eq!(
        error,
        "argument `outputs.sequence_states` is absent; expected [2, 4, 16, 12], one a sequence"
    );
}

#[test]
fn channels_that_cannot_be_read_backwards_are_no_view() {
    let stored = zeros(&[2 * 8 * 4 * 16]);
    let strides = [512, 64, 16, -1];
    assert!(stored.with_strides(&[2, 8, 4, 16], &strides, 15).is_ok());
    let error = stored.with_strides(&[2, 8, 4, 16], &strides, 14).unwrap_err().to_string();
    assert!(error.contains("reaches element -1"), "{error}");
}

#[test]
fn a_target_that_the_device_does_not_run_is_refused() {
    let executor = Device::ptx_executor(&Target::SM_80);
    let on = |shape: &[usize]| Tensor::zeros(&executor, shape).unwrap();
    let (x, dt, a, b) = (on(&[1, 4, 1, 16]), on(&[1, 4, 1]), on(&[1]), on(&[1, 4, 1, 16]));
    let inputs = Inputs::<f32>::new(&x, &dt, &a, &b, &b);
    let options = Options { target: Some(Target::SM_90A), ..Options::default() };
    let error = forward(&inputs, &options).map(drop).unwrap_err().to_string();
    assert!(error.contains("sm_90a") && error.contains("ptx:sm_80"), "{error}");
    let mut states = on(&[1, 1, 16, 16]);
    let options = StepOptions { target: Some(Target::SM_90A), ..StepOptions::default() };
    let error = step(&inputs, &mut states, &options).map(drop).unwrap_err().to_string();
    assert!(error.contains("sm_90a") && error.contains("ptx:sm_80"), "{error}");
}
