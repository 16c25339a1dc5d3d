//! Exponentials against f64, and rounding against the `half` crate.

use crate::cpu::{math, round};
use crate::ir::Elem;

/// Distance in units in the last place of the right result.
fn ulps(found: f32, right: f64) -> f64 {
    let nearest = right as f32;
    let ulp = if nearest.abs() < f32::MIN_POSITIVE {
        f64::from(f32::from_bits(1))
    } else {
        f64::from(nearest.abs()) - f64::from(f32::from_bits(nearest.abs().to_bits() - 1))
    };
    (f64::from(found) - right).abs() / ulp
}

fn sweep(low: f32, high: f32) -> impl Iterator<Item = f32> {
    let steps = 400_000;
    (0..=steps).map(move |i| low + (high - low) * (i as f32 / steps as f32))
}

#[test]
fn exp2_is_within_two_ulps() {
    for x in sweep(-150.0, 127.99).chain(sweep(-1.0, 1.0)) {
        let error = ulps(math::exp2(x), f64::from(x).exp2());
        assert!(error <= 2.0, "exp2({x}) is {error} ulps off");
    }
}

#[test]
fn exp_is_within_two_ulps() {
    for x in sweep(-104.0, 88.7).chain(sweep(-1.0, 1.0)) {
        let error = ulps(math::exp(x), f64::from(x).exp());
        assert!(error <= 2.0, "exp({x}) is {error} ulps off");
    }
    assert!((f64::from(math::exp(1.0)) - std::f64::consts::E).abs() < 1e-6);
}

#[test]
fn exp2_of_special_values() {
    assert_eq!(math::exp2(1.0), 2.0);
    assert_eq!(math::exp2(0.0), 1.0);
    assert_eq!(math::exp2(-126.0), f32::MIN_POSITIVE);
    assert_eq!(math::exp2(-127.0), f32::MIN_POSITIVE / 2.0);
    assert_eq!(math::exp2(-149.0), f32::from_bits(1));
    assert_eq!(math::exp2(-150.0), 0.0);
    assert_eq!(math::exp2(-200.0), 0.0);
    assert_eq!(math::exp2(f32::NEG_INFINITY).to_bits(), 0);
    assert!(math::exp2(127.9).is_finite());
    assert_eq!(math::exp2(128.0), f32::INFINITY);
    assert_eq!(math::exp2(f32::INFINITY), f32::INFINITY);
    assert!(math::exp2(f32::NAN).is_nan());
    assert_eq!(math::exp(f32::NEG_INFINITY), 0.0);
    assert_eq!(math::exp(f32::INFINITY), f32::INFINITY);
    assert_eq!(math::exp(89.0), f32::INFINITY);
    assert_eq!(math::exp(-110.0), 0.0);
    assert!(math::exp(f32::NAN).is_nan());
}

/// Bit patterns of every exponent, around the ties of both 16-bit types.
fn patterns() -> impl Iterator<Item = f32> {
    let mantissas = [
        0, 1, 0xfff, 0x1000, 0x1001, 0x1fff, 0x3000, 0x7fff, 0x8000, 0x8001, 0x1_8000, 0x7f_efff, 0x7f_f000,
        0x7f_ffff,
    ];
    (0..512u32).flat_map(move |high| {
        mantissas.into_iter().flat_map(move |m| {
            [m, m ^ 0x2000, m ^ 0x1_0000, (m << 9) & 0x7f_ffff].map(|m| f32::from_bits(high << 23 | m))
        })
    })
}

#[test]
fn narrow_floats_round_as_the_half_crate_does() {
    for x in patterns() {
        super::assert_same(&[round::bf16(x)], &[half::bf16::from_f32(x).to_f32()]);
        super::assert_same(&[round::f16(x)], &[half::f16::from_f32_const(x).to_f32()]);
    }
}

#[test]
fn tf32_rounds_ties_away_from_zero() {
    let unit = 2f32.powi(-10);
    assert_eq!(round::tf32(1.0 + unit / 2.0), 1.0 + unit);
    assert_eq!(round::tf32(-1.0 - unit / 2.0), -1.0 - unit);
    assert_eq!(round::tf32(1.0 + unit * 0.499), 1.0);
    assert_eq!(round::tf32(f32::INFINITY), f32::INFINITY);
    assert!(round::tf32(f32::from_bits(0x7f80_0001)).is_nan());
    assert_eq!(round::tf32(f32::MAX), f32::INFINITY);
}

#[test]
fn f64_literals_round_once() {
    // A little above the tie between 1 and the next bf16: rounding to f32 first would lose the little.
    let tie = 1.0 + 2f64.powi(-8);
    assert_eq!(round::from_f64(Elem::BF16, tie), 1.0);
    assert_eq!(round::from_f64(Elem::BF16, tie + 2f64.powi(-40)), 1.0 + 2f32.powi(-7));
    assert_eq!(round::from_f64(Elem::F16, 1.0 + 2f64.powi(-11) + 2f64.powi(-40)), 1.0 + 2f32.powi(-10));
    assert_eq!(round::from_f64(Elem::TF32, 1.0 + 2f64.powi(-11) - 2f64.powi(-40)), 1.0);
    assert_eq!(round::from_f64(Elem::F16, 1e6), f32::INFINITY);
    assert_eq!(round::from_f64(Elem::BF16, -1e300), f32::NEG_INFINITY);
    assert_eq!(round::from_f64(Elem::F32, 0.1), 0.1f32);
}
