//! Releases: where a loop gives the stages of its channels back.
//!
//! A stage is released after its last reader. Where that is a product which runs on, the release follows the next wait
//! that completes it; if there is none in the region, the stage before it is released instead, whose products are complete
//! once only one is pending. A jump that leaves the region in between releases too: every role passes the same sends and
//! receives, so that a stage kept for good would be waited for.

use std::collections::BTreeSet;

use crate::ir::{Kernel, LocId, OpId, RegionId, ValueId};
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
    let ops = kernel.regions[region].ops.clone();
    let plan = plan(kernel, &ops, region, receive, stages);
    let (loc, kind) = (kernel.ops[receive].loc, Release { channel, stages, lagging: plan.lagging });
    let from = position(&ops, receive) + 1;
    let left: Vec<OpId> = ops[from..plan.at].iter().flat_map(|&op| jumps(kernel, op)).collect();
    for jump in left {
        insert_before_jump(kernel, jump, &kind, loc);
    }
    let release = kernel.new_op(kind.into(), Vec::new(), Vec::new(), loc);
    kernel.regions[region].ops.insert(plan.at, release);
    if let Some(pending) = plan.wait {
        let wait = kernel.new_op(MmaWait { pending }.into(), Vec::new(), Vec::new(), loc);
        kernel.regions[region].ops.insert(plan.at, wait);
    }
}

/// Where in a region a stage is released, and how.
struct Plan {
    at: usize,
    /// The products that may be pending, where a wait has to be put before.
    wait: Option<usize>,
    lagging: bool,
}

fn plan(kernel: &Kernel, ops: &[OpId], region: RegionId, receive: OpId, stages: usize) -> Plan {
    let views = views(kernel, region, kernel.ops[receive].results[0]);
    // A scalar is in a register once it is received.
    let placed = kernel.ty(kernel.ops[receive].results[0]).as_shared().is_some();
    let last = ops.iter().rposition(|&op| placed && reads(kernel, op, &views));
    let last = last.unwrap_or_else(|| position(ops, receive));
    let after = |at: usize, wait: Option<usize>| Plan { at: at + 1, wait, lagging: false };
    let nested = ops.iter().any(|&op| !kernel.ops[op].regions.is_empty() && nested_product(kernel, op, &views));
    if nested {
        return after(last, Some(0));
    }
    let Some(product) = ops.iter().rposition(|&op| is_wide(kernel, op) && uses(kernel, op, &views)) else {
        return after(last, None);
    };
    // The next place after both at which the product is complete.
    let mut issued = 0;
    for (i, &op) in ops.iter().enumerate().skip(product + 1) {
        match &kernel.ops[op].kind {
            OpKind::MmaWait(wait) if wait.pending <= issued && i >= last => return after(i, None),
            _ if is_wide(kernel, op) => {
                issued += 1;
                if i >= last {
                    return after(i, Some(issued));
                }
            }
            _ => {}
        }
    }
    match last == product && stages > 1 {
        true => Plan { at: last + 1, wait: Some(1), lagging: true },
        false => after(last, Some(0)),
    }
}

fn position(ops: &[OpId], op: OpId) -> usize {
    ops.iter().position(|&o| o == op).expect("the operation is in its region")
}

/// The jumps inside an operation that leave it: to a loop or a scope around it.
pub(super) fn jumps(kernel: &Kernel, op: OpId) -> Vec<OpId> {
    let mut found = Vec::new();
    let mut open = vec![(op, false, false)];
    while let Some((id, looped, scoped)) = open.pop() {
        let op = &kernel.ops[id];
        match op.kind {
            OpKind::Break(_) | OpKind::Continue(_) if !looped => found.push(id),
            OpKind::Exit(_) if !scoped => found.push(id),
            _ => {}
        }
        let looped = looped || matches!(op.kind, OpKind::For(_) | OpKind::Loop(_));
        let scoped = scoped || matches!(op.kind, OpKind::Scope(_));
        let inner = op.regions.iter().flat_map(|&region| &kernel.regions[region].ops);
        open.extend(inner.map(|&op| (op, looped, scoped)));
    }
    found
}

/// Waits for all products and releases, before a jump.
fn insert_before_jump(kernel: &mut Kernel, jump: OpId, release: &Release, loc: LocId) {
    let wait = kernel.new_op(MmaWait { pending: 0 }.into(), Vec::new(), Vec::new(), loc);
    let release = kernel.new_op(release.clone().into(), Vec::new(), Vec::new(), loc);
    let regions: Vec<RegionId> = kernel.regions.ids().collect();
    let holds = |&region: &RegionId| kernel.regions[region].ops.last() == Some(&jump);
    let region = regions.into_iter().find(holds).expect("a jump ends a region");
    let ops = &mut kernel.regions[region].ops;
    let end = ops.len() - 1;
    ops.splice(end..end, [wait, release]);
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
pub(super) fn reads(kernel: &Kernel, op: OpId, views: &BTreeSet<ValueId>) -> bool {
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
