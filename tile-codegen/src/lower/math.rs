//! Elementary functions in f32, out of the GPU's approximate instructions and short polynomials.
//!
//! Polynomial coefficients are least-squares fits on Chebyshev nodes, rounded to f32; the errors beside them were
//! measured over 100,000 points of the interval.

use super::LowerCx;
use crate::ptx::{Cmp, FloatOp, FloatUnOp, Inst, IntOp, Operand, Reg, RegClass, Round, Ty};

/// log(1 + m) = m + m^2 q(m) for |m| <= 1/3, within 7.2e-8 relative; coefficients of q, constant first.
const LOG: [f32; 9] = [
    -0.5,
    0.333_332_72,
    -0.249_998_4,
    0.200_073_23,
    -0.166_780_93,
    0.140_542_18,
    -0.122_196_175,
    0.137_565_39,
    -0.127_341_52,
];

/// tanh(x) = x + x^3 q(x^2) for |x| <= 0.6, within 7.4e-8 relative.
const TANH: [f32; 5] = [-0.333_333_3, 0.133_329_24, -0.053_875_137, 0.021_116_214, -0.006_276_387_3];

fn c(x: f32) -> Operand {
    Operand::f32(x)
}

impl LowerCx<'_> {
    fn un(&mut self, op: FloatUnOp, ftz: bool, a: impl Into<Operand>) -> Reg {
        let dst = self.f.reg(RegClass::F32);
        self.f.emit(Inst::FloatUn { op, ty: Ty::F32, ftz, dst, a: a.into() });
        dst
    }

    fn bits(&mut self, x: impl Into<Operand>) -> Reg {
        let dst = self.f.reg(RegClass::B32);
        self.f.mov_to(Ty::B32, dst, x.into());
        dst
    }

    fn float_of_bits(&mut self, x: impl Into<Operand>) -> Reg {
        let dst = self.f.reg(RegClass::F32);
        self.f.mov_to(Ty::B32, dst, x.into());
        dst
    }

    /// Constant coefficient first; Horner's scheme.
    fn polynomial(&mut self, coefficients: &[f32], x: Reg) -> Reg {
        let (last, rest) = coefficients.split_last().expect("a polynomial has coefficients");
        let mut sum: Operand = c(*last);
        for &k in rest.iter().rev() {
            sum = self.f.fma_f32(sum, x, c(k)).into();
        }
        self.f.materialize(Ty::F32, sum)
    }

    /// 2^x within 2 ulp; results below 2^-126 flush to zero.
    pub fn exp2(&mut self, x: Operand) -> Reg {
        self.un(FloatUnOp::Ex2Approx, true, x)
    }

    /// e^x within 2e-6 relative: the exponent is split so that the rounding of x log2(e) does not count.
    pub fn exp(&mut self, x: Operand) -> Reg {
        // Beyond these the result is 0 or infinite; NaN passes through.
        let low = self.f.float(FloatOp::MaxNan, Ty::F32, x, c(-104.0));
        let x = self.f.float(FloatOp::MinNan, Ty::F32, low, c(89.0));
        let scaled = self.f.mul_f32(x, c(std::f32::consts::LOG2_E));
        let n = self.f.cvt_with(Ty::F32, Ty::F32, Some(Round::Rni), scaled);
        // 2^128 is infinite, but the result need not be.
        let n = self.f.min_f32(n, c(127.0));
        // ln 2 in two parts, so that n times the first is exact.
        let rest = self.f.fma_f32(n, c(-0.693_359_4), x);
        let rest = self.f.fma_f32(n, c(2.121_944_4e-4), rest);
        let part = self.f.mul_f32(rest, c(std::f32::consts::LOG2_E));
        let (fraction, whole) = (self.exp2(part.into()), self.exp2(n.into()));
        self.f.mul_f32(fraction, whole)
    }

    /// log(x) within 2e-7 relative; denormal x counts as it is.
    pub fn log(&mut self, x: Operand) -> Reg {
        let x = self.f.materialize(Ty::F32, x);
        let tiny = self.f.setp(Cmp::Lt, Ty::F32, x, c(f32::MIN_POSITIVE));
        let scaled = self.f.mul_f32(x, c(8_388_608.0));
        let y = self.f.selp(Ty::F32, scaled, x, tiny);
        let shift = self.f.selp(Ty::F32, c(-23.0), c(0.0), tiny);
        // y = 2^e (1 + m) with 1 + m in [2/3, 4/3).
        let bits = self.bits(y);
        let above = self.f.sub_s32(bits, 0x3f2a_aaab);
        let exponent = self.f.int(IntOp::And, Ty::B32, above, 0xff80_0000u32 as i32);
        let mantissa = self.f.sub_s32(bits, exponent);
        let one_plus = self.float_of_bits(mantissa);
        let m = self.f.add_f32(one_plus, c(-1.0));
        let whole = self.f.cvt_with(Ty::F32, Ty::S32, Some(Round::Rn), exponent);
        let e = self.f.fma_f32(whole, c(1.192_092_9e-7), shift);
        let q = self.polynomial(&LOG, m);
        let square = self.f.mul_f32(m, m);
        let log = self.f.fma_f32(q, square, m);
        let log = self.f.fma_f32(e, c(std::f32::consts::LN_2), log);
        self.log_special(x, log)
    }

    /// log of 0 is -inf, of inf inf, of a negative number or NaN NaN.
    fn log_special(&mut self, x: Reg, log: Reg) -> Reg {
        let infinite = self.f.setp(Cmp::Eq, Ty::F32, x, c(f32::INFINITY));
        let log = self.f.selp(Ty::F32, c(f32::INFINITY), log, infinite);
        let zero = self.f.setp(Cmp::Eq, Ty::F32, x, c(0.0));
        let log = self.f.selp(Ty::F32, c(f32::NEG_INFINITY), log, zero);
        let bad = self.f.setp(Cmp::Ltu, Ty::F32, x, c(0.0));
        let log = self.f.selp(Ty::F32, c(f32::NAN), log, bad);
        self.f.materialize(Ty::F32, log)
    }

    /// log(1 + x) for x >= 0: the rounding of 1 + x is made good to first order.
    fn log_1p(&mut self, x: Reg) -> Reg {
        let u = self.f.add_f32(x, c(1.0));
        let log = self.log(u.into());
        let back = self.f.add_f32(u, c(-1.0));
        let lost = self.f.sub_f32(x, back);
        let correction = self.f.float(FloatOp::DivFull, Ty::F32, lost, u);
        self.f.add_f32(log, correction)
    }

    /// log(1 + e^x); x itself above 20.
    pub fn softplus(&mut self, x: Operand) -> Reg {
        let x = self.f.materialize(Ty::F32, x);
        let capped = self.f.float(FloatOp::MinNan, Ty::F32, x, c(20.0));
        let e = self.exp(capped.into());
        let log = self.log_1p(e);
        let large = self.f.setp(Cmp::Gt, Ty::F32, x, c(20.0));
        let y = self.f.selp(Ty::F32, x, log, large);
        self.f.materialize(Ty::F32, y)
    }

    /// 1 / (1 + e^-x).
    pub fn sigmoid(&mut self, x: Operand) -> Reg {
        let negative = self.un(FloatUnOp::Neg, false, x);
        let e = self.exp(negative.into());
        let sum = self.f.add_f32(e, c(1.0));
        self.f.float_un(FloatUnOp::RcpRn, Ty::F32, sum)
    }

    /// tanh(x) within 3e-7 relative.
    pub fn tanh(&mut self, x: Operand) -> Reg {
        let x = self.f.materialize(Ty::F32, x);
        let size = self.un(FloatUnOp::Abs, false, x);
        let square = self.f.mul_f32(x, x);
        let q = self.polynomial(&TANH, square);
        let cube = self.f.mul_f32(square, x);
        let small = self.f.fma_f32(q, cube, x);
        // 1 - 2 / (e^2|x| + 1), with the sign of x.
        let double = self.f.add_f32(size, size);
        let e = self.exp(double.into());
        let sum = self.f.add_f32(e, c(1.0));
        let part = self.f.float(FloatOp::DivFull, Ty::F32, c(2.0), sum);
        let rest = self.f.sub_f32(c(1.0), part);
        let far = self.f.setp(Cmp::Geu, Ty::F32, size, c(0.6));
        let y = self.f.selp(Ty::F32, rest, small, far);
        // The polynomial has its sign already, but for -0.0, whose sum with +0.0 is +0.0.
        let (sign, y) = (self.bits(x), self.bits(y));
        let sign = self.f.int(IntOp::And, Ty::B32, sign, 0x8000_0000u32 as i32);
        let signed = self.f.int(IntOp::Or, Ty::B32, y, sign);
        self.float_of_bits(signed)
    }
}
