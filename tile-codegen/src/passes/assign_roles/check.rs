//! What a partition must keep to: roles that fit a block, threads that can do what they are given, and tensors that
//! no role reads behind another's back.

use std::collections::BTreeMap;

use super::partition::{Partition, fault, fault_at, inside};
use crate::diag::Diagnostics;
use crate::ir::{Kernel, OpId, RegionId, ValueId, dim};
use crate::ops::indexed::Indexed;
use crate::ops::roles::{Cluster, Roles};
use crate::ops::{OpKind, TileOp};

/// The most warps of a block.
const WARPS: usize = 32;
/// The most roles: each has a barrier, and the block has one more, of 16.
const ROLES: usize = 15;
/// Registers that a thread can ask for (PTX ISA, `setmaxnreg`).
const REGISTERS: std::ops::RangeInclusive<usize> = 24..=256;

/// Checks the roles, and returns them as the operation that holds them.
pub(super) fn check_partition(partition: &Partition) -> Result<Roles, Diagnostics> {
    let count = partition.roles.len();
    if !(1..=ROLES).contains(&count) {
        return Err(fault(format!("{count} roles: a block has 1 to {ROLES}")));
    }
    for (i, role) in partition.roles.iter().enumerate() {
        if !role.warps.is_power_of_two() {
            return Err(fault(format!("role {i} has {} warps: a role has a power of two", role.warps)));
        }
    }
    if let Some((_, owner)) = partition.owner.iter().find(|&(_, &owner)| owner >= count) {
        return Err(fault(format!("an operation is given to role {owner}, and there are {count} roles")));
    }
    if partition.stages.values().any(|&stages| stages == 0) {
        return Err(fault("a channel has at least one stage"));
    }
    let roles = partition.roles();
    let warps = roles.block_warps();
    if warps > WARPS {
        return Err(fault(format!("the roles have {warps} warps: a block has at most {WARPS}")));
    }
    check_registers(&roles)?;
    Ok(roles)
}

fn check_registers(roles: &Roles) -> Result<(), Diagnostics> {
    let registers = |role: usize| roles.registers[role];
    for cluster in roles.clusters() {
        let first = registers(cluster.roles.start);
        if let Some(other) = cluster.roles.clone().find(|&role| registers(role) != first) {
            return Err(fault(format!(
                "roles {} and {other} share a warpgroup, and ask for {first} and {} registers: a warpgroup has one number",
                cluster.roles.start,
                registers(other)
            )));
        }
        if first != 0 && !(REGISTERS.contains(&first) && first.is_multiple_of(8)) {
            return Err(fault(format!(
                "role {} asks for {first} registers: a thread has a multiple of 8 from {} to {}",
                cluster.roles.start,
                REGISTERS.start(),
                REGISTERS.end()
            )));
        }
    }
    if roles.registers.iter().all(|&r| r == 0) {
        return Ok(());
    }
    let (groups, start) = (roles.block_warps() / 4, roles.start_registers(1));
    let asked = |cluster: Cluster| {
        let count = registers(cluster.roles.start);
        (if count == 0 { start } else { count }) * cluster.warps / 4
    };
    let sum: usize = roles.clusters().into_iter().map(asked).sum();
    if sum > groups * start {
        return Err(fault(format!(
            "the warpgroups ask for {sum} registers for each of their threads together, and share {}",
            groups * start
        )));
    }
    Ok(())
}

/// Checks the roles' regions once they hold what they need.
pub(super) fn check_roles(
    kernel: &Kernel,
    partition: &Partition,
    regions: &[RegionId],
) -> Result<(), Diagnostics> {
    // For each tensor that is written: a role that loads it, and one that stores to it.
    let mut loaded: BTreeMap<ValueId, (usize, OpId)> = BTreeMap::new();
    let mut stored: BTreeMap<ValueId, Vec<usize>> = BTreeMap::new();
    for (role, &region) in regions.iter().enumerate() {
        for id in inside(kernel, region) {
            if partition.roles[role].single {
                check_single(kernel, role, id)?;
            }
            let op = &kernel.ops[id];
            match &op.kind {
                OpKind::Load(_) | OpKind::Gather(_) => {
                    loaded.entry(op.operands[0]).or_insert((role, id));
                }
                OpKind::Store(_) | OpKind::Scatter(_) => stored.entry(op.operands[1]).or_default().push(role),
                OpKind::Atomic(atomic) => {
                    let tensor = Indexed::of(kernel, op, atomic.op.values()).tensor;
                    stored.entry(tensor).or_default().push(role);
                }
                _ => {}
            }
        }
    }
    for (tensor, stores) in stored {
        if let Some(&(role, id)) = loaded.get(&tensor)
            && let Some(other) = stores.iter().find(|&&store| store != role)
        {
            return Err(fault_at(
                kernel,
                id,
                format!("role {role} loads a tensor that role {other} stores to: one role must do both"),
            ));
        }
    }
    Ok(())
}

/// One thread holds no tiles.
fn check_single(kernel: &Kernel, role: usize, id: OpId) -> Result<(), Diagnostics> {
    let op = &kernel.ops[id];
    let tile = |&v: &ValueId| kernel.ty(v).as_tile().filter(|t| t.numel() > 1);
    let Some(tile) = op.results.iter().chain(&op.operands).find_map(tile) else { return Ok(()) };
    Err(fault_at(
        kernel,
        id,
        format!(
            "role {role} is one thread, and needs `{}` of a tile of shape {}: give the operation, or the scalar made of it, to \
             another role, so that it comes through a channel",
            op.kind.name(),
            dim::show(&tile.shape)
        ),
    ))
}
