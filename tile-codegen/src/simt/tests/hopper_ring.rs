//! A ring of two stages between a warp that loads and a warpgroup that multiplies.

use super::hopper::{
    Launch, Layout, a_value, b_value, element, expected, float_bytes, product, store_accumulators,
};
use crate::ptx::*;
use crate::simt::{ReportKind, TensorSwizzle};

const ROUNDS: i64 = 5;
const STAGE: i64 = 8192 + 2048;
const A: Layout = Layout { swizzle: TensorSwizzle::B128, trans: false, count: 64 };
const B: Layout = Layout { count: 16, ..A };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    NoEmptyWait,
    ArrivesTooEarly,
    TooManyExpected,
    WrongPhase,
}

fn full(stage: i64) -> Addr {
    Addr::shared(8 * stage)
}

fn empty(stage: i64) -> Addr {
    Addr::shared(16 + 8 * stage)
}

/// A·Bᵀ with a depth of 64 in each round; warps 0 to 3 multiply, warp 4 loads.
fn ring(fault: Fault) -> Launch {
    let mut f = FuncBuilder::new("ring", 160);
    let bytes = ParamKind::Bytes { size: 128, align: 64 };
    let maps = [f.param("a", bytes), f.param("b", bytes)].map(|map| f.param_generic_addr(map));
    let out = f.param("out", ParamKind::Scalar(Ty::U64));
    let out = f.ld_param(Ty::U64, out);
    f.kernel_mut().shared = Shared::Dynamic { align: 1024 };
    let tid = f.special(SpecialReg::TidX);
    let first = f.setp(Cmp::Eq, Ty::U32, tid, 0);
    let consumers = if fault == Fault::TooManyExpected { 129 } else { 128 };
    for stage in 0..2 {
        f.emit_if(first, Hopper::MbarrierInit { addr: full(stage), count: Operand::Imm(1) }.into());
        f.emit_if(first, Hopper::MbarrierInit { addr: empty(stage), count: Operand::Imm(consumers) }.into());
    }
    f.emit_if(first, Hopper::FenceMbarrierInit.into());
    f.bar_sync();
    let (consumer, end) = (f.label(), f.label());
    let multiplies = f.setp(Cmp::Lt, Ty::U32, tid, 128);
    f.bra_if(multiplies, consumer, true);
    let one = f.elect();
    f.bra_unless(one, end, false);
    for round in 0..ROUNDS {
        load(&mut f, fault, maps, round);
    }
    f.bra(end, false);
    f.place(consumer);
    let d = f.regs::<8>(RegClass::F32);
    for round in 0..ROUNDS {
        multiply(&mut f, fault, &d, round);
    }
    f.hopper(Hopper::WgmmaWait(0));
    store_accumulators(&mut f, out, &d, 16);
    f.place(end);
    let depth = 64 * ROUNDS as u64;
    let tensors = vec![
        (A.tensor(depth, |row, k| element(Ty::BF16, a_value(row, k))), A.map(depth, 2)),
        (B.tensor(depth, |row, k| element(Ty::BF16, b_value(row, k))), B.map(depth, 2)),
    ];
    let (inputs, out) = (Vec::new(), vec![0; 4096]);
    Launch { kernel: f.finish(), tensors, inputs, out, out_map: None, shared: 1024 + 2 * STAGE as u32 }
}

fn load(f: &mut FuncBuilder, fault: Fault, maps: [Reg; 2], round: i64) {
    let (stage, turn) = (round % 2, round / 2);
    let parity = if fault == Fault::WrongPhase { turn % 2 } else { (turn + 1) % 2 };
    if fault != Fault::NoEmptyWait {
        f.mbarrier_wait(empty(stage), parity);
    }
    f.mbarrier_arrive_expect_tx(full(stage), STAGE);
    let coords = [Operand::Imm(64 * round), Operand::Imm(0)];
    f.tensor_load(Addr::shared(1024 + stage * STAGE), maps[0], &coords, full(stage));
    f.tensor_load(Addr::shared(1024 + stage * STAGE + 8192), maps[1], &coords, full(stage));
}

fn multiply(f: &mut FuncBuilder, fault: Fault, d: &[Reg], round: i64) {
    let (stage, turn) = (round % 2, round / 2);
    f.mbarrier_wait(full(stage), turn % 2);
    f.hopper(Hopper::WgmmaFence);
    for j in 0..4 {
        let at = 1024 + stage * STAGE;
        let left = WgmmaA::Desc(A.descriptor(f, at, 64, j, 0));
        let right = B.descriptor(f, at + 8192, 64, j, 0);
        f.wgmma(product(Ty::BF16, 16, d, left, right, i64::from(round > 0 || j > 0)));
    }
    f.hopper(Hopper::WgmmaCommit);
    if fault == Fault::ArrivesTooEarly {
        f.mbarrier_arrive(empty(stage));
        return;
    }
    // One group stays in flight; the stage before is free.
    f.hopper(Hopper::WgmmaWait(1));
    if round > 0 {
        f.mbarrier_arrive(empty((round - 1) % 2));
    }
}

#[test]
fn a_ring_is_clean() {
    assert_eq!(ring(Fault::None).clean(), float_bytes(&expected(16, 64 * ROUNDS as u64)));
}

#[test]
fn every_fault_of_a_ring_is_reported() {
    let table = [
        (Fault::NoEmptyWait, ReportKind::MissingWait, "cp.async.bulk.tensor.2d"),
        (Fault::ArrivesTooEarly, ReportKind::MissingWait, "cp.async.bulk.tensor.2d"),
        (Fault::TooManyExpected, ReportKind::Deadlock, "mbarrier.try_wait"),
        (Fault::WrongPhase, ReportKind::Deadlock, "mbarrier.try_wait"),
    ];
    for (fault, kind, text) in table {
        let found = ring(fault).reports(&[kind]);
        assert!(found.as_ref().is_ok_and(|found| found.contains(text)), "{fault:?}: {found:?}");
    }
}
