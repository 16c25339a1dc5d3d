//! NaN: which bits instructions give for it.
//!
//! f32 and 16-bit arithmetic gives one NaN, and integers have a value for it, as the PTX manual says. For f64 and conversions
//! between floats the manual gives no bits; the rules here are those of a chip (H200), as `tests/data/probes` shows them.

use super::number::{NAN_F32, format};
use crate::ptx::{Round, Ty};

/// NaN as f16 and bf16 arithmetic makes it.
pub(super) const NAN_16: u64 = 0x7fff;
/// NaN as f64 arithmetic makes it from numbers.
const NAN_F64: u64 = 0xfff8_0000_0000_0000;

/// The bit that tells a quiet NaN from a signalling one.
fn quiet(ty: Ty) -> u64 {
    1 << (format(ty).1 - 1)
}

fn infinity(ty: Ty) -> u64 {
    let (eb, mb) = format(ty);
    ((1 << eb) - 1) << mb
}

/// Whether bits of a type are NaN; those of an integer never are.
pub(super) fn is_nan(ty: Ty, bits: u64) -> bool {
    let (eb, mb) = format(ty);
    ty.is_float() && bits & ((1 << (eb + mb)) - 1) > infinity(ty)
}

/// The result of f64 arithmetic on `args`. NaN is the first argument that is NaN, made quiet, with its sign, which neither
/// `neg` nor `abs` nor `sub` changes. Only sums in shared memory show that it is the first of two.
pub(super) fn bits_f64(args: &[f64], x: f64) -> u64 {
    if !x.is_nan() {
        return x.to_bits();
    }
    args.iter().find(|arg| arg.is_nan()).map_or(NAN_F64, |arg| arg.to_bits() | quiet(Ty::F64))
}

/// The result of a sum of f64 in global memory: NaN is `src`, or else the memory's, and signalling NaN stays so.
pub(super) fn bits_f64_in_memory(old: f64, src: f64, sum: f64) -> u64 {
    match (src.is_nan(), old.is_nan()) {
        (true, _) => src.to_bits(),
        (false, true) => old.to_bits(),
        _ => bits_f64(&[], sum),
    }
}

/// [`super::number::convert`] of NaN.
pub(super) fn convert_nan(
    (dst, src): (Ty, Ty),
    round: Option<Round>,
    ftz: bool,
    sat: bool,
    bits: u64,
) -> u64 {
    match (dst, src) {
        // PTX ISA 9.7.9.21: the least signed integer of the result's width where either side has 64 bits, or else 0.
        (d, s) if d.is_int() => {
            if d.bits() == 64 || s.bits() == 64 {
                1 << (d.bits() - 1)
            } else {
                0
            }
        }
        _ if sat => 0,
        // A shift of bits, unless `.ftz` makes it arithmetic: nothing makes it quiet.
        (Ty::F32, Ty::BF16) if !ftz => bits << 16,
        // The sign and the payload's upper bits stay, so that NaN of a small payload becomes infinite.
        (Ty::TF32, _) if round == Some(Round::Rna) => bits & !0x1fff,
        (Ty::TF32, _) => u64::from(NAN_F32 & !0x1fff),
        // `.ftz` is an operation of f32 of its own before.
        (Ty::F64, Ty::F32) if ftz => moved(dst, src, u64::from(NAN_F32)),
        (Ty::F64, _) | (_, Ty::F64) => moved(dst, src, bits),
        (Ty::F16 | Ty::BF16, _) => NAN_16,
        _ => u64::from(NAN_F32),
    }
}

/// NaN with its sign and as much of its payload as fits, made quiet.
fn moved(dst: Ty, src: Ty, bits: u64) -> u64 {
    let ((src_eb, src_mb), (dst_eb, dst_mb)) = (format(src), format(dst));
    let payload = (bits & ((1 << src_mb) - 1)) << (52 - src_mb) >> (52 - dst_mb);
    let sign = bits >> (src_eb + src_mb) & 1;
    sign << (dst_eb + dst_mb) | infinity(dst) | quiet(dst) | payload
}
