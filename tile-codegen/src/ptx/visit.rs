//! Which operands an instruction writes and reads, and what type each must have: one table for all users.

use super::inst::Inst;
use super::ops::*;
use super::reg::*;

/// Whether an operand is written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Written.
    Def,
    /// Read.
    Use,
}

/// What may stand in an operand's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A register or literal of this type.
    Ty(Ty),
    /// A register at least as wide as this type (data of loads and stores, PTX ISA 9.4.1).
    AtLeast(Ty),
    /// A register of untyped bits that holds a base address with this many bits.
    Base(u32),
    /// A source of `mov` with this type: special registers are allowed as well.
    MovSrc(Ty),
}

/// One operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Written or read.
    pub role: Role,
    /// The operand.
    pub operand: Operand,
    /// What may stand here.
    pub want: Want,
}

fn wide(ty: Ty) -> Ty {
    match ty {
        Ty::U16 => Ty::U32,
        Ty::S16 => Ty::S32,
        Ty::S32 => Ty::S64,
        _ => Ty::U64,
    }
}

fn half(ty: Ty, parts: usize) -> Ty {
    if ty.bits() / parts.max(1) as u32 == 32 { Ty::B32 } else { Ty::B16 }
}

/// The type of the registers that hold an `atom` operand.
fn address_bits(space: Space) -> u32 {
    if space == Space::Global { 64 } else { 32 }
}

impl Inst {
    /// Calls `f` for every operand, in text order except that the guard is not part of the instruction.
    pub fn for_each_operand(&self, mut f: impl FnMut(Slot)) {
        let mut slots = Slots { f: &mut f };
        self.visit(&mut slots);
    }

    /// Calls `f` for every register written.
    pub fn for_each_def(&self, mut f: impl FnMut(Reg)) {
        self.for_each_operand(|slot| {
            if let (Role::Def, Operand::Reg(reg)) = (slot.role, slot.operand) {
                f(reg);
            }
        });
    }

    /// Calls `f` for every register read.
    pub fn for_each_use(&self, mut f: impl FnMut(Reg)) {
        self.for_each_operand(|slot| {
            if let (Role::Use, Operand::Reg(reg)) = (slot.role, slot.operand) {
                f(reg);
            }
        });
    }

    fn visit(&self, s: &mut Slots<'_>) {
        match self {
            Inst::Mov { ty, dst, src } => {
                s.def(*dst, *ty);
                s.push(Role::Use, *src, Want::MovSrc(*ty));
            }
            Inst::SharedAddr { dst } => s.def(*dst, Ty::U32),
            Inst::CvtaTo { dst, src, .. } => {
                s.def(*dst, Ty::U64);
                s.using(*src, Ty::U64);
            }
            Inst::Pack { ty, dst, parts } => {
                s.def(*dst, *ty);
                parts.iter().for_each(|&part| s.using(part, half(*ty, parts.len())));
            }
            Inst::Unpack { ty, dsts, src } => {
                dsts.iter().for_each(|&part| s.def(part, half(*ty, dsts.len())));
                s.using(*src, *ty);
            }
            Inst::Int { .. }
            | Inst::IntUn { .. }
            | Inst::MulWide { .. }
            | Inst::MadLo { .. }
            | Inst::MadWide { .. }
            | Inst::Lop3 { .. }
            | Inst::Bfe { .. }
            | Inst::Bfi { .. }
            | Inst::Shf { .. }
            | Inst::Prmt { .. } => self.visit_integer(s),
            Inst::Float { ty, dst, a, b, .. } => s.op(*dst, *ty, &[*a, *b]),
            Inst::FloatUn { ty, dst, a, .. } => s.op(*dst, *ty, &[*a]),
            Inst::Fma { ty, dst, a, b, c, .. } => s.op(*dst, *ty, &[*a, *b, *c]),
            Inst::Cvt { dst_ty, src_ty, dst, src, .. } => {
                s.push(Role::Def, (*dst).into(), sub_word(*dst_ty));
                s.push(Role::Use, *src, sub_word(*src_ty));
            }
            Inst::CvtPack { ty, dst, hi, lo } => {
                s.def(*dst, *ty);
                s.using(*hi, Ty::F32);
                s.using(*lo, Ty::F32);
            }
            Inst::Setp { ty, dst, a, b, .. } => {
                s.def(*dst, Ty::Pred);
                s.using(*a, *ty);
                s.using(*b, *ty);
            }
            Inst::Selp { ty, dst, a, b, pred } => {
                s.op(*dst, *ty, &[*a, *b]);
                s.using(*pred, Ty::Pred);
            }
            Inst::Pred { dst, a, b, .. } => s.op(*dst, Ty::Pred, &[(*a).into(), (*b).into()]),
            Inst::PredNot { dst, a } => s.op(*dst, Ty::Pred, &[(*a).into()]),
            Inst::Ld { .. }
            | Inst::St { .. }
            | Inst::Atom { .. }
            | Inst::Red { .. }
            | Inst::CpAsync { .. } => self.visit_memory(s),
            Inst::Shfl { .. }
            | Inst::Vote { .. }
            | Inst::Redux { .. }
            | Inst::Mma { .. }
            | Inst::Ldmatrix { .. }
            | Inst::Stmatrix { .. } => self.visit_warp(s),
            Inst::BarSync { id, .. } | Inst::BarArrive { id, .. } => s.using(*id, Ty::U32),
            Inst::BarWarpSync { mask } => s.using(*mask, Ty::B32),
            Inst::Membar { .. }
            | Inst::Fence { .. }
            | Inst::Label(_)
            | Inst::Bra { .. }
            | Inst::Ret
            | Inst::Exit
            | Inst::Trap
            | Inst::CpAsyncCommit
            | Inst::CpAsyncWait(_)
            | Inst::CpAsyncWaitAll => {}
            Inst::Hopper(inst) => inst.visit(s),
        }
    }

    fn visit_integer(&self, s: &mut Slots<'_>) {
        match self {
            Inst::Int { op: IntOp::Shl | IntOp::Shr, ty, dst, a, b } => {
                s.op(*dst, *ty, &[*a]);
                s.using(*b, Ty::U32);
            }
            Inst::Int { ty, dst, a, b, .. } => s.op(*dst, *ty, &[*a, *b]),
            Inst::IntUn { op: IntUnOp::Popc | IntUnOp::Clz, ty, dst, a } => {
                s.def(*dst, Ty::U32);
                s.using(*a, *ty);
            }
            Inst::IntUn { ty, dst, a, .. } => s.op(*dst, *ty, &[*a]),
            Inst::MulWide { ty, dst, a, b } => {
                s.def(*dst, wide(*ty));
                s.using(*a, *ty);
                s.using(*b, *ty);
            }
            Inst::MadLo { ty, dst, a, b, c } => s.op(*dst, *ty, &[*a, *b, *c]),
            Inst::MadWide { ty, dst, a, b, c } => {
                s.def(*dst, wide(*ty));
                s.using(*a, *ty);
                s.using(*b, *ty);
                s.using(*c, wide(*ty));
            }
            Inst::Lop3 { dst, a, b, c, .. } => s.op(*dst, Ty::B32, &[*a, *b, *c]),
            Inst::Bfe { ty, dst, a, pos, len } => {
                s.op(*dst, *ty, &[*a]);
                s.using(*pos, Ty::U32);
                s.using(*len, Ty::U32);
            }
            Inst::Bfi { ty, dst, a, b, pos, len } => {
                s.op(*dst, *ty, &[*a, *b]);
                s.using(*pos, Ty::U32);
                s.using(*len, Ty::U32);
            }
            Inst::Shf { dst, a, b, c, .. } => {
                s.op(*dst, Ty::B32, &[*a, *b]);
                s.using(*c, Ty::U32);
            }
            Inst::Prmt { dst, a, b, selector } => s.op(*dst, Ty::B32, &[*a, *b, *selector]),
            _ => unreachable!("visit() sends integer instructions only"),
        }
    }

    fn visit_memory(&self, s: &mut Slots<'_>) {
        match self {
            Inst::Ld { space, ty, dsts, addr, .. } => {
                dsts.iter().for_each(|&dst| s.push(Role::Def, dst.into(), Want::AtLeast(*ty)));
                s.addr(*addr, address_bits(*space));
            }
            Inst::St { space, ty, addr, srcs, .. } => {
                s.addr(*addr, address_bits(*space));
                srcs.iter().for_each(|&src| s.push(Role::Use, src, Want::AtLeast(*ty)));
            }
            Inst::Atom { ty, space, dst, addr, cmp, src, .. } => {
                s.def(*dst, *ty);
                s.addr(*addr, address_bits(*space));
                cmp.iter().for_each(|&cmp| s.using(cmp, *ty));
                s.using(*src, *ty);
            }
            Inst::Red { ty, space, addr, src, .. } => {
                s.addr(*addr, address_bits(*space));
                s.using(*src, *ty);
            }
            Inst::CpAsync { dst, src, src_size, .. } => {
                s.addr(*dst, 32);
                s.addr(*src, 64);
                src_size.iter().for_each(|&size| s.using(size, Ty::U32));
            }
            _ => unreachable!("visit() sends memory instructions only"),
        }
    }

    fn visit_warp(&self, s: &mut Slots<'_>) {
        match self {
            Inst::Shfl { dst, pred, src, lane, clamp, mask, .. } => {
                s.def(*dst, Ty::B32);
                pred.iter().for_each(|&pred| s.def(pred, Ty::Pred));
                s.using(*src, Ty::B32);
                [lane, clamp, mask].into_iter().for_each(|&x| s.using(x, Ty::U32));
            }
            Inst::Vote { mode, dst, src, mask, .. } => {
                s.def(*dst, if *mode == VoteMode::Ballot { Ty::B32 } else { Ty::Pred });
                s.using(*src, Ty::Pred);
                s.using(*mask, Ty::U32);
            }
            Inst::Redux { ty, dst, src, mask, .. } => {
                s.op(*dst, *ty, &[(*src).into()]);
                s.using(*mask, Ty::U32);
            }
            Inst::Mma { d, a, b, c, .. } => {
                d.iter().for_each(|&d| s.def(d, Ty::F32));
                a.iter().chain(b).for_each(|&x| s.using(x, Ty::U32));
                c.iter().for_each(|&c| s.using(c, Ty::F32));
            }
            Inst::Ldmatrix { dsts, addr, .. } => {
                dsts.iter().for_each(|&dst| s.def(dst, Ty::U32));
                s.addr(*addr, 32);
            }
            Inst::Stmatrix { addr, srcs, .. } => {
                s.addr(*addr, 32);
                srcs.iter().for_each(|&src| s.using(src, Ty::U32));
            }
            _ => unreachable!("visit() sends warp instructions only"),
        }
    }
}

/// `cvt` takes 8-bit integers in registers of any wider class.
fn sub_word(ty: Ty) -> Want {
    if ty.bits() == 8 { Want::AtLeast(ty) } else { Want::Ty(ty) }
}

pub(super) struct Slots<'a> {
    f: &'a mut dyn FnMut(Slot),
}

impl Slots<'_> {
    pub(super) fn push(&mut self, role: Role, operand: Operand, want: Want) {
        (self.f)(Slot { role, operand, want });
    }

    pub(super) fn def(&mut self, reg: Reg, ty: Ty) {
        self.push(Role::Def, reg.into(), Want::Ty(ty));
    }

    pub(super) fn using(&mut self, operand: impl Into<Operand>, ty: Ty) {
        self.push(Role::Use, operand.into(), Want::Ty(ty));
    }

    fn op(&mut self, dst: Reg, ty: Ty, sources: &[Operand]) {
        self.def(dst, ty);
        sources.iter().for_each(|&source| self.using(source, ty));
    }

    pub(super) fn addr(&mut self, addr: Addr, bits: u32) {
        if let AddrBase::Reg(reg) = addr.base {
            self.push(Role::Use, reg.into(), Want::Base(bits));
        }
    }
}
