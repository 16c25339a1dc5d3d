//! `roles`: regions that groups of warps run at the same time. Only `assign_roles` makes it.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::OpError;
use crate::ir::Type;

/// Nothing -> nothing, one region for each role. Channels carry what one role makes for another.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Roles {
    /// Warps of each role, in the order of the block's threads.
    pub warps: Vec<usize>,
    /// Registers of each thread of each role; 0 leaves them as the kernel starts. All roles of a warpgroup have the same.
    pub registers: Vec<usize>,
    /// Roles of which one thread alone runs, 1 or 0 each.
    pub single: Vec<usize>,
}

impl Roles {
    /// The first warp of a role. A role of four warps or more starts a warpgroup, a smaller one stays inside of one.
    pub fn first_warp(&self, role: usize) -> usize {
        let align = |warps: usize| warps.clamp(1, 4).next_power_of_two();
        let end =
            self.warps[..role].iter().fold(0, |at: usize, &warps| at.next_multiple_of(align(warps)) + warps);
        end.next_multiple_of(align(self.warps[role]))
    }

    /// The warps of the block, in whole warpgroups where registers move between them.
    pub fn block_warps(&self) -> usize {
        let Some(last) = self.warps.len().checked_sub(1) else { return 0 };
        let warps = self.first_warp(last) + self.warps[last];
        if self.registers.iter().any(|&r| r > 0) { warps.next_multiple_of(4) } else { warps }
    }

    /// The warpgroups, each with the roles in it, or a role with its warpgroups.
    pub fn clusters(&self) -> Vec<Cluster> {
        let mut found: Vec<Cluster> = Vec::new();
        for role in 0..self.warps.len() {
            let first = self.first_warp(role) / 4 * 4;
            match found.last_mut() {
                Some(cluster) if cluster.first_warp == first => cluster.roles.end = role + 1,
                _ => {
                    let warps = self.warps[role].next_multiple_of(4);
                    found.push(Cluster { first_warp: first, warps, roles: role..role + 1 });
                }
            }
        }
        found
    }

    /// The registers that a thread starts with where registers move between warpgroups: an even share of the 512 that the
    /// register file of a multiprocessor with so many blocks has for each thread of one warpgroup, at most 256.
    pub fn start_registers(&self, blocks: usize) -> usize {
        (512 / blocks.max(1) / (self.block_warps() / 4).max(1) / 8 * 8).min(256)
    }
}

/// Whole warpgroups, and the roles that run in them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cluster {
    /// The first warp.
    pub first_warp: usize,
    /// Warps, a multiple of four.
    pub warps: usize,
    /// The roles.
    pub roles: std::ops::Range<usize>,
}

impl TileOp for Roles {
    fn name(&self) -> &'static str {
        "roles"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![
            ("warps", Attr::list(&self.warps)),
            ("registers", Attr::list(&self.registers)),
            ("single", Attr::list(&self.single)),
        ]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "roles").then(|| {
            Ok(Self {
                warps: attrs.indices("warps")?,
                registers: attrs.indices("registers")?,
                single: attrs.indices("single")?,
            })
        })
    }
    fn result_count(&self) -> usize {
        0
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        super::rule::no_operands("roles", operands)?;
        Ok(Vec::new())
    }
    fn effects(&self) -> Effects {
        Effects::Control
    }
}

// ---- in kernels

// ---- on the CPU

super::refused_by_cpu!(Roles);

// ---- in PTX

super::place::place_nothing!(Roles);

impl super::lower::Lower for Roles {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        cx.lower_roles(id, self);
    }
}
