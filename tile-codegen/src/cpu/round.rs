//! Rounding f32 and f64 values to the float types of tiles. Narrow floats are kept as f32 values of the type.

use crate::ir::Elem;

/// Rounds to bfloat16, to nearest, ties to even.
#[inline(always)]
pub fn bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) & 0xffff_0000;
    f32::from_bits(if x.is_nan() { (bits | 0x0040_0000) & 0xffff_0000 } else { rounded })
}

/// Rounds to binary16, to nearest, ties to even; beyond the largest finite value lies infinity.
#[inline(always)]
pub fn f16(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = f32::from_bits(bits & 0x7fff_ffff);
    let normal = f32::from_bits(magnitude.to_bits().wrapping_add(0xfff + ((bits >> 13) & 1)) & !0x1fff);
    // Below 2^-14 the spacing is 2^-24, which is that of f32 at 0.5: the addition rounds.
    let subnormal = (magnitude + 0.5) - 0.5;
    let finite = if magnitude < 6.103_515_6e-5 { subnormal } else { normal };
    let rounded = if finite > 65504.0 { f32::INFINITY } else { finite };
    let kept =
        if x.is_nan() { f32::from_bits((magnitude.to_bits() | 0x0040_0000) & !0x1fff) } else { rounded };
    f32::from_bits(kept.to_bits() | (bits & 0x8000_0000))
}

/// Rounds to tf32 (10 bits of mantissa), to nearest, ties away from zero, as `cvt.rna.tf32.f32`.
#[inline(always)]
pub fn tf32(x: f32) -> f32 {
    let rounded = f32::from_bits(x.to_bits().wrapping_add(0x1000) & !0x1fff);
    if x.is_finite() { rounded } else { x }
}

/// Rounds every element to `elem`, one of the float types.
pub fn slice(elem: Elem, values: &mut [f32]) {
    match elem {
        Elem::BF16 => values.iter_mut().for_each(|x| *x = bf16(*x)),
        Elem::F16 => values.iter_mut().for_each(|x| *x = f16(*x)),
        Elem::TF32 => values.iter_mut().for_each(|x| *x = tf32(*x)),
        Elem::F32 | Elem::I32 | Elem::I64 | Elem::U32 | Elem::Bool => {}
    }
}

/// Rounds an f32 to `elem`, one of the float types.
pub fn value(elem: Elem, x: f32) -> f32 {
    let mut one = [x];
    slice(elem, &mut one);
    one[0]
}

/// Rounds an f64 once to `elem`, one of the float types.
pub fn from_f64(elem: Elem, x: f64) -> f32 {
    match elem {
        Elem::BF16 | Elem::F16 | Elem::TF32 => value(elem, to_odd(x)),
        Elem::F32 | Elem::I32 | Elem::I64 | Elem::U32 | Elem::Bool => x as f32,
    }
}

/// Rounds an integer once to `elem`, one of the float types.
pub fn from_int(elem: Elem, x: i64) -> f32 {
    // f64 holds 53 bits. Below the top 53, no bit makes a tie or a value of a narrower type: they become one odd bit.
    const LOW: i64 = 0x7ff;
    let inexact = x.unsigned_abs() >= 1 << 53 && x & LOW != 0;
    match elem {
        Elem::BF16 | Elem::F16 | Elem::TF32 if inexact => from_f64(elem, (x & !LOW | (LOW + 1)) as f64),
        Elem::BF16 | Elem::F16 | Elem::TF32 => from_f64(elem, x as f64),
        Elem::F32 | Elem::I32 | Elem::I64 | Elem::U32 | Elem::Bool => x as f32,
    }
}

/// Rounds to f32 so that a second rounding to fewer bits gives what one rounding would: inexact values get an odd
/// last bit, which no tie has.
fn to_odd(x: f64) -> f32 {
    let nearest = x as f32;
    if f64::from(nearest) == x || x.is_nan() {
        return nearest;
    }
    let away = f64::from(nearest).abs() > x.abs();
    f32::from_bits((nearest.to_bits() - u32::from(away)) | 1)
}
