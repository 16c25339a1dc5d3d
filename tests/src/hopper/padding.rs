//! Padding other than zero of tiles that come through channels: who receives them puts it in by a mask.

use tile_runtime::prelude::*;

use super::{Lab, Path, Run, config};
use crate::held::Held;
use crate::input::{Fill, View, tensor};
use crate::lab::Report;

/// The extents of the tensor that is loaded, and the sides of its tiles: the last tile of each axis is ragged.
const EXTENTS: [usize; 3] = [3, 5, 24];
const TILE: [usize; 3] = [2, 4, 16];
/// Tiles along each axis: one before the tensor, one after it.
const TILES: [usize; 3] = [4, 4, 4];
const PADS: [f32; 4] = [f32::NEG_INFINITY, f32::NAN, 7.5, -0.0];

/// Every tile in and around `x`, with floats around it; a product beside it asks for channels.
#[tile_kernel]
fn floats<T: Float>(
    x: Tensor<T, 3>,
    y: Tensor<bf16, 2>,
    out: TensorMut<f32, 4>,
    product: TensorMut<f32, 2>,
    from: Scalar<i64>,
    pad: Const<usize>,
) {
    let mut acc = zeros::<f32>((64, 64));
    for i in 0..64 {
        let at = (from - 1 + (i / 16).cast::<i64>(), i / 4 % 4 - 1, i % 4 - 1);
        let tile = load_with(x, at, TILE, PADS[pad]);
        store(out, (i, 0, 0, 0), tile.cast::<f32>().reshape((1, TILE[0], TILE[1], TILE[2])));
        let y = load(y, (0, 0), (64, 16));
        acc = mma(y, y.transpose(), acc);
    }
    store(product, (0, 0), acc);
}

/// The same of integers.
#[tile_kernel]
fn integers(x: Tensor<i32, 3>, y: Tensor<bf16, 2>, out: TensorMut<f32, 4>, product: TensorMut<f32, 2>) {
    let mut acc = zeros::<f32>((64, 64));
    for i in 0..64 {
        let tile = load_with(x, (i / 16 - 1, i / 4 % 4 - 1, i % 4 - 1), TILE, -7);
        store(out, (i, 0, 0, 0), tile.cast::<f32>().reshape((1, TILE[0], TILE[1], TILE[2])));
        let y = load(y, (0, 0), (64, 16));
        acc = mma(y, y.transpose(), acc);
    }
    store(product, (0, 0), acc);
}

/// L18: the largest element of a line whose last tile is ragged, and a product of ones with padding of ones.
#[tile_kernel]
fn tail(x: Tensor<f32, 1>, y: Tensor<bf16, 2>, most: TensorMut<f32, 1>, sums: TensorMut<f32, 2>) {
    let mut largest = f32::NEG_INFINITY + zeros::<f32>((64,));
    let mut acc = zeros::<f32>((64, 64));
    for k in 0..cdiv(x.dim(0), 64) {
        largest = maximum(largest, load_with(x, (k,), (64,), f32::NEG_INFINITY));
        acc = mma(load_with(y, (0, k), (64, 64), 1.0), load(y, (0, k), (64, 64)).transpose(), acc);
    }
    store(most, (0,), largest.max(0).item());
    store(sums, (0, 0), acc);
}

/// Element (a, b, c) of the tensor.
fn element([a, b, c]: [usize; 3]) -> usize {
    (a * 37 + b * 5 + c) % 61
}

fn values() -> Vec<usize> {
    let [p, n, m] = EXTENTS;
    (0..p * n * m).map(|at| element([at / (n * m), at / m % n, at % m])).collect()
}

/// What every tile must be: elements of the tensor, and the padding around them. `outside`: all tiles are.
fn tiles(pad: f32, outside: bool) -> Vec<f32> {
    let size = |sides: [usize; 3]| sides.iter().product::<usize>();
    let [_, n, m] = TILE;
    let element_of = |at: usize| {
        let (tile, inner) = (at / size(TILE), at % size(TILE));
        let tile = [tile / 16, tile / 4 % 4, tile % 4];
        let inner = [inner / (n * m), inner / m % n, inner % m];
        // The first tile of each axis is number -1.
        let place: Option<Vec<usize>> = (0..3)
            .map(|axis| (tile[axis] * TILE[axis] + inner[axis]).checked_sub(TILE[axis]))
            .zip(EXTENTS)
            .map(|(place, extent)| place.filter(|&place| place < extent && !outside))
            .collect();
        place.map_or(pad, |place| element([place[0], place[1], place[2]]) as f32)
    };
    (0..size(TILES) * size(TILE)).map(element_of).collect()
}

/// Numbers that compare: NaN and -0 become such.
fn comparable(list: Vec<f32>) -> Vec<f32> {
    let number = |x: f32| match x {
        x if x.is_nan() => 1000.0,
        x if x == 0.0 && x.is_sign_negative() => 2000.0,
        x => x,
    };
    list.into_iter().map(number).collect()
}

fn all<T: Held>(run: &Run<'_>, shape: &[usize], x: f64) -> Result<DeviceTensor<T>> {
    Ok(tensor(run.device(), shape, View::Plain, Fill::All(x), 1)?.1)
}

fn held<T: Held>(run: &Run<'_>) -> Result<DeviceTensor<T>> {
    let values: Vec<T> = values().into_iter().map(|x| T::of(x as f64)).collect();
    DeviceTensor::from_slice(run.device(), &EXTENTS, &values)
}

fn of_floats<T: Held + Float>(lab: &mut Lab, pads: &[usize], from: i64) {
    for &pad in pads {
        let name = format!("padding of {} around {} from {from}", PADS[pad], T::NAME);
        // The same product of ones in each of 64 iterations.
        let sums = vec![16.0 * 64.0; 64 * 64];
        let expected = [comparable(tiles(PADS[pad], from != 0)), sums].concat();
        lab.check(&name, Path::Wide, &[config(4, 1), config(4, 3)], Some(&expected), |run| {
            let (x, y) = (held::<T>(run)?, all::<bf16>(run, &[64, 16], 1.0)?);
            let mut out = all::<f32>(run, &[64, TILE[0], TILE[1], TILE[2]], 99.0)?;
            let mut product = all::<f32>(run, &[64, 64], 99.0)?;
            run.launch(floats(&x, &y, &mut out, &mut product, from, pad), 1)?;
            Ok([comparable(out.to_vec()?), product.to_vec()?].concat())
        });
    }
}

fn of_integers(lab: &mut Lab) {
    let expected = tiles(-7.0, false);
    lab.check("padding of -7 around i32", Path::Wide, &[config(4, 2)], Some(&expected), |run| {
        let (x, y) = (held::<i32>(run)?, all::<bf16>(run, &[64, 16], 1.0)?);
        let mut out = all::<f32>(run, &[64, TILE[0], TILE[1], TILE[2]], 99.0)?;
        run.launch(integers(&x, &y, &mut out, &mut all::<f32>(run, &[64, 64], 99.0)?), 1)?;
        out.to_vec()
    });
}

/// 100 elements, all of them -3, and 62 rows of 104 ones: rows and columns outside are ones as well.
fn tails(lab: &mut Lab) {
    let sums = (0..64 * 64).map(|at| if at % 64 < 62 { 104.0 } else { 0.0 });
    let expected: Vec<f32> = [-3.0].into_iter().chain(sums).collect();
    lab.check("L18", Path::Wide, &[config(4, 1), config(4, 3)], Some(&expected), |run| {
        let (x, y) = (all::<f32>(run, &[100], -3.0)?, all::<bf16>(run, &[62, 104], 1.0)?);
        let (mut most, mut sums) = (all::<f32>(run, &[1], 99.0)?, all::<f32>(run, &[64, 64], 99.0)?);
        run.launch(tail(&x, &y, &mut most, &mut sums), 1)?;
        Ok([most.to_vec()?, sums.to_vec()?].concat())
    });
}

/// Runs the kernels of this file on 8 schedules.
pub fn padding() -> Report {
    let mut lab = Lab::new(8);
    of_floats::<bf16>(&mut lab, &[0, 1, 2, 3], 0);
    of_floats::<f16>(&mut lab, &[1], 0);
    of_floats::<f32>(&mut lab, &[0, 3], 0);
    // Tiles whose first element, counted in 64 bits, would be inside the tensor again.
    for from in [i64::MIN + 1, i64::MAX - 8, 1 << 40] {
        of_floats::<bf16>(&mut lab, &[2], from);
    }
    of_integers(&mut lab);
    tails(&mut lab);
    lab.report
}
