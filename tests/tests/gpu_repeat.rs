//! The forward pass on a GPU gives the same bits in every run. It says "skipped: no device" where there is none.

use half::bf16;
use mamba2::case::{Dtype, Skip};
use mamba2::inputs::generate;
use mamba2::problem::Shape;
use mamba2::{Inputs, Options, forward};
use tile_runtime::{Device, DeviceTensor};

/// Runs that must agree.
const RUNS: usize = 50;

/// Ragged tokens, several groups; enough blocks that the order in which they run differs from run to run.
const SHAPES: [Shape; 2] = [
    Shape { batch: 3, tokens: 1000, groups: 2, heads: 24, head_dim: 64, state: 128 },
    Shape { batch: 2, tokens: 777, groups: 1, heads: 16, head_dim: 50, state: 20 },
];

/// The bits of y and of the final states after each run.
fn runs(device: &Device, shape: Shape) -> tile_runtime::Result<Vec<(Vec<u16>, Vec<u32>)>> {
    let Shape { batch, tokens, groups, heads, head_dim, state } = shape;
    let case = generate(shape, Dtype::BF16, 1);
    let floats = |shape: &[usize], values: &[f32]| DeviceTensor::from_slice(device, shape, values);
    let values = |shape: &[usize], values: &[f32]| {
        let values: Vec<bf16> = values.iter().map(|&x| bf16::from_f32(x)).collect();
        DeviceTensor::from_slice(device, shape, &values)
    };
    let x = values(&[batch, tokens, heads, head_dim], &case.x)?;
    let b = values(&[batch, tokens, groups, state], &case.b)?;
    let c = values(&[batch, tokens, groups, state], &case.c)?;
    let (dt, a) = (floats(&[batch, tokens, heads], &case.dt)?, floats(&[heads], &case.a)?);
    let d = match &case.d {
        Some(Skip::PerHead(d)) => Some(floats(&[heads], d)?),
        Some(Skip::PerDim(_)) | None => None,
    };
    let inputs = Inputs { x: &x, dt: &dt, a: &a, b: &b, c: &c, d: d.as_ref(), initial_states: None };
    let mut all = Vec::new();
    for _ in 0..RUNS {
        let outputs = forward(&inputs, &Options::default()).expect("the arguments fit");
        let y = outputs.y.to_vec()?.into_iter().map(bf16::to_bits).collect();
        all.push((y, outputs.final_states.to_vec()?.into_iter().map(f32::to_bits).collect()));
    }
    Ok(all)
}

#[test]
fn fifty_runs_give_the_same_bits() {
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => {
            println!("skipped: no device ({error})");
            return;
        }
    };
    for shape in SHAPES {
        let all = runs(&device, shape).expect("the device works");
        let first = &all[0];
        assert!(first.0.iter().any(|&bits| bits != 0), "{shape:?}: y is zero");
        for (run, other) in all.iter().enumerate() {
            assert!(other == first, "{shape:?}: run {run} differs from the first");
        }
    }
}
