//! Cases by name: mistakes that compilers for Hopper have made.

use tile_runtime::prelude::*;

use super::{Lab, Path, config};
use crate::held::Held;
use crate::input::{Fill, View, tensor};
use crate::lab::Report;

#[tile_kernel]
fn product<T: MmaOperand + Storable>(
    x: Tensor<T, 2>,
    y: Tensor<T, 2>,
    out: TensorMut<f32, 2>,
    sizes: [usize; 3],
    from: Scalar<i32>,
    to: Scalar<i32>,
) {
    let [m, n, k] = sizes;
    let mut acc = ones::<f32>((m, n));
    for i in from..to {
        acc = mma(load(x, (bid(1), i), (m, k)), load(y, (i, bid(0)), (k, n)), acc);
    }
    store(out, (bid(1), bid(0)), acc);
}

fn of<T: Held>(device: &Device, shape: &[usize], seed: u64) -> Result<DeviceTensor<T>> {
    Ok(tensor(device, shape, View::Plain, Fill::Small, seed)?.1)
}

/// `1 + x y` over the columns `range` of x, for operands as [`of`] makes them.
fn reference(sizes: [usize; 3], range: std::ops::Range<usize>) -> Vec<f32> {
    let [m, n, depth] = sizes;
    let element = |row: usize, column: usize| {
        range
            .clone()
            .map(|k| Fill::Small.at(1, row * depth + k) * Fill::Small.at(3, k * n + column))
            .sum::<f64>()
    };
    (0..m * n).map(|at| (1.0 + element(at / n, at % n)) as f32).collect()
}

/// L04: widths of products that are no multiple of 16, or no power of two.
fn widths<T: Held + MmaOperand>(lab: &mut Lab) {
    for m in [64, 128] {
        for n in [8usize, 16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 104, 192, 256] {
            let name = format!("L04, {} {m}x{n}x64", T::NAME);
            if n.is_power_of_two() {
                let expected = reference([m, n, 64], 0..64);
                let configs = [config(4, 0), config(8, 0)];
                lab.check(&name, Path::Any, &configs, Some(&expected), |run| {
                    let (x, y) = (of::<T>(run.device(), &[m, 64], 1)?, of::<T>(run.device(), &[64, n], 3)?);
                    let mut out = of::<f32>(run.device(), &[m, n], 2)?;
                    run.launch(product(&x, &y, &mut out, [m, n, 64], 0, 1), 1)?;
                    out.to_vec()
                });
                continue;
            }
            let (x, y) = (DeviceTensor::<T>::meta(&[m, 64]), DeviceTensor::<T>::meta(&[64, n]));
            let (x, y) = (x.expect("a small shape"), y.expect("a small shape"));
            let mut out = DeviceTensor::<f32>::meta(&[m, n]).expect("a small shape");
            let refusal = product(&x, &y, &mut out, [m, n, 64], 0, 1).ptx(&Target::SM_90A);
            lab.refused(&name, refusal, &format!("must be a power of two, found {n} in ({m}, {n})"));
        }
    }
}

/// The product, with a bias for each column, and the sums of its rows, one below the other.
#[tile_kernel]
fn used<T: MmaOperand + Storable>(
    x: Tensor<T, 2>,
    y: Tensor<T, 2>,
    bias: Tensor<f32, 1>,
    out: TensorMut<f32, 2>,
    biased: TensorMut<f32, 2>,
    sums: TensorMut<f32, 1>,
    m: Const<usize>,
) {
    let acc = mma(load(x, (0, 0), (m, 64)), load(y, (0, 0), (64, 64)), ones((m, 64)));
    store(out, (0, 0), acc);
    store(biased, (0, 0), acc + load(bias, (0,), (64,)).expand_dims(0));
    store(sums, (0,), acc.sum(1));
}

/// L59: several warpgroups along the rows, or more warps than there are rows for.
fn heights<T: Held + MmaOperand>(lab: &mut Lab) {
    for m in [64, 128, 256] {
        let acc = reference([m, 64, 64], 0..64);
        let biased = acc.iter().enumerate().map(|(at, x)| x + Fill::Small.at(5, at % 64) as f32);
        let sums = acc.chunks(64).map(|row| row.iter().sum());
        let expected: Vec<f32> = acc.iter().copied().chain(biased).chain(sums).collect();
        let configs = [config(4, 0), config(8, 0), config(16, 0), config(0, 0)];
        lab.check(&format!("L59, {} {m} rows", T::NAME), Path::Any, &configs, Some(&expected), |run| {
            let device = run.device();
            let (x, y) = (of::<T>(device, &[m, 64], 1)?, of::<T>(device, &[64, 64], 3)?);
            let bias = of::<f32>(device, &[64], 5)?;
            let (mut out, mut biased) = (of::<f32>(device, &[m, 64], 2)?, of::<f32>(device, &[m, 64], 2)?);
            let mut sums = of::<f32>(device, &[m], 2)?;
            run.launch(used(&x, &y, &bias, &mut out, &mut biased, &mut sums, m), 1)?;
            Ok([out.to_vec()?, biased.to_vec()?, sums.to_vec()?].concat())
        });
    }
    let (x, y) = (DeviceTensor::<T>::meta(&[192, 64]), DeviceTensor::<T>::meta(&[64, 64]));
    let (x, y) = (x.expect("a small shape"), y.expect("a small shape"));
    let mut out = DeviceTensor::<f32>::meta(&[192, 64]).expect("a small shape");
    let tall = product(&x, &y, &mut out, [192, 64, 64], 0, 1).ptx(&Target::SM_90A);
    lab.refused("L59, 192 rows", tall, "must be a power of two, found 192 in (192, 64)");
    let warps = product(&x, &y, &mut out, [128, 64, 64], 0, 1).config(config(12, 0)).ptx(&Target::SM_90A);
    lab.refused("L59, 12 warps", warps, "with 12 warps: a block has 1, 2, 4, 8 or 16");
}

/// The tile at column tile `by`, and its product with ones, so that the loads may be those of a ring.
#[tile_kernel]
fn copied<T: MmaOperand + Storable>(x: Tensor<T, 2>, out: TensorMut<T, 2>, sums: TensorMut<f32, 2>) {
    let mut acc = zeros::<f32>((64, 16));
    for i in 0..cdiv(x.dim(1), 32) {
        let t = load(x, (bid(0), i), (64, 32));
        store(out, (bid(0), i), t);
        acc = mma(t, ones((32, 16)), acc);
    }
    store(sums, (bid(0), 0), acc);
}

/// L01: slices that begin at no multiple of 16 bytes, and rows at such distances, read and written.
fn slices<T: Held + MmaOperand>(lab: &mut Lab) {
    let configs = [config(4, 0), config(4, 3), Config { allow_tma: Some(false), ..config(4, 0) }];
    for (columns, from, width) in [(200, 1, 64), (101, 0, 101), (101, 37, 64), (128, 8, 64), (72, 0, 65)] {
        let at = |row: usize, column: usize| Fill::Small.at(1, row * columns + from + column) as f32;
        let values = (0..64 * width).map(|i| at(i / width, i % width));
        let sums = (0..64 * 16).map(|i| (0..width).map(|column| at(i / 16, column)).sum());
        let expected: Vec<f32> = values.chain(sums).collect();
        let name = format!("L01, {} [:, {from}..{}] of rows of {columns}", T::NAME, from + width);
        lab.check(&name, Path::Any, &configs, Some(&expected), |run| {
            let x = of::<T>(run.device(), &[64, columns], 1)?.slice(1, from..from + width)?;
            let memory = of::<T>(run.device(), &[64, columns], 2)?;
            let mut out = memory.slice(1, from..from + width)?;
            let mut sums = of::<f32>(run.device(), &[64, 16], 2)?;
            run.launch(copied(&x, &mut out, &mut sums), 1)?;
            let found: Vec<f32> = out.to_vec()?.into_iter().map(to_f32).collect();
            Ok([found, sums.to_vec()?].concat())
        });
    }
    let flat = |row: usize, column: usize| Fill::Small.at(1, 1 + row * 64 + column) as f32;
    let sums = (0..64 * 16).map(|i| (0..64).map(|column| flat(i / 16, column)).sum());
    let expected: Vec<f32> = (0..64 * 64).map(|i| flat(i / 64, i % 64)).chain(sums).collect();
    lab.check(&format!("L01, {}, one element on", T::NAME), Path::Any, &configs, Some(&expected), |run| {
        let x = tensor::<T>(run.device(), &[64, 64], View::Offset, Fill::Small, 1)?.1;
        let mut out = tensor::<T>(run.device(), &[64, 64], View::Offset, Fill::Small, 2)?.1;
        let mut sums = of::<f32>(run.device(), &[64, 16], 2)?;
        run.launch(copied(&x, &mut out, &mut sums), 1)?;
        let found: Vec<f32> = out.to_vec()?.into_iter().map(to_f32).collect();
        Ok([found, sums.to_vec()?].concat())
    });
}

fn to_f32<T: Held>(x: T) -> f32 {
    match x.value() {
        crate::held::Value::Float(x) => x as f32,
        crate::held::Value::Int(x) => x as f32,
    }
}

/// L02: fewer trips than stages, none, and from the middle; beyond the last one lie NaNs.
fn trips<T: Held + MmaOperand>(lab: &mut Lab) {
    for (from, to) in [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (7, 8), (3, 2), (2, 7)] {
        let last = 32 * to.max(1);
        let expected = reference([64, 64, last], 32 * from..32 * to);
        let configs = [1, 2, 3, 4, 8].map(|stages| config(4, stages));
        let name = format!("L02, {} steps {from} to {to}", T::NAME);
        lab.check(&name, Path::Wide, &configs, Some(&expected), |run| {
            // The columns and rows after the last step are in the tensors.
            let poisoned = |rows: usize, columns: usize, seed: u64, inside: [usize; 2]| {
                let value = |i: usize| match (i / columns < inside[0], i % columns < inside[1]) {
                    (true, true) => Fill::Small.at(seed, i / columns * inside[1] + i % columns),
                    _ => f64::NAN,
                };
                let values: Vec<T> = (0..rows * columns).map(|i| T::of(value(i))).collect();
                DeviceTensor::from_slice(run.device(), &[rows, columns], &values)
            };
            let x = poisoned(64, last + 256, 1, [64, last])?;
            let y = poisoned(last + 256, 64, 3, [last, 64])?;
            let mut out = of::<f32>(run.device(), &[64, 64], 2)?;
            run.launch(product(&x, &y, &mut out, [64, 64, 32], from as i32, to as i32), 1)?;
            out.to_vec()
        });
    }
}

/// The largest element beside a product.
#[tile_kernel]
fn largest<T: MmaOperand + Float>(x: Tensor<T, 2>, out: TensorMut<f32, 1>, sums: TensorMut<f32, 2>) {
    let mut most = full::<f32>((64,), f32::NEG_INFINITY);
    let mut acc = zeros::<f32>((64, 64));
    for i in 0..cdiv(x.dim(1), 64) {
        most = most.maximum(load_with(x, (0, i), (64, 64), f32::NEG_INFINITY).cast::<f32>().max(1));
        acc = mma(load_with(x, (0, i), (64, 64), 1.0), ones((64, 64)), acc);
    }
    store(out, (0,), most);
    store(sums, (0, 0), acc);
}

/// L18: padding that is not zero in loads of a ring: the tail of 100 elements, all of them -3.
fn tails<T: Held + MmaOperand + Float>(lab: &mut Lab) {
    // 100 times -3, and 28 ones of padding; two rows lie outside.
    let sums = (0..64 * 64).map(|i| if i < 62 * 64 { 28.0 - 300.0 } else { 128.0 });
    let most = (0..64).map(|row| if row < 62 { -3.0 } else { f32::NEG_INFINITY });
    let expected: Vec<f32> = most.chain(sums).collect();
    let configs = [1, 3].map(|stages| config(4, stages));
    lab.check(&format!("L18, {}", T::NAME), Path::Any, &configs, Some(&expected), |run| {
        let (_, x) = tensor::<T>(run.device(), &[62, 100], View::Plain, Fill::All(-3.0), 1)?;
        let mut out = of::<f32>(run.device(), &[64], 2)?;
        let mut sums = of::<f32>(run.device(), &[64, 64], 2)?;
        run.launch(largest(&x, &mut out, &mut sums), 1)?;
        Ok([out.to_vec()?, sums.to_vec()?].concat())
    });
}

/// One kernel with changing sizes on one device: alignments, and so the kinds of copies, change and change back.
fn changing(lab: &mut Lab) {
    let sizes =
        [[64, 64, 64], [130, 72, 200], [1, 1, 1], [64, 100, 65], [64, 64, 64], [65, 8, 40], [128, 64, 256]];
    let expected: Vec<f32> = sizes.iter().flat_map(|&sizes| reference(sizes, 0..sizes[2])).collect();
    lab.check("changing sizes", Path::Any, &[config(0, 0)], Some(&expected), |run| {
        let mut all = Vec::new();
        for [m, n, k] in sizes {
            let (x, y) = (of::<bf16>(run.device(), &[m, k], 1)?, of::<bf16>(run.device(), &[k, n], 3)?);
            let mut out = of::<f32>(run.device(), &[m, n], 2)?;
            let steps = k.div_ceil(32) as i32;
            run.launch(product(&x, &y, &mut out, [64, 64, 32], 0, steps), (n.div_ceil(64), m.div_ceil(64)))?;
            all.extend(out.to_vec()?);
        }
        Ok(all)
    });
}

/// L02, L04, L59: where channels do not fit, products go without them: here 256 x 256 and 256 x 128 elements of 2 bytes a
/// stage. What does not fit then either says what it needs.
fn too_large(lab: &mut Lab) {
    let sizes = [256, 128, 512];
    let expected = reference(sizes, 0..sizes[2]);
    lab.check("too many stages", Path::Any, &[config(8, 2)], Some(&expected), |run| {
        let (x, y) = (of::<bf16>(run.device(), &[256, 512], 1)?, of::<bf16>(run.device(), &[512, 128], 3)?);
        let mut out = of::<f32>(run.device(), &[256, 128], 2)?;
        run.launch(product(&x, &y, &mut out, [256, 128, 256], 0, 2), 1)?;
        out.to_vec()
    });
    let x = DeviceTensor::<bf16>::meta(&[512, 512]).expect("a small shape");
    let mut out = DeviceTensor::<f32>::meta(&[512, 512]).expect("a small shape");
    for target in [Target::SM_80, Target::SM_90A] {
        // Equal buffers are counted.
        let launch = product(&x, &x, &mut out, [256, 256, 256], 0, 2).config(config(16, 0));
        for part in
            ["262144 bytes of shared memory", "2 x 131072 bytes for a tile of shape (256, 256) of bf16"]
        {
            lab.refused("shared memory", launch.ptx(&target), part);
        }
    }
}

/// Runs the cases of this file.
pub fn named() -> Report {
    let mut lab = Lab::new(2);
    widths::<bf16>(&mut lab);
    widths::<f16>(&mut lab);
    heights::<bf16>(&mut lab);
    heights::<f16>(&mut lab);
    slices::<f32>(&mut lab);
    slices::<bf16>(&mut lab);
    trips::<bf16>(&mut lab);
    trips::<f16>(&mut lab);
    tails::<bf16>(&mut lab);
    tails::<f16>(&mut lab);
    changing(&mut lab);
    too_large(&mut lab);
    lab.report
}
