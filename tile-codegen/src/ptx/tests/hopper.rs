//! The instructions of Hopper: texts as the PTX manual writes them, needs, and faults.

use super::forms::{d, f, kernel_of, p, r};
use crate::ptx::*;
use smallvec::smallvec;

const MBAR: Addr = Addr { base: AddrBase::Shared, offset: 8 };

fn product(ty: Ty, n: u32, a: WgmmaA, scale_d: Operand) -> Wgmma {
    let list = (0..n / 2).map(|id| Reg { class: RegClass::F32, id }).collect();
    Wgmma { n, ty, d: list, a, b: d(1), scale_d, neg_a: false, neg_b: false, trans_a: false, trans_b: false }
}

fn regs() -> WgmmaA {
    WgmmaA::Regs(smallvec![r(0), r(1), r(2), r(3)])
}

const OLD: (u32, u32, u32, bool) = (7, 8, 80, false);
const NEW: (u32, u32, u32, bool) = (8, 0, 90, false);
const OWN: (u32, u32, u32, bool) = (8, 0, 90, true);

/// A form, its text, and its version, architecture and whether it is that one alone.
type Form = (Hopper, &'static str, (u32, u32, u32, bool));

fn forms() -> Vec<Form> {
    let imm = Operand::Imm;
    let at = |reg: Reg| Addr::reg(reg, 0);
    let one = Operand::Imm(1);
    vec![
        (
            Hopper::MbarrierInit { addr: MBAR, count: imm(129) },
            "mbarrier.init.shared::cta.b64 [smem+8], 129;",
            OLD,
        ),
        (Hopper::MbarrierInval { addr: MBAR }, "mbarrier.inval.shared::cta.b64 [smem+8];", OLD),
        (
            Hopper::MbarrierArrive { addr: at(r(0)), count: None },
            "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r0];",
            (8, 0, 80, false),
        ),
        (
            Hopper::MbarrierArrive { addr: at(r(0)), count: Some(imm(2)) },
            "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r0], 2;",
            NEW,
        ),
        (
            Hopper::MbarrierArriveExpectTx { addr: MBAR, bytes: r(1).into() },
            "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [smem+8], %r1;",
            NEW,
        ),
        (
            Hopper::MbarrierExpectTx { addr: MBAR, bytes: imm(4096) },
            "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [smem+8], 4096;",
            NEW,
        ),
        (
            Hopper::MbarrierWait { blocking: true, dst: p(0), addr: MBAR, parity: r(1).into() },
            "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p0, [smem+8], %r1;",
            NEW,
        ),
        (
            Hopper::MbarrierWait { blocking: false, dst: p(0), addr: MBAR, parity: one },
            "mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p0, [smem+8], 1;",
            (8, 0, 80, false),
        ),
        (
            Hopper::CpAsyncMbarrierArrive { addr: MBAR },
            "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [smem+8];",
            OLD,
        ),
        (
            Hopper::BulkLoad { dst: Addr::shared(128), src: at(d(0)), bytes: imm(256), mbar: MBAR },
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [smem+128], [%d0], 256, [smem+8];",
            NEW,
        ),
        (
            Hopper::BulkStore { dst: at(d(0)), src: at(r(0)), bytes: r(1).into() },
            "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r0], %r1;",
            NEW,
        ),
        (
            Hopper::TensorLoad { dst: at(r(0)), map: d(2), coords: smallvec![imm(-8)], mbar: MBAR },
            "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r0], [%d2, {-8}], \
             [smem+8];",
            NEW,
        ),
        (
            Hopper::TensorLoad {
                dst: at(r(0)),
                map: d(2),
                coords: smallvec![imm(0), r(1).into(), r(2).into(), r(3).into(), imm(7)],
                mbar: MBAR,
            },
            "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r0], \
             [%d2, {0, %r1, %r2, %r3, 7}], [smem+8];",
            NEW,
        ),
        (
            Hopper::TensorStore { map: d(2), coords: smallvec![r(1).into(), r(2).into()], src: at(r(0)) },
            "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d2, {%r1, %r2}], [%r0];",
            NEW,
        ),
        (Hopper::BulkCommit, "cp.async.bulk.commit_group;", NEW),
        (Hopper::BulkWait { pending: 1, read: false }, "cp.async.bulk.wait_group 1;", NEW),
        (Hopper::BulkWait { pending: 0, read: true }, "cp.async.bulk.wait_group.read 0;", NEW),
        (Hopper::PrefetchTensorMap { map: d(2) }, "prefetch.tensormap [%d2];", NEW),
        (Hopper::FenceProxyAsync { space: None }, "fence.proxy.async;", NEW),
        (Hopper::FenceProxyAsync { space: Some(Space::Shared) }, "fence.proxy.async.shared::cta;", NEW),
        (Hopper::FenceProxyAsync { space: Some(Space::Global) }, "fence.proxy.async.global;", NEW),
        (Hopper::FenceMbarrierInit, "fence.mbarrier_init.release.cluster;", NEW),
        (Hopper::WgmmaFence, "wgmma.fence.sync.aligned;", OWN),
        (
            Hopper::Wgmma(product(Ty::BF16, 8, WgmmaA::Desc(d(0)), p(0).into())),
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %d0, %d1, %p0, 1, 1, 0, 0;",
            OWN,
        ),
        (
            Hopper::Wgmma(Wgmma {
                trans_a: true,
                trans_b: true,
                neg_b: true,
                ..product(Ty::F16, 16, WgmmaA::Desc(d(0)), Operand::Imm(0))
            }),
            "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, %d0, %d1, \
             0, 1, -1, 1, 1;",
            OWN,
        ),
        (
            Hopper::Wgmma(Wgmma { neg_a: true, trans_b: true, ..product(Ty::BF16, 8, regs(), one) }),
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, %d1, \
             1, -1, 1, 1;",
            OWN,
        ),
        (
            Hopper::Wgmma(product(Ty::TF32, 8, regs(), one)),
            "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, %d1, \
             1, 1, 1;",
            OWN,
        ),
        (Hopper::WgmmaCommit, "wgmma.commit_group.sync.aligned;", OWN),
        (Hopper::WgmmaWait(1), "wgmma.wait_group.sync.aligned 1;", OWN),
        (Hopper::SetMaxNReg { increase: true, count: 232 }, "setmaxnreg.inc.sync.aligned.u32 232;", OWN),
        (Hopper::SetMaxNReg { increase: false, count: 40 }, "setmaxnreg.dec.sync.aligned.u32 40;", OWN),
        (
            Hopper::Elect { dst: None, pred: p(0), mask: imm(0xffff_ffff) },
            "elect.sync _|%p0, 0xffffffff;",
            NEW,
        ),
        (Hopper::Elect { dst: Some(r(0)), pred: p(1), mask: r(1).into() }, "elect.sync %r0|%p1, %r1;", NEW),
        (Hopper::GridDepWait, "griddepcontrol.wait;", (7, 8, 90, false)),
        (Hopper::GridDepLaunch, "griddepcontrol.launch_dependents;", (7, 8, 90, false)),
        (Hopper::ParamAddr { dst: d(0), param: 0 }, "mov.b64 %d0, p_x;", (7, 0, 80, false)),
        (Hopper::CvtaParam { dst: d(0), src: d(0) }, "cvta.param.u64 %d0, %d0;", (7, 7, 80, false)),
    ]
}

#[test]
fn texts_and_needs_follow_the_manual() {
    for (inst, text, (major, minor, sm, specific)) in forms() {
        let kernel = kernel_of([Inst::Hopper(inst.clone())]);
        let need = need(&Inst::Hopper(inst));
        assert_eq!(need, Need { version: Version { major, minor }, sm, specific }, "{text}");
        assert_eq!(check_kernel(&kernel, Sm::SM_80).is_ok(), sm == 80, "{text}");
        assert_eq!(check_kernel(&kernel, Sm::SM_90).is_ok(), !specific, "{text}");
        assert_eq!(check_kernel(&kernel, Sm::SM_90A), Ok(()), "{text}");
        let module = Module { target: Sm::SM_90A, kernels: vec![kernel] };
        let printed = print_module(&module).text;
        assert!(printed.contains(&format!("\n    {text}\n")), "{text} is not in {printed}");
        assert!(printed.starts_with(".version 8.0\n.target sm_90a\n"), "{printed}");
    }
}

#[test]
fn a_product_of_256_columns_takes_128_accumulators() {
    let product = product(Ty::BF16, 256, WgmmaA::Desc(d(0)), Operand::Imm(0));
    let (mut defs, mut uses) = (0, 0);
    let inst = Inst::Hopper(Hopper::Wgmma(product.clone()));
    inst.for_each_def(|_| defs += 1);
    inst.for_each_use(|_| uses += 1);
    assert_eq!((defs, uses), (128, 2));
    let inst = Inst::Hopper(Hopper::Wgmma(Wgmma { scale_d: Operand::Imm(1), ..product }));
    uses = 0;
    inst.for_each_use(|_| uses += 1);
    assert_eq!(uses, 130);
}

#[track_caller]
fn assert_fault(inst: Hopper, part: &str) {
    let errors = check_kernel(&kernel_of([Inst::Hopper(inst.clone())]), Sm::SM_90A).err().unwrap_or_default();
    let found: Vec<String> = errors.into_iter().map(|error| error.message).collect();
    assert!(found.len() == 1 && found[0].contains(part), "{inst:?}: {found:?}");
}

#[test]
fn misuses_are_faults() {
    let imm = Operand::Imm;
    let desc = || WgmmaA::Desc(d(0));
    let good = product(Ty::BF16, 8, desc(), imm(1));
    let wrong = |change: fn(&mut Wgmma)| {
        let mut product = good.clone();
        change(&mut product);
        Hopper::Wgmma(product)
    };
    assert_fault(wrong(|p| p.n = 12), "12 columns, expected a multiple of 8");
    assert_fault(wrong(|p| p.n = 16), "4 accumulators for 16 columns, expected 8");
    assert_fault(wrong(|p| p.d[1] = f(0)), "an accumulator is named twice");
    assert_fault(wrong(|p| p.ty = Ty::F32), "wgmma has no .f32");
    assert_fault(wrong(|p| p.scale_d = Operand::Imm(2)), "expected a predicate, 0 or 1");
    assert_fault(wrong(|p| p.b = r(0)), "does not fit .b64");
    assert_fault(
        wrong(|p| {
            p.ty = Ty::TF32;
            p.trans_b = true;
        }),
        "tf32 operands are K-major",
    );
    assert_fault(
        wrong(|p| {
            p.a = WgmmaA::Regs(smallvec![r(0), r(1)]);
        }),
        "2 registers of A, expected 4",
    );
    assert_fault(Hopper::SetMaxNReg { increase: true, count: 100 }, "a multiple of 8 from 24 to 256");
    assert_fault(Hopper::MbarrierInit { addr: MBAR, count: imm(0) }, "expected 1 to 1048575");
    assert_fault(Hopper::MbarrierExpectTx { addr: MBAR, bytes: imm(1 << 20) }, "expected 0 to 1048575");
    assert_fault(
        Hopper::MbarrierWait { blocking: true, dst: p(0), addr: MBAR, parity: imm(2) },
        "expected 0 or 1",
    );
    let copy = |bytes, src| Hopper::BulkLoad { dst: Addr::shared(0), src, bytes, mbar: MBAR };
    assert_fault(copy(imm(40), Addr::reg(d(0), 0)), "expected a multiple of 16");
    assert_fault(copy(imm(32), Addr::shared(0)), "not one of .global");
    let coords = Coords::new();
    assert_fault(Hopper::TensorStore { map: d(0), coords, src: Addr::shared(0) }, "0 coordinates");
    assert_fault(Hopper::FenceProxyAsync { space: Some(Space::Local) }, "global or shared memory");
    assert_fault(Hopper::ParamAddr { dst: d(0), param: 9 }, "no parameter 9");
    let errors = check_kernel(&kernel_of([Inst::Hopper(Hopper::WgmmaFence)]), Sm::SM_90).err();
    assert!(errors.unwrap_or_default()[0].message.contains("needs exactly sm_90a"));
}

#[test]
fn tensor_maps_are_parameters_of_bytes() {
    let mut b = FuncBuilder::new("copy", 128);
    b.param("map", ParamKind::Bytes { size: 128, align: 64 });
    b.kernel_mut().shared = Shared::Dynamic { align: 1024 };
    let map = b.param_generic_addr(0);
    b.mbarrier_init(MBAR, 1);
    b.tensor_load(Addr::shared(1024), map, &[Operand::Imm(0), Operand::Imm(3)], MBAR);
    b.mbarrier_wait(MBAR, 0);
    let module = Module { target: Sm::SM_90A, kernels: vec![b.finish()] };
    assert_eq!(check_module(&module), Ok(()));
    let text = print_module(&module).text;
    assert!(text.contains("    .param .align 64 .b8 p_map[128]\n"), "{text}");
    assert!(text.contains("    mov.b64 %d0, p_map;\n    cvta.param.u64 %d1, %d0;\n"), "{text}");
    let wait = "$L0:\n    mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p0, [smem+8], 0;\n    @!%p0 bra $L0;\n";
    assert!(text.contains(wait), "{text}");
}

#[test]
fn every_form_is_in_one_module() {
    let insts = forms().into_iter().map(|(inst, ..)| Inst::Hopper(inst));
    let module = Module { target: Sm::SM_90A, kernels: vec![kernel_of(insts)] };
    assert_eq!(check_module(&module), Ok(()));
    let text = print_module(&module).text;
    for (_, form, _) in forms() {
        assert!(text.contains(form), "{form}");
    }
}
