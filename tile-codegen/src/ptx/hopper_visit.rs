//! Operands and forms of the instructions of Hopper.

use super::forms::{check_base, require};
use super::hopper::{Hopper, Wgmma, WgmmaA};
use super::ops::Space;
use super::reg::*;
use super::visit::{Role, Slots, Want};

impl Hopper {
    pub(super) fn visit(&self, s: &mut Slots<'_>) {
        match self {
            Hopper::MbarrierWait { dst, parity, .. } => {
                s.def(*dst, Ty::Pred);
                self.visit_addresses(s);
                s.using(*parity, Ty::U32);
            }
            Hopper::MbarrierInit { count, .. } | Hopper::MbarrierArrive { count: Some(count), .. } => {
                self.visit_addresses(s);
                s.using(*count, Ty::U32);
            }
            Hopper::MbarrierArriveExpectTx { bytes, .. }
            | Hopper::MbarrierExpectTx { bytes, .. }
            | Hopper::BulkLoad { bytes, .. }
            | Hopper::BulkStore { bytes, .. } => {
                self.visit_addresses(s);
                s.using(*bytes, Ty::U32);
            }
            Hopper::TensorLoad { map, coords, .. } | Hopper::TensorStore { map, coords, .. } => {
                self.visit_addresses(s);
                s.push(Role::Use, (*map).into(), Want::Base(64));
                coords.iter().for_each(|&coord| s.using(coord, Ty::S32));
            }
            Hopper::PrefetchTensorMap { map } => s.push(Role::Use, (*map).into(), Want::Base(64)),
            Hopper::Wgmma(product) => product.visit(s),
            Hopper::Elect { dst, pred, mask } => {
                dst.iter().for_each(|&dst| s.def(dst, Ty::U32));
                s.def(*pred, Ty::Pred);
                s.using(*mask, Ty::U32);
            }
            Hopper::ParamAddr { dst, .. } => s.def(*dst, Ty::U64),
            Hopper::CvtaParam { dst, src } => {
                s.def(*dst, Ty::U64);
                s.using(*src, Ty::U64);
            }
            Hopper::MbarrierInval { .. }
            | Hopper::MbarrierArrive { count: None, .. }
            | Hopper::CpAsyncMbarrierArrive { .. } => self.visit_addresses(s),
            Hopper::BulkCommit
            | Hopper::BulkWait { .. }
            | Hopper::FenceProxyAsync { .. }
            | Hopper::FenceMbarrierInit
            | Hopper::WgmmaFence
            | Hopper::WgmmaCommit
            | Hopper::WgmmaWait(_)
            | Hopper::SetMaxNReg { .. }
            | Hopper::GridDepWait
            | Hopper::GridDepLaunch => {}
        }
    }

    fn visit_addresses(&self, s: &mut Slots<'_>) {
        for (space, addr) in self.addresses() {
            s.addr(addr, if space == Space::Global { 64 } else { 32 });
        }
    }

    /// `Err` says what is wrong with the instruction itself, whatever surrounds it.
    pub(super) fn check_form(&self) -> Result<(), String> {
        for (space, addr) in self.addresses() {
            check_base(space, addr)?;
        }
        let literal = |operand: &Operand| operand.imm();
        match self {
            Hopper::MbarrierInit { count, .. } | Hopper::MbarrierArrive { count: Some(count), .. } => {
                let ok = literal(count).is_none_or(|n| (1..1 << 20).contains(&n));
                require(ok, || format!("{count:?} arrivals, expected 1 to 1048575"))
            }
            Hopper::MbarrierArriveExpectTx { bytes, .. } | Hopper::MbarrierExpectTx { bytes, .. } => {
                let ok = literal(bytes).is_none_or(|n| (0..1 << 20).contains(&n));
                require(ok, || format!("{bytes:?} bytes, expected 0 to 1048575"))
            }
            Hopper::MbarrierWait { parity, .. } => {
                let ok = literal(parity).is_none_or(|n| n == 0 || n == 1);
                require(ok, || format!("parity {parity:?}, expected 0 or 1"))
            }
            Hopper::BulkLoad { bytes, .. } | Hopper::BulkStore { bytes, .. } => {
                let ok = literal(bytes).is_none_or(|n| n > 0 && n % 16 == 0);
                require(ok, || format!("{bytes:?} bytes, expected a multiple of 16"))
            }
            Hopper::TensorLoad { coords, .. } | Hopper::TensorStore { coords, .. } => {
                let found = coords.len();
                require((1..=5).contains(&found), || format!("{found} coordinates, expected 1 to 5"))
            }
            Hopper::FenceProxyAsync { space } => {
                let ok = matches!(space, None | Some(Space::Global | Space::Shared));
                require(ok, || "fence.proxy.async is for global or shared memory".to_string())
            }
            Hopper::Wgmma(product) => product.check_form(),
            Hopper::SetMaxNReg { count, .. } => {
                let ok = (24..=256).contains(count) && count % 8 == 0;
                require(ok, || format!("{count} registers, expected a multiple of 8 from 24 to 256"))
            }
            Hopper::MbarrierInval { .. }
            | Hopper::MbarrierArrive { count: None, .. }
            | Hopper::CpAsyncMbarrierArrive { .. }
            | Hopper::BulkCommit
            | Hopper::BulkWait { .. }
            | Hopper::PrefetchTensorMap { .. }
            | Hopper::FenceMbarrierInit
            | Hopper::WgmmaFence
            | Hopper::WgmmaCommit
            | Hopper::WgmmaWait(_)
            | Hopper::Elect { .. }
            | Hopper::GridDepWait
            | Hopper::GridDepLaunch
            | Hopper::ParamAddr { .. }
            | Hopper::CvtaParam { .. } => Ok(()),
        }
    }
}

impl Wgmma {
    fn visit(&self, s: &mut Slots<'_>) {
        self.d.iter().for_each(|&d| s.def(d, Ty::F32));
        if self.scale_d.imm() == Some(1) {
            self.d.iter().for_each(|&d| s.using(d, Ty::F32));
        }
        match &self.a {
            WgmmaA::Regs(regs) => regs.iter().for_each(|&a| s.using(a, Ty::B32)),
            WgmmaA::Desc(desc) => s.using(*desc, Ty::B64),
        }
        s.using(self.b, Ty::B64);
        if let Operand::Reg(pred) = self.scale_d {
            s.using(pred, Ty::Pred);
        }
    }

    fn check_form(&self) -> Result<(), String> {
        let Wgmma { n, ty, d, .. } = self;
        require(matches!(ty, Ty::F16 | Ty::BF16 | Ty::TF32), || format!("wgmma has no .{ty}"))?;
        require((8..=256).contains(n) && n % 8 == 0, || {
            format!("{n} columns, expected a multiple of 8 from 8 to 256")
        })?;
        require(d.len() == *n as usize / 2, || {
            format!("{} accumulators for {n} columns, expected {}", d.len(), n / 2)
        })?;
        let mut sorted: Vec<Reg> = d.clone();
        sorted.sort_unstable();
        sorted.dedup();
        require(sorted.len() == d.len(), || "an accumulator is named twice".to_string())?;
        if let WgmmaA::Regs(regs) = &self.a {
            require(regs.len() == 4, || format!("{} registers of A, expected 4", regs.len()))?;
            require(!self.trans_a, || "A in registers is not transposed".to_string())?;
        }
        let trans = self.trans_a || self.trans_b;
        require(*ty != Ty::TF32 || !trans, || "tf32 operands are K-major; trans is for 16 bits".to_string())?;
        let scale = match self.scale_d {
            Operand::Reg(reg) => reg.class == RegClass::Pred,
            Operand::Imm(value) => value == 0 || value == 1,
            _ => false,
        };
        require(scale, || format!("scale-d is {:?}, expected a predicate, 0 or 1", self.scale_d))
    }
}
