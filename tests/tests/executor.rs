//! Every kernel with a PTX snapshot runs on the PTX executor: on 8 schedules, without a report, as on the CPU.

use std::cell::RefCell;
use std::path::Path;

use half::{bf16, f16};
use mamba2::case::{Case, Dtype};
use mamba2::problem::Shape;
use mamba2::tolerance::{self, relative_l2};
use mamba2::{Options, inputs, resident};
use tile_runtime::prelude::*;
use tile_runtime::testing::{Tolerance, compare_on};
use tile_runtime::{DeviceKind, ExecutorOptions};
use tile_tests::held::Held;
use tile_tests::input::{Fill, View, tensor};
use tile_tests::small::{
    SEED, add, compact, four_taps, histogram, move_rows, padded, product, running_sum, softmax, total,
    transpose_tiles,
};

/// Schedules that every launch runs on.
const SEEDS: u64 = 8;
const TARGETS: [Target; 2] = [Target::SM_80, Target::SM_90A];

fn executor(target: &Target, seeds: u64) -> Device {
    executor_of(target, (0..seeds).collect())
}

fn executor_of(target: &Target, seeds: Vec<u64>) -> Device {
    let options = ExecutorOptions { seeds, ..ExecutorOptions::default() };
    Device::ptx_executor_with(target, options)
}

/// The PTX that has run on an executor.
#[derive(Default)]
struct Ran(RefCell<Vec<String>>);

impl Ran {
    /// Launches what has the PTX of the snapshot on each target, though its tensors are smaller.
    fn launch(
        &self,
        device: &Device,
        launch: Launch<'_>,
        snapshot: Launch<'_>,
        grid: impl Into<Grid>,
    ) -> Result<()> {
        launch.launch(grid)?;
        if let DeviceKind::PtxExecutor { target } = device.kind() {
            let ptx = launch.ptx(&target)?;
            assert!(ptx == snapshot.ptx(&target)?, "{launch:?} has other code for {target:?}");
            self.0.borrow_mut().push(ptx);
        }
        Ok(())
    }
}

/// The CPU, and an executor for each target.
fn compare<T: Copy + Into<f64>>(
    tolerance: Tolerance,
    want: &[f64],
    run: impl Fn(&Device) -> Result<Vec<T>>,
) -> Result<()> {
    let executors = TARGETS.iter().map(|target| executor(target, SEEDS));
    compare_on(&executors.chain([Device::cpu()]).collect::<Vec<_>>(), tolerance, want, run)
}

/// As [`compare`], for kernels of which every schedule may leave other memory.
fn compare_each<T: Copy + Into<f64>>(want: &[f64], run: impl Fn(&Device) -> Result<Vec<T>>) -> Result<()> {
    let executors = TARGETS.iter().flat_map(|target| (0..SEEDS).map(|seed| executor_of(target, vec![seed])));
    compare_on(&executors.chain([Device::cpu()]).collect::<Vec<_>>(), Tolerance::EXACT, want, run)
}

fn snapshots() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots")
}

/// A snapshot without insta's header.
fn snapshot(name: &str) -> String {
    let path = snapshots().join(format!("snapshots__{name}.snap"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.splitn(3, "---\n").nth(2).expect("a header between two lines of ---").to_string()
}

/// A test for each line: what is run, and the snapshots among it.
macro_rules! runs {
    ($($test:ident: $body:expr, $($name:literal)+;)*) => {
        $(#[test]
        fn $test() -> Result<()> {
            let ran = Ran::default();
            $body(&ran)?;
            for name in [$($name),+] {
                let right = snapshot(name);
                let found = ran.0.borrow().iter().any(|ptx| ptx.trim_end() == right.trim_end());
                assert!(found, "{name} has not run");
            }
            Ok(())
        })*
        /// The snapshots that the tests run.
        const RUN: &[&str] = &[$($($name),+),*];
    };
}
runs! {
    add_runs: sums, "add_ptx";
    softmax_runs: softmaxes, "softmax_ptx";
    running_sum_runs: running_sums, "running_sum_ptx";
    product_runs: products, "product_ptx" "product_sm_90a_ptx";
    transpose_runs: transposes, "transpose_ptx";
    padded_runs: paddings, "padded_ptx";
    windows_run: taps, "four_taps_ptx" "four_taps_sm_90a_ptx";
    rows_run: rows, "move_rows_ptx" "move_rows_sm_90a_ptx";
    histograms_run: histograms, "histogram_ptx" "histogram_sm_90a_ptx";
    compactions_run: compactions, "compact_ptx" "compact_sm_90a_ptx";
    totals_run: totals, "total_ptx" "total_sm_90a_ptx";
    mamba2_in_bf16_runs: mamba2_in_bf16, "chunk_cumsum_bf16_ptx" "fwd_pass_state_bf16_ptx" "compute_out_bf16_ptx"
        "fwd_pass_state_bf16_sm_90a_ptx" "compute_out_bf16_sm_90a_ptx";
    mamba2_in_f32_runs: mamba2_in_f32, "fwd_pass_state_f32_ptx";
}

#[test]
fn every_snapshot_of_ptx_runs() {
    let mut found = 0;
    for entry in std::fs::read_dir(snapshots()).expect("the folder of the snapshots") {
        let file = entry.expect("a file").file_name().into_string().expect("names are ASCII");
        let name = file.strip_prefix("snapshots__").and_then(|name| name.strip_suffix(".snap"));
        let Some(name) = name.filter(|name| snapshot(name).starts_with(".version ")) else { continue };
        assert!(RUN.contains(&name), "no test here runs {name}");
        found += 1;
    }
    assert_eq!(found, RUN.len(), "snapshots that a test runs, but that do not exist");
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

fn sums(ran: &Ran) -> Result<()> {
    let shape = [4096];
    let want: Vec<f64> =
        host::<f32>(&shape, 1).iter().zip(host::<f32>(&shape, 2)).map(|(x, y)| x + y).collect();
    // Multiples of 1/1024 below 4: the sums are exact.
    compare(Tolerance::EXACT, &want, |device| {
        let (x, y) = (input::<f32>(device, &shape, 1)?, input::<f32>(device, &shape, 2)?);
        let mut out = DeviceTensor::<f32>::zeros(device, &shape)?;
        let (large, mut large_out) = (meta(&[1 << 20]), meta(&[1 << 20]));
        ran.launch(device, add(&x, &y, &mut out), add(&large, &large, &mut large_out), 4)?;
        out.to_vec()
    })
}

fn softmaxes(ran: &Ran) -> Result<()> {
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
        ran.launch(
            device,
            softmax(&x, &mut out),
            softmax(&meta(&[4096, 1000]), &mut meta(&[4096, 1000])),
            4,
        )?;
        out.to_vec()
    })
}

fn running_sums(ran: &Ran) -> Result<()> {
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
        ran.launch(
            device,
            running_sum(&x, &mut out),
            running_sum(&meta(&[4096, 512]), &mut meta(&[4096, 512])),
            4,
        )?;
        out.to_vec()
    })
}

fn products(ran: &Ran) -> Result<()> {
    let (m, k, n) = (64, 192, 128);
    let (x, y) = (host::<bf16>(&[m, k], 5), host::<bf16>(&[k, n], 6));
    let want: Vec<f64> =
        (0..m * n).map(|at| (0..k).map(|i| x[at / n * k + i] * y[i * n + at % n]).sum()).collect();
    // 192 sums of f32, each below 768 and rounded by at most 2^-23 of it where tensor cores truncate.
    compare(Tolerance { relative: 0.0, absolute: 192.0 * 768.0 / 8_388_608.0 }, &want, |device| {
        let (x, y) = (input::<bf16>(device, &[m, k], 5)?, input::<bf16>(device, &[k, n], 6)?);
        let mut out = DeviceTensor::<f32>::zeros(device, &[m, n])?;
        let large = meta(&[4096, 4096]);
        ran.launch(device, product(&x, &y, &mut out), product(&large, &large, &mut meta(&[4096, 4096])), 2)?;
        out.to_vec()
    })
}

fn transposes(ran: &Ran) -> Result<()> {
    let (rows, columns) = (64, 128);
    let x = host::<bf16>(&[rows, columns], 7);
    let want: Vec<f64> = (0..rows * columns).map(|at| x[at % rows * columns + at / rows]).collect();
    compare(Tolerance::EXACT, &want, |device| {
        let x = input::<bf16>(device, &[rows, columns], 7)?;
        let mut out = DeviceTensor::<bf16>::zeros(device, &[columns, rows])?;
        ran.launch(
            device,
            transpose_tiles(&x, &mut out),
            transpose_tiles(&meta(&[4096, 4096]), &mut meta(&[4096, 4096])),
            2,
        )?;
        out.to_vec()
    })
}

fn paddings(ran: &Ran) -> Result<()> {
    let x = host::<f16>(&[40, 50], 8);
    let largest = |row: &[f64]| row.iter().fold(-1.5, |most: f64, &x| most.max(x));
    let want: Vec<f64> = x.chunks(50).map(largest).collect();
    compare(Tolerance::EXACT, &want, |device| {
        let x = input::<f16>(device, &[40, 50], 8)?;
        let mut out = DeviceTensor::<f16>::zeros(device, &[40])?;
        ran.launch(device, padded(&x, &mut out), padded(&meta(&[1000, 50]), &mut meta(&[1000])), 3)?;
        out.to_vec()
    })
}

fn taps(ran: &Ran) -> Result<()> {
    let shape @ [_, tokens, channels] = [2, 80, 64];
    let (x, weights) = (host::<bf16>(&shape, 9), host::<f32>(&[4, channels], 10));
    let tap = |at: usize, tap: usize| {
        let token = (at / channels % tokens + tap).checked_sub(3);
        token.map_or(0.0, |_| x[at + tap * channels - 3 * channels] * weights[tap * channels + at % channels])
    };
    // Products and sums of four are multiples of 2^-20 of at most 24 bits: they are rounded once, to bf16.
    let sums = (0..x.len()).map(|at| (0..4).map(|i| tap(at, i)).sum());
    let want: Vec<f64> = sums.map(|sum: f64| bf16::from_f64(sum).into()).collect();
    compare(Tolerance::EXACT, &want, |device| {
        let (x, weights) = (input::<bf16>(device, &shape, 9)?, input::<f32>(device, &[4, channels], 10)?);
        let mut out = DeviceTensor::<bf16>::zeros(device, &shape)?;
        let (large, large_weights) = (meta(&[2, 2048, 256]), meta(&[4, 256]));
        ran.launch(
            device,
            four_taps(&x, &weights, &mut out),
            four_taps(&large, &large_weights, &mut meta(&[2, 2048, 256])),
            (2, 2, 2),
        )?;
        out.to_vec()
    })
}

fn rows(ran: &Ran) -> Result<()> {
    // Row `3 i mod 24` to row `5 i mod 48`, but for one that is none and two that go nowhere.
    let from: Vec<i32> = (0..20).map(|i| if i == 4 { -1 } else { 3 * i % 24 }).collect();
    let to: Vec<i32> = (0..20)
        .map(|i| {
            if i == 7 {
                48
            } else if i == 9 {
                -2
            } else {
                5 * i % 48
            }
        })
        .collect();
    let table = host::<f32>(&[24, 64], 11);
    let mut want = vec![0.0; 48 * 64];
    for (&from, &to) in from.iter().zip(&to).filter(|&(&from, &to)| from >= 0 && (0..48).contains(&to)) {
        let (from, to) = (from as usize * 64, to as usize * 64);
        want[to..to + 64].copy_from_slice(&table[from..from + 64]);
    }
    compare(Tolerance::EXACT, &want, |device| {
        let table = input::<f32>(device, &[24, 64], 11)?;
        let (from, to) =
            (DeviceTensor::from_slice(device, &[20], &from)?, DeviceTensor::from_slice(device, &[20], &to)?);
        let mut pool = DeviceTensor::<f32>::zeros(device, &[48, 64])?;
        let (large, list) = (meta(&[1000, 64]), meta(&[500]));
        ran.launch(
            device,
            move_rows(&table, &from, &to, &mut pool),
            move_rows(&large, &list, &list, &mut meta(&[800, 64])),
            2,
        )?;
        pool.to_vec()
    })
}

fn histograms(ran: &Ran) -> Result<()> {
    // Numbers from -1 to 260, of which 0 to 255 are counted.
    let x: Vec<i32> = (0..2048).map(|i| i * i % 262 - 1).collect();
    let count = |number: i32| x.iter().filter(|&&x| x == number).count() as f64;
    let want: Vec<f64> = (0..256).map(count).collect();
    compare(Tolerance::EXACT, &want, |device| {
        let x = DeviceTensor::from_slice(device, &[2048], &x)?;
        let mut counts = DeviceTensor::<i32>::zeros(device, &[256])?;
        ran.launch(device, histogram(&x, &mut counts), histogram(&meta(&[1 << 20]), &mut meta(&[256])), 2)?;
        counts.to_vec()
    })
}

fn compactions(ran: &Ran) -> Result<()> {
    let x = host::<f32>(&[1024], 12);
    let mut want: Vec<f64> = x.into_iter().filter(|&x| x > 0.0).collect();
    want.push(want.len() as f64);
    want.sort_by(f64::total_cmp);
    compare_each(&want, |device| {
        let x = input::<f32>(device, &[1024], 12)?;
        let mut out = DeviceTensor::<f32>::zeros(device, &[1024])?;
        let mut count = DeviceTensor::<i32>::zeros(device, &[1])?;
        ran.launch(
            device,
            compact(&x, &mut out, &mut count),
            compact(&meta(&[1 << 20]), &mut meta(&[1 << 20]), &mut meta(&[1])),
            4,
        )?;
        // In any order, and nothing after them.
        let count = count.to_vec()?[0];
        let (found, rest) = (out.to_vec()?, count as usize);
        assert!(found[rest..].iter().all(|&x| x == 0.0));
        let mut found: Vec<f64> = found[..rest].iter().map(|&x| x.into()).chain([f64::from(count)]).collect();
        found.sort_by(f64::total_cmp);
        Ok(found)
    })
}

fn totals(ran: &Ran) -> Result<()> {
    // Multiples of 1/1024, whose sums are below 2^13: exact in any order.
    let want = [host::<f32>(&[4096], 13).iter().sum(), 4.0];
    compare(Tolerance::EXACT, &want, |device| {
        let x = input::<f32>(device, &[4096], 13)?;
        let mut parts = DeviceTensor::<f32>::zeros(device, &[256])?;
        let mut done = DeviceTensor::<i32>::zeros(device, &[1])?;
        let mut out = DeviceTensor::<f32>::zeros(device, &[1])?;
        ran.launch(
            device,
            total(&x, &mut parts, &mut done, &mut out),
            total(&meta(&[1 << 18]), &mut meta(&[256]), &mut meta(&[1]), &mut meta(&[1])),
            4,
        )?;
        Ok(vec![out.to_vec()?[0], done.to_vec()?[0] as f32])
    })
}

/// A chunk and a ragged one, with the facts and block sizes of the snapshots.
const SMALL: Shape = Shape { tokens: 144, batch: 1, ..SEED };
/// For f32, whose products are FMAs, one head, as only the kernel of the states has a snapshot.
const ONE_HEAD: Shape = Shape { heads: 1, ..SMALL };

/// Runs the forward pass on the CPU and on an executor, and compares.
fn forward_runs(executor: &Device, shape: Shape, chunk: Option<usize>, seed: u64, dtype: Dtype) {
    let case = Case { chunk, ..inputs::generate(shape, dtype, seed) };
    let run = |device: &Device| {
        resident::run(device, &case, &Options::default()).unwrap_or_else(|error| panic!("{device}: {error}"))
    };
    let (found, expected) = (run(executor), run(&Device::cpu()));
    let limits = tolerance::forward(dtype, None);
    let y = relative_l2(&found.y, &expected.y);
    let state = relative_l2(&found.final_states, &expected.final_states);
    println!("{dtype}, {shape:?}, {chunk:?} on {executor}: y {y:e}, state {state:e}");
    assert!(
        y <= limits.y && state <= limits.state,
        "{dtype}, {shape:?}, {chunk:?} on {executor}: y {y:e}, state {state:e}, limits {limits:?}"
    );
}

/// The PTX of kernels, the same for these sizes and those of the snapshots.
fn show(ran: &Ran, kernels: &[&str], target: &Target, shape: Shape, dtype: Dtype) {
    for kernel in kernels {
        let ptx =
            |shape| mamba2::Variant::new(kernel, target.name, shape, dtype).show("ptx").expect("it compiles");
        assert!(ptx(shape) == ptx(SEED), "{kernel} has the code of the snapshot for {}", target.name);
        ran.0.borrow_mut().push(ptx(shape));
    }
}

fn mamba2_in_bf16(ran: &Ran) -> Result<()> {
    for target in &TARGETS {
        show(ran, &mamba2::KERNELS, target, SMALL, Dtype::BF16);
        forward_runs(&executor(target, SEEDS), SMALL, None, 1, Dtype::BF16);
    }
    Ok(())
}

fn mamba2_in_f32(ran: &Ran) -> Result<()> {
    for target in &TARGETS {
        show(ran, &["fwd_pass_state"], target, ONE_HEAD, Dtype::F32);
        forward_runs(&executor(target, SEEDS), ONE_HEAD, None, 1, Dtype::F32);
    }
    Ok(())
}

/// A block with an x that is not finite is done again by selects, which must agree with the CPU on every schedule.
#[test]
fn mamba2_with_nan_runs() {
    let shape = Shape { batch: 1, tokens: 80, groups: 1, heads: 2, head_dim: 64, state: 64 };
    let mut case = Case { chunk: Some(64), ..inputs::generate(shape, Dtype::BF16, 1) };
    case.x[40 * 128 + 3] = f32::NAN;
    let expected = resident::run(&Device::cpu(), &case, &Options::default()).expect("the CPU");
    assert_eq!(expected.y.iter().filter(|y| y.is_nan()).count(), 40, "tokens from 40 on, in one channel");
    for target in &TARGETS {
        let found = resident::run(&executor(target, SEEDS), &case, &Options::default()).expect("no reports");
        let finite = |values: &[f32]| values.iter().map(|v| v.is_finite()).collect::<Vec<_>>();
        assert_eq!(finite(&found.y), finite(&expected.y), "{}", target.name);
        assert_eq!(finite(&found.final_states), finite(&expected.final_states), "{}", target.name);
        let numbers = |values: &[f32]| values.iter().copied().filter(|v| v.is_finite()).collect::<Vec<_>>();
        let y = relative_l2(&numbers(&found.y), &numbers(&expected.y));
        assert!(y <= tolerance::forward(Dtype::BF16, None).y, "{}: y {y:e}", target.name);
    }
}

/// Sizes of the forward pass on Hopper: `[tokens, heads, groups, head_dim, state]` and the chunk, or the default one.
const SIZES: [([usize; 5], Option<usize>); 10] = [
    ([1, 1, 1, 64, 128], None),
    ([144, 2, 1, 64, 64], None),
    ([130, 1, 1, 32, 16], Some(64)),
    ([127, 2, 2, 32, 128], Some(64)),
    ([129, 1, 1, 128, 64], Some(128)),
    ([300, 1, 1, 64, 128], Some(256)),
    ([257, 1, 1, 64, 256], Some(128)),
    ([70, 4, 2, 128, 256], Some(64)),
    ([200, 2, 1, 80, 96], Some(64)),
    ([100, 2, 1, 50, 20], Some(64)),
];

fn sizes_run(dtype: Dtype) {
    let executor = executor(&Target::SM_90A, 2);
    for (seed, ([tokens, heads, groups, head_dim, state], chunk)) in (0..).zip(SIZES) {
        let shape = Shape { batch: 1, tokens, groups, heads, head_dim, state };
        forward_runs(&executor, shape, chunk, seed, dtype);
    }
}

#[test]
fn mamba2_of_many_sizes_runs_on_hopper_in_bf16() {
    sizes_run(Dtype::BF16);
}

#[test]
fn mamba2_of_many_sizes_runs_on_hopper_in_f16() {
    sizes_run(Dtype::F16);
}
