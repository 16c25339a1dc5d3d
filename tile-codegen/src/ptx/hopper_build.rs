//! The builder's mbarriers, bulk copies and products of warpgroups.

use super::func::FuncBuilder;
use super::hopper::{Hopper, Wgmma};
use super::inst::Inst;
use super::ops::Space;
use super::reg::*;

impl FuncBuilder {
    /// Appends an instruction of Hopper.
    pub fn hopper(&mut self, inst: Hopper) {
        self.emit(Inst::Hopper(inst));
    }

    /// Initialises an mbarrier that every phase of expects `count` arrivals.
    pub fn mbarrier_init(&mut self, addr: Addr, count: impl Into<Operand>) {
        self.hopper(Hopper::MbarrierInit { addr, count: count.into() });
    }

    /// Arrives once.
    pub fn mbarrier_arrive(&mut self, addr: Addr) {
        self.hopper(Hopper::MbarrierArrive { addr, count: None });
    }

    /// Expects `bytes` more of asynchronous copies in this phase, then arrives once.
    pub fn mbarrier_arrive_expect_tx(&mut self, addr: Addr, bytes: impl Into<Operand>) {
        self.hopper(Hopper::MbarrierArriveExpectTx { addr, bytes: bytes.into() });
    }

    /// Waits until the phase of this parity is complete: a loop around `try_wait`.
    pub fn mbarrier_wait(&mut self, addr: Addr, parity: impl Into<Operand>) {
        let again = self.label();
        let done = self.reg(RegClass::Pred);
        self.place(again);
        self.hopper(Hopper::MbarrierWait { blocking: true, dst: done, addr, parity: parity.into() });
        self.bra_unless(done, again, false);
    }

    /// A fence between generic and asynchronous accesses to shared memory.
    pub fn fence_proxy_async_shared(&mut self) {
        self.hopper(Hopper::FenceProxyAsync { space: Some(Space::Shared) });
    }

    /// The generic address of a parameter, as tensor maps are named by.
    pub fn param_generic_addr(&mut self, param: u32) -> Reg {
        let [there, generic] = self.regs(RegClass::B64);
        self.hopper(Hopper::ParamAddr { dst: there, param });
        self.hopper(Hopper::CvtaParam { dst: generic, src: there });
        generic
    }

    /// Loads the box at these coordinates, the innermost first; `mbar` counts its bytes when they are there.
    pub fn tensor_load(&mut self, dst: Addr, map: Reg, coords: &[Operand], mbar: Addr) {
        self.hopper(Hopper::TensorLoad { dst, map, coords: coords.iter().copied().collect(), mbar });
    }

    /// Stores a box at these coordinates, the innermost first, as part of the open bulk group.
    pub fn tensor_store(&mut self, map: Reg, coords: &[Operand], src: Addr) {
        self.hopper(Hopper::TensorStore { map, coords: coords.iter().copied().collect(), src });
    }

    /// Issues the product of a warpgroup.
    pub fn wgmma(&mut self, product: Wgmma) {
        self.hopper(Hopper::Wgmma(product));
    }

    /// A predicate that is true in one lane of a whole warp.
    pub fn elect(&mut self) -> Reg {
        let pred = self.reg(RegClass::Pred);
        self.hopper(Hopper::Elect { dst: None, pred, mask: Operand::Imm(0xffff_ffff) });
        pred
    }
}
