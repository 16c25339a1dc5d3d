//! Every kind of report: a kernel without the fault has none, and with the fault it is found on every schedule.

use super::{Case, at, builder, put};
use crate::ptx::*;
use crate::simt::ReportKind;

/// Thread i stores i in shared memory and reads what thread `from(i)` stored, with a barrier in between if `ordered`.
fn exchange(threads: u32, by: i64, order: impl FnOnce(&mut FuncBuilder)) -> Case {
    let (mut f, p) = builder(threads, 0);
    f.kernel_mut().shared = Shared::Dynamic { align: 16 };
    let tid = f.special(SpecialReg::TidX);
    let base = f.shared_addr();
    let mine = f.mad_lo(Ty::U32, tid, 4, base);
    let mine = f.materialize(Ty::U32, mine);
    f.st(Space::Shared, Ty::B32, mine, &[tid.into()]);
    order(&mut f);
    let other = f.int(IntOp::Add, Ty::U32, tid, by);
    let other = f.rem_u32(other, Operand::Imm(threads.into()));
    let theirs = f.mad_lo(Ty::U32, other, 4, base);
    let theirs = f.materialize(Ty::U32, theirs);
    f.set_loc(7);
    let value = f.ld(Space::Shared, Ty::B32, theirs);
    put(&mut f, p[0], value);
    Case { shared: threads * 4, ..Case::new(f.finish(), threads as usize * 4) }
}

#[test]
fn a_missing_block_barrier_is_a_race() {
    let right: Vec<u32> = (0..64).map(|i| (i + 32) % 64).collect();
    assert_eq!(exchange(64, 32, |f| f.bar_sync()).clean_u32(), right);
    let report = exchange(64, 32, |_| {}).reports(ReportKind::Race);
    assert!(report.text.contains("shared"), "{report}");
    assert!(report.message.contains("nothing orders"), "{report}");
}

#[test]
fn a_missing_warp_barrier_is_a_race() {
    let full = Operand::Imm(0xffff_ffff);
    let right: Vec<u32> = (0..32).map(|i| (i + 1) % 32).collect();
    let ordered = exchange(32, 1, |f| f.emit(Inst::BarWarpSync { mask: full }));
    assert_eq!(ordered.clean_u32(), right);
    let report = exchange(32, 1, |_| {}).reports(ReportKind::Race);
    assert_eq!((report.loc, report.warp), (7, 0), "{report}");
    assert!(report.text.starts_with("ld.shared.b32"), "{report}");
    assert!(report.message.contains("`st.shared.b32"), "{report}");
}

#[test]
fn the_line_is_that_of_the_printed_text() {
    let case = exchange(32, 1, |_| {});
    let report = case.reports(ReportKind::Race);
    let module = Module { target: Sm::SM_90, kernels: vec![case.kernel] };
    let text = print_module(&module).text;
    let line = text.lines().nth(report.line as usize - 1).expect("the line is there");
    assert_eq!(line.trim().trim_end_matches(';'), report.text);
}

/// Every block stores a value at byte `4 * spread * block` of the output.
fn blocks_store(spread: i64, same: bool) -> Case {
    let (mut f, p) = builder(32, 0);
    let (tid, block) = (f.special(SpecialReg::TidX), f.special(SpecialReg::CtaIdX));
    let first = f.setp(Cmp::Eq, Ty::U32, tid, 0);
    let index = f.int(IntOp::MulLo, Ty::U32, block, spread);
    let address = at(&mut f, p[0], index, 4);
    let value = if same { Operand::Imm(9) } else { block.into() };
    let value = f.materialize(Ty::U32, value);
    let (srcs, sem) = ([value.into()].into_iter().collect(), MemSem::Weak);
    f.emit_if(first, Inst::St { space: Space::Global, ty: Ty::B32, sem, cache: None, addr: address, srcs });
    Case { blocks: 4, ..Case::new(f.finish(), 16) }
}

#[test]
fn blocks_that_store_different_values_to_one_place_race() {
    assert_eq!(blocks_store(1, false).clean_u32(), [0, 1, 2, 3]);
    assert_eq!(blocks_store(0, true).clean_u32(), [9, 0, 0, 0]);
    let report = blocks_store(0, false).reports(ReportKind::Race);
    assert!(report.message.contains("global memory"), "{report}");
}

#[test]
fn a_guarded_write_leaves_the_other_lanes_undefined() {
    let kernel = |default: bool| {
        let (mut f, p) = builder(32, 0);
        let tid = f.special(SpecialReg::TidX);
        let value = f.reg(RegClass::B32);
        if default {
            f.mov_to(Ty::U32, value, 5);
        }
        let low = f.setp(Cmp::Lt, Ty::U32, tid, 30);
        f.emit_if(low, Inst::Mov { ty: Ty::U32, dst: value, src: tid.into() });
        put(&mut f, p[0], value);
        Case::new(f.finish(), 128)
    };
    assert_eq!(kernel(true).clean_u32()[28..], [28, 29, 5, 5]);
    let report = kernel(false).reports(ReportKind::UninitialisedRegister);
    assert_eq!(report.lane, Some(30));
}

/// Loads the word at `offset` of shared memory, of which thread i has written word i.
fn shared_load(offset: i64) -> Case {
    let (mut f, p) = builder(32, 0);
    f.kernel_mut().shared = Shared::Static { bytes: 256, align: 16 };
    let tid = f.special(SpecialReg::TidX);
    let base = f.shared_addr();
    let mine = f.mad_lo(Ty::U32, tid, 4, base);
    let mine = f.materialize(Ty::U32, mine);
    f.st(Space::Shared, Ty::B32, mine, &[tid.into()]);
    f.bar_sync();
    let value = f.ld(Space::Shared, Ty::B32, Addr::reg(mine, offset));
    put(&mut f, p[0], value);
    Case::new(f.finish(), 128)
}

#[test]
fn shared_memory_starts_undefined_and_ends() {
    assert_eq!(shared_load(0).clean_u32()[5], 5);
    assert_eq!(shared_load(4).reports(ReportKind::UninitialisedMemory).lane, Some(31));
    let outside = shared_load(256).reports(ReportKind::OutOfBounds);
    assert!(outside.message.contains("4 bytes at byte 256 of shared memory, which has 256"), "{outside}");
    assert_eq!(shared_load(2).reports(ReportKind::Misaligned).lane, Some(0));
}

/// Copies words of the input to the output, `shift` bytes beyond.
fn global_copy(shift: i64, to_input: bool) -> Case {
    let (mut f, p) = builder(32, 1);
    let tid = f.special(SpecialReg::TidX);
    let from = at(&mut f, p[0], tid, 4);
    let AddrBase::Reg(base) = from.base else { unreachable!("the base is a register") };
    let value = f.ld(Space::Global, Ty::B32, Addr::reg(base, shift));
    put(&mut f, if to_input { p[0] } else { p[1] }, value);
    Case { inputs: vec![super::bytes_of(100..132)], ..Case::new(f.finish(), 128) }
}

#[test]
fn global_memory_has_bounds_and_rules() {
    assert_eq!(global_copy(0, false).clean_u32(), (100..132).collect::<Vec<u32>>());
    let outside = global_copy(4, false).reports(ReportKind::OutOfBounds);
    assert_eq!((outside.lane, outside.times), (Some(31), 1));
    assert!(outside.message.contains("`input` with 128 bytes; this is byte 128 of it"), "{outside}");
    assert_eq!(global_copy(1, false).reports(ReportKind::Misaligned).times, 32);
    let report = global_copy(0, true).reports(ReportKind::ReadOnly);
    assert!(report.message.contains("`input`"), "{report}");
}

/// Copies 16 bytes a lane to shared memory and on, with these instructions in between.
fn copy(between: &[Inst]) -> Case {
    let (mut f, p) = builder(32, 1);
    f.kernel_mut().shared = Shared::Static { bytes: 512, align: 128 };
    let tid = f.special(SpecialReg::TidX);
    let base = f.shared_addr();
    let mine = f.mad_lo(Ty::U32, tid, 16, base);
    let mine = f.materialize(Ty::U32, mine);
    let from = at(&mut f, p[0], tid, 16);
    // Lane 31 reads 4 bytes alone; the others become zero.
    let last = f.setp(Cmp::Eq, Ty::U32, tid, 31);
    let size = f.selp(Ty::U32, 4, 16, last);
    f.cp_async_16(mine.into(), from, Some(size));
    between.iter().for_each(|inst| f.emit(inst.clone()));
    let words = f.ld_vec(Space::Shared, Ty::B32, 4, None, mine);
    let to = at(&mut f, p[1], tid, 16);
    let words: Vec<Operand> = words.iter().map(|&word| word.into()).collect();
    f.st(Space::Global, Ty::B32, to, &words);
    Case { inputs: vec![super::bytes_of(1..129)], ..Case::new(f.finish(), 512) }
}

#[test]
fn copies_are_waited_for() {
    let right: Vec<u32> = (1..126).chain([0, 0, 0]).collect();
    assert_eq!(copy(&[Inst::CpAsyncCommit, Inst::CpAsyncWait(0)]).clean_u32(), right);
    assert_eq!(copy(&[Inst::CpAsyncWaitAll]).clean_u32(), right);
    for missing in
        [&[Inst::CpAsyncCommit][..], &[Inst::CpAsyncCommit, Inst::CpAsyncWait(1)], &[Inst::CpAsyncWait(0)]]
    {
        let report = copy(missing).reports(ReportKind::MissingWait);
        assert!(report.text.starts_with("ld.shared.v4"), "{report}");
        assert!(report.message.contains("`cp.async.cg"), "{report}");
    }
}

/// `body` runs in the first 16 lanes alone if `apart`.
fn maybe_apart(apart: bool, body: impl FnOnce(&mut FuncBuilder)) -> Case {
    let (mut f, p) = builder(32, 0);
    let tid = f.special(SpecialReg::TidX);
    let skip = f.setp(Cmp::Ge, Ty::U32, tid, if apart { 16 } else { 99 });
    let end = f.label();
    f.bra_if(skip, end, false);
    body(&mut f);
    f.place(end);
    put(&mut f, p[0], tid);
    Case::new(f.finish(), 128)
}

#[test]
fn barriers_take_whole_warps() {
    let right: Vec<u32> = (0..32).collect();
    assert_eq!(maybe_apart(false, |f| f.bar_sync()).clean_u32(), right);
    let report = maybe_apart(true, |f| f.bar_sync()).reports(ReportKind::Divergence);
    assert!(report.text.starts_with("bar.sync"), "{report}");
    assert!(report.message.starts_with("16 lanes"), "{report}");
    // A barrier of the lanes that are there is fine.
    let half = Operand::Imm(0xffff);
    assert_eq!(maybe_apart(true, |f| f.emit(Inst::BarWarpSync { mask: half })).clean_u32(), right);
    let full = Operand::Imm(0xffff_ffff);
    maybe_apart(true, |f| f.emit(Inst::BarWarpSync { mask: full })).reports(ReportKind::Divergence);
}

#[test]
fn shuffles_read_lanes_that_take_part() {
    let shuffle = |by: i64| {
        move |f: &mut FuncBuilder| {
            let (src, dst) = (f.mov_imm(Ty::U32, 1), f.reg(RegClass::B32));
            let (lane, clamp, mask) = (Operand::Imm(by), Operand::Imm(31), Operand::Imm(0xffff));
            f.emit(Inst::Shfl { mode: ShflMode::Bfly, dst, pred: None, src, lane, clamp, mask });
        }
    };
    maybe_apart(true, shuffle(8)).clean();
    maybe_apart(true, shuffle(16)).reports(ReportKind::AbsentLane);
}

/// Each warp executes what `body` makes for it.
fn by_warp(warps: u32, body: impl Fn(&mut FuncBuilder, u32)) -> Case {
    let (mut f, p) = builder(32 * warps, 0);
    let tid = f.special(SpecialReg::TidX);
    let warp = f.shr_u32(tid, 5);
    for w in 0..warps {
        let (other, next) = (f.setp(Cmp::Ne, Ty::U32, warp, Operand::Imm(w.into())), f.label());
        f.bra_if(other, next, true);
        body(&mut f, w);
        f.place(next);
    }
    put(&mut f, p[0], tid);
    Case::new(f.finish(), 128 * warps as usize)
}

fn sync(id: i64, threads: u32) -> Inst {
    Inst::BarSync { id: Operand::Imm(id), threads: Some(threads) }
}

#[test]
fn named_barriers_count() {
    let right: Vec<u32> = (0..96).collect();
    let pair = by_warp(3, |f, w| match w {
        0 => f.emit(Inst::BarArrive { id: Operand::Imm(2), threads: 64 }),
        1 => f.emit(sync(2, 64)),
        _ => {}
    });
    assert_eq!(pair.clean_u32(), right);
    let disagree = by_warp(3, |f, w| f.emit(sync(2, if w == 0 { 64 } else { 96 })));
    disagree.reports(ReportKind::BarrierMisuse);
    let twice = by_warp(2, |f, w| {
        f.emit(Inst::BarArrive { id: Operand::Imm(1), threads: 96 });
        if w == 0 {
            f.emit(Inst::BarArrive { id: Operand::Imm(1), threads: 96 });
        }
    });
    twice.reports(ReportKind::BarrierMisuse);
}

#[test]
fn a_deadlock_says_who_waits_for_what() {
    let cross = by_warp(2, |f, w| f.emit(sync(1 + i64::from(w), 64)));
    let report = cross.reports(ReportKind::Deadlock);
    assert!(report.message.starts_with("2 warps have not ended"), "{report}");
    assert!(report.message.contains("waits at barrier 1, where 32 of 64 threads have arrived"), "{report}");
    assert!(report.message.contains("waits at barrier 2, where 32 of 64 threads have arrived"), "{report}");
}

#[test]
fn endless_loops_use_up_the_budget() {
    let endless = by_warp(2, |f, w| {
        if w == 1 {
            let again = f.label();
            f.place(again);
            f.bra(again, true);
        }
    });
    let report = endless.reports(ReportKind::Budget);
    assert!(report.message.contains("warp 1: line"), "{report}");
    by_warp(2, |_, _| {}).clean();
}

#[test]
fn traps_are_reported() {
    by_warp(2, |f, w| {
        if w == 1 {
            f.emit(Inst::Trap);
        }
    })
    .reports(ReportKind::Trap);
}
