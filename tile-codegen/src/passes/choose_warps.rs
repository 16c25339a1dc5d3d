//! `choose_warps`: how many warps a block has, unless the configuration says.

use crate::ir::{Kernel, Type};
use crate::ops::OpKind;

/// The most elements of one accumulator that a thread keeps in registers.
const ACCUMULATOR: usize = 64;
/// The elements of the largest other tile that a thread holds, as a goal.
const ELEMENTS: usize = 16;

/// Warps per block: enough that accumulators fit into registers and large tiles are shared by many threads.
pub fn choose_warps(kernel: &Kernel) -> usize {
    let (mut accumulator, mut largest) = (0, 0);
    kernel.walk(|_, op| {
        for &value in &op.results {
            if let Type::Tile(tile) = kernel.ty(value) {
                largest = largest.max(tile.numel());
                if matches!(op.kind, OpKind::Mma(_)) {
                    accumulator = accumulator.max(tile.numel());
                }
            }
        }
    });
    if accumulator > 0 {
        return (accumulator / (32 * ACCUMULATOR)).next_power_of_two().clamp(4, 8);
    }
    (largest / (32 * ELEMENTS)).next_power_of_two().clamp(1, 8)
}
