//! Tests of layouts against the formulas of the PTX manual and brute force.

mod anchors;
mod convert;
mod ldmatrix;
mod linear;
mod shared;

use super::{Layout, SharedLayout};
use proptest::prelude::*;

/// All `(reg, lane, warp)` of a layout.
fn places(layout: &Layout) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
    let (regs, warps) = (layout.num_regs(), layout.num_warps());
    (0..warps).flat_map(move |w| (0..32).flat_map(move |l| (0..regs).map(move |r| (r, l, w))))
}

/// Row-major flat index, by multiplication.
fn flatten(shape: &[usize], coords: &[usize]) -> u32 {
    shape.iter().zip(coords).fold(0, |flat, (n, c)| flat * n + c) as u32
}

/// Row-major coordinates, by division.
fn unflatten(shape: &[usize], flat: u32) -> Vec<usize> {
    let mut rest = flat as usize;
    let mut coords = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        coords[axis] = rest % shape[axis];
        rest /= shape[axis];
    }
    coords
}

/// Random layouts of rank 0 to 3: any placement of the bits over registers, lanes and warps, with replication, mixed
/// by random XORs of other bases.
fn layouts() -> impl Strategy<Value = Layout> {
    let shape = prop::collection::vec(0u32..4, 0..4);
    (shape, 0usize..3, any::<u64>()).prop_map(|(logs, warps, seed)| {
        let mut state = seed;
        let mut next = move |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        let bits: u32 = logs.iter().sum();
        let mut flat: Vec<u32> = (0..bits).map(|bit| 1 << bit).collect();
        // An invertible mix keeps the bases independent.
        for _ in 0..next(4) {
            if bits > 1 {
                let (to, from) = (next(bits as usize), next(bits as usize));
                if to != from {
                    flat[to] ^= flat[from];
                }
            }
        }
        let (mut reg, mut lane, mut warp) = (vec![], [0; 5], vec![0; warps]);
        for base in flat {
            match next(5 + warps + 4) {
                slot @ 0..5 if lane[slot] == 0 => lane[slot] = base,
                slot if slot >= 5 && slot < 5 + warps && warp[slot - 5] == 0 => warp[slot - 5] = base,
                _ => reg.push(base),
            }
        }
        // Sometimes a dependent, nonzero base.
        if next(3) == 0 && lane[4] == 0 {
            lane[4] = lane[0] ^ reg.first().copied().unwrap_or(0);
        }
        let shape = logs.iter().map(|log| 1 << log).collect();
        Layout::new(shape, reg, lane, warp).expect("a valid layout")
    })
}

/// Shared memory whose elements are their flat indices: `(byte offset, flat)` for all, by the offset function.
fn memory(shared: &SharedLayout) -> Vec<Option<u32>> {
    let mut cells = vec![None; shared.bytes as usize];
    for flat in 0..shared.shape.iter().product::<usize>() as u32 {
        let cell = &mut cells[shared.offset(flat) as usize];
        assert_eq!(*cell, None, "two elements at one offset");
        *cell = Some(flat);
    }
    cells
}
