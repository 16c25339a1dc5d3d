//! Faults in the instructions of Hopper, put into kernels that are clean without them.

use super::hopper::{
    Launch, Layout, a_value, b_value, element, expected, float_bytes, from_registers, product,
    store_accumulators,
};
use super::{Case, builder, bytes_of};
use crate::ptx::*;
use crate::simt::{ReportKind, TensorSwizzle};

/// What is wrong with [`tile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    NoInit,
    NoMbarrierFence,
    ExpectsLess,
    ExpectsMore,
    ArrivesTwice,
    NoFullWait,
    WrongParity,
    WrongRank,
    Misaligned,
    GenericWrite { fence: bool },
    NoWgmmaFence,
    AddsAtFirst,
    WideStride,
    WrongSwizzle,
    BaseOffset,
    SkippingWarp,
    OtherAccumulators,
    NoCommit,
    NoWait,
}

const B: Layout = Layout { swizzle: TensorSwizzle::B128, trans: false, count: 16 };
const A: Layout = Layout { count: 64, ..B };
const B_AT: i64 = 1024 + 8192;

/// 64x16 products of depth 64, with one fault.
fn tile(fault: Fault) -> Launch {
    let mut f = FuncBuilder::new("tile", 128);
    let bytes = ParamKind::Bytes { size: 128, align: 64 };
    let maps = [f.param("a", bytes), f.param("b", bytes)].map(|map| f.param_generic_addr(map));
    let out = f.param("out", ParamKind::Scalar(Ty::U64));
    let out = f.ld_param(Ty::U64, out);
    f.kernel_mut().shared = Shared::Dynamic { align: 1024 };
    let (mbar, tid) = (Addr::shared(0), f.special(SpecialReg::TidX));
    let first = f.setp(Cmp::Eq, Ty::U32, tid, 0);
    if fault != Fault::NoInit {
        f.emit_if(first, Hopper::MbarrierInit { addr: mbar, count: Operand::Imm(1) }.into());
    }
    if fault != Fault::NoMbarrierFence {
        f.emit_if(first, Hopper::FenceMbarrierInit.into());
    }
    f.bar_sync();
    let bytes = match fault {
        Fault::ExpectsLess => 8192,
        Fault::ExpectsMore => 8192 + 2048 + 16,
        _ => 8192 + 2048,
    };
    f.emit_if(first, Hopper::MbarrierArriveExpectTx { addr: mbar, bytes: Operand::Imm(bytes) }.into());
    if fault == Fault::ArrivesTwice {
        f.emit_if(first, Hopper::MbarrierArrive { addr: mbar, count: None }.into());
    }
    A.load(&mut f, first, (maps[0], 1024), 64, 2, mbar);
    let b_at = if fault == Fault::Misaligned { B_AT + 64 } else { B_AT };
    let rank = if fault == Fault::WrongRank { 3 } else { 2 };
    let coords = (0..rank).map(|_| Operand::Imm(0)).collect();
    f.emit_if(first, Hopper::TensorLoad { dst: Addr::shared(b_at), map: maps[1], coords, mbar }.into());
    f.bar_sync();
    if fault != Fault::NoFullWait {
        f.mbarrier_wait(mbar, i64::from(fault == Fault::WrongParity));
    }
    if let Fault::GenericWrite { fence } = fault {
        let base = f.shared_addr();
        let mine = f.mad_lo(Ty::U32, tid, 4, base);
        let mine = Addr::reg(f.materialize(Ty::U32, mine), B_AT);
        let word = f.ld(Space::Shared, Ty::B32, mine);
        f.st(Space::Shared, Ty::B32, mine, &[word.into()]);
        if fence {
            f.fence_proxy_async_shared();
        }
        f.bar_sync();
    }
    multiply(&mut f, fault, out, tid);
    let tensors = vec![
        (A.tensor(64, |row, k| element(Ty::BF16, a_value(row, k))), A.map(64, 2)),
        (B.tensor(64, |row, k| element(Ty::BF16, b_value(row, k))), B.map(64, 2)),
    ];
    let (inputs, out) = (Vec::new(), vec![0; 4096]);
    Launch { kernel: f.finish(), tensors, inputs, out, out_map: None, shared: B_AT as u32 + 2048 }
}

fn multiply(f: &mut FuncBuilder, fault: Fault, out: Reg, tid: Reg) {
    let d = f.regs::<8>(RegClass::F32);
    let skip = f.label();
    if fault == Fault::SkippingWarp {
        d.iter().for_each(|&d| f.mov_to(Ty::F32, d, Operand::f32(0.0)));
        let last = f.setp(Cmp::Ge, Ty::U32, tid, 96);
        f.bra_if(last, skip, true);
    }
    let always = f.setp(Cmp::Lt, Ty::U32, tid, 1000);
    if fault != Fault::NoWgmmaFence {
        f.hopper(Hopper::WgmmaFence);
    }
    for j in 0..4 {
        let change = match fault {
            Fault::WideStride => (64 ^ 128) << 32,
            Fault::WrongSwizzle => (1 ^ 2) << 62,
            Fault::BaseOffset => 1 << 49,
            _ => 0,
        };
        let left = WgmmaA::Desc(A.descriptor(f, 1024, 64, j, change));
        let right = B.descriptor(f, B_AT, 64, j, 0);
        let scale = match (fault, j) {
            (Fault::AddsAtFirst, 0) => always.into(),
            _ => Operand::Imm(i64::from(j > 0)),
        };
        let mut form = product(Ty::BF16, 16, &d, left, right, scale);
        if fault == Fault::OtherAccumulators && j == 3 {
            form.d.reverse();
        }
        f.wgmma(form);
    }
    if fault != Fault::NoCommit {
        f.hopper(Hopper::WgmmaCommit);
    }
    f.hopper(Hopper::WgmmaWait(u32::from(fault == Fault::NoWait)));
    f.place(skip);
    store_accumulators(f, out, &d, 16);
}

#[test]
fn tiles_without_a_fault_are_clean() {
    let right = float_bytes(&expected(16, 64));
    assert_eq!(tile(Fault::None).clean(), right);
    assert_eq!(tile(Fault::GenericWrite { fence: true }).clean(), right);
}

#[test]
fn every_fault_of_a_tile_is_reported() {
    use ReportKind as K;
    let table = [
        (Fault::NoInit, K::MbarrierMisuse, "mbarrier.arrive.expect_tx"),
        (Fault::NoMbarrierFence, K::MissingFence, "cp.async.bulk.tensor"),
        (Fault::ExpectsLess, K::TransactionMismatch, ""),
        (Fault::ExpectsMore, K::TransactionMismatch, "mbarrier.arrive.expect_tx"),
        (Fault::ArrivesTwice, K::MbarrierMisuse, "mbarrier.arrive.release"),
        (Fault::NoFullWait, K::MissingWait, "wgmma.mma_async"),
        (Fault::WrongRank, K::TensorMap, "cp.async.bulk.tensor.3d"),
        (Fault::Misaligned, K::Misaligned, "cp.async.bulk.tensor.2d"),
        (Fault::GenericWrite { fence: false }, K::MissingFence, "wgmma.mma_async"),
        (Fault::NoWgmmaFence, K::MissingFence, "wgmma.mma_async"),
        (Fault::AddsAtFirst, K::UninitialisedRegister, "wgmma.mma_async"),
        (Fault::WideStride, K::OutOfBounds, "wgmma.mma_async"),
        (Fault::BaseOffset, K::WarpgroupMisuse, "wgmma.mma_async"),
        (Fault::SkippingWarp, K::WarpgroupMisuse, "wgmma.mma_async"),
        (Fault::OtherAccumulators, K::RegisterInFlight, "wgmma.mma_async"),
        (Fault::NoCommit, K::RegisterInFlight, "st.global.f32"),
        (Fault::NoWait, K::RegisterInFlight, "st.global.f32"),
    ];
    let mut failed = Vec::new();
    for (fault, kind, text) in table {
        match tile(fault).reports(&[kind]) {
            Ok(found) if found.contains(text) => {}
            Ok(other) | Err(other) => failed.push(format!("{fault:?}: {other}")),
        }
    }
    assert_eq!(failed, Vec::<String>::new());
}

/// Whoever waits for the wrong phase goes on too early, or for ever where the right one is over.
#[test]
fn a_wrong_phase_is_reported() {
    let found = tile(Fault::WrongParity).reports(&[ReportKind::MissingWait, ReportKind::Deadlock]);
    assert!(found.as_ref().is_ok_and(|text| text.contains("wgmma.mma_async")), "{found:?}");
}

/// No rule is broken by a wrong swizzle, but the result is: that is what comparisons with a reference are for.
#[test]
fn a_wrong_swizzle_gives_another_result() {
    assert_ne!(tile(Fault::WrongSwizzle).clean(), tile(Fault::None).clean());
}

#[test]
fn registers_of_a_product_in_flight_stay_untouched() {
    let right: Vec<f32> = expected(16, 16).into_iter().map(|x| x + 100.0).collect();
    assert_eq!(from_registers(false).clean(), float_bytes(&right));
    let text = from_registers(true).reports(&[ReportKind::RegisterInFlight]);
    assert!(text.as_ref().is_ok_and(|text| text.starts_with("mov.b32")), "{text:?}");
}

/// What is wrong with [`store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreFault {
    None,
    NoFence,
    NoCommit,
    NoWait,
    NoWaitAtTheEnd,
}

/// 64 threads fill a line, one stores it in bulk, and all fill it again.
fn store(fault: StoreFault) -> Case {
    let (mut f, p) = builder(64, 0);
    f.kernel_mut().shared = Shared::Static { bytes: 256, align: 128 };
    let tid = f.special(SpecialReg::TidX);
    let base = f.shared_addr();
    let mine = f.mad_lo(Ty::U32, tid, 4, base);
    let mine = Addr::reg(f.materialize(Ty::U32, mine), 0);
    f.st(Space::Shared, Ty::B32, mine, &[tid.into()]);
    if fault != StoreFault::NoFence {
        f.fence_proxy_async_shared();
    }
    f.bar_sync();
    let first = f.setp(Cmp::Eq, Ty::U32, tid, 0);
    let copy = Hopper::BulkStore { dst: Addr::reg(p[0], 0), src: Addr::shared(0), bytes: Operand::Imm(256) };
    f.emit_if(first, copy.into());
    if fault != StoreFault::NoCommit {
        f.hopper(Hopper::BulkCommit);
    }
    if !matches!(fault, StoreFault::NoWait | StoreFault::NoWaitAtTheEnd) {
        f.hopper(Hopper::BulkWait { pending: 0, read: true });
    }
    f.bar_sync();
    if fault != StoreFault::NoWaitAtTheEnd {
        f.st(Space::Shared, Ty::B32, mine, &[Operand::Imm(-1)]);
    }
    Case::new(f.finish(), 256)
}

#[test]
fn every_fault_of_a_bulk_store_is_reported() {
    assert_eq!(store(StoreFault::None).clean(), bytes_of(0..64));
    let table = [
        (StoreFault::NoFence, ReportKind::MissingFence, "cp.async.bulk.global"),
        (StoreFault::NoCommit, ReportKind::MissingWait, "st.shared.b32"),
        (StoreFault::NoWait, ReportKind::MissingWait, "st.shared.b32"),
        (StoreFault::NoWaitAtTheEnd, ReportKind::MissingWait, "cp.async.bulk.global"),
    ];
    for (fault, kind, text) in table {
        let report = store(fault).reports(kind);
        assert!(report.text.contains(text), "{fault:?}: {report}");
    }
}
