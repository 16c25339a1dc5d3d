//! Roles: each runs its own code on its own warps, and counts threads and barriers by itself.

use super::LowerCx;
use crate::ir::OpId;
use crate::ops::OpKind;
use crate::ops::roles::{Cluster, Roles};
use crate::ptx::{Cmp, Hopper, IntOp, Label, Reg, SpecialReg, Ty};

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
    /// Whether one thread alone runs.
    pub single: bool,
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

    /// Whether the block is divided; each role then ends by itself.
    pub(super) fn has_roles(&self) -> bool {
        let ops = &self.kernel.regions[self.kernel.body].ops;
        ops.iter().any(|&id| matches!(self.kernel.ops[id].kind, OpKind::Roles(_)))
    }

    pub(crate) fn lower_roles(&mut self, id: OpId, roles: &Roles) {
        let end = self.f.label();
        let tid = self.f.special(SpecialReg::TidX);
        let clusters = roles.clusters();
        for (i, cluster) in clusters.iter().enumerate() {
            let next = self.f.label();
            if i + 1 < clusters.len() {
                let limit = 32 * (cluster.first_warp + cluster.warps) as i64;
                let beyond = self.f.setp(Cmp::Ge, Ty::S32, tid, limit);
                self.f.bra_if(beyond, next, true);
            }
            // All warps of a warpgroup ask for registers together, also those without a role.
            let registers = roles.registers[cluster.roles.start];
            if registers > 0 {
                let increase = registers > roles.start_registers(self.blocks);
                self.f.hopper(Hopper::SetMaxNReg { increase, count: registers as u32 });
            }
            self.cluster(id, roles, cluster, tid, end);
            self.f.place(next);
        }
        self.f.place(end);
    }

    /// Each warp runs its role; those without one are done.
    fn cluster(&mut self, id: OpId, roles: &Roles, cluster: &Cluster, tid: Reg, end: Label) {
        let regions = self.kernel.ops[id].regions.clone();
        let mut idle_before = cluster.first_warp;
        for role in cluster.roles.clone() {
            let (first, warps, single) = (roles.first_warp(role), roles.warps[role], roles.single[role] == 1);
            if first > idle_before {
                let idle = self.f.setp(Cmp::Lt, Ty::S32, tid, 32 * first as i64);
                self.f.bra_if(idle, end, true);
            }
            let next = self.f.label();
            let whole_rest = first + warps == cluster.first_warp + cluster.warps;
            if !whole_rest {
                let beyond = self.f.setp(Cmp::Ge, Ty::S32, tid, 32 * (first + warps) as i64);
                self.f.bra_if(beyond, next, true);
            }
            if single {
                let others = self.f.setp(Cmp::Ne, Ty::S32, tid, 32 * first as i64);
                self.f.bra_if(others, end, false);
            }
            let crew = Crew { first_warp: first, warps, barrier: role as u32 + 1, whole: false, single };
            self.with_crew(crew, |cx| cx.role_region(regions[role]));
            self.f.bra(end, true);
            self.f.place(next);
            idle_before = first + warps;
        }
        if idle_before < cluster.first_warp + cluster.warps {
            self.f.bra(end, true);
        }
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
        let prologues = std::mem::replace(&mut self.prologues, vec![Vec::new()]);
        let loaded = std::mem::take(&mut self.loaded);
        let thread = std::mem::take(&mut self.thread);
        let global = std::mem::take(&mut self.global);
        let channels = std::mem::take(&mut self.channels);
        lower(self);
        let body = self.f.kernel_mut().lines.split_off(start);
        let own = std::mem::replace(&mut self.prologues, prologues);
        self.f.kernel_mut().lines.extend(own.into_iter().flatten().chain(body));
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
