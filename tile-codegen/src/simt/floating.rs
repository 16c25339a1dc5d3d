//! Floating-point arithmetic, comparisons, selections and conversions.
//!
//! Everything rounds to nearest even once. Approximations are computed in f64 and rounded, which is inside the error that
//! PTX documents for each of them. The bits of NaN are in `nan.rs`.

use super::nan::bits_f64;
use super::number::{bits_f32, convert, extend, flush, narrow};
use super::regs::Lanes;
use super::step::Step;
use crate::ptx::{Cmp, FloatOp, FloatUnOp, Operand, PredOp, Reg, RegClass, Round, Ty, TyKind, wrap};

/// Calls `f` on f32 values, with subnormals flushed where `ftz`.
fn in_f32<const N: usize>(args: [&Lanes; N], ftz: bool, f: impl Fn([f32; N]) -> f32) -> Lanes {
    std::array::from_fn(|lane| {
        let values = args.map(|a| f32::from_bits(a[lane] as u32));
        if ftz { bits_f32(flush(f(values.map(flush)))) } else { bits_f32(f(values)) }
    })
}

fn in_f64<const N: usize>(args: [&Lanes; N], f: impl Fn([f64; N]) -> f64) -> Lanes {
    std::array::from_fn(|lane| {
        let values = args.map(|a| f64::from_bits(a[lane]));
        bits_f64(&values, f(values))
    })
}

/// `min`: the other one if one is NaN, and -0 below +0.
fn min(a: f64, b: f64) -> f64 {
    if a == b { if a.is_sign_negative() { a } else { b } } else { a.min(b) }
}

fn max(a: f64, b: f64) -> f64 {
    if a == b { if a.is_sign_negative() { b } else { a } } else { a.max(b) }
}

fn or_nan(a: f64, b: f64, f: fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { f(a, b) }
}

/// `div.approx`: a product with the reciprocal, which is 0 for divisors of 2^126 to 2^128, even if the quotient is not
/// small; so the PTX manual says.
fn div_approx(a: f32, b: f32) -> f32 {
    let huge = b.is_finite() && b.abs() > 2f32.powi(126);
    match (huge, a.is_finite()) {
        (true, false) => f32::NAN,
        (true, true) => 0.0f32.copysign(a * b.signum()),
        (false, _) => a / b,
    }
}

/// Operations of f32 that are an f64 function, rounded once more. All are exact or approximations.
fn unary(op: FloatUnOp, x: f64) -> f64 {
    match op {
        FloatUnOp::Neg => -x,
        FloatUnOp::Abs => x.abs(),
        FloatUnOp::SqrtRn | FloatUnOp::SqrtApprox => x.sqrt(),
        FloatUnOp::RsqrtApprox => 1.0 / x.sqrt(),
        FloatUnOp::RcpRn | FloatUnOp::RcpApprox => 1.0 / x,
        FloatUnOp::Ex2Approx => x.exp2(),
        FloatUnOp::Lg2Approx => x.log2(),
        FloatUnOp::SinApprox => x.sin(),
        FloatUnOp::CosApprox => x.cos(),
        FloatUnOp::TanhApprox => x.tanh(),
    }
}

fn compare(cmp: Cmp, order: Option<std::cmp::Ordering>) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    match cmp {
        Cmp::Eq => order == Some(Equal),
        Cmp::Ne => matches!(order, Some(Less | Greater)),
        Cmp::Lt => order == Some(Less),
        Cmp::Le => matches!(order, Some(Less | Equal)),
        Cmp::Gt => order == Some(Greater),
        Cmp::Ge => matches!(order, Some(Greater | Equal)),
        Cmp::Equ => matches!(order, None | Some(Equal)),
        Cmp::Neu => order != Some(Equal),
        Cmp::Ltu => matches!(order, None | Some(Less)),
        Cmp::Leu => order != Some(Greater),
        Cmp::Gtu => matches!(order, None | Some(Greater)),
        Cmp::Geu => order != Some(Less),
        Cmp::Num => order.is_some(),
        Cmp::Nan => order.is_none(),
    }
}

fn order(ty: Ty, a: u64, b: u64) -> Option<std::cmp::Ordering> {
    match ty.kind() {
        TyKind::Float if ty == Ty::F64 => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
        TyKind::Float => f32::from_bits(a as u32).partial_cmp(&f32::from_bits(b as u32)),
        TyKind::Signed => Some(wrap(ty, a as i64).cmp(&wrap(ty, b as i64))),
        _ => Some((wrap(ty, a as i64) as u64).cmp(&(wrap(ty, b as i64) as u64))),
    }
}

/// `f(lane)` of every lane as a mask.
fn bits(f: impl Fn(usize) -> bool) -> u32 {
    (0..32).fold(0, |bits, lane| bits | u32::from(f(lane)) << lane)
}

impl Step<'_, '_> {
    pub(super) fn float(&mut self, op: FloatOp, ty: Ty, ftz: bool, dst: Reg, a: Operand, b: Operand) {
        let (a, b) = (&self.operand(a, ty), &self.operand(b, ty));
        let wide = |f: fn(f64, f64) -> f64| in_f32([a, b], ftz, |[a, b]| f(a.into(), b.into()) as f32);
        let values = match (op, ty) {
            (FloatOp::Add, Ty::F64) => in_f64([a, b], |[a, b]| a + b),
            (FloatOp::Sub, Ty::F64) => in_f64([a, b], |[a, b]| a - b),
            (FloatOp::Mul, Ty::F64) => in_f64([a, b], |[a, b]| a * b),
            (FloatOp::DivRn | FloatOp::DivFull | FloatOp::DivApprox, Ty::F64) => {
                in_f64([a, b], |[a, b]| a / b)
            }
            (FloatOp::Min, Ty::F64) => in_f64([a, b], |[a, b]| min(a, b)),
            (FloatOp::Max, Ty::F64) => in_f64([a, b], |[a, b]| max(a, b)),
            (FloatOp::MinNan, Ty::F64) => in_f64([a, b], |[a, b]| or_nan(a, b, min)),
            (FloatOp::MaxNan, Ty::F64) => in_f64([a, b], |[a, b]| or_nan(a, b, max)),
            (FloatOp::Add, _) => in_f32([a, b], ftz, |[a, b]| a + b),
            (FloatOp::Sub, _) => in_f32([a, b], ftz, |[a, b]| a - b),
            (FloatOp::Mul, _) => in_f32([a, b], ftz, |[a, b]| a * b),
            (FloatOp::DivRn | FloatOp::DivFull, _) => in_f32([a, b], ftz, |[a, b]| a / b),
            (FloatOp::DivApprox, _) => in_f32([a, b], ftz, |[a, b]| div_approx(a, b)),
            (FloatOp::Min, _) => wide(min),
            (FloatOp::Max, _) => wide(max),
            (FloatOp::MinNan, _) => wide(|a, b| or_nan(a, b, min)),
            (FloatOp::MaxNan, _) => wide(|a, b| or_nan(a, b, max)),
        };
        self.set(dst, &values);
    }

    pub(super) fn float_un(&mut self, op: FloatUnOp, ty: Ty, ftz: bool, dst: Reg, a: Operand) {
        let a = &self.operand(a, ty);
        let values = match ty {
            Ty::F64 => in_f64([a], |[a]| unary(op, a)),
            _ => in_f32([a], ftz, |[a]| unary(op, a.into()) as f32),
        };
        self.set(dst, &values);
    }

    pub(super) fn fma(&mut self, ty: Ty, ftz: bool, dst: Reg, [a, b, c]: [Operand; 3]) {
        let [a, b, c] = &[a, b, c].map(|x| self.operand(x, ty));
        let values = match ty {
            Ty::F64 => in_f64([a, b, c], |[a, b, c]| a.mul_add(b, c)),
            _ => in_f32([a, b, c], ftz, |[a, b, c]| a.mul_add(b, c)),
        };
        self.set(dst, &values);
    }

    pub(super) fn cvt(
        &mut self,
        (dst_ty, src_ty): (Ty, Ty),
        round: Option<Round>,
        (ftz, sat): (bool, bool),
        dst: Reg,
        src: Operand,
    ) {
        let src = self.operand(src, src_ty);
        self.set(dst, &src.map(|src| extend(dst_ty, convert(dst_ty, src_ty, round, ftz, sat, src))));
    }

    pub(super) fn cvt_pack(&mut self, ty: Ty, dst: Reg, hi: Operand, lo: Operand) {
        let (hi, lo) = (self.operand(hi, Ty::F32), self.operand(lo, Ty::F32));
        let half = |bits: u64| narrow(ty, f32::from_bits(bits as u32));
        let values: Lanes = std::array::from_fn(|lane| half(hi[lane]) << 16 | half(lo[lane]));
        self.set(dst, &values);
    }

    pub(super) fn setp(&mut self, cmp: Cmp, ty: Ty, dst: Reg, a: Operand, b: Operand) {
        let (a, b) = (self.operand(a, ty), self.operand(b, ty));
        let values = bits(|lane| compare(cmp, order(ty, a[lane], b[lane])));
        self.warp.regs.set_pred(dst, self.mask, values);
    }

    pub(super) fn selp(&mut self, ty: Ty, dst: Reg, [a, b]: [Operand; 2], pred: Reg) {
        let (a, b, pick) = (self.operand(a, ty), self.operand(b, ty), self.warp.regs.pred(pred));
        let values: Lanes = std::array::from_fn(|lane| if pick >> lane & 1 != 0 { a[lane] } else { b[lane] });
        self.set(dst, &values);
    }

    pub(super) fn pred_op(&mut self, op: PredOp, dst: Reg, a: Reg, b: Reg) {
        debug_assert!(dst.class == RegClass::Pred, "the checker has seen this");
        let (a, b) = (self.warp.regs.pred(a), self.warp.regs.pred(b));
        let values = match op {
            PredOp::And => a & b,
            PredOp::Or => a | b,
            PredOp::Xor => a ^ b,
        };
        self.warp.regs.set_pred(dst, self.mask, values);
    }
}
