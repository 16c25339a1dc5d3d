//! Received tiles are waited for just before their first use, so that what comes before need not wait.
//!
//! A `receive`, and a view of what it gives, moves down in its region to the first operation that uses it, but not past a
//! jump out of the region: every path takes as many tiles out of a channel as its sender puts in.

use super::release::{jumps, reads};
use crate::ir::{Kernel, OpId, RegionId};
use crate::ops::OpKind;

/// Moves the receives and views of every region.
pub(super) fn run(kernel: &mut Kernel) {
    let regions: Vec<RegionId> = kernel.regions.ids().collect();
    for region in regions {
        let ops = kernel.regions[region].ops.clone();
        kernel.regions[region].ops = sunk(kernel, &ops);
    }
}

/// The operations of a region in their new order. From the last to the first, so that views are where they are used before
/// what they are views of follows.
fn sunk(kernel: &Kernel, ops: &[OpId]) -> Vec<OpId> {
    let mut order = ops.to_vec();
    for &id in ops.iter().rev() {
        let op = &kernel.ops[id];
        if !matches!(op.kind, OpKind::Receive(_) | OpKind::ViewShared(_)) {
            continue;
        }
        let from = order.iter().position(|&o| o == id).expect("operations only move");
        let results = op.results.iter().copied().collect();
        let stops = |other: OpId| reads(kernel, other, &results) || !jumps(kernel, other).is_empty();
        let Some(to) = order[from + 1..].iter().position(|&other| stops(other)) else { continue };
        order[from..=from + to].rotate_left(1);
    }
    order
}
