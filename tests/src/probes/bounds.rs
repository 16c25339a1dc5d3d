//! How far the executor's approximations may lie from a chip's: the errors that the PTX manual gives (PTX ISA 9.7.3).
//!
//! The executor rounds the true result once, so that a chip within n ulp of the true result is within n ulp of the
//! executor's, and one within a relative error is within that and [`ROUNDING`]. NaN, infinities and signs are compared bit
//! by bit.
//!
//! | instruction | bound | why |
//! |---|---|---|
//! | `div.full.f32` | 2 ulp | the manual |
//! | `div.approx.f32` | 2 ulp | the manual, for divisors of 2^-126 to 2^126; larger ones give what it says, smaller ones the same |
//! | `rcp.approx.f32` | 1 ulp | the manual |
//! | `ex2.approx.f32` | 2 ulp | the manual |
//! | `sqrt.approx.f32` | 2^-23 relative | the manual |
//! | `rsqrt.approx.f32` | 2^-22.9 relative | the manual |
//! | `lg2.approx.f32` | 2^-22 absolute for 0.5..2, 2^-22 relative elsewhere | the manual |
//! | `sin.approx.f32`, `cos.approx.f32` | 2^-20.5 absolute in -2pi..2pi, 2^-14.7 in -100pi..100pi | the manual |
//! | `tanh.approx.f32` | 2^-11 relative | the manual |
//! | `rsqrt.approx.f64` | 1 ulp | the manual gives none, as the chip emulates it; this is what an H200 keeps |
//! | `mma` of random numbers | 17 steps of 2^-20 | the manual leaves the order and the rounding of the sum open; see `mma.rs` |
//! | `wgmma` of random numbers, and of small terms | steps of 2^-19 a term, 17 of 2^-22 of the largest | as for `mma`; see `wgmma.rs` |

use tile_codegen::ptx::{FloatOp, FloatUnOp, Ty};

use super::Compare;

/// Half an ulp that the executor's own rounding adds, relative to the result.
pub(super) const ROUNDING: f64 = 1.0 / (1 << 24) as f64;

fn ulps(count: u64, ftz: bool, why: &'static str) -> Compare {
    Compare::Ulps { count, ftz, why }
}

fn relative(error: f64, why: &'static str) -> Compare {
    Compare::Within { rel: error + ROUNDING, abs: 0.0, why }
}

/// The bound of an instruction with two operands.
pub(super) fn of_binary(op: FloatOp, ftz: bool) -> Compare {
    match op {
        FloatOp::DivFull => ulps(2, ftz, "div.full: 2 ulp over the full range"),
        FloatOp::DivApprox => ulps(2, ftz, "div.approx: 2 ulp for divisors in 2^-126..2^126"),
        _ => Compare::Bits,
    }
}

/// The bound of an instruction with one operand.
pub(super) fn of_unary(op: FloatUnOp, ty: Ty, ftz: bool) -> Compare {
    match (op, ty) {
        (FloatUnOp::RsqrtApprox, Ty::F64) => ulps(1, ftz, "rsqrt.approx.f64 is emulated, no error is given"),
        (FloatUnOp::SqrtApprox, _) => relative(2f64.powi(-23), "sqrt.approx: relative error 2^-23"),
        (FloatUnOp::RsqrtApprox, _) => relative(2f64.powf(-22.9), "rsqrt.approx: relative error 2^-22.9"),
        (FloatUnOp::RcpApprox, _) => ulps(1, ftz, "rcp.approx: 1 ulp"),
        (FloatUnOp::Ex2Approx, _) => ulps(2, ftz, "ex2.approx: 2 ulp"),
        (FloatUnOp::Lg2Approx, _) => {
            let why = "lg2.approx: absolute error 2^-22 for 0.5..2, relative error 2^-22 elsewhere";
            let error = 2f64.powi(-22) + ROUNDING;
            // Outside 0.5..2 results are at least 1, and the relative error is the larger one.
            Compare::Within { rel: error, abs: error, why }
        }
        (FloatUnOp::TanhApprox, _) => relative(2f64.powi(-11), "tanh.approx: relative error 2^-11"),
        _ => Compare::Bits,
    }
}

/// Sine and cosine of arguments in -2pi..2pi.
pub(super) fn trigonometry_near() -> Compare {
    let why = "absolute error 2^-20.5 in -2pi..2pi";
    Compare::Within { rel: 0.0, abs: 2f64.powf(-20.5) + ROUNDING, why }
}

/// Sine and cosine of arguments in -100pi..100pi.
pub(super) fn trigonometry_far() -> Compare {
    let why = "absolute error 2^-14.7 in -100pi..100pi";
    Compare::Within { rel: 0.0, abs: 2f64.powf(-14.7) + ROUNDING, why }
}
