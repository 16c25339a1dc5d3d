//! What the instructions of Hopper mean, and the small ones: elections, register budgets, dependent grids.

use super::bulk::Source;
use super::report::ReportKind;
use super::state::Wait;
use super::step::Step;
use crate::ptx::{Hopper, Operand, Reg};

/// Registers of a multiprocessor.
const REGISTERS: u32 = 1 << 16;

/// Registers of each thread at the start, where a kernel says enough: `.maxnreg`, or as many as fit.
pub(super) fn initial_registers(threads: u32, max: Option<u32>, blocks: Option<u32>) -> u32 {
    max.unwrap_or_else(|| (REGISTERS / threads.max(1) / blocks.unwrap_or(1).max(1)).min(255) / 8 * 8)
}

impl Step<'_, '_> {
    pub(super) fn hopper(&mut self, inst: &Hopper) {
        match inst {
            Hopper::MbarrierInit { addr, count } => self.mbarrier_init(*addr, *count),
            Hopper::MbarrierInval { addr } => self.mbarrier_inval(*addr),
            Hopper::MbarrierArrive { addr, count } => self.mbarrier_arrive(*addr, *count, None),
            Hopper::MbarrierArriveExpectTx { addr, bytes } => self.mbarrier_arrive(*addr, None, Some(*bytes)),
            Hopper::MbarrierExpectTx { addr, bytes } => self.mbarrier_expect(*addr, *bytes),
            Hopper::MbarrierWait { blocking, dst, addr, parity } => {
                self.mbarrier_wait(*blocking, *dst, *addr, *parity)
            }
            Hopper::CpAsyncMbarrierArrive { addr } => self.copies_arrive(*addr),
            Hopper::BulkLoad { dst, src, bytes, mbar } => {
                self.bulk_load(*dst, Source::Line { global: *src, bytes: *bytes }, *mbar)
            }
            Hopper::BulkStore { dst, src, bytes } => {
                self.bulk_store(*src, Source::Line { global: *dst, bytes: *bytes })
            }
            Hopper::TensorLoad { dst, map, coords, mbar } => {
                self.bulk_load(*dst, Source::Tensor { map: *map, coords }, *mbar)
            }
            Hopper::TensorStore { map, coords, src } => {
                self.bulk_store(*src, Source::Tensor { map: *map, coords })
            }
            Hopper::BulkCommit => self.bulk_commit(),
            Hopper::BulkWait { pending, read: _ } => self.bulk_wait(*pending as usize),
            Hopper::PrefetchTensorMap { map } => self.prefetch_tensor_map(*map),
            Hopper::FenceProxyAsync { space: _ } => {
                self.warp.clock.proxy_fence();
                self.publish_mbarriers();
                self.warp.clock.tick(self.warp.index);
            }
            Hopper::FenceMbarrierInit => self.publish_mbarriers(),
            Hopper::WgmmaFence => self.wgmma_fence(),
            Hopper::Wgmma(product) => self.wgmma(product),
            Hopper::WgmmaCommit => self.wgmma_commit(),
            Hopper::WgmmaWait(pending) => self.wgmma_wait(*pending as usize),
            Hopper::SetMaxNReg { increase, count } => self.set_max_registers(*increase, *count),
            Hopper::Elect { dst, pred, mask } => self.elect(*dst, *pred, *mask),
            // The grids before have ended, and those after are not executed here.
            Hopper::GridDepWait | Hopper::GridDepLaunch => {}
            Hopper::ParamAddr { dst, param } => self.param_addr(*dst, *param),
            Hopper::CvtaParam { dst, src } => {
                let value = *self.warp.regs.plane(*src);
                self.set(*dst, &value);
            }
        }
    }

    /// The lowest lane of the mask is elected.
    fn elect(&mut self, dst: Option<Reg>, pred: Reg, mask: Operand) {
        let Some(members) = self.gather(mask) else { return };
        let lane = members.trailing_zeros();
        if let Some(dst) = dst {
            self.set(dst, &[lane.into(); 32]);
        }
        self.warp.regs.set_pred(pred, self.mask, 1 << lane);
    }

    /// Every warp gives its part of the block's registers back, or takes it once there are enough.
    fn set_max_registers(&mut self, increase: bool, count: u32) {
        self.need_32_lanes();
        let now = self.warp.max_registers;
        if increase && count < now || !increase && count > now {
            let message = || format!("{count} registers where each thread has {now}");
            self.report(ReportKind::WarpgroupMisuse, None, message);
            return;
        }
        if increase && i64::from((count - now) * 32) > self.block.free_registers {
            let need = i64::from((count - now) * 32);
            self.suspend(Wait::Registers { need, pc: self.pc });
            return;
        }
        self.block.free_registers += 32 * (i64::from(now) - i64::from(count));
        self.warp.max_registers = count;
    }
}
