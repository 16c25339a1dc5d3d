//! The forward pass over tensors that reach beyond 2^31 elements, on a GPU. It says "skipped" where there is no device, or not
//! enough memory.

use std::sync::{Mutex, PoisonError};

use half::bf16;
use mamba2::Inputs;
use mamba2::case::Dtype;
use mamba2::inputs::generate;
use mamba2::tolerance::{forward, relative_l2};
use tile_runtime::{Device, DeviceTensor, Target, target_of};
use tile_tests::ssd::bench::{Bench, shape};

/// One test at a time has the memory.
static MEMORY: Mutex<()> = Mutex::new(());

/// A bench for each target, on a GPU with so many bytes free.
fn benches(needed: usize) -> Vec<Bench> {
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => {
            println!("skipped: no device ({error})");
            return Vec::new();
        }
    };
    let free = device.memory_info().expect("a working device").map_or(0, |(free, _)| free);
    if free < needed {
        println!("skipped: {free} of {needed} bytes are free on {}", device.name());
        return Vec::new();
    }
    let own = target_of(&device).filter(|own| *own != Target::SM_80);
    let targets = [Some(Target::SM_80), own].into_iter().flatten();
    targets.map(|target| Bench { device: device.clone(), target: Some(target) }).collect()
}

fn halves(values: &[f32]) -> Vec<bf16> {
    values.iter().map(|&value| bf16::from_f32(value)).collect()
}

fn floats(tensor: &DeviceTensor<bf16>) -> Vec<f32> {
    tensor.to_vec().expect("values").into_iter().map(bf16::to_f32).collect()
}

/// dt in rows 2^24 + 1 elements apart, with NaN between them: bit for bit as from a contiguous copy.
#[test]
fn steps_in_rows_far_apart_equal_their_copy() {
    const STRIDE: usize = (1 << 24) + 1;
    let _held = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let size = shape(1, 130, 1, 16, 16, 1);
    let length = 129 * STRIDE + 1;
    for bench in benches(2 * length + (1 << 30)) {
        let case = generate(size, Dtype::BF16, 17);
        let on = |shape: &[usize], values: &[f32]| bench.tensor(shape, &halves(values));
        let (x, dt) = (on(&[1, 130, 1, 16], &case.x), on(&[1, 130, 1], &case.dt));
        let (b, c) = (on(&[1, 130, 1, 16], &case.b), on(&[1, 130, 1, 16], &case.c));
        let a = bench.tensor(&[1], &case.a);
        let table = DeviceTensor::<bf16>::uninit(&bench.device, &[length]).expect("enough memory");
        table.fill(bf16::NAN).expect("a fill");
        for (row, &value) in halves(&case.dt).iter().enumerate() {
            let place = table.slice(0, row * STRIDE..row * STRIDE + 1).expect("inside of the table");
            place.copy_from_slice(&[value]).expect("a copy");
        }
        let far = table.with_strides(&[1, 130, 1], &[(130 * STRIDE) as i64, STRIDE as i64, 1], 0);
        let far = far.expect("inside of the table");
        let run = |dt: &DeviceTensor<bf16>| {
            let inputs: Inputs<'_, bf16, bf16> = Inputs::new(&x, dt, &a, &b, &c);
            let out = mamba2::forward(&inputs, &bench.options(64)).expect("a pass");
            let mut states = DeviceTensor::<f32>::zeros(&bench.device, &[1, 1, 16, 16]).expect("states");
            let step = mamba2::step(&inputs, &mut states, &bench.step_options()).expect("a step");
            let states = [out.final_states, states].map(|states| states.to_vec().expect("values"));
            (floats(&out.y), floats(&step), states)
        };
        let found = run(&far);
        assert!(found.0.iter().all(|y| y.is_finite()) && found.0.iter().any(|&y| y != 0.0));
        assert!(found == run(&dt), "other bits than from a copy");
    }
}

/// x and y of more than 2^31 elements: the last tokens are those of a pass that goes on from the state before them.
#[test]
fn tokens_beyond_two_to_the_31_elements_are_computed() {
    const TOKENS: usize = 65_600;
    const START: usize = 65_536;
    const HEADS: usize = 512;
    let _held = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    // x and two times y in bf16; states of chunks and step sizes are a tenth of that.
    for bench in benches(3 * 2 * TOKENS * HEADS * 64 + (4 << 30)) {
        let small = generate(shape(1, TOKENS, HEADS, 1, 16, 1), Dtype::BF16, 18);
        let tail = generate(shape(1, TOKENS - START, HEADS, 64, 16, 1), Dtype::BF16, 19);
        let x = DeviceTensor::<bf16>::uninit(&bench.device, &[1, TOKENS, HEADS, 64]).expect("enough memory");
        x.fill(bf16::from_f32(0.5)).expect("a fill");
        let last = x.slice(1, START..TOKENS).expect("a range of tokens");
        last.copy_from_slice(&halves(&tail.x)).expect("a copy");
        let dt = bench.tensor(&[1, TOKENS, HEADS], &small.dt);
        let a = bench.tensor(&[HEADS], &small.a);
        let b = bench.tensor(&[1, TOKENS, 1, 16], &halves(&small.b));
        let c = bench.tensor(&[1, TOKENS, 1, 16], &halves(&small.c));
        let run = |range: std::ops::Range<usize>, initial: Option<&DeviceTensor<f32>>| {
            let part =
                |tensor: &DeviceTensor<bf16>| tensor.slice(1, range.clone()).expect("a range of tokens");
            let (x, b, c) = (part(&x), part(&b), part(&c));
            let dt = dt.slice(1, range.clone()).expect("a range of tokens");
            let mut inputs: Inputs<'_, bf16> = Inputs::new(&x, &dt, &a, &b, &c);
            if let Some(initial) = initial {
                inputs = inputs.initial_states(initial);
            }
            let out = mamba2::forward(&inputs, &bench.options(128)).expect("a pass");
            let from = START.saturating_sub(range.start).min(out.y.shape()[1]);
            let y = out.y.slice(1, from..out.y.shape()[1]).expect("the last tokens");
            (floats(&y), out.final_states)
        };
        let (y, states) = run(0..TOKENS, None);
        let (_, before) = run(0..START, None);
        let (right, right_states) = run(START..TOKENS, Some(&before));
        assert!(right.iter().any(|&y| y != 0.0));
        let limits = forward(Dtype::BF16, None);
        let y = relative_l2(&y, &right);
        let states = [states, right_states].map(|states| states.to_vec().expect("values"));
        let state = relative_l2(&states[0], &states[1]);
        println!("y {y:e}, state {state:e}");
        assert!(y <= limits.y && state <= limits.state, "y {y:e}, state {state:e}");
    }
}
