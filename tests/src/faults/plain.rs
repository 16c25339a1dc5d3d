//! Kernels for `sm_80` written as PTX: what the compiler does not emit, or not yet.

use tile_codegen::ptx::{
    Addr, AddrBase, Cmp, FenceSem, FuncBuilder, Inst, IntOp, MemSem, Operand, ParamKind, Reg, RegClass, Regs,
    Scope, Shared, ShflMode, Sm, Space, SpecialReg, Ty,
};
use tile_codegen::simt::Access;

use super::Subject;
use super::subject::Given;

/// A builder with pointer parameters, all loaded.
pub(super) fn builder(name: &str, threads: u32, pointers: usize) -> (FuncBuilder, Vec<Reg>) {
    let mut f = FuncBuilder::new(name, threads);
    let params: Vec<u32> =
        (0..pointers).map(|i| f.param(format!("a{i}"), ParamKind::Scalar(Ty::U64))).collect();
    let loaded = params.into_iter().map(|param| f.ld_param(Ty::U64, param)).collect();
    (f, loaded)
}

/// `base + scale * index`.
pub(super) fn at(f: &mut FuncBuilder, base: Reg, index: impl Into<Operand>, scale: i64) -> Addr {
    let wide = f.mul_wide_u32(index, Operand::Imm(scale));
    let address = f.add_s64(base, wide);
    Addr::reg(f.materialize(Ty::U64, address), 0)
}

/// `scale` times `index` bytes into shared memory.
pub(super) fn shared_at(f: &mut FuncBuilder, index: impl Into<Operand>, scale: i64) -> Reg {
    let base = f.shared_addr();
    let address = f.mad_lo(Ty::U32, index, scale, base);
    f.materialize(Ty::U32, address)
}

fn words(count: u32) -> Given {
    Given::input((1..=count).flat_map(u32::to_le_bytes).collect())
}

/// Sums 4 pieces of 64 x 16 bytes that `cp.async` brings into 2 stages; every thread reads what its neighbour's copies
/// brought.
pub(super) fn pipeline() -> Subject {
    let (mut f, p) = builder("pipeline", 64, 2);
    f.kernel_mut().shared = Shared::Static { bytes: 2048, align: 16 };
    let tid = f.special(SpecialReg::TidX);
    let mine = shared_at(&mut f, tid, 16);
    let other = f.xor_b32(tid, 63);
    let theirs = shared_at(&mut f, other, 16);
    let from = at(&mut f, p[0], tid, 16);
    let AddrBase::Reg(from) = from.base else { unreachable!("the base is a register") };
    let copy = |f: &mut FuncBuilder, piece: i64| {
        if piece < 4 {
            f.cp_async_16(Addr::reg(mine, piece % 2 * 1024), Addr::reg(from, piece * 1024), None);
        }
        f.emit(Inst::CpAsyncCommit);
    };
    copy(&mut f, 0);
    let mut sum = Operand::Imm(0);
    for piece in 0..4 {
        copy(&mut f, piece + 1);
        f.emit(Inst::CpAsyncWait(1));
        f.bar_sync();
        let word = f.ld(Space::Shared, Ty::B32, Addr::reg(theirs, piece % 2 * 1024));
        sum = f.int(IntOp::Add, Ty::U32, sum, word);
        f.bar_sync();
    }
    let to = at(&mut f, p[1], tid, 4);
    f.st(Space::Global, Ty::B32, to, &[sum]);
    Subject::new(f.finish(), Sm::SM_80, vec![words(1024), Given::output(256)])
}

/// Warp 0 hands 32 words to warp 1 through shared memory and barrier 1, where it arrives without waiting.
pub(super) fn hand_over() -> Subject {
    let (mut f, p) = builder("hand_over", 64, 1);
    f.kernel_mut().shared = Shared::Static { bytes: 128, align: 16 };
    let (tid, lane) = (f.special(SpecialReg::TidX), f.special(SpecialReg::LaneId));
    let place = shared_at(&mut f, lane, 4);
    let (takes, end) = (f.label(), f.label());
    let second = f.setp(Cmp::Ge, Ty::U32, tid, 32);
    f.bra_if(second, takes, true);
    f.st(Space::Shared, Ty::B32, Addr::reg(place, 0), &[tid.into()]);
    f.emit(Inst::BarArrive { id: Operand::Imm(1), threads: 64 });
    f.bra(end, true);
    f.place(takes);
    f.emit(Inst::BarSync { id: Operand::Imm(1), threads: Some(64) });
    let word = f.ld(Space::Shared, Ty::B32, Addr::reg(place, 0));
    let to = at(&mut f, p[0], lane, 4);
    f.st(Space::Global, Ty::B32, to, &[word.into()]);
    f.place(end);
    Subject::new(f.finish(), Sm::SM_80, vec![Given::output(128)])
}

/// Every lane adds its neighbour's word; lanes from 16 on leave before, and the mask says so.
pub(super) fn neighbours() -> Subject {
    let (mut f, p) = builder("neighbours", 32, 1);
    let lane = f.special(SpecialReg::LaneId);
    let leaves = f.setp(Cmp::Ge, Ty::U32, lane, 16);
    f.emit_if(leaves, Inst::Exit);
    let dst = f.reg(RegClass::B32);
    let (by, clamp, mask) = (Operand::Imm(1), Operand::Imm(31), Operand::Imm(0xffff));
    f.emit(Inst::Shfl { mode: ShflMode::Bfly, dst, pred: None, src: lane, lane: by, clamp, mask });
    let to = at(&mut f, p[0], lane, 4);
    f.st(Space::Global, Ty::B32, to, &[dst.into()]);
    Subject::new(f.finish(), Sm::SM_80, vec![Given::output(64)])
}

/// Block 1 stores a value and, after a fence, a flag that block 0 waits for.
pub(super) fn flag() -> Subject {
    let (mut f, p) = builder("flag", 32, 2);
    let (tid, block) = (f.special(SpecialReg::TidX), f.special(SpecialReg::CtaIdX));
    let (rest, waits) = (f.setp(Cmp::Ne, Ty::U32, tid, 0), f.setp(Cmp::Eq, Ty::U32, block, 0));
    f.emit_if(rest, Inst::Exit);
    let [data, flag, result] =
        [(p[1], 0), (p[0], 0), (p[1], 4)].map(|(base, offset)| Addr::reg(base, offset));
    let fence = Inst::Fence { sem: FenceSem::AcqRel, scope: Scope::Gpu };
    let (wait, again) = (f.label(), f.label());
    let (space, sem) = (Space::Global, MemSem::Relaxed(Scope::Gpu));
    f.bra_if(waits, wait, false);
    f.st(space, Ty::B32, data, &[Operand::Imm(42)]);
    f.emit(fence.clone());
    let srcs = [Operand::Imm(1)].into_iter().collect();
    f.emit(Inst::St { space, ty: Ty::B32, sem, cache: None, addr: flag, srcs });
    f.emit(Inst::Exit);
    f.place(wait);
    f.place(again);
    let seen = f.reg(RegClass::B32);
    f.emit(Inst::Ld { space, ty: Ty::B32, sem, cache: None, dsts: Regs::from_slice(&[seen]), addr: flag });
    let unset = f.setp(Cmp::Eq, Ty::U32, seen, 0);
    f.bra_if(unset, again, false);
    f.emit(fence);
    let value = f.ld(space, Ty::B32, data);
    f.st(space, Ty::B32, result, &[value.into()]);
    let flags = Given { access: Access::Write, ..Given::input(vec![0; 4]) };
    Subject { grid: [2, 1, 1], ..Subject::new(f.finish(), Sm::SM_80, vec![flags, Given::output(8)]) }
}

/// Every thread stores its number to memory that nobody has written, loads it again, and doubles it.
pub(super) fn scratch() -> Subject {
    let (mut f, p) = builder("scratch", 32, 1);
    let tid = f.special(SpecialReg::TidX);
    let place = at(&mut f, p[0], tid, 4);
    f.st(Space::Global, Ty::B32, place, &[tid.into()]);
    let word = f.ld(Space::Global, Ty::B32, place);
    let word = f.int(IntOp::Add, Ty::U32, word, word);
    f.st(Space::Global, Ty::B32, place, &[word]);
    Subject::new(f.finish(), Sm::SM_80, vec![Given::output(128)])
}
