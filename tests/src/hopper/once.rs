//! Products whose tiles are not loaded in a loop: the first thread starts all copies before anything else, and there are
//! no roles.

use tile_runtime::prelude::*;

use super::{Lab, Path, config};
use crate::held::Held;
use crate::input::{Fill, View, tensor};
use crate::lab::Report;

/// Several products of loaded tiles, a line and a tile that is added, without any loop.
#[tile_kernel]
fn straight(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    line: Tensor<f32, 1>,
    out: TensorMut<f32, 2>,
    rows: Const<usize>,
    n: Scalar<i32>,
) {
    let (a, b) = (load(x, (bid(0), 0), (rows, 64)), load(y, (0, n), (64, 64)));
    let mut acc = mma(a, b, load(line, (0,), (64,)).broadcast_to((rows, 64)));
    acc = mma(load(x, (bid(0), 1), (rows, 64)), load(y, (1, n - 1), (64, 64)), acc);
    acc = mma(a, load(y, (bid(0), 1), (64, 64)).transpose(), acc * 2.0);
    store(out, (bid(0), 0), acc + load(x, (1, bid(0)), (rows, 64)).cast::<f32>());
}

/// Tiles that are loaded and multiplied in the arms of branches only, or before them.
#[tile_kernel]
fn branches(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    line: Tensor<f32, 1>,
    out: TensorMut<f32, 2>,
    rows: Const<usize>,
    n: Scalar<i32>,
) {
    let before = load(x, (0, 1), (rows, 64));
    let mut acc = zeros::<f32>((rows, 64));
    if n > 0 {
        acc = mma(load(x, (bid(0), 0), (rows, 64)), load(y, (0, n - 1), (64, 64)), acc);
        if n == 2 {
            acc = mma(before, load(y, (1, 1), (64, 64)), acc);
        } else {
            acc = acc + load(line, (1,), (64,)).expand_dims(0);
        }
    } else {
        acc = mma(before, load(y, (1, 0), (64, 64)), acc);
    }
    store(out, (bid(0), 0), acc);
}

/// Blocks that leave early: before any load, between loads, between a load and its use.
#[tile_kernel]
fn leaves(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    line: Tensor<f32, 1>,
    out: TensorMut<f32, 2>,
    rows: Const<usize>,
    n: Scalar<i32>,
) {
    if bid(0) > n {
        return;
    }
    let (a, b) = (load(x, (bid(0), 0), (rows, 64)), load(y, (0, 0), (64, 64)));
    let acc = mma(a, b, zeros::<f32>((rows, 64)));
    let late = load(y, (1, 1), (64, 64));
    if n == 1 {
        store(out, (bid(0), 0), acc + load(line, (2,), (64,)).expand_dims(0));
        if bid(0) == 1 {
            return;
        }
    }
    store(out, (bid(0), 0), mma(load(x, (bid(0), 1), (rows, 64)), late, acc));
}

/// A loop around products of tiles that are loaded before it, each operand in turn computed.
#[tile_kernel]
fn chained(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    line: Tensor<f32, 1>,
    out: TensorMut<f32, 2>,
    rows: Const<usize>,
    n: Scalar<i32>,
) {
    let (a, b) = (load(x, (bid(0), 0), (rows, 64)), load(y, (0, 0), (64, 64)));
    let mut acc = load(line, (0,), (64,)).broadcast_to((rows, 64));
    for i in 0..n {
        let clipped = minimum(maximum(acc, -8.0), 8.0).cast::<bf16>();
        acc = mma(clipped, b, acc * 0.5);
        acc = mma(a + i.cast::<bf16>(), b - 1.0, acc);
    }
    store(out, (bid(0), 0), acc);
    store(out, (bid(0), 1), acc + acc.sum(0).expand_dims(0));
}

/// An accumulator that is a view of a tile which is used later.
#[tile_kernel]
fn viewed(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    line: Tensor<f32, 1>,
    out: TensorMut<f32, 2>,
    rows: Const<usize>,
    n: Scalar<i32>,
) {
    let (a, b) = (load(x, (bid(0), n), (rows, 64)), load(y, (0, 0), (64, 64)));
    let acc = mma(a, b, load(line, (n,), (64,)).broadcast_to((rows, 64)));
    let more = mma(a.reshape((1, rows, 64)), b.reshape((1, 64, 64)), acc.reshape((1, rows, 64)));
    store(out, (bid(0), 0), acc + more.reshape((rows, 64)) * 3.0);
}

/// Padding other than zero, and tiles outside of the tensor.
#[tile_kernel]
fn padded(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    line: Tensor<f32, 1>,
    out: TensorMut<f32, 2>,
    rows: Const<usize>,
    n: Scalar<i32>,
) {
    let a = load_with(x, (bid(0), n), (rows, 64), 2.0);
    let acc = mma(a, load(y, (0, 0), (64, 64)), zeros::<f32>((rows, 64)));
    store(out, (bid(0), 0), acc + load_with(line, (n + 2,), (64,), -3.0).expand_dims(0));
}

/// Tiles whose place another tile gives are loaded by all threads, the others by bulk copies.
#[tile_kernel]
fn pointed(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    line: Tensor<f32, 1>,
    out: TensorMut<f32, 2>,
    rows: Const<usize>,
    n: Scalar<i32>,
) {
    let at = load(line, (0,), (64,)).max(ALL).item().cast::<i32>() & 1;
    let a = load(x, (bid(0), 0), (rows, 64));
    let mut acc = mma(a, load(y, (at, n), (64, 64)), zeros::<f32>((rows, 64)));
    if at == 0 {
        acc = mma(a, load(y, (1, 1), (64, 64)), acc);
    }
    store(out, (bid(0), 0), acc);
}

/// Where a loop says which tile is loaded, a role of its own finds out.
#[tile_kernel]
fn searched(
    x: Tensor<bf16, 2>,
    y: Tensor<bf16, 2>,
    line: Tensor<f32, 1>,
    out: TensorMut<f32, 2>,
    rows: Const<usize>,
    n: Scalar<i32>,
) {
    let mut at = n + 4;
    while at > 1 {
        at = at - 2;
    }
    let acc = mma(load(x, (bid(0), 0), (rows, 64)), load(y, (0, at), (64, 64)), zeros::<f32>((rows, 64)));
    store(out, (bid(0), 0), acc + load(line, (at,), (64,)).expand_dims(0));
}

/// Products of a batch.
#[tile_kernel]
fn batched(x: Tensor<bf16, 3>, y: Tensor<bf16, 3>, out: TensorMut<f32, 3>) {
    let (a, b) = (load(x, (bid(0), 0, 0), (2, 64, 64)), load(y, (0, 0, bid(0)), (2, 64, 32)));
    store(out, (bid(0), 0, 0), mma(a, b, zeros::<f32>((2, 64, 32))));
}

type Kernel = for<'a> fn(
    &'a DeviceTensor<bf16>,
    &'a DeviceTensor<bf16>,
    &'a DeviceTensor<f32>,
    &'a mut DeviceTensor<f32>,
    usize,
    i32,
) -> Launch<'a>;

const KERNELS: [(&str, Path, Kernel); 8] = [
    ("straight", Path::Once, |x, y, l, out, rows, n| straight(x, y, l, out, rows, n)),
    ("branches", Path::Once, |x, y, l, out, rows, n| branches(x, y, l, out, rows, n)),
    ("leaves", Path::Once, |x, y, l, out, rows, n| leaves(x, y, l, out, rows, n)),
    ("chained", Path::Once, |x, y, l, out, rows, n| chained(x, y, l, out, rows, n)),
    ("viewed", Path::Once, |x, y, l, out, rows, n| viewed(x, y, l, out, rows, n)),
    ("padded", Path::Once, |x, y, l, out, rows, n| padded(x, y, l, out, rows, n)),
    ("pointed", Path::Once, |x, y, l, out, rows, n| pointed(x, y, l, out, rows, n)),
    ("searched", Path::Wide, |x, y, l, out, rows, n| searched(x, y, l, out, rows, n)),
];

fn of<T: Held>(device: &Device, shape: &[usize], seed: u64) -> Result<DeviceTensor<T>> {
    Ok(tensor(device, shape, View::Plain, Fill::Small, seed)?.1)
}

/// Runs the kernels of this file on 8 schedules, in blocks of one and two warpgroups.
pub fn once() -> Report {
    let mut lab = Lab::new(8);
    for (name, path, kernel) in KERNELS {
        for (rows, n) in [(64, 0), (64, 1), (64, 2), (128, 1)] {
            let configs = [config(rows / 16, 0), Config { occupancy: Some(2), ..config(rows / 16, 0) }];
            let configs = if n == 1 { &configs[..] } else { &configs[..1] };
            lab.check(&format!("{name} of {rows} rows, n {n}"), path, configs, None, |run| {
                let device = run.device();
                let (x, y) = (of(device, &[2 * rows - 8, 120], 1)?, of(device, &[128, 128], 2)?);
                let (line, mut out) = (of(device, &[192], 3)?, of(device, &[2 * rows, 128], 4)?);
                run.launch(kernel(&x, &y, &line, &mut out, rows, n), 2)?;
                out.to_vec()
            });
        }
    }
    lab.check("a batch", Path::Once, &[config(4, 0), config(8, 0)], None, |run| {
        let device = run.device();
        let (x, y) = (of(device, &[4, 64, 64], 1)?, of(device, &[2, 64, 64], 2)?);
        let mut out = of(device, &[4, 64, 32], 3)?;
        run.launch(batched(&x, &y, &mut out), 2)?;
        out.to_vec()
    });
    lab.report
}
