//! Roles: each runs its own code on its own warps, and counts threads and barriers by itself.

use super::LowerCx;
use crate::ir::OpId;
use crate::ops::roles::Roles;
use crate::ptx::{Cmp, Hopper, IntOp, SpecialReg, Ty};

/// The threads that run the code being lowered.
#[derive(Clone, Copy)]
pub(super) struct Crew {
    /// The first warp.
    pub first_warp: usize,
    /// Warps.
    pub warps: usize,
    /// The barrier that they meet at.
    pub barrier: u32,
    /// Whether they are the whole block.
    pub whole: bool,
}

impl LowerCx<'_> {
    /// All threads of the role, or of the block, wait for each other.
    pub fn barrier(&mut self) {
        self.wait_for_bulk_stores();
        if self.crew.whole {
            self.f.bar_sync();
        } else {
            let threads = Some(32 * self.crew.warps as u32);
            self.f.emit(crate::ptx::Inst::BarSync { id: i64::from(self.crew.barrier).into(), threads });
        }
    }

    pub(crate) fn lower_roles(&mut self, id: OpId, roles: &Roles) {
        let op = self.kernel.ops[id].clone();
        self.init_channels();
        let tid = self.f.special(SpecialReg::TidX);
        let end = self.f.label();
        for (role, &region) in op.regions.iter().enumerate() {
            let next = self.f.label();
            let first = roles.first_warp(role);
            let last = role + 1 == op.regions.len();
            let limit = 32 * (first + roles.warps[role]) as i64;
            let beyond = self.f.setp(Cmp::Ge, Ty::S32, tid, limit);
            self.f.bra_if(beyond, next, true);
            if roles.registers[role] > 0 {
                self.set_registers(roles.registers[role], roles);
            }
            if roles.single[role] == 1 {
                let others = self.f.setp(Cmp::Ne, Ty::S32, tid, 32 * first as i64);
                self.f.bra_if(others, end, false);
            }
            let crew =
                Crew { first_warp: first, warps: roles.warps[role], barrier: role as u32 + 1, whole: false };
            self.with_crew(crew, |cx| cx.role_region(region));
            self.f.bra(end, true);
            self.f.place(next);
            // Warps that fill up the last warpgroup.
            if last && roles.block_warps() > first + roles.warps[role] && roles.registers[role] > 0 {
                self.set_registers(roles.registers[role], roles);
            }
        }
        self.f.place(end);
    }

    /// Gives registers to a warpgroup that computes, or takes them from one that does not. What all ask for is no more than
    /// the block starts with, so that those above the average are given some.
    fn set_registers(&mut self, count: usize, roles: &Roles) {
        let warps: usize = roles.warps.iter().sum();
        let total: usize = roles.warps.iter().zip(&roles.registers).map(|(w, r)| w * r).sum();
        self.f.hopper(Hopper::SetMaxNReg { increase: count * warps > total, count: count as u32 });
    }

    fn role_region(&mut self, region: crate::ir::RegionId) {
        for &id in &self.kernel.regions[region].ops {
            let op = &self.kernel.ops[id];
            if op.kind.is_terminator() {
                self.wait_for_bulk_stores();
                return;
            }
            self.f.set_loc(op.loc.0);
            crate::ops::lower::Lower::lower(&op.kind, self, id);
        }
    }

    /// Lowers with values of the prologue of its own: what one role computes once, the others need not hold.
    fn with_crew(&mut self, crew: Crew, lower: impl FnOnce(&mut Self)) {
        let start = self.f.len();
        let outer_crew = std::mem::replace(&mut self.crew, crew);
        let prologue = std::mem::take(&mut self.prologue);
        let loaded = std::mem::take(&mut self.loaded);
        let thread = std::mem::take(&mut self.thread);
        let global = std::mem::take(&mut self.global);
        let channels = std::mem::take(&mut self.channels);
        lower(self);
        let body = self.f.kernel_mut().lines.split_off(start);
        let own = std::mem::replace(&mut self.prologue, prologue);
        self.f.kernel_mut().lines.extend(own.into_iter().chain(body));
        (self.crew, self.loaded, self.thread, self.global, self.channels) =
            (outer_crew, loaded, thread, global, channels);
    }

    /// The thread's index in its role.
    pub(super) fn role_tid(&mut self) -> crate::ptx::Reg {
        let first = 32 * self.crew.first_warp as i64;
        self.hoist(|f| {
            let tid = f.special(SpecialReg::TidX);
            let own = f.int(IntOp::Sub, Ty::S32, tid, first);
            f.materialize(Ty::S32, own)
        })
    }
}
