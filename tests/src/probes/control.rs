//! Branches, guards, barriers, fences and special registers.

use tile_codegen::ptx::{
    Addr, Cmp, FenceSem, Inst, MemSem, MembarLevel, Operand, RegClass, Scope, Space, SpecialReg, Ty,
};

use super::Probe;
use super::builder::{Builder, THREADS};
use super::values::random;

pub(super) fn probes() -> Vec<Probe> {
    vec![branches(), barriers(), fences(), specials(), parameters()]
}

/// Loops and branches whose lanes part: the steps of 3n + 1, guards of both signs, `exit` of some lanes.
fn branches() -> Probe {
    let mut p = Builder::elements("control/branches", &[(Ty::U32, (1..129).collect())]);
    let (steps, n) = (p.f.mov_imm(Ty::B32, 0), p.f.mov(Ty::B32, p.x[0]));
    let (head, odd, next, end) = (p.f.label(), p.f.label(), p.f.label(), p.f.label());
    p.f.place(head);
    let done = p.f.setp(Cmp::Eq, Ty::U32, n, 1u32);
    p.f.bra_if(done, end, false);
    let bit = p.low(n, 2);
    let is_odd = p.f.setp(Cmp::Ne, Ty::U32, bit, 0u32);
    p.f.bra_if(is_odd, odd, false);
    let half = p.f.shr_u32(n, 1u32);
    p.f.mov_to(Ty::B32, n, half);
    p.f.bra(next, false);
    p.f.place(odd);
    let triple = p.f.mad_lo_s32(n, 3u32, 1u32);
    p.f.mov_to(Ty::B32, n, triple);
    p.f.place(next);
    let more = p.f.add_s32(steps, 1u32);
    p.f.mov_to(Ty::B32, steps, more);
    p.f.bra(head, true);
    p.f.place(end);
    p.out("steps", steps);
    let few = p.f.setp(Cmp::Lt, Ty::U32, steps, 12u32);
    let word = p.f.mov_imm(Ty::B32, 7);
    p.f.emit_if(few, Inst::Mov { ty: Ty::B32, dst: word, src: Operand::Imm(1) });
    p.f.emit_unless(few, Inst::Mov { ty: Ty::B32, dst: word, src: Operand::Imm(2) });
    p.out("guards", word);
    p.f.emit_if(few, Inst::Exit);
    let word = p.f.mov_imm(Ty::B32, 9);
    p.out("lanes that did not exit", word);
    p.finish()
}

/// Values that cross warps through shared memory, past barriers by number and count, and `bar.arrive`.
fn barriers() -> Probe {
    let mut p = Builder::elements("control/barriers", &[(Ty::U32, random(Ty::U32, 64, 81))]);
    p.shared(4 * THREADS);
    let (base, index) = (p.f.shared_addr(), p.index);
    let own = p.f.mad_lo_s32(index, 4u32, base).reg().expect("not a literal");
    let other = p.f.xor_b32(index, 33u32);
    let other = p.f.mad_lo_s32(other, 4u32, base).reg().expect("not a literal");
    p.f.st(Space::Shared, Ty::B32, Addr::reg(own, 0), &[p.x[0].into()]);
    p.f.bar_sync();
    let value = p.f.ld(Space::Shared, Ty::B32, other);
    p.out("bar.sync 0", value);
    p.f.bar_sync();
    let sum = p.f.add_s32(value, 5u32);
    p.f.st(Space::Shared, Ty::B32, Addr::reg(own, 0), &[sum]);
    p.f.emit(Inst::BarSync { id: Operand::Imm(3), threads: Some(THREADS) });
    let value = p.f.ld(Space::Shared, Ty::B32, other);
    p.out("bar.sync 3, 64", value);
    p.f.bar_sync();
    // The second warp writes and arrives; the first waits and reads.
    let (first, end) = (p.f.label(), p.f.label());
    let is_first = p.f.setp(Cmp::Lt, Ty::U32, index, 32u32);
    let dst = p.f.mov_imm(Ty::B32, 1);
    p.f.bra_if(is_first, first, false);
    p.f.st(Space::Shared, Ty::B32, Addr::reg(own, 0), &[index.into()]);
    p.f.emit(Inst::BarArrive { id: Operand::Imm(5), threads: THREADS });
    p.f.bra(end, false);
    p.f.place(first);
    let id = p.f.mov_imm(Ty::B32, 5);
    p.f.emit(Inst::BarSync { id: id.into(), threads: Some(THREADS) });
    let value = p.f.ld(Space::Shared, Ty::B32, other);
    p.f.mov_to(Ty::B32, dst, value);
    p.f.place(end);
    p.out("bar.arrive 5, 64", dst);
    p.finish()
}

fn fences() -> Probe {
    let mut p = Builder::new("control/fences", 32, &[(Ty::U32, random(Ty::U32, 32, 82))]);
    for &level in MembarLevel::ALL {
        p.f.emit(Inst::Membar { level });
    }
    for &sem in FenceSem::ALL {
        for &scope in Scope::ALL {
            p.f.emit(Inst::Fence { sem, scope });
        }
    }
    p.f.emit(Inst::BarWarpSync { mask: Operand::Imm(0xffff_ffff) });
    let value = p.x[0];
    p.out("a value that passes", value);
    p.finish()
}

/// Special registers that are the same everywhere. Others have values of their own on a chip.
fn specials() -> Probe {
    let mut p = Builder::elements("control/special registers", &[(Ty::U32, vec![0; 256])]);
    for special in [
        SpecialReg::TidX,
        SpecialReg::TidY,
        SpecialReg::TidZ,
        SpecialReg::NTidX,
        SpecialReg::CtaIdX,
        SpecialReg::CtaIdY,
        SpecialReg::CtaIdZ,
        SpecialReg::NCtaIdX,
        SpecialReg::NCtaIdY,
        SpecialReg::NCtaIdZ,
        SpecialReg::LaneId,
        SpecialReg::ClusterCtaRank,
    ] {
        let value = p.f.special(special);
        p.out(special.name(), value);
    }
    p.finish()
}

/// `cvta.to` of the pointers leaves them usable; parts of parameters.
fn parameters() -> Probe {
    let mut p = Builder::new("control/addresses", 32, &[(Ty::U32, random(Ty::U32, 32, 83))]);
    let source = p.bytes(&(0..=127).collect::<Vec<u8>>());
    let dst = p.f.reg(RegClass::B64);
    p.f.emit(Inst::CvtaTo { space: Space::Global, dst, src: source });
    let index = p.index;
    let at = p.element(dst, index, 4);
    let sem = MemSem::Weak;
    let word = p.f.reg(RegClass::B32);
    let dsts = [word].into_iter().collect();
    p.f.emit(Inst::Ld { space: Space::Global, ty: Ty::B32, sem, cache: None, dsts, addr: Addr::reg(at, 0) });
    p.out("ld past cvta.to.global", word);
    p.finish()
}
