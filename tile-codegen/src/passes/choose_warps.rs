//! `choose_warps`: how many warps a block has, unless the configuration says.

use super::{Changed, PassCx};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::{Kernel, Type};
use crate::ops::OpKind;
use crate::ops::mma::Mma;

/// The most elements of one accumulator that a thread keeps in registers.
const ACCUMULATOR: usize = 64;
/// The elements of the largest other tile that a thread holds, as a goal.
const ELEMENTS: usize = 16;

/// The most elements of a tile in a thread: its local memory is 512 KiB, of values of 4 bytes.
const LOCAL: usize = 1 << 17;
/// The most blocks on a multiprocessor, on any GPU.
const MAX_BLOCKS: u32 = 32;

/// Sets the number of warps.
///
/// # Errors
/// If the configuration asks for a number of warps, of stages, or of blocks on a multiprocessor that there cannot be, or a
/// tile is larger than threads can hold.
pub fn run(kernel: &mut Kernel, cx: &PassCx<'_>) -> Result<Changed, Diagnostics> {
    let warps = cx.config.num_warps.unwrap_or_else(|| match cx.target.warpgroups {
        true => choose_warpgroups(kernel),
        false => choose_warps(kernel),
    });
    if !(1..=16).contains(&warps) || !warps.is_power_of_two() {
        let message = format!("kernel `{}` with {warps} warps: a block has 1, 2, 4, 8 or 16", kernel.name);
        return Err(Diagnostic::new(Code::Target, message).into());
    }
    if let Some(blocks) = cx.config.occupancy
        && !(1..=MAX_BLOCKS).contains(&blocks)
    {
        let message = format!(
            "kernel `{}` with an occupancy of {blocks}: a multiprocessor holds 1 to {MAX_BLOCKS} blocks",
            kernel.name
        );
        return Err(Diagnostic::new(Code::Target, message).into());
    }
    if cx.config.stages == Some(0) {
        let message = format!("kernel `{}` with 0 stages: a channel has at least 1", kernel.name);
        return Err(Diagnostic::new(Code::Target, message).into());
    }
    let threads = 32 * warps;
    let largest = largest_tile(kernel);
    if largest / threads > LOCAL {
        let message = format!(
            "kernel `{}` has a tile of {largest} elements, {} for each thread of {warps} warps: at most {LOCAL} fit; use smaller \
             tiles and more blocks",
            kernel.name,
            largest / threads
        );
        return Err(Diagnostic::new(Code::Target, message).into());
    }
    kernel.num_warps = Some(warps);
    Ok(Changed::Yes)
}

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

/// Warps per block where warpgroups multiply: as [`choose_warps`], but so few that each has rows of most products.
fn choose_warpgroups(kernel: &Kernel) -> usize {
    let warps = choose_warps(kernel);
    let wide = |warps: usize| {
        let mut count = 0;
        kernel.walk(|_, op| {
            if matches!(op.kind, OpKind::Mma(_))
                && let (Some(a), Some(acc)) =
                    (kernel.ty(op.operands[0]).as_tile(), kernel.ty(op.results[0]).as_tile())
            {
                count += usize::from(Mma::wide(a, acc, warps).is_ok());
            }
        });
        count
    };
    if wide(4) > wide(warps) { 4 } else { warps }
}

/// The elements of the largest tile that an operation makes.
fn largest_tile(kernel: &Kernel) -> usize {
    let mut largest = 0;
    kernel.walk(|_, op| {
        for &value in &op.results {
            if let Type::Tile(tile) = kernel.ty(value) {
                largest = largest.max(tile.numel());
            }
        }
    });
    largest
}
