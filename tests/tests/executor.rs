//! Every kernel with a PTX snapshot runs on the PTX executor: on 8 schedules, without a report, as on the CPU.

use half::{bf16, f16};
use mamba2::case::{Case, Dtype, Skip};
use mamba2::problem::Shape;
use mamba2::tolerance::{self, relative_l2};
use mamba2::{Inputs, Options, Value, inputs};
use tile_runtime::prelude::*;
use tile_runtime::testing::{Tolerance, compare, devices};
use tile_tests::held::Held;
use tile_tests::input::{Fill, View, tensor};
use tile_tests::small::{SEED, add, padded, product, running_sum, softmax, transpose_tiles};

/// Launches what has the PTX of the snapshot, though its tensors are smaller.
fn run(launch: Launch<'_>, snapshot: Launch<'_>, grid: impl Into<Grid>) -> Result<()> {
    assert!(launch.ptx(&Target::SM_80)? == snapshot.ptx(&Target::SM_80)?, "{launch:?} has other code");
    launch.launch(grid)
}

fn meta<T: HostElement>(shape: &[usize]) -> DeviceTensor<T> {
    DeviceTensor::meta(shape).expect("a small shape")
}

/// A row-major input and its values in f64.
fn input<T: Held + Into<f64>>(device: &Device, shape: &[usize], seed: u64) -> Result<DeviceTensor<T>> {
    Ok(tensor(device, shape, View::Plain, Fill::Between(-2.0, 2.0), seed)?.1)
}

fn host<T: Held + Into<f64>>(shape: &[usize], seed: u64) -> Vec<f64> {
    let values = input::<T>(&Device::cpu(), shape, seed).and_then(|tensor| tensor.to_vec());
    values.expect("on the CPU").into_iter().map(Into::into).collect()
}

#[test]
fn add_runs() -> Result<()> {
    let shape = [4096];
    let want: Vec<f64> =
        host::<f32>(&shape, 1).iter().zip(host::<f32>(&shape, 2)).map(|(x, y)| x + y).collect();
    // Multiples of 1/1024 below 4: the sums are exact.
    compare(Tolerance::EXACT, &want, |device| {
        let (x, y) = (input::<f32>(device, &shape, 1)?, input::<f32>(device, &shape, 2)?);
        let mut out = DeviceTensor::<f32>::zeros(device, &shape)?;
        let (large, mut large_out) = (meta(&[1 << 20]), meta(&[1 << 20]));
        run(add(&x, &y, &mut out), add(&large, &large, &mut large_out), 4)?;
        out.to_vec()
    })
}

#[test]
fn softmax_runs() -> Result<()> {
    let shape = [16, 1000];
    let mut want = host::<f32>(&shape, 3);
    for row in want.chunks_mut(1000) {
        let sum: f64 = row.iter().map(|x| x.exp()).sum();
        row.iter_mut().for_each(|x| *x = x.exp() / sum);
    }
    // The exponential 2e-6, the sum of 1000 terms and the quotient some roundings of 6e-8.
    compare(Tolerance { relative: 4e-6, absolute: 0.0 }, &want, |device| {
        let x = input::<f32>(device, &shape, 3)?;
        let mut out = DeviceTensor::<f32>::zeros(device, &shape)?;
        run(softmax(&x, &mut out), softmax(&meta(&[4096, 1000]), &mut meta(&[4096, 1000])), 4)?;
        out.to_vec()
    })
}

#[test]
fn running_sum_runs() -> Result<()> {
    let shape = [16, 512];
    let mut want = host::<f32>(&shape, 4);
    for row in want.chunks_mut(512) {
        row.iter_mut().fold(0.0, |sum, x| {
            *x += sum;
            *x
        });
    }
    // Multiples of 1/1024 below 1024: every sum is exact in any order.
    compare(Tolerance::EXACT, &want, |device| {
        let x = input::<f32>(device, &shape, 4)?;
        let mut out = DeviceTensor::<f32>::zeros(device, &shape)?;
        run(running_sum(&x, &mut out), running_sum(&meta(&[4096, 512]), &mut meta(&[4096, 512])), 4)?;
        out.to_vec()
    })
}

#[test]
fn product_runs() -> Result<()> {
    let (m, k, n) = (64, 192, 128);
    let (x, y) = (host::<bf16>(&[m, k], 5), host::<bf16>(&[k, n], 6));
    let want: Vec<f64> =
        (0..m * n).map(|at| (0..k).map(|i| x[at / n * k + i] * y[i * n + at % n]).sum()).collect();
    // 192 sums of f32, each below 768 and rounded by at most 2^-23 of it where tensor cores truncate.
    compare(Tolerance { relative: 0.0, absolute: 192.0 * 768.0 / 8_388_608.0 }, &want, |device| {
        let (x, y) = (input::<bf16>(device, &[m, k], 5)?, input::<bf16>(device, &[k, n], 6)?);
        let mut out = DeviceTensor::<f32>::zeros(device, &[m, n])?;
        let large = meta(&[4096, 4096]);
        run(product(&x, &y, &mut out), product(&large, &large, &mut meta(&[4096, 4096])), (2, 1))?;
        out.to_vec()
    })
}

#[test]
fn transpose_runs() -> Result<()> {
    let (rows, columns) = (64, 128);
    let x = host::<bf16>(&[rows, columns], 7);
    let want: Vec<f64> = (0..rows * columns).map(|at| x[at % rows * columns + at / rows]).collect();
    compare(Tolerance::EXACT, &want, |device| {
        let x = input::<bf16>(device, &[rows, columns], 7)?;
        let mut out = DeviceTensor::<bf16>::zeros(device, &[columns, rows])?;
        run(
            transpose_tiles(&x, &mut out),
            transpose_tiles(&meta(&[4096, 4096]), &mut meta(&[4096, 4096])),
            (2, 1),
        )?;
        out.to_vec()
    })
}

#[test]
fn padded_runs() -> Result<()> {
    let x = host::<f16>(&[40, 50], 8);
    let largest = |row: &[f64]| row.iter().fold(-1.5, |most: f64, &x| most.max(x));
    let want: Vec<f64> = x.chunks(50).map(largest).collect();
    compare(Tolerance::EXACT, &want, |device| {
        let x = input::<f16>(device, &[40, 50], 8)?;
        let mut out = DeviceTensor::<f16>::zeros(device, &[40])?;
        run(padded(&x, &mut out), padded(&meta(&[1000, 50]), &mut meta(&[1000])), 3)?;
        out.to_vec()
    })
}

/// A chunk and a ragged one, with the facts and block sizes of the snapshots.
const SMALL: Shape = Shape { tokens: 144, batch: 1, ..SEED };
/// For f32, whose products are FMAs, one head, as only the kernel of the states has a snapshot.
const ONE_HEAD: Shape = Shape { heads: 1, ..SMALL };

fn forward<T: Value>(device: &Device, case: &Case, of: fn(f32) -> T) -> (Vec<T>, Vec<f32>) {
    let Shape { batch, tokens, groups, heads, head_dim, state } = case.shape;
    let floats = |shape: &[usize], values: &[f32]| {
        DeviceTensor::from_slice(device, shape, values).expect("values of the shape")
    };
    let values = |shape: &[usize], values: &[f32]| {
        let values: Vec<T> = values.iter().map(|&x| of(x)).collect();
        DeviceTensor::from_slice(device, shape, &values).expect("values of the shape")
    };
    let d = match &case.d {
        Some(Skip::PerHead(d)) => Some(floats(&[heads], d)),
        _ => None,
    };
    let inputs = Inputs {
        x: &values(&[batch, tokens, heads, head_dim], &case.x),
        dt: &floats(&[batch, tokens, heads], &case.dt),
        a: &floats(&[heads], &case.a),
        b: &values(&[batch, tokens, groups, state], &case.b),
        c: &values(&[batch, tokens, groups, state], &case.c),
        d: d.as_ref(),
        initial_states: None,
    };
    let out =
        mamba2::forward(&inputs, &Options::default()).unwrap_or_else(|error| panic!("{device}: {error}"));
    (out.y.to_vec().expect("y"), out.final_states.to_vec().expect("states"))
}

fn forward_runs<T: Value + Into<f64>>(shape: Shape, kernels: &[&str], dtype: Dtype, of: fn(f32) -> T) {
    for kernel in kernels {
        let ptx = |shape| mamba2::show(kernel, "sm_80", "ptx", shape, dtype, None).expect("it compiles");
        assert!(ptx(shape) == ptx(SEED), "{kernel} has the code of the snapshot");
    }
    let case = inputs::generate(shape, dtype, 1);
    let [cpu, executor] = devices();
    let (found, expected) = (forward(&executor, &case, of), forward(&cpu, &case, of));
    let limits = tolerance::forward(dtype, None);
    let (y, state) = (relative_l2(&found.0, &expected.0), relative_l2(&found.1, &expected.1));
    println!("{dtype}: y {y:e}, state {state:e}\n{}", executor.executor_counts().expect("an executor"));
    assert!(y <= limits.y && state <= limits.state, "y {y:e}, state {state:e}, limits {limits:?}");
}

#[test]
fn mamba2_in_bf16_runs() {
    forward_runs(SMALL, &mamba2::KERNELS, Dtype::BF16, bf16::from_f32);
}

#[test]
fn mamba2_in_f32_runs() {
    forward_runs(ONE_HEAD, &["fwd_pass_state"], Dtype::F32, |x| x);
}
