//! Elements named by index tiles: gathers and scatters in every type and arrangement in memory, permutations, tables.

use tile_runtime::prelude::*;

use super::{exact, lying, one, plain};
use crate::held::Held;
use crate::input::{Fill, INPUTS, OUTPUTS, View};
use crate::lab::Cases;

/// Elements in an order of their own, some of them outside: `i * step - 5` of a matrix read as rows and columns.
#[tile_kernel]
fn picked<T: Storable>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
    tile: [usize; 2],
    step: Scalar<i32>,
    how: Const<usize>,
) {
    let rows = (arange::<i32>(tile[0]) * step - 5 + bid(0)).expand_dims(1);
    let columns = (arange::<i64>(tile[1]) * 3 - 4).expand_dims(0);
    let (row, column) = (arange::<i32>(tile[0]).expand_dims(1), arange::<u32>(tile[1]).expand_dims(0));
    let even = (row + column.cast::<i32>()) % 2 == 0;
    let t = match how {
        0 => gather(x, (rows, columns)),
        1 => gather_masked(x, (rows, columns), even),
        2 => gather(x, (rows.cast::<u32>(), columns.cast::<i32>())),
        _ => gather(x, (bid(0), columns)).broadcast_to(tile),
    };
    store(out, (bid(0), 0), t);
}

/// Elements to an order of their own, some of them outside. Indices that meet bring the same value.
#[tile_kernel]
fn placed<T: Storable>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
    tile: [usize; 2],
    step: Scalar<i32>,
    how: Const<usize>,
) {
    let (row, column) = (arange::<i32>(tile[0]).expand_dims(1), arange::<i32>(tile[1]).expand_dims(0));
    let (rows, columns) = (row * step - 5, column * 3 - 4);
    let t = load(x, (0, 0), tile);
    match how {
        0 => scatter(out, (rows, columns), t),
        1 => scatter_masked(out, (rows, columns), t, row != 7),
        // Repeated along the rows.
        2 => scatter(out, (rows, columns.cast::<i64>()), t.extract((0, 0), (1, tile[1]))),
        // One element, by one thread.
        _ => scatter(out, (step, 3), t.extract((1, 1), (1, 1)).item()),
    }
}

/// A gather and a scatter by one permutation, `5 i + 3` modulo the length: what the second stores is the first's input.
#[tile_kernel]
fn there_and_back<T: Storable>(x: Tensor<T, 1>, out: TensorMut<T, 1>, n: Const<usize>) {
    let to = (arange::<i32>(n) * 5 + 3) % n;
    let t = gather(x, (to,));
    scatter(out, (to,), t);
}

/// Rows of a table that another tensor names, and the rows back to other places of a pool.
#[tile_kernel]
fn rows_of_a_table<T: Number>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
    slots: Tensor<i32, 1>,
    width: Const<usize>,
) {
    let slot = load_scalar(slots, (bid(0),));
    let slots = load(slots, (bid(0),), (16,));
    let columns = arange::<i32>(width).expand_dims(0);
    let rows = gather(x, (slots.expand_dims(1), columns));
    scatter(out, (slots.expand_dims(1), columns), rows + rows);
    scatter_masked(out, (slot, columns), load_at(x, (slot, 0), (1, width)), slot >= 0);
}

/// Each step reads what the one before wrote, in an order of its own.
#[tile_kernel]
fn chased(x: Tensor<i32, 1>, out: TensorMut<i32, 1>, steps: Scalar<i32>) {
    store(out, (0,), load(x, (0,), (128,)));
    let i = arange::<i32>(128);
    for step in 0..steps {
        let from = (i * 7 + step) % 128;
        scatter(out, ((i * 3 + 1) % 128,), gather(out, (from,)) + 1);
    }
}

/// Sums of gathered operands, in the layout of a product.
#[tile_kernel]
fn product_of_rows(x: Tensor<bf16, 2>, out: TensorMut<f32, 2>, rows: Const<usize>) {
    let (row, column) = (arange::<i32>(rows).expand_dims(1), arange::<i32>(32).expand_dims(0));
    let mut acc = zeros::<f32>((rows, rows));
    for k in 0..3 {
        let a = gather(x, ((row * 3 + k) % rows, column + 32 * k));
        acc = mma(a, load(x, (0, k), (rows, 32)).transpose(), acc);
    }
    scatter(out, (row, (arange::<i32>(rows) * 5).expand_dims(0)), acc);
}

fn moves<T: Held>(cases: &mut Cases) {
    let shape = [45, 90];
    for (i, tile) in [[1, 4], [8, 32], [32, 8], [64, 32], [4, 1]].into_iter().enumerate() {
        for how in 0..4 {
            let from = INPUTS[(i + how) % INPUTS.len()];
            let name = format!("gather {how} {tile:?} {from:?} {}", T::NAME);
            let case = exact(name, tile[0] * tile[1], [3, 1, 1]);
            let out = lying(&[3 * tile[0], tile[1]], View::Plain);
            one::<T, T>(cases, case, lying(&shape, from), out, move |x, out| picked(x, out, tile, 2, how));
            let to = OUTPUTS[(i + how) % OUTPUTS.len()];
            let name = format!("scatter {how} {tile:?} {to:?} {}", T::NAME);
            let case = exact(name, tile[0] * tile[1], [1, 1, 1]);
            let (x, out) = (plain(&tile, Fill::Wide), lying(&shape, to));
            if tile[0].min(tile[1]) > 1 || how < 3 {
                one::<T, T>(cases, case, x, out, move |x, out| placed(x, out, tile, 2, how));
            }
        }
    }
    for n in [1, 16, 64, 1024] {
        let case = exact(format!("there and back {n} {}", T::NAME), n, [1, 1, 1]);
        one::<T, T>(cases, case, plain(&[n], Fill::Wide), plain(&[n], Fill::Flags), move |x, out| {
            there_and_back(x, out, n)
        });
    }
}

fn tables<T: Held + Number>(cases: &mut Cases) {
    for width in [8, 64] {
        let case = exact(format!("rows of a table {width} {}", T::NAME), 16 * width, [1, 1, 1]);
        cases.add(case.name, case.tolerance, case.tile, move |run| {
            let view = View::Plain;
            let (_, x) = crate::input::tensor::<T>(run.device(), &[24, 60], view, Fill::Small, 1)?;
            let (memory, mut out) = crate::input::tensor::<T>(run.device(), &[24, 60], view, Fill::Flags, 2)?;
            // All rows apart, and two that are none.
            let slots = [3, 17, 0, 23, -1, 9, 5, 24, 2, 4, 6, 8, 10, 12, 14, 16];
            let slots = DeviceTensor::from_slice(run.device(), &[16], &slots)?;
            run.launch(rows_of_a_table(&x, &mut out, &slots, width), [1, 1, 1])?;
            crate::lab::values(&memory)
        });
    }
}

/// Gathers and scatters.
pub fn indexed() -> Cases {
    let mut cases = Cases::default();
    moves::<f32>(&mut cases);
    moves::<bf16>(&mut cases);
    moves::<i64>(&mut cases);
    moves::<u32>(&mut cases);
    moves::<bool>(&mut cases);
    tables::<f32>(&mut cases);
    tables::<f16>(&mut cases);
    tables::<i32>(&mut cases);
    let case = exact("chased".into(), 128, [1, 1, 1]);
    one::<i32, i32>(&mut cases, case, plain(&[128], Fill::Small), plain(&[128], Fill::Flags), |x, out| {
        chased(x, out, 9)
    });
    for rows in [16, 64] {
        let case = exact(format!("product of {rows} gathered rows"), rows * rows, [1, 1, 1]);
        let (x, out) = (plain(&[rows, 96], Fill::Small), plain(&[rows, 5 * rows], Fill::Flags));
        one::<bf16, f32>(&mut cases, case, x, out, move |x, out| product_of_rows(x, out, rows));
    }
    cases
}
