//! A partition of a kernel into roles, and what carries it out.

use std::collections::{BTreeMap, BTreeSet};

use super::prune::prune;
use super::split::copy_for_role;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::{Kernel, LocId, OpId, RegionId};
use crate::ops::OpKind;
use crate::ops::roles::Roles;

/// A group of warps of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Role {
    /// Warps.
    pub warps: usize,
    /// Registers of each thread, 0 for as many as the kernel starts with.
    pub registers: usize,
    /// Whether one thread alone runs.
    pub single: bool,
}

/// Which role does what.
#[derive(Clone, Debug, Default)]
pub struct Partition {
    /// The roles.
    pub roles: Vec<Role>,
    /// The role that an operation runs in. Stores must have one; others without run in every role that needs them.
    pub owner: BTreeMap<OpId, usize>,
    /// Stages of the channel of an operation's result, where it crosses roles; 2 if not listed.
    pub stages: BTreeMap<OpId, usize>,
}

/// Replaces the body of a kernel by its roles.
///
/// # Errors
/// If a result that crosses roles is no tile that a channel can carry.
pub fn split(kernel: &mut Kernel, partition: &Partition) -> Result<(), Diagnostics> {
    let channels: BTreeMap<OpId, usize> =
        partition.owner.keys().enumerate().map(|(channel, &op)| (op, channel)).collect();
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
    let list = |f: fn(&Role) -> usize| partition.roles.iter().map(f).collect::<Vec<usize>>();
    let roles = Roles {
        warps: list(|r| r.warps),
        registers: list(|r| r.registers),
        single: list(|r| usize::from(r.single)),
    };
    kernel.num_warps = Some(roles.block_warps());
    let op = kernel.new_op(roles.into(), Vec::new(), Vec::new(), LocId::default());
    kernel.ops[op].regions = regions;
    kernel.regions[kernel.body].ops = vec![op];
    Ok(())
}

/// The channels that a region receives from.
fn receives(kernel: &Kernel, region: RegionId) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = vec![region];
    while let Some(region) = open.pop() {
        for &id in &kernel.regions[region].ops {
            let op = &kernel.ops[id];
            open.extend(&op.regions);
            if let OpKind::Receive(receive) = &op.kind {
                found.insert(receive.channel);
            }
        }
    }
    found
}

pub(super) fn fault(message: impl Into<String>) -> Diagnostics {
    Diagnostic::new(Code::Structure, message).into()
}
