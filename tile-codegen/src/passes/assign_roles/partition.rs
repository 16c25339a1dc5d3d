//! A partition of a kernel into roles, and what carries it out.

use std::collections::{BTreeMap, BTreeSet};

use super::bulk_layout;
use super::check::{check_partition, check_roles};
use super::mask::mask;
use super::prune::prune;
use super::split::copy_for_role;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::{Kernel, LocId, OpId, RegionId, ValueId};
use crate::ops::OpKind;
use crate::ops::roles::Roles;

/// A group of warps of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Role {
    /// Warps, a power of two. Roles of less than four that follow each other share warpgroups.
    pub warps: usize,
    /// Registers of each thread, 0 for as many as the kernel starts with. All roles of a warpgroup have the same.
    pub registers: usize,
    /// Whether one thread alone runs. It computes scalars, and its loads are bulk tensor copies into channels.
    pub single: bool,
}

/// Which role does what.
#[derive(Clone, Debug, Default)]
pub struct Partition {
    /// The roles.
    pub roles: Vec<Role>,
    /// The role that an operation runs in, of any kind but those that end a region. Its results reach the other roles that
    /// need them through channels: of a loop or branch, the results alone belong to the role, and what is inside has
    /// owners of its own. Stores must have a role; other operations without one run in every role that needs them. Stores
    /// of several roles to one tensor come in no order, so they should not meet.
    pub owner: BTreeMap<OpId, usize>,
    /// Stages of the channels of an operation's results, where they cross roles; 2 if not listed.
    pub stages: BTreeMap<OpId, usize>,
}

/// Replaces the body of a kernel by its roles.
///
/// # Errors
/// If the roles do not fit a block, a store has none, a role of one thread needs a tile, or one role loads what
/// another stores. The kernel is then to be thrown away.
pub fn split(kernel: &mut Kernel, partition: &Partition) -> Result<(), Diagnostics> {
    let roles = check_partition(partition)?;
    let regions = copies(kernel, partition)?;
    kernel.num_warps = Some(roles.block_warps());
    let op = kernel.new_op(roles.into(), Vec::new(), Vec::new(), LocId::default());
    kernel.ops[op].regions = regions;
    kernel.regions[kernel.body].ops = vec![op];
    Ok(())
}

/// Replaces the body of a kernel by what `loader`, a role of one thread, does, and then what the other of two roles does:
/// everything is sent before anything else. False, and the kernel is to be thrown away, if the loader has a loop.
///
/// # Errors
/// As [`split`].
pub(super) fn send_first(
    kernel: &mut Kernel,
    partition: &Partition,
    loader: usize,
) -> Result<bool, Diagnostics> {
    let regions = copies(kernel, partition)?;
    let looped = |id: OpId| matches!(kernel.ops[id].kind, OpKind::For(_) | OpKind::Loop(_));
    if inside(kernel, regions[loader]).into_iter().any(looped) {
        return Ok(false);
    }
    let mut ops = Vec::new();
    for region in [regions[loader], regions[1 - loader]] {
        ops.extend(kernel.regions[region].ops.iter().copied());
        // The `yield` at the end of the role.
        ops.pop();
    }
    kernel.regions[kernel.body].ops = ops;
    Ok(true)
}

/// A copy of the body for each role.
fn copies(kernel: &mut Kernel, partition: &Partition) -> Result<Vec<RegionId>, Diagnostics> {
    mask_loads(kernel, partition);
    let results = |&op: &OpId| kernel.ops[op].results.clone();
    let channels: BTreeMap<ValueId, usize> =
        partition.owner.keys().flat_map(results).enumerate().map(|(channel, value)| (value, channel)).collect();
    // Which channels have receivers follows from what roles need, which follows from the channels they fill.
    let mut needed: BTreeSet<usize> = BTreeSet::new();
    let regions = loop {
        let mut regions: Vec<RegionId> = Vec::new();
        let mut received: BTreeSet<usize> = BTreeSet::new();
        for role in 0..partition.roles.len() {
            let region = copy_for_role(kernel, partition, &channels, &needed, role)?;
            prune(kernel, region);
            received.extend(receives(kernel, region));
            regions.push(region);
        }
        if received == needed {
            break regions;
        }
        needed = received;
    };
    check_roles(kernel, partition, &regions)?;
    Ok(regions)
}

/// Masks the loads of roles of one thread whose padding bulk tensor copies do not fill in.
fn mask_loads(kernel: &mut Kernel, partition: &Partition) {
    for (&op, &owner) in &partition.owner {
        if partition.roles[owner].single && bulk_layout(kernel, op).is_some() {
            mask(kernel, op);
        }
    }
}

impl Partition {
    /// What the roles are, as the operation that holds them.
    pub(super) fn roles(&self) -> Roles {
        let list = |f: fn(&Role) -> usize| self.roles.iter().map(f).collect::<Vec<usize>>();
        Roles {
            warps: list(|r| r.warps),
            registers: list(|r| r.registers),
            single: list(|r| usize::from(r.single)),
        }
    }
}

/// The channels that a region receives from.
fn receives(kernel: &Kernel, region: RegionId) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for id in inside(kernel, region) {
        if let OpKind::Receive(receive) = &kernel.ops[id].kind {
            found.insert(receive.channel);
        }
    }
    found
}

/// The operations of a region and of those inside it.
pub(super) fn inside(kernel: &Kernel, region: RegionId) -> Vec<OpId> {
    let mut found = Vec::new();
    let mut open = vec![region];
    while let Some(region) = open.pop() {
        for &id in &kernel.regions[region].ops {
            found.push(id);
            open.extend(&kernel.ops[id].regions);
        }
    }
    found
}

pub(super) fn fault(message: impl Into<String>) -> Diagnostics {
    Diagnostic::new(Code::Structure, message).into()
}

/// A fault at the source line of an operation.
pub(super) fn fault_at(kernel: &Kernel, op: OpId, message: impl Into<String>) -> Diagnostics {
    let mut fault = Diagnostic::new(Code::Structure, message);
    fault.loc = kernel.locs.get(kernel.ops[op].loc).cloned();
    fault.into()
}
