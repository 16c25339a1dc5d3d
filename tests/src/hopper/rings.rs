//! Loops whose tiles come through rings of asynchronous copies: ranges and indices of every kind, fewer iterations than stages,
//! tiles that are read in every way, and the kernels of the other files.

use tile_runtime::prelude::*;

use super::{Lab, Path, config, control, flow, memory};
use crate::held::Held;
use crate::input::{Fill, View, tensor};
use crate::lab::Report;

/// Steps of a range of i32, with indices that are computed of the step.
#[tile_kernel]
fn stepped(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    from: Scalar<i32>,
    to: Scalar<i32>,
    by: Const<i32>,
) {
    let mut acc = zeros::<f32>((64, 32));
    for i in (from..to).step_by(by) {
        let a = load(x, (0, i), (64, 32));
        acc = mma(a, load(y, ((i * 5 + 2) % 4 - i / 3, 0), (32, 32)), acc) + 1.0;
    }
    store(out, (0, 0), acc);
}

/// The same of i64, near both ends of its numbers.
#[tile_kernel]
fn stepped_wide(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    from: Scalar<i64>,
    to: Scalar<i64>,
    by: Const<i64>,
    shift: Scalar<i64>,
) {
    let mut acc = zeros::<f32>((64, 32));
    for i in (from..to).step_by(by) {
        let at = i + shift;
        acc = mma(load(x, (0, at), (64, 32)), load(y, (at, 0), (32, 32)), acc) + 1.0;
    }
    store(out, (0, 0), acc);
}

/// Operands that are transposes of what is loaded, or not: of f16 and bf16 by `mma.sync`, of f32 by FMAs.
#[tile_kernel]
fn turned<T: MmaOperand + Storable>(
    x: Tensor<T, 2>,
    y: Tensor<T, 2>,
    out: TensorMut<f32, 2>,
    turn_x: Const<bool>,
    turn_y: Const<bool>,
) {
    let mut acc = zeros::<f32>((32, 64));
    for i in 0..3 {
        let a =
            if turn_x { load(x, (i, bid(0)), (32, 32)).transpose() } else { load(x, (bid(0), i), (32, 32)) };
        let b = if turn_y { load(y, (0, i), (64, 32)).transpose() } else { load(y, (i, 0), (32, 64)) };
        acc = mma(a, b, acc);
    }
    store(out, (bid(0), 0), acc);
}

/// A batch of products, whose tiles are two heads of three axes.
#[tile_kernel]
fn batched(x: Tensor<bf16, 3>, y: Tensor<bf16, 3>, out: TensorMut<f32, 3>) {
    let mut acc = zeros::<f32>((2, 32, 64));
    for i in 0..cdiv(x.dim(2), 16) {
        acc = mma(load(x, (bid(0), 0, i), (2, 32, 16)), load(y, (bid(0), i, 0), (2, 16, 64)), acc);
    }
    store(out, (bid(0), 0, 0), acc);
}

/// Loads of different latencies, one of which is not pipelined; lines and tiles that others than products read.
#[tile_kernel]
fn hinted(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    line: Tensor<f32, 1>,
    out: TensorMut<f32, 2>,
    latencies: Const<[usize; 3]>,
) {
    let [first, second, third] = latencies;
    let mut acc = zeros::<f32>((64, 64));
    for i in 0..cdiv(x.dim(1), 32) {
        let a = load_hinted(x, (0, i), (64, 32), Hints::new().latency(first));
        let b = load_hinted(y, (i, 0), (32, 64), Hints::new().latency(second));
        let scale = load_hinted(line, (i,), (64,), Hints::new().latency(third));
        acc = mma(a, b, acc) + scale.expand_dims(1) * 2.0 + scale.expand_dims(0);
        acc = acc + a.cast::<f32>().sum_keepdims(1);
    }
    store(out, (0, 0), acc);
}

/// f32 that is multiplied as tf32, in two loops of which the second takes the room of the first.
#[tile_kernel]
fn rounded(x: Tensor<f32, 2>, y: Tensor<f32, 2>, out: TensorMut<f32, 2>, n: Scalar<i32>) {
    let mut acc = zeros::<f32>((64, 64));
    for _ in 0..2 {
        for i in 0..n {
            let a = load(x, (0, i), (64, 32)).cast::<tf32>();
            acc = mma(a, load(y, (i, 0), (32, 64)).cast::<tf32>(), acc);
        }
    }
    for i in 0..n {
        let b = load(x, (0, i), (64, 32)).cast::<tf32>().transpose();
        acc = mma(load(y, (i, 0), (32, 64)).cast::<tf32>().transpose(), b, acc);
    }
    store(out, (0, 0), acc);
}

fn of<T: Held>(device: &Device, shape: &[usize], seed: u64) -> Result<DeviceTensor<T>> {
    Ok(tensor(device, shape, View::Plain, Fill::Small, seed)?.1)
}

/// Iterations from none to more than there are stages, of ranges that start and end anywhere.
fn ranges(lab: &mut Lab, path: Path, configs: &[Config]) {
    let ends = [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0, 9), (-3, 2), (5, -5), (2, 7)];
    for (from, to) in ends {
        for by in [1, 2, 3] {
            lab.check(&format!("{from}..{to} by {by}"), path, configs, None, |run| {
                let (x, y) =
                    (of::<bf16>(run.device(), &[60, 144], 1)?, of::<bf16>(run.device(), &[136, 32], 2)?);
                let mut out = of::<f32>(run.device(), &[64, 32], 3)?;
                run.launch(stepped(&x, &y, &mut out, from, to, by), 1)?;
                out.to_vec()
            });
        }
    }
    let (least, most) = (i64::MIN, i64::MAX);
    for (from, to, by, shift) in [
        (0, 5, 1, 0),
        (most - 4, most, 1, 4 - most),
        (most - 4, most, 3, 4 - most),
        (0, most, most - 1, 0),
        (least, least + 3, 1, most),
        (least, most, most, 0),
        (most, least, 1, 0),
    ] {
        lab.check(&format!("{from}..{to} by {by}, {shift} off"), path, configs, None, |run| {
            let (x, y) = (of::<bf16>(run.device(), &[64, 144], 1)?, of::<bf16>(run.device(), &[144, 32], 2)?);
            let mut out = of::<f32>(run.device(), &[64, 32], 3)?;
            run.launch(stepped_wide(&x, &y, &mut out, from, to, by, shift), 1)?;
            out.to_vec()
        });
    }
    let (least, most) = (i32::MIN, i32::MAX);
    for (from, to, by) in [(most - 3, most, 1), (most - 3, most, 2), (least, most, most), (most, least, 1)] {
        lab.check(&format!("{from}..{to} by {by}"), path, configs, None, |run| {
            let (x, y) = (of::<bf16>(run.device(), &[64, 144], 1)?, of::<bf16>(run.device(), &[144, 32], 2)?);
            let mut out = of::<f32>(run.device(), &[64, 32], 3)?;
            run.launch(stepped(&x, &y, &mut out, from, to, by), 1)?;
            out.to_vec()
        });
    }
}

/// A matrix whose rows lie 16 bytes and more apart, though it ends inside of a piece.
fn ragged<T: Held>(device: &Device, rows: usize, columns: usize, seed: u64) -> Result<DeviceTensor<T>> {
    of::<T>(device, &[rows, columns.next_multiple_of(8) + 8], seed)?.slice(1, 0..columns)
}

fn turns<T: Held + MmaOperand>(lab: &mut Lab, path: Path, configs: &[Config]) {
    for turns in 0..4 {
        for (rows, depth, columns) in [(64, 96, 64), (50, 75, 61), (33, 65, 7)] {
            let (turn_x, turn_y) = (turns & 1 == 1, turns & 2 == 2);
            let name = format!("{} {rows}x{columns}x{depth}, {turn_x}, {turn_y}", T::NAME);
            lab.check(&name, path, configs, None, |run| {
                let shape = |turn: bool, a: usize, b: usize| if turn { (b, a) } else { (a, b) };
                let (a, b) = shape(turn_x, rows, depth);
                let x = ragged::<T>(run.device(), a, b, 1)?;
                let (a, b) = shape(turn_y, depth, columns);
                let y = ragged::<T>(run.device(), a, b, 2)?;
                let mut out = of::<f32>(run.device(), &[rows, columns], 3)?;
                run.launch(turned(&x, &y, &mut out, turn_x, turn_y), 2)?;
                out.to_vec()
            });
        }
    }
}

fn others(lab: &mut Lab, path: Path, base: Config) {
    let configs = [base, Config { stages: Some(2), ..base }, Config { stages: Some(4), ..base }];
    for depth in [0, 16, 40, 80] {
        lab.check(&format!("a batch, depth {depth}"), path, &configs, None, |run| {
            let (x, y) = (
                of::<bf16>(run.device(), &[3, 30, depth], 1)?,
                of::<bf16>(run.device(), &[3, depth, 64], 2)?,
            );
            let mut out = of::<f32>(run.device(), &[3, 30, 64], 3)?;
            run.launch(batched(&x, &y, &mut out), 2)?;
            out.to_vec()
        });
    }
    for latencies in [[2, 2, 2], [2, 3, 4], [5, 3, 1], [1, 1, 6], [10, 10, 10], [1, 1, 1]] {
        let path = if latencies == [1, 1, 1] { Path::Any } else { path };
        for depth in [0, 32, 64, 90, 200] {
            lab.check(&format!("latencies {latencies:?}, depth {depth}"), path, &configs[..1], None, |run| {
                let (x, y) =
                    (of::<bf16>(run.device(), &[64, depth], 1)?, of::<bf16>(run.device(), &[depth, 64], 2)?);
                let line = of::<f32>(run.device(), &[460], 4)?;
                let mut out = of::<f32>(run.device(), &[64, 64], 3)?;
                run.launch(hinted(&x, &y, &line, &mut out, latencies), 1)?;
                out.to_vec()
            });
        }
    }
    for n in [0, 1, 2, 5] {
        lab.check(&format!("tf32, {n} steps"), path, &configs, None, |run| {
            let (x, y) = (of::<f32>(run.device(), &[64, 160], 1)?, of::<f32>(run.device(), &[160, 64], 2)?);
            let mut out = of::<f32>(run.device(), &[64, 64], 3)?;
            run.launch(rounded(&x, &y, &mut out, n), 1)?;
            out.to_vec()
        });
    }
}

/// Runs the kernels of this file, and every `step`-th case of others; for `sm_80`, and for `sm_90a` without bulk copies.
pub fn rings(step: usize) -> Report {
    let mut lab = Lab::of(Target::SM_80, 3);
    let configs = [config(4, 0), config(2, 2), config(1, 4)];
    ranges(&mut lab, Path::Ring, &configs);
    turns::<bf16>(&mut lab, Path::Ring, &configs[..2]);
    turns::<f32>(&mut lab, Path::Any, &configs[..2]);
    others(&mut lab, Path::Ring, config(4, 0));
    control::run(&mut lab, &control::KERNELS, 5 * step);
    // A reduction of `mixed` needs 128 KiB.
    let fitting: Vec<_> = flow::KERNELS.into_iter().filter(|(name, _)| *name != "mixed").collect();
    control::run(&mut lab, &fitting, 5 * step);
    memory::all(&mut lab, step);
    let undivided = Config { allow_tma: Some(false), ..config(4, 0) };
    let mut hopper = Lab::of(Target::SM_90A, 3);
    ranges(&mut hopper, Path::Ring, &[undivided]);
    others(&mut hopper, Path::Ring, undivided);
    lab.report.runs += hopper.report.runs;
    lab.report.failures.extend(hopper.report.failures);
    lab.report
}
