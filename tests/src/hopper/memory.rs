//! Tensors that lie in memory in every way, around a product: what bulk tensor copies cannot take goes another way.

use tile_runtime::prelude::*;

use super::{Lab, Path, config};
use crate::held::Held;
use crate::input::{Fill, INPUTS, View, tensor};
use crate::lab::Report;

#[tile_kernel]
fn matmul<T: MmaOperand + Storable>(
    x: Tensor<T, 2>,
    y: Tensor<T, 2>,
    out: TensorMut<f32, 2>,
    k: Const<usize>,
) {
    let mut acc = zeros::<f32>((64, 64));
    for i in 0..cdiv(x.dim(1), k) {
        acc = mma(load(x, (bid(1), i), (64, k)), load(y, (i, bid(0)), (k, 64)), acc);
    }
    store(out, (bid(1), bid(0)), acc);
}

/// Tiles of tensors of rank 5, whose last two axes are those of a matrix.
#[tile_kernel]
fn five(x: Tensor<bf16, 5>, y: Tensor<bf16, 5>, out: TensorMut<f32, 3>) {
    let mut acc = zeros::<f32>((64, 64));
    for i in 0..x.dim(1) {
        let a = load(x, (bid(0), i, 0, 1, 0), (1, 1, 64, 1, 32)).reshape((64, 32));
        let b = load(y, (0, bid(0), 0, i, 0), (2, 1, 16, 1, 64)).reshape((32, 64));
        acc = mma(a, b, acc);
    }
    store(out, (bid(0), 0, 0), acc.reshape((1, 64, 64)));
}

/// A line and a wide tile beside a product: boxes of 256.
#[tile_kernel]
fn wide(x: Tensor<bf16, 2>, line: Tensor<f32, 1>, out: TensorMut<f32, 2>) {
    let mut acc = zeros::<f32>((64, 256));
    for i in 0..cdiv(x.dim(0), 64) {
        let b = load(x, (i, 0), (64, 256));
        let a = load(x, (i, 0), (64, 64));
        acc = mma(a.transpose(), b, acc) + load(line, (i,), (256,)).expand_dims(0);
    }
    store(out, (0, 0), acc + load(line, (0,), (512,)).sum(ALL) + load(line, (0,), (16,)).max(ALL));
}

/// Padding that is not zero (case L18).
#[tile_kernel]
fn filled(x: Tensor<bf16, 2>, y: Tensor<bf16, 2>, out: TensorMut<f32, 2>) {
    let mut acc = zeros::<f32>((64, 64));
    for i in 0..cdiv(x.dim(1), 64) {
        let a = load_with(x, (0, i), (64, 64), 1.0);
        acc = mma(a, load_with(y, (i, 0), (64, 64), bf16::ONE.to_f32()), acc);
    }
    store(out, (0, 0), acc);
}

/// Products of tiles whose indices that may be out of bounds on either side.
#[tile_kernel]
fn shifted(x: Tensor<bf16, 2>, y: Tensor<bf16, 2>, out: TensorMut<f32, 2>, by: Scalar<i64>) {
    let mut acc = zeros::<f32>((64, 64));
    for i in 0..3 {
        acc = mma(
            load(x, (0, i.cast::<i64>() + by), (64, 32)),
            load(y, (i.cast::<i64>() - by, 0), (32, 64)),
            acc,
        );
    }
    store(out, (0, 0), acc);
}

fn views<T: Held + MmaOperand>(lab: &mut Lab, step: usize) {
    for (number, (x_view, y_view)) in INPUTS.into_iter().flat_map(|x| INPUTS.map(|y| (x, y))).enumerate() {
        if number % step != 0 {
            continue;
        }
        for (rows, depth, columns) in [(72, 104, 64), (64, 0, 8), (0, 64, 64), (130, 64, 72)] {
            let name = format!("{} {rows}x{columns}x{depth}, {x_view:?} and {y_view:?}", T::NAME);
            let configs = [config(4, 2), Config { allow_tma: Some(false), ..config(4, 0) }];
            lab.check(&name, Path::Any, &configs, None, |run| {
                let (_, x) = tensor::<T>(run.device(), &[rows, depth], x_view, Fill::Small, 1)?;
                let (_, y) = tensor::<T>(run.device(), &[depth, columns], y_view, Fill::Small, 3)?;
                let (_, mut out) = tensor::<f32>(run.device(), &[rows, columns], View::Plain, Fill::Wide, 2)?;
                run.launch(matmul(&x, &y, &mut out, 32), (columns.div_ceil(64), rows.div_ceil(64)))?;
                out.to_vec()
            });
        }
    }
}

fn of<T: Held>(device: &Device, shape: &[usize], seed: u64) -> Result<DeviceTensor<T>> {
    Ok(tensor(device, shape, View::Plain, Fill::Small, seed)?.1)
}

fn ranks(lab: &mut Lab) {
    let configs = [config(4, 2), config(0, 0), config(8, 3)];
    lab.check("rank 5", Path::Any, &configs, None, |run| {
        let device = run.device();
        let (x, y) = (of::<bf16>(device, &[2, 3, 60, 2, 40], 1)?, of::<bf16>(device, &[2, 2, 16, 3, 64], 3)?);
        let mut out = of::<f32>(device, &[2, 64, 64], 2)?;
        run.launch(five(&x, &y, &mut out), 2)?;
        out.to_vec()
    });
    for axes in [[4, 3, 2, 1, 0], [0, 2, 1, 3, 4], [1, 0, 2, 4, 3]] {
        lab.check(&format!("rank 5, axes {axes:?}"), Path::Any, &configs, None, |run| {
            let turned = |shape: [usize; 5], seed: u64| -> Result<DeviceTensor<bf16>> {
                let mut stored = [0; 5];
                axes.iter().zip(shape).for_each(|(&axis, extent)| stored[axis] = extent);
                of::<bf16>(run.device(), &stored, seed)?.permute(&axes)
            };
            let (x, y) = (turned([2, 3, 64, 2, 40], 1)?, turned([2, 2, 16, 3, 64], 3)?);
            let mut out = of::<f32>(run.device(), &[2, 64, 64], 2)?;
            run.launch(five(&x, &y, &mut out), 2)?;
            out.to_vec()
        });
    }
    // Three stages are 123 KiB.
    let configs = if lab.target.warpgroups { configs } else { [config(4, 2), config(0, 0), config(8, 2)] };
    for rows in [0, 40, 64, 190] {
        lab.check(&format!("wide boxes, {rows} rows"), Path::Wide, &configs, None, |run| {
            let (x, line) = (of::<bf16>(run.device(), &[rows, 256], 1)?, of::<f32>(run.device(), &[500], 2)?);
            let mut out = of::<f32>(run.device(), &[64, 256], 3)?;
            run.launch(wide(&x, &line, &mut out), 1)?;
            out.to_vec()
        });
    }
    for depth in [64, 100, 104] {
        lab.check(&format!("padding of ones, depth {depth}"), Path::Any, &configs, None, |run| {
            let (x, y) =
                (of::<bf16>(run.device(), &[60, depth], 1)?, of::<bf16>(run.device(), &[depth, 56], 3)?);
            let mut out = of::<f32>(run.device(), &[64, 64], 2)?;
            run.launch(filled(&x, &y, &mut out), 1)?;
            out.to_vec()
        });
    }
    for by in [0, 1, -2, 100, -100, i64::from(i32::MAX) * 4, i64::MIN / 64, i64::MAX / 64, i64::MIN] {
        lab.check(&format!("indices {by} off"), Path::Wide, &configs[..2], None, |run| {
            let (x, y) = (of::<bf16>(run.device(), &[64, 96], 1)?, of::<bf16>(run.device(), &[96, 64], 3)?);
            let mut out = of::<f32>(run.device(), &[64, 64], 2)?;
            run.launch(shifted(&x, &y, &mut out, by), 1)?;
            out.to_vec()
        });
    }
}

/// Configurations that change what registers and copies there are.
fn configurations(lab: &mut Lab) {
    let occupied = [1, 2, 3, 4, 8, 16, 32].map(|blocks| Config { occupancy: Some(blocks), ..config(8, 2) });
    let staged = [1, 2, 3, 8].map(|stages| config(4, stages));
    let warps = [1, 2, 4, 8, 16].map(|warps| config(warps, 0));
    let configs: Vec<Config> = occupied.into_iter().chain(staged).chain(warps).collect();
    lab.check("configurations", Path::Any, &configs, None, |run| {
        let (x, y) = (of::<bf16>(run.device(), &[128, 136], 1)?, of::<bf16>(run.device(), &[136, 128], 3)?);
        let mut out = of::<f32>(run.device(), &[128, 128], 2)?;
        run.launch(large(&x, &y, &mut out), 1)?;
        out.to_vec()
    });
}

/// A product of one block of 128 x 128.
#[tile_kernel]
fn large(x: Tensor<bf16, 2>, y: Tensor<bf16, 2>, out: TensorMut<f32, 2>) {
    let mut acc = zeros::<f32>((128, 128));
    for i in 0..cdiv(x.dim(1), 16) {
        acc = mma(load(x, (0, i), (128, 16)), load(y, (i, 0), (16, 128)), acc);
    }
    store(out, (0, 0), acc);
}

/// Runs the kernels of this file; every `step`-th pair of views.
pub fn memory(step: usize) -> Report {
    let mut lab = Lab::new(2);
    all(&mut lab, step);
    lab.report
}

/// As [`memory`], in a lab.
pub(super) fn all(lab: &mut Lab, step: usize) {
    views::<bf16>(lab, step);
    views::<f16>(lab, 5 * step);
    ranks(lab);
    configurations(lab);
}
