//! Integer and bit arithmetic at every type and width.

use tile_codegen::ptx::{Inst, IntOp, IntUnOp, RegClass, Ty};

use super::Probe;
use super::builder::Builder;
use super::values::{amounts, edges, integers, pairs, random, triples};

const INTEGERS: [Ty; 6] = [Ty::U16, Ty::S16, Ty::U32, Ty::S32, Ty::U64, Ty::S64];
const BITS: [Ty; 3] = [Ty::B16, Ty::B32, Ty::B64];

pub(super) fn probes() -> Vec<Probe> {
    let mut all: Vec<Probe> = INTEGERS.map(binary).into();
    all.extend(BITS.map(logic));
    all.extend([Ty::U16, Ty::S16, Ty::U32, Ty::S32, Ty::U64, Ty::S64, Ty::B16, Ty::B32, Ty::B64].map(shifts));
    all.extend([Ty::S16, Ty::S32, Ty::S64, Ty::B16, Ty::B32, Ty::B64].map(unary));
    all.extend(INTEGERS.map(multiply_add));
    all.extend([Ty::U32, Ty::S32, Ty::U64, Ty::S64].map(extract));
    all.extend([Ty::B32, Ty::B64].map(insert));
    all.push(lop3());
    all.push(shf());
    all.push(prmt());
    all.extend([Ty::B32, Ty::B64].map(pack));
    all
}

fn binary(ty: Ty) -> Probe {
    let (mut a, mut b) = pairs(&integers(ty), &integers(ty));
    a.extend(random(ty, 48, 1));
    b.extend(random(ty, 48, 2));
    let mut p = Builder::elements(format!("integer/two operands {ty}"), &[(ty, a), (ty, b)]);
    let ops =
        [IntOp::Add, IntOp::Sub, IntOp::MulLo, IntOp::MulHi, IntOp::Div, IntOp::Rem, IntOp::Min, IntOp::Max];
    for op in ops {
        let value = p.f.int(op, ty, p.x[0], p.x[1]);
        p.out(format!("{}.{ty}", op.name()), value);
    }
    p.finish()
}

fn logic(ty: Ty) -> Probe {
    let (a, b) = (random(ty, 64, 3), random(ty, 64, 4));
    let mut p = Builder::elements(format!("integer/logic {ty}"), &[(ty, a), (ty, b)]);
    for op in [IntOp::And, IntOp::Or, IntOp::Xor] {
        let value = p.f.int(op, ty, p.x[0], p.x[1]);
        p.out(format!("{}.{ty}", op.name()), value);
    }
    p.finish()
}

fn shifts(ty: Ty) -> Probe {
    let (a, b) = pairs(&integers(ty), &amounts());
    let mut p = Builder::elements(format!("integer/shifts {ty}"), &[(ty, a), (Ty::U32, b)]);
    let bits = BITS.contains(&ty);
    for op in [IntOp::Shl, IntOp::Shr].into_iter().filter(|&op| bits || op == IntOp::Shr) {
        let value = p.f.int(op, ty, p.x[0], p.x[1]);
        p.out(format!("{}.{ty}", op.name()), value);
    }
    p.finish()
}

fn unary(ty: Ty) -> Probe {
    let mut p = Builder::elements(format!("integer/one operand {ty}"), &[(ty, edges(ty, 44))]);
    let ops: &[IntUnOp] = match ty {
        Ty::S16 | Ty::S32 | Ty::S64 => &[IntUnOp::Neg, IntUnOp::Abs],
        Ty::B16 => &[IntUnOp::Not],
        _ => &[IntUnOp::Not, IntUnOp::Popc, IntUnOp::Clz, IntUnOp::Brev],
    };
    for &op in ops {
        let value = p.f.int_un(op, ty, p.x[0]);
        p.out(format!("{}.{ty}", op.name()), value);
    }
    p.finish()
}

fn wide(ty: Ty) -> Ty {
    match ty {
        Ty::U16 => Ty::U32,
        Ty::S16 => Ty::S32,
        Ty::U32 => Ty::U64,
        _ => Ty::S64,
    }
}

fn multiply_add(ty: Ty) -> Probe {
    let few: Vec<u64> = integers(ty).into_iter().step_by(2).collect();
    let [a, b, c] = triples(&few, &few, &[0, 1, u64::MAX, 0x7fff_7fff_7fff_7fff]);
    let columns = [(ty, a), (ty, b), (ty, c.clone()), (Ty::B64, c)];
    let mut p = Builder::elements(format!("integer/multiply and add {ty}"), &columns);
    let [a, b, c] = [p.x[0], p.x[1], p.x[2]].map(Into::into);
    let value = p.f.mad_lo(ty, a, b, c);
    p.out(format!("mad.lo.{ty}"), value);
    if ty.bits() < 64 {
        let wide = wide(ty);
        let dst = p.f.reg(wide.class());
        p.f.emit(Inst::MulWide { ty, dst, a, b });
        p.out(format!("mul.wide.{ty}"), dst);
        let c = if wide.bits() == 64 { p.x[3].into() } else { p.f.cvt(wide, Ty::U64, p.x[3]) };
        let dst = p.f.reg(wide.class());
        p.f.emit(Inst::MadWide { ty, dst, a, b, c });
        p.out(format!("mad.wide.{ty}"), dst);
    }
    p.finish()
}

fn extract(ty: Ty) -> Probe {
    let values = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, 1 << 31 | 1 << 63, u64::MAX];
    let [a, pos, len] = triples(&values, &amounts(), &amounts());
    let mut p = Builder::elements(format!("integer/bfe {ty}"), &[(ty, a), (Ty::U32, pos), (Ty::U32, len)]);
    let dst = p.f.reg(ty.class());
    p.f.emit(Inst::Bfe { ty, dst, a: p.x[0].into(), pos: p.x[1].into(), len: p.x[2].into() });
    p.out(format!("bfe.{ty}"), dst);
    p.finish()
}

fn insert(ty: Ty) -> Probe {
    let [a, pos, len] = triples(&[0x0123_4567_89ab_cdef, u64::MAX], &amounts(), &amounts());
    let b = random(ty, a.len(), 5);
    let columns = [(ty, a), (ty, b), (Ty::U32, pos), (Ty::U32, len)];
    let mut p = Builder::elements(format!("integer/bfi {ty}"), &columns);
    let dst = p.f.reg(ty.class());
    let [a, b, pos, len] = [p.x[0], p.x[1], p.x[2], p.x[3]].map(Into::into);
    p.f.emit(Inst::Bfi { ty, dst, a, b, pos, len });
    p.out(format!("bfi.{ty}"), dst);
    p.finish()
}

fn lop3() -> Probe {
    let columns = [0xf0f0_f0f0, 0xcccc_cccc, 0xaaaa_aaaa].map(|word: u64| (Ty::B32, vec![word; 32]));
    let mut p = Builder::new("integer/lop3", 32, &columns);
    for lut in (0..=255).step_by(5) {
        let value = p.f.lop3(p.x[0], p.x[1], p.x[2], lut);
        p.out(format!("lop3.b32 {lut:#04x}"), value);
    }
    p.finish()
}

fn shf() -> Probe {
    let [a, b, c] = triples(&[0x0123_4567, 0xffff_ffff], &[0x89ab_cdef, 0], &amounts());
    let mut p = Builder::elements("integer/shf", &[(Ty::B32, a), (Ty::B32, b), (Ty::U32, c)]);
    for left in [true, false] {
        let dst = p.f.reg(RegClass::B32);
        p.f.emit(Inst::Shf { left, dst, a: p.x[0].into(), b: p.x[1].into(), c: p.x[2].into() });
        p.out(if left { "shf.l.wrap.b32" } else { "shf.r.wrap.b32" }, dst);
    }
    p.finish()
}

fn prmt() -> Probe {
    let mut selectors: Vec<u64> = (0..16).flat_map(|i| (0..4).map(move |at| i << (4 * at))).collect();
    selectors.extend([0x3210, 0x7654, 0x5410, 0x7632, 0x0123, 0xfedc, 0x1_2345, 0xffff_0000]);
    selectors.extend(random(Ty::B16, 56, 6));
    let n = selectors.len();
    let columns = [(Ty::B32, vec![0x8391_02f4; n]), (Ty::B32, vec![0x65d6_b708; n]), (Ty::B32, selectors)];
    let mut p = Builder::elements("integer/prmt", &columns);
    let value = p.f.prmt(p.x[0], p.x[1], p.x[2]);
    p.out("prmt.b32", value);
    p.finish()
}

fn pack(ty: Ty) -> Probe {
    let mut p = Builder::elements(format!("integer/parts {ty}"), &[(ty, random(ty, 64, 7))]);
    let x = p.x[0];
    let halves = if ty == Ty::B32 { RegClass::B16 } else { RegClass::B32 };
    let [lo, hi] = p.f.unpack::<2>(ty, halves, x);
    p.out(format!("unpack {ty}, 2 parts, 0"), lo);
    p.out(format!("unpack {ty}, 2 parts, 1"), hi);
    let swapped = p.f.pack(ty, &[hi, lo]);
    p.out(format!("pack {ty}, 2 parts"), swapped);
    if ty == Ty::B64 {
        let [a, b, c, d] = p.f.unpack::<4>(ty, RegClass::B16, x);
        p.out("unpack b64, 4 parts, 1", b);
        let mixed = p.f.pack(ty, &[c, a, d, b]);
        p.out("pack b64, 4 parts", mixed);
    }
    p.finish()
}
