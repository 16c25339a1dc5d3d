//! Each misuse is a fault that says what is wrong.

use super::forms::{d, f, g, h, kernel_of, p, r};
use crate::ptx::*;
use smallvec::smallvec;

fn faults(inst: Inst) -> Vec<String> {
    let errors = check_kernel(&kernel_of([inst]), Sm::SM_80).err().unwrap_or_default();
    errors.into_iter().map(|error| error.message).collect()
}

fn assert_fault(inst: Inst, part: &str) {
    let found = faults(inst.clone());
    assert!(found.len() == 1 && found[0].contains(part), "{inst:?}: {found:?}");
}

fn ld(space: Space, ty: Ty, cache: Option<LdCache>, dsts: &[Reg], addr: Addr) -> Inst {
    Inst::Ld { space, ty, sem: MemSem::Weak, cache, dsts: Regs::from_slice(dsts), addr }
}

#[test]
fn operand_classes_must_match() {
    let add = |dst, a: Operand| Inst::Int { op: IntOp::Add, ty: Ty::S32, dst, a, b: Operand::Imm(1) };
    assert_fault(add(r(0), d(0).into()), "does not fit .s32");
    assert_fault(add(f(0), r(0).into()), "does not fit .s32");
    assert_fault(add(r(0), Operand::f32(1.0)), "does not fit .s32");
    assert_fault(add(r(0), Operand::Imm(1 << 32)), "does not fit .s32");
    assert_fault(add(r(0), SpecialReg::TidX.into()), "does not fit .s32");
    assert_fault(ld(Space::Global, Ty::F32, None, &[f(0)], r(0).into()), "does not fit .u64");
    assert_fault(ld(Space::Shared, Ty::F32, None, &[f(0)], d(0).into()), "does not fit .u32");
    assert_fault(ld(Space::Global, Ty::B32, None, &[h(0)], d(0).into()), "does not fit .b32");
    assert_fault(Inst::Pred { op: PredOp::And, dst: p(0), a: p(1), b: r(0) }, "does not fit .pred");
    let wide = Inst::MulWide { ty: Ty::S32, dst: r(0), a: r(0).into(), b: r(1).into() };
    assert_fault(wide, "does not fit .s64");
}

#[test]
fn forms_must_exist() {
    let int = |op, ty| Inst::Int { op, ty, dst: r(0), a: r(0).into(), b: r(1).into() };
    assert_fault(int(IntOp::Add, Ty::B32), "add has no .b32");
    assert_fault(int(IntOp::Xor, Ty::S32), "xor has no .s32");
    let ex2 = |ty, ftz, x| Inst::FloatUn { op: FloatUnOp::Ex2Approx, ty, ftz, dst: x, a: x.into() };
    assert_fault(ex2(Ty::F64, false, g(0)), "has no .f64");
    let cvt = |round| Inst::Cvt {
        dst_ty: Ty::S32,
        src_ty: Ty::F32,
        round,
        ftz: false,
        sat: false,
        dst: r(0),
        src: f(0).into(),
    };
    assert_fault(cvt(None), "no rounding");
    assert_fault(cvt(Some(Round::Rn)), "give the rounding");
    let saturated = |dst_ty, src_ty, round, dst, src| Inst::Cvt {
        dst_ty,
        src_ty,
        round,
        ftz: false,
        sat: true,
        dst,
        src: Operand::Reg(src),
    };
    assert_fault(saturated(Ty::BF16, Ty::F32, Some(Round::Rn), h(0), f(0)), "has no .sat");
    assert_fault(saturated(Ty::S32, Ty::S32, None, r(0), r(1)), "has no .sat");
    let setp = Inst::Setp { cmp: Cmp::Geu, ty: Ty::S32, dst: p(0), a: r(0).into(), b: r(1).into() };
    assert_fault(setp, "setp.geu has no .s32");
    let acc = [f(0), f(1), f(2), f(3)];
    let (a, b) = (smallvec![r(0), r(1)], smallvec![r(2)]);
    assert_fault(
        Inst::Mma { shape: MmaShape::M16N8K16, ty: Ty::BF16, d: acc, a, b, c: acc },
        "does not take 2 and 1 registers",
    );
    assert_fault(ld(Space::Shared, Ty::F32, Some(LdCache::Nc), &[f(0)], r(0).into()), "ld.nc");
    assert_fault(ld(Space::Global, Ty::B64, None, &[d(0), d(1), d(2), d(3)], d(4).into()), "16 bytes");
    assert_fault(ld(Space::Global, Ty::F32, None, &[f(0)], Addr::shared(0)), "not one of .global");
    assert_fault(ld(Space::Param, Ty::U32, None, &[r(0)], Addr::param(3)), "no parameter 3");
    let (dst, src) = (r(0).into(), d(0).into());
    let copy = Inst::CpAsync { cache: CpCache::Cg, bytes: 8, dst, src, src_size: None };
    assert_fault(copy, "does not copy 8 bytes");
    assert_fault(Inst::BarSync { id: Operand::Imm(0), threads: Some(33) }, "multiple of 32");
    assert_fault(Inst::Stmatrix { trans: false, addr: r(0).into(), srcs: smallvec![r(1)] }, "needs sm_90");
}

#[test]
fn labels_and_guards() {
    assert_fault(Inst::Bra { label: Label(9), uni: false }, "not placed");
    assert_fault(Inst::Label(Label(0)), "placed twice");
    let mut kernel = kernel_of([Inst::Membar { level: MembarLevel::Cta }]);
    let line = kernel.lines.len() - 3;
    kernel.lines[line].guard = Some((r(0), false));
    let errors = check_kernel(&kernel, Sm::SM_80).expect_err("a guard in %r");
    assert_eq!(errors.len(), 1);
    assert_eq!(
        errors[0].to_string(),
        format!("forms, line {line}: @%r0 membar.cta;: the guard is not a predicate")
    );
}

#[test]
fn the_end_is_out_of_reach() {
    let mut kernel = kernel_of([]);
    kernel.lines.pop();
    let errors = check_kernel(&kernel, Sm::SM_80).expect_err("no ret");
    assert!(errors[0].message.contains("must be ret"));
}

/// `if c { x = 1 }; use(x)` reads x undefined on one path; with an else branch it does not.
#[test]
fn definitions_must_reach_uses_on_every_path() {
    for both in [false, true] {
        let mut b = FuncBuilder::new("k", 32);
        let (x, tid) = (b.reg(RegClass::B32), b.special(SpecialReg::TidX));
        let c = b.setp(Cmp::Lt, Ty::U32, tid, 3);
        let (other, join) = (b.label(), b.label());
        b.bra_unless(c, other, false);
        b.mov_to(Ty::B32, x, 1i64);
        b.bra(join, false);
        b.place(other);
        if both {
            b.mov_to(Ty::B32, x, 2i64);
        }
        b.place(join);
        b.int_un(IntUnOp::Not, Ty::B32, x);
        let result = check_kernel(&b.finish(), Sm::SM_80);
        let lines = result.err().map(|errors| errors.iter().map(|e| e.line).collect::<Vec<_>>());
        assert_eq!(lines, if both { None } else { Some(vec![Some(7)]) });
    }
}

/// A value written at the end of a loop's body is not there in its first turn.
#[test]
fn loops_see_what_was_before_them() {
    let mut b = FuncBuilder::new("k", 32);
    let (x, n) = (b.reg(RegClass::B32), b.mov_imm(Ty::S32, 0));
    let top = b.label();
    b.place(top);
    let sum = b.add_s32(n, x);
    b.mov_to(Ty::S32, x, sum);
    let more = b.setp(Cmp::Lt, Ty::S32, x, 10);
    b.bra_if(more, top, true);
    let errors = check_kernel(&b.finish(), Sm::SM_80).expect_err("x is read first");
    assert_eq!(errors.len(), 1);
    assert!(errors[0].message.contains("%r register that may not be written yet"));
}

#[test]
fn names_and_bounds() {
    let mut b = FuncBuilder::new("größe", 2048);
    b.param("n", ParamKind::Scalar(Ty::U32));
    b.param("n", ParamKind::Pointer { align: 3 });
    b.kernel_mut().shared = Shared::Static { bytes: 50_000, align: 128 };
    let kernel = b.finish();
    let errors = check_kernel(&kernel, Sm::SM_80).expect_err("five faults");
    assert_eq!(errors.len(), 5);
    let module = Module { target: Sm::SM_80, kernels: vec![kernel_of([]), kernel_of([])] };
    let errors = check_module(&module).expect_err("the same name twice");
    assert!(errors[0].message.contains("two kernels"));
}
