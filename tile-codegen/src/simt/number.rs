//! Numbers between formats: exact values, and PTX's roundings of them to every float and integer type.
//!
//! What becomes of NaN where it is not f32's one NaN is in `nan.rs`.

use half::{bf16, f16};

use super::nan::{NAN_16, convert_nan, is_nan};
use crate::ptx::{Round, Ty, TyKind};

/// NaN as f32 arithmetic makes it.
pub(super) const NAN_F32: u32 = 0x7fff_ffff;

/// A number without rounding: `mant` times 2 to the `exp`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Exact {
    Infinite { negative: bool },
    Finite { negative: bool, mant: u128, exp: i32 },
}

/// Bits of exponent and of mantissa.
pub(super) fn format(ty: Ty) -> (u32, u32) {
    match ty {
        Ty::F16 => (5, 10),
        Ty::BF16 => (8, 7),
        Ty::TF32 => (8, 10),
        Ty::F64 => (11, 52),
        _ => (8, 23),
    }
}

/// The bits of an integer of type `ty` as a number.
fn integer(ty: Ty, bits: u64) -> i128 {
    let spare = 64 - ty.bits();
    match ty.kind() {
        TyKind::Signed => i128::from(((bits << spare) as i64) >> spare),
        _ => i128::from((bits << spare) >> spare),
    }
}

/// The value of bits that are not NaN.
fn exact(ty: Ty, bits: u64) -> Exact {
    if ty.is_int() {
        let value = integer(ty, bits);
        return Exact::Finite { negative: value < 0, mant: value.unsigned_abs(), exp: 0 };
    }
    let (eb, mb) = format(ty);
    let mant = bits & ((1 << mb) - 1);
    let field = bits >> mb & ((1 << eb) - 1);
    let negative = bits >> (eb + mb) & 1 != 0;
    let bias = (1 << (eb - 1)) - 1;
    if field == (1 << eb) - 1 {
        return Exact::Infinite { negative };
    }
    let (mant, exp) = if field == 0 { (mant, 1) } else { (mant | 1 << mb, field as i32) };
    Exact::Finite { negative, mant: u128::from(mant), exp: exp - bias - mb as i32 }
}

/// `mant` divided by 2 to the `shift`, rounded.
fn shift_right(mant: u128, shift: u32, negative: bool, round: Round) -> u128 {
    if shift == 0 || mant == 0 {
        return mant;
    }
    let kept = if shift > 127 { 0 } else { mant >> shift };
    let rest = if shift > 127 { mant } else { mant & ((1 << shift) - 1) };
    let half = if shift > 127 { u128::MAX } else { 1 << (shift - 1) };
    let up = match round {
        Round::Rn | Round::Rni => rest > half || (rest == half && kept & 1 == 1),
        Round::Rna => rest >= half,
        Round::Rz | Round::Rzi => false,
        Round::Rm | Round::Rmi => negative && rest > 0,
        Round::Rp | Round::Rpi => !negative && rest > 0,
    };
    kept + u128::from(up)
}

/// The bits of a number in a float format.
fn to_float(ty: Ty, value: Exact, round: Round) -> u64 {
    let (eb, mb) = format(ty);
    let infinity = ((1u64 << eb) - 1) << mb;
    let (negative, bits) = match value {
        Exact::Infinite { negative } => (negative, infinity),
        Exact::Finite { negative, mant: 0, .. } => (negative, 0),
        Exact::Finite { negative, mant, exp } => {
            (negative, finite_bits(ty, negative, mant, exp, round, infinity))
        }
    };
    let all = u64::from(negative) << (eb + mb) | bits;
    if ty == Ty::TF32 { all << 13 } else { all }
}

fn finite_bits(ty: Ty, negative: bool, mant: u128, exp: i32, round: Round, infinity: u64) -> u64 {
    let (eb, mb) = format(ty);
    let bias = (1i32 << (eb - 1)) - 1;
    let exponent = (127 - mant.leading_zeros() as i32 + exp).max(1 - bias);
    let shift = exponent - mb as i32 - exp;
    let kept = if shift <= 0 { mant << -shift } else { shift_right(mant, shift as u32, negative, round) };
    // The hidden bit of `kept` adds one to the exponent field; a carry of the rounding another.
    let field = i128::from(exponent + bias - 1) << mb;
    let bits = field + kept as i128;
    if bits < i128::from(infinity) {
        return bits as u64;
    }
    match round {
        Round::Rz => infinity - 1,
        Round::Rm if !negative => infinity - 1,
        Round::Rp if negative => infinity - 1,
        _ => infinity,
    }
}

/// The bits of a number in an integer type, clamped to it.
fn to_integer(ty: Ty, value: Exact, round: Round) -> u64 {
    let signed = ty.kind() == TyKind::Signed;
    let high = if signed { (1i128 << (ty.bits() - 1)) - 1 } else { (1i128 << ty.bits()) - 1 };
    let low = if signed { -high - 1 } else { 0 };
    let number = match value {
        Exact::Infinite { negative } => {
            if negative {
                low
            } else {
                high
            }
        }
        Exact::Finite { negative, mant, exp } => {
            let size = if exp > 0 {
                if mant != 0 && exp > 70 { u128::MAX >> 1 } else { mant << exp.min(70) }
            } else {
                shift_right(mant, exp.unsigned_abs(), negative, round)
            };
            let size = size.min(u128::MAX >> 1) as i128;
            if negative { -size } else { size }
        }
    };
    number.clamp(low, high) as u64 & (u64::MAX >> (64 - ty.bits()))
}

/// The nearest integer as the same float.
fn to_integral(ty: Ty, bits: u64, round: Round) -> u64 {
    let Exact::Finite { negative, mant, exp } = exact(ty, bits) else {
        return bits;
    };
    if exp >= 0 {
        return bits;
    }
    let mant = shift_right(mant, exp.unsigned_abs(), negative, round);
    to_float(ty, Exact::Finite { negative, mant, exp: 0 }, Round::Rn)
}

/// Subnormal numbers of f32 as zero, with their sign.
pub(super) fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0.0f32.copysign(x) } else { x }
}

/// Every NaN as the one that f32 arithmetic gives.
pub(super) fn bits_f32(x: f32) -> u64 {
    u64::from(if x.is_nan() { NAN_F32 } else { x.to_bits() })
}

/// f32 to bf16 or f16 bits, to nearest even.
pub(super) fn narrow(ty: Ty, x: f32) -> u64 {
    if x.is_nan() {
        return NAN_16;
    }
    u64::from(if ty == Ty::F16 || ty == Ty::F16x2 {
        f16::from_f32(x).to_bits()
    } else {
        bf16::from_f32(x).to_bits()
    })
}

/// bf16 or f16 bits as f32.
pub(super) fn widen(ty: Ty, bits: u64) -> f32 {
    if ty == Ty::F16 || ty == Ty::F16x2 {
        f16::from_bits(bits as u16).to_f32()
    } else {
        bf16::from_bits(bits as u16).to_f32()
    }
}

/// `cvt[.ROUND][.ftz][.sat].DST.SRC`: the bits of `src` in type `dst_ty` (PTX ISA 9.7.9.21).
pub(super) fn convert(dst_ty: Ty, src_ty: Ty, round: Option<Round>, ftz: bool, sat: bool, src: u64) -> u64 {
    let flush_bits = |bits: u64| u64::from(flush(f32::from_bits(bits as u32)).to_bits());
    if is_nan(src_ty, src) {
        return convert_nan((dst_ty, src_ty), round, ftz, sat, src);
    }
    // The PTX manual says that `.ftz` applies to f32 inputs. On the chip it has no effect on conversions to f16: a subnormal
    // number is rounded as it is, which shows with `.rm` and `.rp`.
    let flushes = ftz && src_ty == Ty::F32 && dst_ty != Ty::F16;
    let src = if flushes { flush_bits(src) } else { src };
    let round = round.unwrap_or(Round::Rn);
    let bits = match (dst_ty, src_ty) {
        (Ty::BF16 | Ty::F16, Ty::F32) if round == Round::Rn => narrow(dst_ty, f32::from_bits(src as u32)),
        (Ty::F32, Ty::BF16 | Ty::F16) => bits_f32(widen(src_ty, src)),
        (d, s) if d.is_int() && s.is_int() => {
            let number = integer(s, src);
            if sat { to_integer(d, exact(s, src), Round::Rz) } else { number as u64 }
        }
        (d, _) if d.is_int() => to_integer(d, exact(src_ty, src), round),
        (d, s) if d == s => to_integral(d, src, round),
        _ => to_float(dst_ty, exact(src_ty, src), round),
    };
    let bits = if sat && dst_ty.is_float() { saturate(dst_ty, bits) } else { bits };
    if ftz && dst_ty == Ty::F32 { flush_bits(bits) } else { bits }
}

/// Clamps to 0..1.
fn saturate(ty: Ty, bits: u64) -> u64 {
    match exact(ty, bits) {
        Exact::Infinite { negative: true } | Exact::Finite { negative: true, .. } => 0,
        Exact::Finite { mant, exp, .. } if exp < 0 && (exp < -120 || mant >> -exp == 0) => bits,
        _ => to_float(ty, Exact::Finite { negative: false, mant: 1, exp: 0 }, Round::Rn),
    }
}

/// The sign-extended or zero-extended value of a loaded element in a wider register.
pub(super) fn extend(ty: Ty, bits: u64) -> u64 {
    if ty.is_int() { integer(ty, bits) as u64 } else { bits }
}
