//! Arithmetic on f32 and f64: exact operations to the bit, approximations within the errors of the PTX manual (9.7.3).

use tile_codegen::ptx::{FloatOp, FloatUnOp, Inst, Ty};

use super::bounds::{of_binary, of_unary, trigonometry_far, trigonometry_near};
use super::builder::Builder;
use super::values::{Random, edges, f32_bits, floats, pairs, random, triples};
use super::{Compare, Probe};

pub(super) fn probes() -> Vec<Probe> {
    let mut all = Vec::new();
    for (ty, ftz) in [(Ty::F32, false), (Ty::F32, true), (Ty::F64, false)] {
        all.push(binary(ty, ftz));
        all.push(unary(ty, ftz));
        all.push(fused(ty, ftz));
    }
    all.extend([false, true].map(trigonometry));
    all
}

/// The name's suffix.
fn suffix(ty: Ty, ftz: bool) -> String {
    format!("{}{ty}", if ftz { "ftz." } else { "" })
}

/// Random numbers of moderate size.
fn moderate(ty: Ty, count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random(seed);
    let value = |random: &mut Random| random.unit() * 2f64.powi(random.below(24) as i32 - 12);
    let bits = |value: f64| if ty == Ty::F64 { value.to_bits() } else { f32_bits(value) };
    (0..count).map(|_| bits(value(&mut random))).collect()
}

fn binary(ty: Ty, ftz: bool) -> Probe {
    let list: Vec<u64> = floats(ty).into_iter().step_by(if ty == Ty::F64 { 3 } else { 1 }).collect();
    let mut list = list;
    // A number and its negation, so that sums cancel.
    list.extend([1.0f64, -1.0].map(|x| if ty == Ty::F64 { x.to_bits() } else { f32_bits(x) }));
    list.sort_unstable();
    list.dedup();
    let few: Vec<u64> = list.iter().copied().step_by(2).collect();
    let (mut a, mut b) = pairs(&list, &few);
    a.extend(moderate(ty, 128, 11).into_iter().chain(random(ty, 128, 12)));
    b.extend(moderate(ty, 128, 13).into_iter().chain(random(ty, 128, 14)));
    let suffix = suffix(ty, ftz);
    let mut p = Builder::elements(format!("floating/two operands {suffix}"), &[(ty, a), (ty, b)]);
    let single = [FloatOp::DivFull, FloatOp::DivApprox, FloatOp::MinNan, FloatOp::MaxNan];
    for &op in FloatOp::ALL.iter().filter(|op| ty == Ty::F32 || !single.contains(op)) {
        let dst = p.f.reg(ty.class());
        p.f.emit(Inst::Float { op, ty, ftz, dst, a: p.x[0].into(), b: p.x[1].into() });
        p.out_as(format!("{}.{suffix}", op.name()), dst, of_binary(op, ftz));
    }
    p.finish()
}

fn unary(ty: Ty, ftz: bool) -> Probe {
    let mut x = edges(ty, 208);
    x.extend(moderate(ty, 256, 15));
    let suffix = suffix(ty, ftz);
    let mut p = Builder::elements(format!("floating/one operand {suffix}"), &[(ty, x)]);
    let both = [FloatUnOp::Neg, FloatUnOp::Abs, FloatUnOp::SqrtRn, FloatUnOp::RcpRn, FloatUnOp::RsqrtApprox];
    for &op in FloatUnOp::ALL {
        let reduced = matches!(op, FloatUnOp::SinApprox | FloatUnOp::CosApprox);
        let has = if ty == Ty::F64 { both.contains(&op) } else { !(ftz && op == FloatUnOp::TanhApprox) };
        if reduced || !has {
            continue;
        }
        let dst = p.f.reg(ty.class());
        p.f.emit(Inst::FloatUn { op, ty, ftz, dst, a: p.x[0].into() });
        p.out_as(format!("{}.{suffix}", op.name()), dst, of_unary(op, ty, ftz));
    }
    p.finish()
}

fn fused(ty: Ty, ftz: bool) -> Probe {
    let few: Vec<u64> = floats(ty).into_iter().step_by(5).collect();
    let [mut a, mut b, mut c] = triples(&few, &few, &few);
    a.extend(moderate(ty, 120, 16));
    b.extend(moderate(ty, 120, 17));
    c.extend(moderate(ty, 120, 18));
    let suffix = suffix(ty, ftz);
    let mut p = Builder::elements(format!("floating/fma {suffix}"), &[(ty, a), (ty, b), (ty, c)]);
    let dst = p.f.reg(ty.class());
    let [a, b, c] = [p.x[0], p.x[1], p.x[2]].map(Into::into);
    p.f.emit(Inst::Fma { ty, ftz, dst, a, b, c });
    p.out(format!("fma.rn.{suffix}"), dst);
    p.finish()
}

/// Sine and cosine by the range of their argument, on which the error depends.
fn trigonometry(ftz: bool) -> Probe {
    let mut draw = Random(19);
    let small: Vec<u64> = (0..256).map(|_| f32_bits(draw.unit() * std::f64::consts::TAU)).collect();
    let large: Vec<u64> = (0..256).map(|_| f32_bits(draw.unit() * 100.0 * std::f64::consts::PI)).collect();
    let special: Vec<u64> = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(f32_bits).into();
    let special = special.into_iter().cycle().take(256).collect();
    let suffix = suffix(Ty::F32, ftz);
    let columns = [(Ty::F32, small), (Ty::F32, large), (Ty::F32, special)];
    let mut p = Builder::elements(format!("floating/trigonometry {suffix}"), &columns);
    let ranges = [
        ("-2pi..2pi", trigonometry_near()),
        ("-100pi..100pi", trigonometry_far()),
        ("zeros, infinities, NaN", Compare::Bits),
    ];
    for op in [FloatUnOp::SinApprox, FloatUnOp::CosApprox] {
        for (column, (range, compare)) in ranges.into_iter().enumerate() {
            let dst = p.f.reg(Ty::F32.class());
            p.f.emit(Inst::FloatUn { op, ty: Ty::F32, ftz, dst, a: p.x[column].into() });
            p.out_as(format!("{}.{suffix} {range}", op.name()), dst, compare);
        }
    }
    p.finish()
}
