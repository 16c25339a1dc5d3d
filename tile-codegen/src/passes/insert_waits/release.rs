//! Releases: where a loop gives the stages of its channels back.
//!
//! A stage is released after its last reader. Where that is a product which runs on, the release follows the next wait
//! that completes it; if there is none in the region, the stage before it is released instead, whose products are complete
//! once only one is pending.

use std::collections::BTreeSet;

use crate::ir::{Kernel, OpId, RegionId, ValueId};
use crate::lower::wgmma::is_wide;
use crate::ops::OpKind;
use crate::ops::mma_wait::MmaWait;
use crate::ops::release::Release;

/// Inserts releases for every channel that is received from inside a loop.
pub(super) fn run(kernel: &mut Kernel) {
    region(kernel, kernel.body, false);
}

fn region(kernel: &mut Kernel, id: RegionId, looped: bool) {
    for op in kernel.regions[id].ops.clone() {
        let inner = looped || matches!(kernel.ops[op].kind, OpKind::For(_) | OpKind::Loop(_));
        for region_id in kernel.ops[op].regions.clone() {
            region(kernel, region_id, inner);
        }
    }
    if !looped {
        return;
    }
    for op in kernel.regions[id].ops.clone() {
        if let OpKind::Receive(receive) = kernel.ops[op].kind.clone() {
            release(kernel, id, op, receive.channel, receive.stages);
        }
    }
}

fn release(kernel: &mut Kernel, region: RegionId, receive: OpId, channel: usize, stages: usize) {
    let loc = kernel.ops[receive].loc;
    let views = views(kernel, region, kernel.ops[receive].results[0]);
    let ops = kernel.regions[region].ops.clone();
    let at = |op: OpId| ops.iter().position(|&o| o == op).expect("the operation is in its region");
    let last = ops.iter().rposition(|&op| reads(kernel, op, &views)).unwrap_or_else(|| at(receive));
    let async_readers =
        ops.iter().enumerate().filter(|&(_, &op)| is_wide(kernel, op) && uses(kernel, op, &views));
    let last_async = async_readers.map(|(i, _)| i).next_back();
    let nested = ops.iter().any(|&op| !kernel.ops[op].regions.is_empty() && nested_product(kernel, op, &views));
    let insert = |index: usize, kind: OpKind, kernel: &mut Kernel| {
        let new = kernel.new_op(kind, Vec::new(), Vec::new(), loc);
        kernel.regions[region].ops.insert(index, new);
    };
    let now = Release { channel, stages, lagging: false };
    if nested {
        insert(last + 1, now.into(), kernel);
        insert(last + 1, MmaWait { pending: 0 }.into(), kernel);
        return;
    }
    let Some(product) = last_async else {
        insert(last + 1, now.into(), kernel);
        return;
    };
    // The next place after both at which the product is complete.
    let mut issued = 0;
    for (i, &op) in ops.iter().enumerate().skip(product + 1) {
        match &kernel.ops[op].kind {
            OpKind::MmaWait(wait) if wait.pending <= issued && i >= last => {
                insert(i + 1, now.into(), kernel);
                return;
            }
            _ if is_wide(kernel, op) => {
                issued += 1;
                if i >= last {
                    insert(i + 1, now.into(), kernel);
                    insert(i + 1, MmaWait { pending: issued }.into(), kernel);
                    return;
                }
            }
            _ => {}
        }
    }
    if last == product && stages > 1 {
        insert(last + 1, Release { channel, stages, lagging: true }.into(), kernel);
        insert(last + 1, MmaWait { pending: 1 }.into(), kernel);
    } else {
        insert(last + 1, now.into(), kernel);
        insert(last + 1, MmaWait { pending: 0 }.into(), kernel);
    }
}

/// A received tile and its views.
fn views(kernel: &Kernel, region: RegionId, tile: ValueId) -> BTreeSet<ValueId> {
    let mut found = BTreeSet::from([tile]);
    let mut regions = vec![region];
    let mut order = Vec::new();
    while let Some(region) = regions.pop() {
        for &op in &kernel.regions[region].ops {
            order.push(op);
            regions.extend(&kernel.ops[op].regions);
        }
    }
    loop {
        let before = found.len();
        for &op in &order {
            let op = &kernel.ops[op];
            if matches!(op.kind, OpKind::ViewShared(_)) && found.contains(&op.operands[0]) {
                found.insert(op.results[0]);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

fn uses(kernel: &Kernel, op: OpId, views: &BTreeSet<ValueId>) -> bool {
    kernel.ops[op].operands.iter().any(|v| views.contains(v))
}

/// Whether an operation, or one inside it, reads one of the views.
fn reads(kernel: &Kernel, op: OpId, views: &BTreeSet<ValueId>) -> bool {
    uses(kernel, op, views) || inside(kernel, op).into_iter().any(|op| uses(kernel, op, views))
}

/// Whether a product inside an operation reads one of the views.
fn nested_product(kernel: &Kernel, op: OpId, views: &BTreeSet<ValueId>) -> bool {
    inside(kernel, op).into_iter().any(|op| is_wide(kernel, op) && uses(kernel, op, views))
}

fn inside(kernel: &Kernel, op: OpId) -> Vec<OpId> {
    let mut found = Vec::new();
    let mut regions = kernel.ops[op].regions.clone();
    while let Some(region) = regions.pop() {
        for &op in &kernel.regions[region].ops {
            found.push(op);
            regions.extend(&kernel.ops[op].regions);
        }
    }
    found
}
