//! Every instruction form, with its text as the PTX manual writes it.

use crate::ptx::*;
use smallvec::smallvec;

pub(crate) fn p(id: u32) -> Reg {
    Reg { class: RegClass::Pred, id }
}
pub(crate) fn h(id: u32) -> Reg {
    Reg { class: RegClass::B16, id }
}
pub(crate) fn r(id: u32) -> Reg {
    Reg { class: RegClass::B32, id }
}
pub(crate) fn d(id: u32) -> Reg {
    Reg { class: RegClass::B64, id }
}
pub(crate) fn f(id: u32) -> Reg {
    Reg { class: RegClass::F32, id }
}
pub(crate) fn g(id: u32) -> Reg {
    Reg { class: RegClass::F64, id }
}

fn int(op: IntOp, ty: Ty, dst: Reg, a: impl Into<Operand>, b: impl Into<Operand>) -> Inst {
    Inst::Int { op, ty, dst, a: a.into(), b: b.into() }
}
fn float(op: FloatOp, a: impl Into<Operand>) -> Inst {
    Inst::Float { op, ty: Ty::F32, ftz: false, dst: f(0), a: a.into(), b: f(2).into() }
}
fn float_un(op: FloatUnOp, ftz: bool) -> Inst {
    Inst::FloatUn { op, ty: Ty::F32, ftz, dst: f(0), a: f(1).into() }
}
fn cvt(dst_ty: Ty, src_ty: Ty, round: Option<Round>, dst: Reg, src: Reg) -> Inst {
    Inst::Cvt { dst_ty, src_ty, round, ftz: false, sat: false, dst, src: src.into() }
}
fn setp(cmp: Cmp, ty: Ty, a: impl Into<Operand>, b: impl Into<Operand>) -> Inst {
    Inst::Setp { cmp, ty, dst: p(0), a: a.into(), b: b.into() }
}
fn ld(space: Space, ty: Ty, cache: Option<LdCache>, dsts: &[Reg], addr: Addr) -> Inst {
    Inst::Ld { space, ty, sem: MemSem::Weak, cache, dsts: Regs::from_slice(dsts), addr }
}
fn st(space: Space, ty: Ty, addr: Addr, srcs: &[Operand]) -> Inst {
    Inst::St { space, ty, sem: MemSem::Weak, cache: None, addr, srcs: srcs.iter().copied().collect() }
}
fn mma(shape: MmaShape, ty: Ty, a: &[Reg], b: &[Reg]) -> Inst {
    let acc = [f(0), f(1), f(2), f(3)];
    Inst::Mma { shape, ty, d: acc, a: Regs::from_slice(a), b: Regs::from_slice(b), c: acc }
}

const GPU: MemSem = MemSem::Relaxed(Scope::Gpu);
const FULL: Operand = Operand::Imm(0xffff_ffff);

/// Instructions on registers, with their texts.
pub(crate) fn arithmetic() -> Vec<(Inst, &'static str)> {
    use FloatOp as F;
    use IntOp as I;
    let imm = Operand::Imm;
    vec![
        (Inst::Mov { ty: Ty::B32, dst: r(0), src: imm(-1) }, "mov.b32 %r0, 0xffffffff;"),
        (Inst::Mov { ty: Ty::S64, dst: d(0), src: imm(i64::MIN) }, "mov.s64 %d0, -9223372036854775808;"),
        (Inst::Mov { ty: Ty::U64, dst: d(0), src: imm(-1) }, "mov.u64 %d0, 18446744073709551615;"),
        (Inst::Mov { ty: Ty::F32, dst: f(0), src: Operand::f32(1.0) }, "mov.f32 %f0, 0f3F800000;"),
        (Inst::Mov { ty: Ty::F64, dst: g(0), src: Operand::f64(1.0) }, "mov.f64 %g0, 0d3FF0000000000000;"),
        (Inst::Mov { ty: Ty::B32, dst: r(0), src: f(1).into() }, "mov.b32 %r0, %f1;"),
        (Inst::Mov { ty: Ty::Pred, dst: p(0), src: p(1).into() }, "mov.pred %p0, %p1;"),
        (Inst::Mov { ty: Ty::U32, dst: r(0), src: SpecialReg::TidX.into() }, "mov.u32 %r0, %tid.x;"),
        (Inst::Mov { ty: Ty::U64, dst: d(0), src: SpecialReg::Clock64.into() }, "mov.u64 %d0, %clock64;"),
        (Inst::SharedAddr { dst: r(0) }, "mov.u32 %r0, smem;"),
        (Inst::CvtaTo { space: Space::Global, dst: d(0), src: d(1) }, "cvta.to.global.u64 %d0, %d1;"),
        (Inst::Pack { ty: Ty::B32, dst: r(0), parts: smallvec![h(0), h(1)] }, "mov.b32 %r0, {%h0, %h1};"),
        (Inst::Pack { ty: Ty::B64, dst: d(0), parts: smallvec![r(0), r(1)] }, "mov.b64 %d0, {%r0, %r1};"),
        (Inst::Unpack { ty: Ty::B32, dsts: smallvec![h(0), h(1)], src: r(0) }, "mov.b32 {%h0, %h1}, %r0;"),
        (Inst::Unpack { ty: Ty::B64, dsts: smallvec![f(0), f(1)], src: d(0) }, "mov.b64 {%f0, %f1}, %d0;"),
        (int(I::Add, Ty::S32, r(0), r(1), imm(-4)), "add.s32 %r0, %r1, -4;"),
        (int(I::Sub, Ty::S64, d(0), d(1), d(2)), "sub.s64 %d0, %d1, %d2;"),
        (int(I::MulLo, Ty::S32, r(0), r(1), r(2)), "mul.lo.s32 %r0, %r1, %r2;"),
        (int(I::MulHi, Ty::U32, r(0), r(1), r(2)), "mul.hi.u32 %r0, %r1, %r2;"),
        (int(I::Div, Ty::U32, r(0), r(1), imm(3)), "div.u32 %r0, %r1, 3;"),
        (int(I::Rem, Ty::S32, r(0), r(1), r(2)), "rem.s32 %r0, %r1, %r2;"),
        (int(I::Min, Ty::S64, d(0), d(1), d(2)), "min.s64 %d0, %d1, %d2;"),
        (int(I::Max, Ty::U32, r(0), r(1), imm(-1)), "max.u32 %r0, %r1, 4294967295;"),
        (int(I::And, Ty::B32, r(0), r(1), imm(31)), "and.b32 %r0, %r1, 0x1f;"),
        (int(I::Or, Ty::B64, d(0), d(1), d(2)), "or.b64 %d0, %d1, %d2;"),
        (int(I::Xor, Ty::B16, h(0), h(1), h(2)), "xor.b16 %h0, %h1, %h2;"),
        (int(I::Shl, Ty::B64, d(0), d(1), imm(12)), "shl.b64 %d0, %d1, 12;"),
        (int(I::Shr, Ty::S32, r(0), r(1), r(2)), "shr.s32 %r0, %r1, %r2;"),
        (Inst::IntUn { op: IntUnOp::Neg, ty: Ty::S32, dst: r(0), a: r(1).into() }, "neg.s32 %r0, %r1;"),
        (Inst::IntUn { op: IntUnOp::Abs, ty: Ty::S64, dst: d(0), a: d(1).into() }, "abs.s64 %d0, %d1;"),
        (Inst::IntUn { op: IntUnOp::Not, ty: Ty::B32, dst: r(0), a: r(1).into() }, "not.b32 %r0, %r1;"),
        (Inst::IntUn { op: IntUnOp::Popc, ty: Ty::B64, dst: r(0), a: d(1).into() }, "popc.b64 %r0, %d1;"),
        (Inst::IntUn { op: IntUnOp::Clz, ty: Ty::B32, dst: r(0), a: r(1).into() }, "clz.b32 %r0, %r1;"),
        (Inst::IntUn { op: IntUnOp::Brev, ty: Ty::B32, dst: r(0), a: r(1).into() }, "brev.b32 %r0, %r1;"),
        (Inst::MulWide { ty: Ty::S32, dst: d(0), a: r(1).into(), b: imm(4) }, "mul.wide.s32 %d0, %r1, 4;"),
        (
            Inst::MadLo { ty: Ty::S32, dst: r(0), a: r(1).into(), b: imm(4), c: r(2).into() },
            "mad.lo.s32 %r0, %r1, 4, %r2;",
        ),
        (
            Inst::MadWide { ty: Ty::U32, dst: d(0), a: r(1).into(), b: imm(4), c: d(1).into() },
            "mad.wide.u32 %d0, %r1, 4, %d1;",
        ),
        (
            Inst::Lop3 { dst: r(0), a: r(1).into(), b: r(2).into(), c: r(3).into(), lut: 0x96 },
            "lop3.b32 %r0, %r1, %r2, %r3, 0x96;",
        ),
        (
            Inst::Bfe { ty: Ty::U32, dst: r(0), a: r(1).into(), pos: imm(8), len: imm(4) },
            "bfe.u32 %r0, %r1, 8, 4;",
        ),
        (
            Inst::Bfi { ty: Ty::B32, dst: r(0), a: r(1).into(), b: r(2).into(), pos: imm(8), len: imm(4) },
            "bfi.b32 %r0, %r1, %r2, 8, 4;",
        ),
        (
            Inst::Shf { left: false, dst: r(0), a: r(1).into(), b: r(2).into(), c: imm(7) },
            "shf.r.wrap.b32 %r0, %r1, %r2, 7;",
        ),
        (
            Inst::Prmt { dst: r(0), a: r(1).into(), b: r(2).into(), selector: imm(0x5410) },
            "prmt.b32 %r0, %r1, %r2, 0x5410;",
        ),
        (float(F::Add, f(1)), "add.rn.f32 %f0, %f1, %f2;"),
        (float(F::Sub, f(1)), "sub.rn.f32 %f0, %f1, %f2;"),
        (float(F::Mul, Operand::f32(0.5)), "mul.rn.f32 %f0, 0f3F000000, %f2;"),
        (float(F::DivRn, f(1)), "div.rn.f32 %f0, %f1, %f2;"),
        (float(F::DivFull, f(1)), "div.full.f32 %f0, %f1, %f2;"),
        (float(F::DivApprox, f(1)), "div.approx.f32 %f0, %f1, %f2;"),
        (float(F::Min, f(1)), "min.f32 %f0, %f1, %f2;"),
        (float(F::Max, f(1)), "max.f32 %f0, %f1, %f2;"),
        (float(F::MinNan, f(1)), "min.NaN.f32 %f0, %f1, %f2;"),
        (float(F::MaxNan, f(1)), "max.NaN.f32 %f0, %f1, %f2;"),
        (
            Inst::Float { op: F::Max, ty: Ty::F32, ftz: true, dst: f(0), a: f(1).into(), b: f(2).into() },
            "max.ftz.f32 %f0, %f1, %f2;",
        ),
        (
            Inst::Float { op: F::MaxNan, ty: Ty::F32, ftz: true, dst: f(0), a: f(1).into(), b: f(2).into() },
            "max.ftz.NaN.f32 %f0, %f1, %f2;",
        ),
        (
            Inst::Float { op: F::Add, ty: Ty::F64, ftz: false, dst: g(0), a: g(1).into(), b: g(2).into() },
            "add.rn.f64 %g0, %g1, %g2;",
        ),
        (float_un(FloatUnOp::Neg, false), "neg.f32 %f0, %f1;"),
        (float_un(FloatUnOp::Abs, false), "abs.f32 %f0, %f1;"),
        (float_un(FloatUnOp::SqrtRn, false), "sqrt.rn.f32 %f0, %f1;"),
        (float_un(FloatUnOp::SqrtApprox, true), "sqrt.approx.ftz.f32 %f0, %f1;"),
        (float_un(FloatUnOp::RsqrtApprox, false), "rsqrt.approx.f32 %f0, %f1;"),
        (float_un(FloatUnOp::RcpRn, false), "rcp.rn.f32 %f0, %f1;"),
        (float_un(FloatUnOp::RcpApprox, true), "rcp.approx.ftz.f32 %f0, %f1;"),
        (float_un(FloatUnOp::Ex2Approx, true), "ex2.approx.ftz.f32 %f0, %f1;"),
        (float_un(FloatUnOp::Lg2Approx, false), "lg2.approx.f32 %f0, %f1;"),
        (float_un(FloatUnOp::SinApprox, false), "sin.approx.f32 %f0, %f1;"),
        (float_un(FloatUnOp::CosApprox, false), "cos.approx.f32 %f0, %f1;"),
        (float_un(FloatUnOp::TanhApprox, false), "tanh.approx.f32 %f0, %f1;"),
        (
            Inst::Fma {
                ty: Ty::F32,
                ftz: false,
                dst: f(0),
                a: f(1).into(),
                b: f(2).into(),
                c: Operand::f32(0.0),
            },
            "fma.rn.f32 %f0, %f1, %f2, 0f00000000;",
        ),
        (
            Inst::Fma { ty: Ty::F32, ftz: true, dst: f(0), a: f(1).into(), b: f(2).into(), c: f(3).into() },
            "fma.rn.ftz.f32 %f0, %f1, %f2, %f3;",
        ),
        (cvt(Ty::F32, Ty::S32, Some(Round::Rn), f(0), r(1)), "cvt.rn.f32.s32 %f0, %r1;"),
        (cvt(Ty::S32, Ty::F32, Some(Round::Rzi), r(0), f(1)), "cvt.rzi.s32.f32 %r0, %f1;"),
        (cvt(Ty::F32, Ty::F32, Some(Round::Rmi), f(0), f(1)), "cvt.rmi.f32.f32 %f0, %f1;"),
        (cvt(Ty::S64, Ty::S32, None, d(0), r(1)), "cvt.s64.s32 %d0, %r1;"),
        (cvt(Ty::U32, Ty::U8, None, r(0), h(1)), "cvt.u32.u8 %r0, %h1;"),
        (cvt(Ty::F16, Ty::F32, Some(Round::Rn), h(0), f(1)), "cvt.rn.f16.f32 %h0, %f1;"),
        (cvt(Ty::F32, Ty::F16, None, f(0), h(1)), "cvt.f32.f16 %f0, %h1;"),
        (cvt(Ty::BF16, Ty::F32, Some(Round::Rn), h(0), f(1)), "cvt.rn.bf16.f32 %h0, %f1;"),
        (cvt(Ty::TF32, Ty::F32, Some(Round::Rna), r(0), f(1)), "cvt.rna.tf32.f32 %r0, %f1;"),
        (cvt(Ty::F64, Ty::F32, None, g(0), f(1)), "cvt.f64.f32 %g0, %f1;"),
        (cvt(Ty::F32, Ty::F64, Some(Round::Rn), f(0), g(1)), "cvt.rn.f32.f64 %f0, %g1;"),
        (
            Inst::Cvt {
                dst_ty: Ty::U8,
                src_ty: Ty::S32,
                round: None,
                ftz: false,
                sat: true,
                dst: r(0),
                src: r(1).into(),
            },
            "cvt.sat.u8.s32 %r0, %r1;",
        ),
        (
            Inst::CvtPack { ty: Ty::BF16x2, dst: r(0), hi: f(1).into(), lo: f(2).into() },
            "cvt.rn.bf16x2.f32 %r0, %f1, %f2;",
        ),
        (
            Inst::CvtPack { ty: Ty::F16x2, dst: r(0), hi: f(1).into(), lo: Operand::f32(0.0) },
            "cvt.rn.f16x2.f32 %r0, %f1, 0f00000000;",
        ),
        (setp(Cmp::Lt, Ty::S32, r(0), imm(-1)), "setp.lt.s32 %p0, %r0, -1;"),
        (setp(Cmp::Ge, Ty::U64, d(0), d(1)), "setp.ge.u64 %p0, %d0, %d1;"),
        (setp(Cmp::Eq, Ty::B16, h(0), imm(0)), "setp.eq.b16 %p0, %h0, 0;"),
        (setp(Cmp::Neu, Ty::F32, f(0), f(1)), "setp.neu.f32 %p0, %f0, %f1;"),
        (setp(Cmp::Nan, Ty::F64, g(0), g(1)), "setp.nan.f64 %p0, %g0, %g1;"),
        (
            Inst::Selp { ty: Ty::F32, dst: f(0), a: f(1).into(), b: Operand::f32(0.0), pred: p(0) },
            "selp.f32 %f0, %f1, 0f00000000, %p0;",
        ),
        (Inst::Selp { ty: Ty::B32, dst: r(0), a: imm(1), b: imm(0), pred: p(0) }, "selp.b32 %r0, 1, 0, %p0;"),
        (Inst::Pred { op: PredOp::And, dst: p(0), a: p(1), b: p(2) }, "and.pred %p0, %p1, %p2;"),
        (Inst::Pred { op: PredOp::Or, dst: p(0), a: p(1), b: p(2) }, "or.pred %p0, %p1, %p2;"),
        (Inst::Pred { op: PredOp::Xor, dst: p(0), a: p(1), b: p(2) }, "xor.pred %p0, %p1, %p2;"),
        (Inst::PredNot { dst: p(0), a: p(1) }, "not.pred %p0, %p1;"),
    ]
}

/// Memory, warp, barrier and matrix instructions that sm_80 has, with their texts.
pub(crate) fn memory() -> Vec<(Inst, &'static str)> {
    let imm = Operand::Imm;
    let at = |reg, offset| Addr::reg(reg, offset);
    let r4 = [r(0), r(1), r(2), r(3)];
    vec![
        (ld(Space::Param, Ty::U64, None, &[d(0)], Addr::param(0)), "ld.param.u64 %d0, [p_x];"),
        (ld(Space::Global, Ty::F32, None, &[f(0)], at(d(0), 16)), "ld.global.f32 %f0, [%d0+16];"),
        (ld(Space::Global, Ty::U8, None, &[r(0)], at(d(0), -1)), "ld.global.u8 %r0, [%d0+-1];"),
        (
            ld(Space::Global, Ty::B32, Some(LdCache::Nc), &r4, at(d(0), 0)),
            "ld.global.nc.v4.b32 {%r0, %r1, %r2, %r3}, [%d0];",
        ),
        (
            ld(Space::Global, Ty::B64, Some(LdCache::Cg), &[d(0), d(1)], at(d(2), 0)),
            "ld.global.cg.v2.b64 {%d0, %d1}, [%d2];",
        ),
        (
            ld(Space::Shared, Ty::F32, None, &[f(0), f(1)], Addr::shared(64)),
            "ld.shared.v2.f32 {%f0, %f1}, [smem+64];",
        ),
        (ld(Space::Local, Ty::B32, None, &[r(0)], Addr::local(4)), "ld.local.b32 %r0, [lmem+4];"),
        (
            Inst::Ld {
                space: Space::Global,
                ty: Ty::U32,
                sem: MemSem::Acquire(Scope::Gpu),
                cache: None,
                dsts: smallvec![r(0)],
                addr: at(d(0), 0),
            },
            "ld.acquire.gpu.global.u32 %r0, [%d0];",
        ),
        (st(Space::Global, Ty::B16, at(d(0), 2), &[h(0).into()]), "st.global.b16 [%d0+2], %h0;"),
        (
            st(Space::Shared, Ty::B32, at(r(0), 0), &[r(1).into(), imm(0)]),
            "st.shared.v2.b32 [%r0], {%r1, 0};",
        ),
        (
            Inst::St {
                space: Space::Global,
                ty: Ty::F32,
                sem: MemSem::Weak,
                cache: Some(StCache::Cs),
                addr: at(d(0), 0),
                srcs: smallvec![f(0).into(), f(1).into(), f(2).into(), f(3).into()],
            },
            "st.global.cs.v4.f32 [%d0], {%f0, %f1, %f2, %f3};",
        ),
        (
            Inst::St {
                space: Space::Global,
                ty: Ty::U32,
                sem: MemSem::Release(Scope::Sys),
                cache: None,
                addr: at(d(0), 0),
                srcs: smallvec![imm(1)],
            },
            "st.release.sys.global.u32 [%d0], 1;",
        ),
        (
            Inst::Atom {
                op: AtomOp::Add,
                ty: Ty::F32,
                space: Space::Global,
                sem: GPU,
                dst: f(0),
                addr: at(d(0), 0),
                cmp: None,
                src: f(1).into(),
            },
            "atom.relaxed.gpu.global.add.f32 %f0, [%d0], %f1;",
        ),
        (
            Inst::Atom {
                op: AtomOp::Cas,
                ty: Ty::B32,
                space: Space::Shared,
                sem: MemSem::AcqRel(Scope::Cta),
                dst: r(0),
                addr: at(r(1), 0),
                cmp: Some(r(2).into()),
                src: r(3).into(),
            },
            "atom.acq_rel.cta.shared.cas.b32 %r0, [%r1], %r2, %r3;",
        ),
        (
            Inst::Atom {
                op: AtomOp::Add,
                ty: Ty::F16x2,
                space: Space::Global,
                sem: GPU,
                dst: r(0),
                addr: at(d(0), 0),
                cmp: None,
                src: r(1).into(),
            },
            "atom.relaxed.gpu.global.add.noftz.f16x2 %r0, [%d0], %r1;",
        ),
        (
            Inst::Red {
                op: AtomOp::Max,
                ty: Ty::S32,
                space: Space::Global,
                sem: GPU,
                addr: at(d(0), 0),
                src: r(1).into(),
            },
            "red.relaxed.gpu.global.max.s32 [%d0], %r1;",
        ),
        (
            Inst::Shfl {
                mode: ShflMode::Bfly,
                dst: f(0),
                pred: None,
                src: f(1),
                lane: imm(16),
                clamp: imm(31),
                mask: FULL,
            },
            "shfl.sync.bfly.b32 %f0, %f1, 16, 31, 0xffffffff;",
        ),
        (
            Inst::Shfl {
                mode: ShflMode::Up,
                dst: r(0),
                pred: Some(p(0)),
                src: r(1),
                lane: r(2).into(),
                clamp: imm(0),
                mask: FULL,
            },
            "shfl.sync.up.b32 %r0|%p0, %r1, %r2, 0, 0xffffffff;",
        ),
        (
            Inst::Vote { mode: VoteMode::Any, dst: p(0), src: p(1), negated: true, mask: FULL },
            "vote.sync.any.pred %p0, !%p1, 0xffffffff;",
        ),
        (
            Inst::Vote { mode: VoteMode::Ballot, dst: r(0), src: p(1), negated: false, mask: FULL },
            "vote.sync.ballot.b32 %r0, %p1, 0xffffffff;",
        ),
        (
            Inst::Redux { op: ReduxOp::Add, ty: Ty::S32, dst: r(0), src: r(1), mask: FULL },
            "redux.sync.add.s32 %r0, %r1, 0xffffffff;",
        ),
        (Inst::BarSync { id: imm(0), threads: None }, "bar.sync 0;"),
        (Inst::BarSync { id: imm(1), threads: Some(64) }, "bar.sync 1, 64;"),
        (Inst::BarArrive { id: imm(2), threads: 64 }, "bar.arrive 2, 64;"),
        (Inst::BarWarpSync { mask: FULL }, "bar.warp.sync 0xffffffff;"),
        (Inst::Membar { level: MembarLevel::Cta }, "membar.cta;"),
        (Inst::Membar { level: MembarLevel::Gl }, "membar.gl;"),
        (Inst::Fence { sem: FenceSem::AcqRel, scope: Scope::Gpu }, "fence.acq_rel.gpu;"),
        (Inst::Fence { sem: FenceSem::Sc, scope: Scope::Cta }, "fence.sc.cta;"),
        (
            mma(MmaShape::M16N8K16, Ty::BF16, &r4, &[r(4), r(5)]),
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, \
             {%r4, %r5}, {%f0, %f1, %f2, %f3};",
        ),
        (
            mma(MmaShape::M16N8K8, Ty::F16, &[r(0), r(1)], &[r(4)]),
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r4}, \
             {%f0, %f1, %f2, %f3};",
        ),
        (
            mma(MmaShape::M16N8K8, Ty::TF32, &r4, &[r(4), r(5)]),
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, \
             {%r4, %r5}, {%f0, %f1, %f2, %f3};",
        ),
        (
            mma(MmaShape::M16N8K4, Ty::TF32, &[r(0), r(1)], &[r(4)]),
            "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r4}, \
             {%f0, %f1, %f2, %f3};",
        ),
        (
            Inst::Ldmatrix { trans: false, dsts: smallvec![r(0)], addr: at(r(1), 0) },
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r1];",
        ),
        (
            Inst::Ldmatrix { trans: true, dsts: Regs::from_slice(&r4), addr: at(r(5), 512) },
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r0, %r1, %r2, %r3}, [%r5+512];",
        ),
        (
            Inst::CpAsync {
                cache: CpCache::Cg,
                bytes: 16,
                dst: at(r(0), 0),
                src: at(d(0), 0),
                src_size: Some(r(1).into()),
            },
            "cp.async.cg.shared.global [%r0], [%d0], 16, %r1;",
        ),
        (
            Inst::CpAsync {
                cache: CpCache::Ca,
                bytes: 4,
                dst: Addr::shared(8),
                src: at(d(0), 32),
                src_size: None,
            },
            "cp.async.ca.shared.global [smem+8], [%d0+32], 4;",
        ),
        (Inst::CpAsyncCommit, "cp.async.commit_group;"),
        (Inst::CpAsyncWait(1), "cp.async.wait_group 1;"),
        (Inst::CpAsyncWaitAll, "cp.async.wait_all;"),
        (Inst::Bra { label: Label(0), uni: true }, "bra.uni $L0;"),
        (Inst::Bra { label: Label(0), uni: false }, "bra $L0;"),
        (Inst::Trap, "trap;"),
        (Inst::Exit, "exit;"),
        (Inst::Ret, "ret;"),
    ]
}

/// Forms newer than PTX ISA 7.0, with their texts and needs: version and architecture.
pub(crate) fn newer() -> Vec<(Inst, &'static str, (u32, u32), u32)> {
    let at = |reg| Addr::reg(reg, 0);
    vec![
        (cvt(Ty::F32, Ty::BF16, None, f(0), h(1)), "cvt.f32.bf16 %f0, %h1;", (7, 1), 80),
        (
            ld(Space::Global, Ty::F32, Some(LdCache::NcNoAllocate), &[f(0)], at(d(0))),
            "ld.global.nc.L1::no_allocate.f32 %f0, [%d0];",
            (7, 4),
            80,
        ),
        (cvt(Ty::BF16, Ty::S32, Some(Round::Rn), h(0), r(1)), "cvt.rn.bf16.s32 %h0, %r1;", (7, 8), 90),
        (cvt(Ty::TF32, Ty::F32, Some(Round::Rn), r(0), f(1)), "cvt.rn.tf32.f32 %r0, %f1;", (7, 8), 90),
        (
            Inst::Red {
                op: AtomOp::Add,
                ty: Ty::BF16x2,
                space: Space::Global,
                sem: GPU,
                addr: at(d(0)),
                src: r(1).into(),
            },
            "red.relaxed.gpu.global.add.noftz.bf16x2 [%d0], %r1;",
            (7, 8),
            90,
        ),
        (
            Inst::Mov { ty: Ty::U32, dst: r(0), src: SpecialReg::ClusterCtaRank.into() },
            "mov.u32 %r0, %cluster_ctarank;",
            (7, 8),
            90,
        ),
        (Inst::Fence { sem: FenceSem::AcqRel, scope: Scope::Cluster }, "fence.acq_rel.cluster;", (7, 8), 90),
        (
            Inst::Stmatrix { trans: true, addr: at(r(0)), srcs: smallvec![r(1), r(2)] },
            "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r0], {%r1, %r2};",
            (7, 8),
            90,
        ),
    ]
}

/// A kernel that gives registers 0 to 7 of every class a value, then runs the instructions, then returns. It ends
/// in label 0, and has parameter `x`, shared and local memory.
pub(crate) fn kernel_of(insts: impl IntoIterator<Item = Inst>) -> Kernel {
    let mut b = FuncBuilder::new("forms", 128);
    b.param("x", ParamKind::Pointer { align: 16 });
    b.kernel_mut().shared = Shared::Dynamic { align: 128 };
    b.kernel_mut().local_bytes = 16;
    for class in RegClass::ALL {
        for _ in 0..8 {
            let reg = b.reg(class);
            match class {
                RegClass::F32 => b.mov_to(Ty::F32, reg, Operand::f32(0.0)),
                RegClass::F64 => b.mov_to(Ty::F64, reg, Operand::f64(0.0)),
                _ => b.mov_to(class.declared(), reg, 0i64),
            }
        }
    }
    let end = b.label();
    insts.into_iter().for_each(|inst| b.emit(inst));
    b.place(end);
    b.emit(Inst::Ret);
    b.finish()
}

/// How many lines `kernel_of` puts before the instructions.
pub(crate) const PRELUDE: usize = 8 * RegClass::ALL.len();
