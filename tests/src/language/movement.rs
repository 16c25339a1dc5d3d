//! Data that only moves: loads and stores of every tile size and arrangement in memory, padding, reshape, permute,
//! broadcast, extract.

use tile_runtime::prelude::*;

use super::{exact, lying, one, plain};
use crate::held::Held;
use crate::input::{Fill, INPUTS, OUTPUTS, View};
use crate::lab::Cases;

#[tile_kernel]
fn copy_line<T: Storable>(x: Tensor<T, 1>, out: TensorMut<T, 1>, n: Const<usize>) {
    store(out, (bid(0),), load(x, (bid(0),), (n,)));
}

#[tile_kernel]
fn copy<T: Storable>(x: Tensor<T, 2>, out: TensorMut<T, 2>, rows: Const<usize>, columns: Const<usize>) {
    let at = (bid(1), bid(0));
    store(out, at, load(x, at, (rows, columns)));
}

#[tile_kernel]
fn transposed<T: Storable>(x: Tensor<T, 2>, out: TensorMut<T, 2>, rows: Const<usize>, columns: Const<usize>) {
    store(out, (bid(0), bid(1)), load(x, (bid(1), bid(0)), (rows, columns)).transpose());
}

/// Padding shows in the result: the whole tile is stored, also what lies outside `x`.
#[tile_kernel]
fn padded<T: Number>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
    rows: Const<usize>,
    columns: Const<usize>,
    wide: bool,
) where
    i32: Operand<Tile<T>>,
{
    let at = (bid(1), bid(0));
    let shape = (rows, columns);
    store(out, at, if wide { load_with(x, at, shape, -7) } else { load(x, at, shape) });
}

#[tile_kernel]
fn padded_floats<T: Float>(x: Tensor<T, 2>, out: TensorMut<T, 2>, rows: Const<usize>, columns: Const<usize>) {
    let at = (bid(1), bid(0));
    store(out, at, load_with(x, at, (rows, columns), f32::NEG_INFINITY));
}

#[tile_kernel]
fn permuted<T: Storable>(x: Tensor<T, 3>, out: TensorMut<T, 3>, shape: [usize; 3], axes: [usize; 3]) {
    let at = [bid(0), bid(1), bid(2)];
    let t = load(x, at, shape).permute(axes);
    store(out, [at[axes[0]], at[axes[1]], at[axes[2]]], t);
}

/// Through three shapes of the same elements; not the identity, because a transpose lies between.
#[tile_kernel]
fn reshaped<T: Storable>(x: Tensor<T, 2>, out: TensorMut<T, 1>, rows: Const<usize>, columns: Const<usize>) {
    let t = load(x, (0, bid(0)), (rows, columns)).reshape((rows * columns / 4, 4)).transpose();
    store(
        out,
        (bid(0),),
        t.reshape((2, 2, rows * columns / 4)).permute((1, 0, 2)).reshape((rows * columns,)),
    );
}

#[tile_kernel]
fn extracted<T: Storable>(x: Tensor<T, 2>, out: TensorMut<T, 2>, at: [usize; 2], shape: [usize; 2]) {
    store(out, (0, 0), load(x, (0, 0), (32, 64)).extract(at, shape));
}

#[tile_kernel]
fn spread<T: Storable>(x: Tensor<T, 1>, out: TensorMut<T, 3>, axis: Const<usize>) {
    let line = load(x, (bid(0),), (16,));
    let t = match axis {
        0 => line.reshape((16, 1, 1)),
        1 => line.reshape((1, 16, 1)),
        _ => line.reshape((1, 1, 16)),
    };
    store(out, (bid(0), 0, 0), t.broadcast_to((16, 16, 16)));
}

#[tile_kernel]
fn five_axes<T: Storable>(x: Tensor<T, 5>, out: TensorMut<T, 5>) {
    let at = [bid(0), 0 * bid(0), bid(1), 0 * bid(0), bid(2)];
    let t = load(x, at, (1, 4, 2, 1, 16)).reshape((4, 2, 16)).permute((2, 0, 1));
    store(
        out,
        [bid(0), bid(2), bid(1), 0 * bid(0), 0 * bid(0)],
        t.reshape((1, 16, 4, 2, 1)).permute((0, 1, 3, 4, 2)),
    );
}

fn grid(shape: [usize; 2], rows: usize, columns: usize) -> [usize; 3] {
    [shape[1].div_ceil(columns), shape[0].div_ceil(rows), 1]
}

fn sizes<T: Held>(cases: &mut Cases) {
    for log in 0..=14 {
        let n = 1_usize << log;
        for len in [3 * n - 1, 2 * n] {
            let how = exact(format!("copy {len} {} by {n}", T::NAME), n, [len.div_ceil(n), 1, 1]);
            one::<T, T>(cases, how, plain(&[len], Fill::Wide), plain(&[len], Fill::Flags), move |x, out| {
                copy_line(x, out, n)
            });
        }
    }
}

fn views<T: Held>(cases: &mut Cases) {
    let shape = [75, 150];
    for (rows, columns) in [(1, 1), (1, 128), (64, 1), (2, 4), (16, 16), (8, 64), (64, 32), (128, 128)] {
        // An exchange of 128x128 elements of 8 bytes does not fit shared memory.
        if rows * columns == 1 && T::NAME != "f32" || rows * columns == 16_384 && T::NAME == "i64" {
            continue;
        }
        for from in INPUTS {
            let how = exact(
                format!("copy {from:?} {} by {rows}x{columns}", T::NAME),
                rows * columns,
                grid(shape, rows, columns),
            );
            one::<T, T>(cases, how, lying(&shape, from), lying(&shape, View::Plain), move |x, out| {
                copy(x, out, rows, columns)
            });
        }
        for to in OUTPUTS {
            let how = exact(
                format!("transpose to {to:?} {} by {rows}x{columns}", T::NAME),
                rows * columns,
                grid(shape, rows, columns),
            );
            one::<T, T>(cases, how, lying(&shape, View::Plain), lying(&[150, 75], to), move |x, out| {
                transposed(x, out, rows, columns)
            });
        }
    }
}

fn shapes<T: Held>(cases: &mut Cases) {
    for axes in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for (tile, shape) in
            [([2, 4, 8], [3_usize, 7, 13]), ([8, 16, 32], [11, 17, 70]), ([1, 1, 64], [2, 2, 100])]
        {
            let how = exact(
                format!("permute {tile:?} {axes:?} {}", T::NAME),
                tile.iter().product(),
                std::array::from_fn(|i| shape[i].div_ceil(tile[i])),
            );
            let to = axes.map(|axis| shape[axis]);
            one::<T, T>(cases, how, plain(&shape, Fill::Wide), plain(&to, Fill::Flags), move |x, out| {
                permuted(x, out, tile, axes)
            });
        }
    }
    for (rows, columns) in [(1, 4), (2, 8), (16, 16), (4, 128), (64, 64)] {
        let how = exact(format!("reshape {rows}x{columns} {}", T::NAME), rows * columns, [3, 1, 1]);
        let n = 3 * rows * columns;
        one::<T, T>(
            cases,
            how,
            plain(&[rows, 3 * columns - 1], Fill::Wide),
            plain(&[n], Fill::Flags),
            move |x, out| reshaped(x, out, rows, columns),
        );
    }
    for (at, shape) in [
        ([0, 0], [32, 64]),
        ([1, 3], [16, 16]),
        ([31, 0], [1, 64]),
        ([0, 63], [32, 1]),
        ([5, 7], [4, 8]),
        ([17, 33], [1, 1]),
    ] {
        let how = exact(format!("extract {shape:?} at {at:?} {}", T::NAME), 2048, [1, 1, 1]);
        one::<T, T>(cases, how, plain(&[32, 64], Fill::Wide), plain(&shape, Fill::Flags), move |x, out| {
            extracted(x, out, at, shape)
        });
    }
    for axis in 0..3 {
        let how = exact(format!("broadcast along all but axis {axis} {}", T::NAME), 4096, [2, 1, 1]);
        one::<T, T>(
            cases,
            how,
            plain(&[30], Fill::Wide),
            plain(&[31, 15, 16], Fill::Flags),
            move |x, out| spread(x, out, axis),
        );
    }
    let how = exact(format!("five axes {}", T::NAME), 128, [2, 2, 2]);
    one::<T, T>(
        cases,
        how,
        plain(&[2, 4, 3, 1, 20], Fill::Wide),
        plain(&[2, 20, 2, 1, 4], Fill::Flags),
        |x, out| five_axes(x, out),
    );
}

fn pads<T: Held + Float>(cases: &mut Cases) {
    for (rows, columns) in [(4, 4), (16, 64), (128, 32)] {
        let how = exact(format!("pad -inf {rows}x{columns} {}", T::NAME), rows * columns, [2, 2, 1]);
        let out = [2 * rows, 2 * columns];
        one::<T, T>(
            cases,
            how,
            plain(&[rows + 1, columns + 3], Fill::Wide),
            plain(&out, Fill::Flags),
            move |x, out| padded_floats(x, out, rows, columns),
        );
    }
}

fn int_pads<T: Held + Int>(cases: &mut Cases)
where
    i32: Operand<Tile<T>>,
{
    for (rows, columns) in [(4, 4), (16, 64)] {
        for wide in [false, T::NAME != "u32"] {
            let how = exact(format!("pad {wide} {rows}x{columns} {}", T::NAME), rows * columns, [2, 2, 1]);
            let out = [2 * rows, 2 * columns];
            one::<T, T>(
                cases,
                how,
                plain(&[rows + 1, columns + 3], Fill::Wide),
                plain(&out, Fill::Flags),
                move |x, out| padded(x, out, rows, columns, wide),
            );
        }
    }
}

/// Data movement.
pub fn movement() -> Cases {
    let mut cases = Cases::default();
    sizes::<f32>(&mut cases);
    sizes::<bf16>(&mut cases);
    sizes::<i64>(&mut cases);
    sizes::<bool>(&mut cases);
    views::<f32>(&mut cases);
    views::<f16>(&mut cases);
    views::<i64>(&mut cases);
    views::<bool>(&mut cases);
    shapes::<f32>(&mut cases);
    shapes::<bf16>(&mut cases);
    shapes::<i64>(&mut cases);
    shapes::<bool>(&mut cases);
    pads::<f32>(&mut cases);
    pads::<f16>(&mut cases);
    pads::<bf16>(&mut cases);
    int_pads::<i32>(&mut cases);
    int_pads::<i64>(&mut cases);
    int_pads::<u32>(&mut cases);
    cases
}
