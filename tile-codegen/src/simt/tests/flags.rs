//! Blocks that wait for each other: flags with releases and acquires, and atomics.

use super::{Case, at, builder};
use crate::ptx::*;
use crate::simt::ReportKind;

/// How the flag is set and waited for.
struct Protocol {
    release: MemSem,
    acquire: MemSem,
    fences: bool,
}

/// Block 1 stores 42 and sets a flag; block 0 waits for it and stores the value plus 1. Words of the output: data, flag,
/// result.
fn hand_over(protocol: &Protocol) -> Case {
    let (mut f, p) = builder(32, 0);
    let (tid, block) = (f.special(SpecialReg::TidX), f.special(SpecialReg::CtaIdX));
    let (rest, waiter) = (f.setp(Cmp::Ne, Ty::U32, tid, 0), f.setp(Cmp::Eq, Ty::U32, block, 0));
    f.emit_if(rest, Inst::Exit);
    let (data, flag, result) = (Addr::reg(p[0], 0), Addr::reg(p[0], 4), Addr::reg(p[0], 8));
    let fence = Inst::Fence { sem: FenceSem::AcqRel, scope: Scope::Gpu };
    let (wait, again) = (f.label(), f.label());
    f.bra_if(waiter, wait, false);
    f.st(Space::Global, Ty::B32, data, &[Operand::Imm(42)]);
    if protocol.fences {
        f.emit(fence.clone());
    }
    let (sem, srcs) = (protocol.release, [Operand::Imm(1)].into_iter().collect());
    f.emit(Inst::St { space: Space::Global, ty: Ty::B32, sem, cache: None, addr: flag, srcs });
    f.emit(Inst::Exit);
    f.place(wait);
    f.place(again);
    let seen = f.reg(RegClass::B32);
    let dsts = Regs::from_slice(&[seen]);
    f.emit(Inst::Ld {
        space: Space::Global,
        ty: Ty::B32,
        sem: protocol.acquire,
        cache: None,
        dsts,
        addr: flag,
    });
    let unset = f.setp(Cmp::Eq, Ty::U32, seen, 0);
    f.bra_if(unset, again, false);
    if protocol.fences {
        f.emit(fence);
    }
    let value = f.ld(Space::Global, Ty::B32, data);
    let value = f.int(IntOp::Add, Ty::U32, value, 1);
    f.st(Space::Global, Ty::B32, result, &[value]);
    Case { blocks: 2, ..Case::new(f.finish(), 12) }
}

const RELAXED: MemSem = MemSem::Relaxed(Scope::Gpu);

#[test]
fn releases_and_acquires_order_blocks() {
    let (release, acquire) = (MemSem::Release(Scope::Gpu), MemSem::Acquire(Scope::Gpu));
    assert_eq!(hand_over(&Protocol { release, acquire, fences: false }).clean_u32(), [42, 1, 43]);
    assert_eq!(
        hand_over(&Protocol { release: RELAXED, acquire: RELAXED, fences: true }).clean_u32(),
        [42, 1, 43]
    );
    for (release, acquire) in [(release, RELAXED), (RELAXED, acquire), (RELAXED, RELAXED)] {
        let report = hand_over(&Protocol { release, acquire, fences: false }).reports(ReportKind::Race);
        assert!(report.text.starts_with("ld.global.b32"), "{report}");
        assert!(report.message.contains("the write by block 1"), "{report}");
    }
}

#[test]
fn atomics_of_all_lanes_and_blocks_add_up() {
    let (mut f, p) = builder(64, 0);
    let tid = f.special(SpecialReg::TidX);
    f.red(AtomOp::Add, Ty::U32, Space::Global, Addr::reg(p[0], 0), tid);
    f.red(AtomOp::Max, Ty::U32, Space::Global, Addr::reg(p[0], 4), tid);
    let one = f.mov(Ty::F32, Operand::f32(0.5));
    f.red(AtomOp::Add, Ty::F32, Space::Global, Addr::reg(p[0], 8), one);
    let pair = f.mov_imm(Ty::B32, 0x3f80_4000);
    f.red(AtomOp::Add, Ty::BF16x2, Space::Global, Addr::reg(p[0], 12), pair);
    let case = Case { blocks: 3, ..Case::new(f.finish(), 16) };
    // bf16 sums of 2 stay exact up to 512; 192 · 2 = 384 and 192 · 1 = 192.
    let pair = u32::from(half::bf16::from_f32(192.0).to_bits()) << 16
        | u32::from(half::bf16::from_f32(384.0).to_bits());
    assert_eq!(case.clean_u32(), [3 * 2016, 63, 96f32.to_bits(), pair]);
}

#[test]
fn atomics_give_the_old_value() {
    let (mut f, p) = builder(32, 0);
    f.kernel_mut().shared = Shared::Static { bytes: 4, align: 4 };
    let tid = f.special(SpecialReg::TidX);
    let first = f.setp(Cmp::Eq, Ty::U32, tid, 0);
    let srcs = [Operand::Imm(7)].into_iter().collect();
    let (space, ty, sem) = (Space::Shared, Ty::B32, MemSem::Weak);
    f.emit_if(first, Inst::St { space, ty, sem, cache: None, addr: Addr::shared(0), srcs });
    f.bar_sync();
    let old = f.atom(AtomOp::Add, Ty::U32, Space::Shared, Addr::shared(0), 1);
    let address = at(&mut f, p[0], old, 4);
    f.st(Space::Global, Ty::B32, address, &[tid.into()]);
    let case = Case::new(f.finish(), 39 * 4);
    let mut olds = case.clean_u32().split_off(7);
    olds.sort_unstable();
    assert_eq!(olds, (0..32).collect::<Vec<u32>>());
}
