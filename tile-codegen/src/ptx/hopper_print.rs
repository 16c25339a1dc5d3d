//! The text of the instructions of Hopper.

use super::hopper::{Coords, Hopper, Wgmma, WgmmaA};
use super::module::Param;
use super::ops::Space;
use super::print_inst::Numbers;
use super::reg::*;

impl Numbers {
    pub(super) fn hopper(&self, inst: &Hopper, params: &[Param]) -> String {
        let at = |addr: &Addr| self.addr(*addr, params);
        let word = |operand: &Operand| self.op(*operand, Ty::U32);
        match inst {
            Hopper::MbarrierInit { addr, count } => {
                format!("mbarrier.init.shared::cta.b64 {}, {}", at(addr), word(count))
            }
            Hopper::MbarrierInval { addr } => format!("mbarrier.inval.shared::cta.b64 {}", at(addr)),
            Hopper::MbarrierArrive { addr, count } => {
                let count = count.map_or(String::new(), |count| format!(", {}", word(&count)));
                format!("mbarrier.arrive.release.cta.shared::cta.b64 _, {}{count}", at(addr))
            }
            Hopper::MbarrierArriveExpectTx { addr, bytes } => {
                let (addr, bytes) = (at(addr), word(bytes));
                format!("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, {addr}, {bytes}")
            }
            Hopper::MbarrierExpectTx { addr, bytes } => {
                format!("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 {}, {}", at(addr), word(bytes))
            }
            Hopper::MbarrierWait { blocking, dst, addr, parity } => {
                let name = if *blocking { "try_wait" } else { "test_wait" };
                let (dst, addr, parity) = (self.reg(*dst), at(addr), word(parity));
                format!("mbarrier.{name}.parity.acquire.cta.shared::cta.b64 {dst}, {addr}, {parity}")
            }
            Hopper::CpAsyncMbarrierArrive { addr } => {
                format!("cp.async.mbarrier.arrive.noinc.shared::cta.b64 {}", at(addr))
            }
            Hopper::BulkLoad { dst, src, bytes, mbar } => format!(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes {}, {}, {}, {}",
                at(dst),
                at(src),
                word(bytes),
                at(mbar)
            ),
            Hopper::BulkStore { dst, src, bytes } => format!(
                "cp.async.bulk.global.shared::cta.bulk_group {}, {}, {}",
                at(dst),
                at(src),
                word(bytes)
            ),
            Hopper::TensorLoad { dst, map, coords, mbar } => format!(
                "cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes {}, {}, {}",
                coords.len(),
                at(dst),
                self.tensor(*map, coords),
                at(mbar)
            ),
            Hopper::TensorStore { map, coords, src } => format!(
                "cp.async.bulk.tensor.{}d.global.shared::cta.tile.bulk_group {}, {}",
                coords.len(),
                self.tensor(*map, coords),
                at(src)
            ),
            Hopper::BulkCommit => "cp.async.bulk.commit_group".to_string(),
            Hopper::BulkWait { pending, read } => {
                format!("cp.async.bulk.wait_group{} {pending}", if *read { ".read" } else { "" })
            }
            Hopper::PrefetchTensorMap { map } => format!("prefetch.tensormap [{}]", self.reg(*map)),
            Hopper::FenceProxyAsync { space } => match space {
                None => "fence.proxy.async".to_string(),
                Some(Space::Shared) => "fence.proxy.async.shared::cta".to_string(),
                Some(space) => format!("fence.proxy.async.{}", space.name()),
            },
            Hopper::FenceMbarrierInit => "fence.mbarrier_init.release.cluster".to_string(),
            Hopper::WgmmaFence => "wgmma.fence.sync.aligned".to_string(),
            Hopper::Wgmma(product) => self.wgmma(product),
            Hopper::WgmmaCommit => "wgmma.commit_group.sync.aligned".to_string(),
            Hopper::WgmmaWait(pending) => format!("wgmma.wait_group.sync.aligned {pending}"),
            Hopper::SetMaxNReg { increase, count } => {
                format!("setmaxnreg.{}.sync.aligned.u32 {count}", if *increase { "inc" } else { "dec" })
            }
            Hopper::Elect { dst, pred, mask } => {
                let dst = dst.map_or("_".to_string(), |dst| self.reg(dst));
                format!("elect.sync {dst}|{}, {}", self.reg(*pred), self.op(*mask, Ty::B32))
            }
            Hopper::GridDepWait => "griddepcontrol.wait".to_string(),
            Hopper::GridDepLaunch => "griddepcontrol.launch_dependents".to_string(),
            Hopper::ParamAddr { dst, param } => {
                let name = self.addr(Addr::param(*param), params);
                format!("mov.b64 {}, {}", self.reg(*dst), name.trim_matches(['[', ']']))
            }
            Hopper::CvtaParam { dst, src } => {
                format!("cvta.param.u64 {}, {}", self.reg(*dst), self.reg(*src))
            }
        }
    }

    fn tensor(&self, map: Reg, coords: &Coords) -> String {
        format!("[{}, {{{}}}]", self.reg(map), self.ops(coords, Ty::S32))
    }

    fn wgmma(&self, product: &Wgmma) -> String {
        let Wgmma { n, ty, neg_a, neg_b, .. } = product;
        let a = match &product.a {
            WgmmaA::Regs(regs) => self.list(regs),
            WgmmaA::Desc(desc) => self.reg(*desc),
        };
        let sign = |negated: &bool| if *negated { -1 } else { 1 };
        let mut text = format!(
            "wgmma.mma_async.sync.aligned.m64n{n}k{}.f32.{ty}.{ty} {}, {a}, {}, {}, {}, {}",
            product.k(),
            self.list(&product.d),
            self.reg(product.b),
            self.op(product.scale_d, Ty::U32),
            sign(neg_a),
            sign(neg_b)
        );
        if *ty != Ty::TF32 {
            if matches!(product.a, WgmmaA::Desc(_)) {
                text.push_str(&format!(", {}", u8::from(product.trans_a)));
            }
            text.push_str(&format!(", {}", u8::from(product.trans_b)));
        }
        text
    }
}
