//! The builder's loads, stores, shuffles, barriers and matrix operations.

use super::func::FuncBuilder;
use super::inst::{Inst, Regs};
use super::ops::*;
use super::reg::*;

/// The member mask of a whole warp.
const FULL_WARP: Operand = Operand::Imm(0xffff_ffff);

impl FuncBuilder {
    /// Loads one element of type `ty`, weakly, into a fresh register.
    pub fn ld(&mut self, space: Space, ty: Ty, addr: impl Into<Addr>) -> Reg {
        let dst = self.reg(ty.class());
        let addr = addr.into();
        let dsts = Regs::from_slice(&[dst]);
        self.emit(Inst::Ld { space, ty, sem: MemSem::Weak, cache: None, dsts, addr });
        dst
    }

    /// Loads 1, 2 or 4 elements of type `ty`, weakly, into fresh registers.
    pub fn ld_vec(
        &mut self,
        space: Space,
        ty: Ty,
        count: usize,
        cache: Option<LdCache>,
        addr: impl Into<Addr>,
    ) -> Regs {
        let dsts: Regs = (0..count).map(|_| self.reg(ty.class())).collect();
        let addr = addr.into();
        self.emit(Inst::Ld { space, ty, sem: MemSem::Weak, cache, dsts: dsts.clone(), addr });
        dsts
    }

    /// Loads the whole scalar or pointer parameter with this index as type `ty`.
    pub fn ld_param(&mut self, ty: Ty, index: u32) -> Reg {
        self.ld(Space::Param, ty, Addr::param(index))
    }

    /// Stores 1, 2 or 4 elements of type `ty`, weakly.
    pub fn st(&mut self, space: Space, ty: Ty, addr: impl Into<Addr>, values: &[Operand]) {
        let (addr, srcs) = (addr.into(), values.iter().copied().collect());
        self.emit(Inst::St { space, ty, sem: MemSem::Weak, cache: None, addr, srcs });
    }

    /// The 32-bit address of the kernel's shared memory.
    pub fn shared_addr(&mut self) -> Reg {
        let dst = self.reg(RegClass::B32);
        self.emit(Inst::SharedAddr { dst });
        dst
    }

    /// Shuffles 32 bits among all lanes of the warp, in one segment; the class of `src` is kept.
    pub fn shfl(&mut self, mode: ShflMode, src: Reg, lane: impl Into<Operand>) -> Reg {
        let dst = self.reg(src.class);
        let clamp = Operand::Imm(if mode == ShflMode::Up { 0 } else { 31 });
        self.emit(Inst::Shfl { mode, dst, pred: None, src, lane: lane.into(), clamp, mask: FULL_WARP });
        dst
    }

    /// Votes among all lanes of the warp: a predicate, or a mask for `Ballot`.
    pub fn vote(&mut self, mode: VoteMode, src: Reg) -> Reg {
        let class = if mode == VoteMode::Ballot { RegClass::B32 } else { RegClass::Pred };
        let dst = self.reg(class);
        self.emit(Inst::Vote { mode, dst, src, negated: false, mask: FULL_WARP });
        dst
    }

    /// `bar.sync 0`: waits for the whole block.
    pub fn bar_sync(&mut self) {
        self.emit(Inst::BarSync { id: Operand::Imm(0), threads: None });
    }

    /// Atomic `op` with relaxed ordering at device scope; returns the old value.
    pub fn atom(&mut self, op: AtomOp, ty: Ty, space: Space, addr: Addr, src: impl Into<Operand>) -> Reg {
        let dst = self.reg(ty.class());
        let sem = MemSem::Relaxed(Scope::Gpu);
        self.emit(Inst::Atom { op, ty, space, sem, dst, addr, cmp: None, src: src.into() });
        dst
    }

    /// Atomic `op` with relaxed ordering at device scope, without a result.
    pub fn red(&mut self, op: AtomOp, ty: Ty, space: Space, addr: Addr, src: impl Into<Operand>) {
        self.emit(Inst::Red { op, ty, space, sem: MemSem::Relaxed(Scope::Gpu), addr, src: src.into() });
    }

    /// Loads `count` 8x8 matrices of 16-bit elements from shared memory.
    pub fn ldmatrix(&mut self, count: usize, trans: bool, addr: impl Into<Addr>) -> Regs {
        let dsts: Regs = (0..count).map(|_| self.reg(RegClass::B32)).collect();
        self.emit(Inst::Ldmatrix { trans, dsts: dsts.clone(), addr: addr.into() });
        dsts
    }

    /// `d = a·b + d`, in place, on one fragment with f32 accumulators.
    pub fn mma_in_place(&mut self, shape: MmaShape, ty: Ty, d: [Reg; 4], a: &[Reg], b: &[Reg]) {
        let (a, b) = (Regs::from_slice(a), Regs::from_slice(b));
        self.emit(Inst::Mma { shape, ty, d, a, b, c: d });
    }

    /// Copies 16 bytes from global to shared memory, past L1; bytes from `src_size` on become zero.
    pub fn cp_async_16(&mut self, dst: Addr, src: Addr, src_size: Option<Operand>) {
        self.emit(Inst::CpAsync { cache: CpCache::Cg, bytes: 16, dst, src, src_size });
    }
}
