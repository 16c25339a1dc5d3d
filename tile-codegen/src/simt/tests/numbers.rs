//! Conversions, against Rust's own, against `half`, and against values of the manual.

use half::{bf16, f16};

use crate::ptx::{Round, Ty};
use crate::simt::nan::{bits_f64, bits_f64_in_memory};
use crate::simt::number::convert;

fn to(dst: Ty, src: Ty, round: Option<Round>, bits: u64) -> u64 {
    convert(dst, src, round, false, false, bits)
}

/// f32 patterns over all exponents, with bits around every place of rounding.
fn patterns() -> impl Iterator<Item = f32> {
    let mantissas =
        [0, 1, 0xfff, 0x1000, 0x1001, 0x3000, 0x7fff, 0x8000, 0x8001, 0x1_8000, 0x7f_ffff, 0x40_0000];
    let all = (0..256u32).flat_map(move |exponent| mantissas.map(|m| f32::from_bits(exponent << 23 | m)));
    all.flat_map(|x| [x, -x])
}

#[test]
fn the_general_rounding_agrees_with_half_and_rust() {
    for x in patterns().filter(|x| !x.is_nan()) {
        let double = f64::from(x).to_bits();
        // From f64, so that the general path is taken.
        assert_eq!(
            to(Ty::F16, Ty::F64, Some(Round::Rn), double),
            u64::from(f16::from_f32(x).to_bits()),
            "{x:e}"
        );
        assert_eq!(
            to(Ty::BF16, Ty::F64, Some(Round::Rn), double),
            u64::from(bf16::from_f32(x).to_bits()),
            "{x:e}"
        );
        assert_eq!(to(Ty::F32, Ty::F64, Some(Round::Rn), double), u64::from(x.to_bits()), "{x:e}");
        assert_eq!(to(Ty::F64, Ty::F32, None, x.to_bits().into()), double, "{x:e}");
        assert_eq!(
            to(Ty::S32, Ty::F32, Some(Round::Rzi), x.to_bits().into()),
            u64::from(x as i32 as u32),
            "{x:e}"
        );
        assert_eq!(to(Ty::U8, Ty::F32, Some(Round::Rzi), x.to_bits().into()), u64::from(x as u8), "{x:e}");
        assert_eq!(to(Ty::S64, Ty::F32, Some(Round::Rzi), x.to_bits().into()), (x as i64) as u64, "{x:e}");
        let even = x.round_ties_even();
        assert_eq!(
            to(Ty::F32, Ty::F32, Some(Round::Rni), x.to_bits().into()),
            u64::from(even.to_bits()),
            "{x:e}"
        );
        let floor = u64::from(x.floor().to_bits());
        assert_eq!(to(Ty::F32, Ty::F32, Some(Round::Rmi), x.to_bits().into()), floor, "{x:e}");
    }
}

#[test]
fn integers_to_floats() {
    for x in [0i64, 1, -1, 16_777_217, 16_777_219, -16_777_217, i64::MAX, i64::MIN, 0x7fff_ffff] {
        assert_eq!(to(Ty::F32, Ty::S64, Some(Round::Rn), x as u64), u64::from((x as f32).to_bits()), "{x}");
        assert_eq!(to(Ty::F64, Ty::U64, Some(Round::Rn), x as u64), (x as u64 as f64).to_bits(), "{x}");
    }
    let down = to(Ty::F32, Ty::S32, Some(Round::Rm), (-16_777_217i32) as u32 as u64);
    assert_eq!(f32::from_bits(down as u32), -16_777_218.0);
    let zero = to(Ty::F32, Ty::S32, Some(Round::Rz), (-16_777_217i32) as u32 as u64);
    assert_eq!(f32::from_bits(zero as u32), -16_777_216.0);
}

#[test]
fn tf32_rounds_ties_away() {
    let tf32 = |x: f32| f32::from_bits(to(Ty::TF32, Ty::F32, Some(Round::Rna), x.to_bits().into()) as u32);
    let ulp = 2f32.powi(-10);
    assert_eq!(tf32(1.0 + ulp / 2.0), 1.0 + ulp);
    assert_eq!(tf32(-1.0 - ulp / 2.0), -1.0 - ulp);
    assert_eq!(tf32(1.0 + ulp / 2.0 - f32::EPSILON), 1.0);
    let even = to(Ty::TF32, Ty::F32, Some(Round::Rn), (1.0 + ulp / 2.0).to_bits().into());
    assert_eq!(f32::from_bits(even as u32), 1.0);
}

#[test]
fn saturation_and_nan() {
    let sat = |dst: Ty, src: Ty, bits: u64| convert(dst, src, Some(Round::Rn), false, true, bits);
    assert_eq!(sat(Ty::U8, Ty::S32, 300), 255);
    assert_eq!(sat(Ty::U8, Ty::S32, (-5i32) as u32 as u64), 0);
    assert_eq!(sat(Ty::F32, Ty::F64, 1.5f64.to_bits()), u64::from(1f32.to_bits()));
    assert_eq!(sat(Ty::F32, Ty::F64, (-1.5f64).to_bits()), 0);
    assert_eq!(sat(Ty::F32, Ty::F64, f64::NAN.to_bits()), 0);
    assert_eq!(sat(Ty::F32, Ty::F64, 0.25f64.to_bits()), u64::from(0.25f32.to_bits()));
    let nan = u64::from(f32::NAN.to_bits());
    assert_eq!(to(Ty::S32, Ty::F32, Some(Round::Rzi), nan), 0);
    assert_eq!(to(Ty::BF16, Ty::F32, Some(Round::Rn), nan), 0x7fff);
    // PTX ISA 9.7.9.21: the least signed integer where either side has 64 bits.
    let wide = f64::NAN.to_bits();
    assert_eq!(to(Ty::U64, Ty::F32, Some(Round::Rzi), nan), 1 << 63);
    assert_eq!(to(Ty::S64, Ty::BF16, Some(Round::Rzi), 0xffc0), 1 << 63);
    assert_eq!(to(Ty::U32, Ty::F64, Some(Round::Rni), wide), 0x8000_0000);
    assert_eq!(to(Ty::U8, Ty::F64, Some(Round::Rni), wide), 0x80);
    // Narrow overflow: infinity to nearest, the largest number toward zero.
    assert_eq!(to(Ty::F16, Ty::F32, Some(Round::Rn), 1e6f32.to_bits().into()), 0x7c00);
    assert_eq!(to(Ty::F16, Ty::F32, Some(Round::Rz), 1e6f32.to_bits().into()), 0x7bff);
}

/// Bits that an H200 gives.
#[test]
fn nan_between_floats() {
    let ftz = |dst: Ty, src: Ty, bits: u64| convert(dst, src, None, true, false, bits);
    assert_eq!(to(Ty::F64, Ty::F32, None, 0xff80_0001), 0xfff8_0000_2000_0000);
    assert_eq!(ftz(Ty::F64, Ty::F32, 0xff80_0001), 0x7fff_ffff_e000_0000);
    assert_eq!(to(Ty::F64, Ty::F16, None, 0x7c01), 0x7ff8_0400_0000_0000);
    assert_eq!(to(Ty::F32, Ty::F64, Some(Round::Rn), 0xfff0_0000_0000_0001), 0xffc0_0000);
    assert_eq!(to(Ty::F32, Ty::F16, None, 0xfe00), 0x7fff_ffff);
    assert_eq!(to(Ty::F32, Ty::BF16, None, 0xff81), 0xff81_0000);
    assert_eq!(ftz(Ty::F32, Ty::BF16, 0xff81), 0x7fff_ffff);
    assert_eq!(to(Ty::TF32, Ty::F32, Some(Round::Rna), 0xff80_0001), 0xff80_0000);
    assert_eq!(to(Ty::TF32, Ty::F32, Some(Round::Rn), 0xff80_0001), 0x7fff_e000);
}

#[test]
fn nan_of_f64_arithmetic() {
    let nan = |payload: u64| f64::from_bits(0xfff0_0000_0000_0000 | payload);
    assert_eq!(bits_f64(&[1.0, nan(5)], f64::NAN), 0xfff8_0000_0000_0005);
    assert_eq!(bits_f64(&[nan(3), nan(5)], f64::NAN), 0xfff8_0000_0000_0003);
    assert_eq!(bits_f64(&[0.0, 0.0], f64::NAN), 0xfff8_0000_0000_0000);
    assert_eq!(bits_f64_in_memory(nan(3), nan(5), f64::NAN), 0xfff0_0000_0000_0005);
}
