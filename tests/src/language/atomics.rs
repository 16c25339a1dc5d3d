//! Atomic operations in every type, on places that many elements name and on places of their own, in every order and
//! scope. What is compared does not depend on who comes first.

use tile_runtime::prelude::*;

use super::{exact, one, plain};
use crate::held::Held;
use crate::input::Fill;
use crate::lab::Cases;

const ORDERS: [MemoryOrder; 4] =
    [MemoryOrder::Relaxed, MemoryOrder::Acquire, MemoryOrder::Release, MemoryOrder::AcqRel];
const SCOPES: [MemoryScope; 3] = [MemoryScope::Block, MemoryScope::Device, MemoryScope::System];

/// Counts, sums and bounds of a tile's elements, by their remainders; several blocks do the same.
#[tile_kernel]
fn by_remainder<T: Int>(x: Tensor<T, 1>, out: TensorMut<T, 1>, n: Const<usize>, how: Const<usize>)
where
    i32: Operand<Tile<T>> + Operand<Scalar<T>>,
{
    let t = load(x, (bid(0),), (n,));
    let place = (arange::<i32>(n) + bid(0)) % 7 - 1;
    let relaxed = Atomically::new().order(ORDERS[how % 4]).scope(SCOPES[1 + how % 2]);
    let far = place + 8;
    let on = place % 2 == 0;
    atomic_add_with(out, (place,), 1, relaxed);
    atomic_add_with(out, (far,), t, relaxed.mask(on));
    atomic_min_with(out, (far + 8,), t, relaxed);
    atomic_max_with(out, (far + 16,), t, relaxed);
    atomic_and_with(out, (far + 24,), t, relaxed);
    atomic_or_with(out, (far + 32,), t, relaxed);
    atomic_xor_with(out, (far + 40,), t, relaxed);
    atomic_xor(out, (far + 100,), t);
}

/// Old values of places of their own: each is the sum of what came before.
#[tile_kernel]
fn old_values<T: AtomicNumber>(x: Tensor<T, 2>, out: TensorMut<T, 2>, tile: [usize; 2], how: Const<usize>) {
    let how = Atomically::new().order(ORDERS[how % 4]).scope(SCOPES[how % 3]);
    let (row, column) = (arange::<i32>(tile[0]).expand_dims(1), arange::<i64>(tile[1]).expand_dims(0));
    let t = load(x, (0, 0), tile);
    let first = atomic_xchg_with(out, (row, column), t, how);
    let second = atomic_add_with(out, (row, column), t.extract((0, 0), (1, tile[1])), how);
    let third = atomic_add_with(out, (row, column), first, how.mask(row % 2 == 0));
    atomic_add_with(out, (row, column), second + third, how);
}

/// The same of one place, whose old value every thread needs, in the layout of a reduction and its transpose.
#[tile_kernel]
fn shared_old_values(x: Tensor<i32, 2>, out: TensorMut<i32, 2>, n: Const<usize>) {
    let t = load(x, (0, 0), (n, 16));
    let row = arange::<i32>(n);
    let sums = t.sum(1);
    let old = atomic_xchg(out, (row, 0), sums);
    let after = atomic_cas(out, (row, 0), sums, old + 1);
    store(out, (0, 1), (old + after).expand_dims(1));
    let (top, left) = (old.expand_dims(0), old.expand_dims(1));
    store_at(out, (0, 4), (top + left).extract((0, 0), (n, 4)));
    let mut ticket = atomic_add(out, (0, 2), 1).item();
    for _ in 0..3 {
        ticket += atomic_max(out, (0, 3), ticket + 5).item();
    }
    if ticket > 0 {
        store(out, (1, 2), ticket);
    }
}

/// Gathers, stores and atomics of the same elements in turns.
#[tile_kernel]
fn in_turns(x: Tensor<i32, 1>, out: TensorMut<i32, 1>) {
    for i in 0..4 {
        let old = gather(out, (arange::<i32>(64),));
        store(out, (0,), old + load(x, (i,), (64,)));
        atomic_add_with(out, (arange::<i32>(64) % 8,), i, Atomically::new().scope(MemoryScope::Block));
    }
}

/// A product whose depth blocks share: each adds its part, of windows that begin at no multiple of their size.
#[tile_kernel]
fn shared_depth(x: Tensor<bf16, 2>, out: TensorMut<f32, 2>, rows: Const<usize>) {
    let mut acc = zeros::<f32>((rows, 64));
    for i in 0..2 {
        let k = bid(0) * 2 + i;
        let a = load_at(x, (-1, k * 32 + 8), (rows, 32));
        acc = mma(a, load(x, (0, k), (64, 32)).transpose(), acc);
    }
    let (row, column) = (arange::<i32>(rows).expand_dims(1), arange::<i32>(64).expand_dims(0));
    atomic_add_with(out, (row, column), acc, Atomically::new().order(MemoryOrder::Relaxed));
}

fn of_integers<T: Held + Int>(cases: &mut Cases)
where
    i32: Operand<Tile<T>> + Operand<Scalar<T>>,
{
    for (how, n) in [1_usize, 16, 64, 512, 2048].into_iter().enumerate() {
        let case = exact(format!("atomics by remainder {n} {}", T::NAME), n, [3, 1, 1]);
        let (x, out) = (plain(&[2 * n + 5], Fill::Wide), plain(&[70], Fill::Wide));
        one::<T, T>(cases, case, x, out, move |x, out| by_remainder(x, out, n, how));
    }
}

fn of_numbers<T: Held + AtomicNumber>(cases: &mut Cases) {
    for (how, tile) in [[1, 1], [4, 4], [16, 32], [64, 8], [64, 64], [2, 2], [32, 1]].into_iter().enumerate()
    {
        let name = format!("old values {tile:?} {how} {}", T::NAME);
        let case = exact(name, tile[0] * tile[1], [1, 1, 1]);
        // Some elements are outside.
        let (x, out) = (plain(&tile, Fill::Small), plain(&[tile[0], tile[1].max(4) - 1], Fill::Small));
        one::<T, T>(cases, case, x, out, move |x, out| old_values(x, out, tile, how));
    }
}

/// Atomic operations.
pub fn atomics() -> Cases {
    let mut cases = Cases::default();
    of_integers::<i32>(&mut cases);
    of_integers::<u32>(&mut cases);
    of_integers::<i64>(&mut cases);
    of_numbers::<f32>(&mut cases);
    of_numbers::<i32>(&mut cases);
    of_numbers::<u32>(&mut cases);
    of_numbers::<i64>(&mut cases);
    for n in [4, 32, 128] {
        let case = exact(format!("old values of {n} rows"), n * n, [1, 1, 1]);
        let (x, out) = (plain(&[n, 16], Fill::Small), plain(&[n, 9], Fill::Small));
        one::<i32, i32>(&mut cases, case, x, out, move |x, out| shared_old_values(x, out, n));
    }
    for rows in [16, 64, 128] {
        let case = exact(format!("shared depth of {rows} rows"), rows * 64, [3, 1, 1]);
        let (x, out) = (plain(&[100, 176], Fill::Small), plain(&[rows, 64], Fill::Small));
        one::<bf16, f32>(&mut cases, case, x, out, move |x, out| shared_depth(x, out, rows));
    }
    let case = exact("in turns".into(), 64, [1, 1, 1]);
    let (x, out) = (plain(&[256], Fill::Small), plain(&[64], Fill::Small));
    one::<i32, i32>(&mut cases, case, x, out, |x, out| in_turns(x, out));
    cases
}
