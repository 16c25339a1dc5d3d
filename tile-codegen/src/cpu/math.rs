//! Exponentials as short polynomials that the compiler vectorises; the scalar library calls are several times slower.

/// Adding and subtracting this rounds to the nearest integer, which then stands in the low bits.
const ROUND: f32 = 12_582_912.0;

/// The nearest integer of a small number, as a float and as an int.
#[inline(always)]
fn nearest(x: f32) -> (f32, i32) {
    let shifted = x + ROUND;
    (shifted - ROUND, (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32))
}

/// `x * 2^n` for n in -252..=252, rounded once also where the result is subnormal.
#[inline(always)]
fn scale(x: f32, n: i32) -> f32 {
    let half = n >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
    x * power(half) * power(n.wrapping_sub(half))
}

/// Keeps NaN, unlike `max` and `min`.
#[inline(always)]
fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// 2 to the power x, within 2 units in the last place: 0 for -inf, inf from 128 on, NaN for NaN; subnormal results are
/// kept.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    let x = clamp(x, -151.0, 129.0);
    let (whole, n) = nearest(x);
    let f = x - whole;
    let p = 1.535_336_2e-4;
    let p = p * f + 1.339_887_4e-3;
    let p = p * f + 9.618_437e-3;
    let p = p * f + 5.550_332_5e-2;
    let p = p * f + 2.402_264_8e-1;
    let p = p * f + 6.931_472e-1;
    scale(p * f + 1.0, n)
}

/// e to the power x, within 2 units in the last place, with the same special values.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let x = clamp(x, -105.0, 90.0);
    let (whole, n) = nearest(x * std::f32::consts::LOG2_E);
    // ln 2 in two parts, of which the first times `whole` is exact.
    let r = x - whole * 0.693_359_4 + whole * 2.121_944_4e-4;
    let p = 1.987_569_2e-4;
    let p = p * r + 1.398_2e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    scale(p * (r * r) + r + 1.0, n)
}

/// 1 / (1 + exp(-x)).
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}
