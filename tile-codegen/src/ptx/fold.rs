//! The value of integer operations on constants, with PTX's meaning at every width.

use super::ops::{IntOp, IntUnOp};
use super::reg::{Ty, TyKind};

/// `value` cut to the width of `ty`, sign-extended for signed types and zero-extended for all others. 64-bit
/// unsigned values keep their bits.
pub fn wrap(ty: Ty, value: i64) -> i64 {
    let spare = 64 - ty.bits();
    match ty.kind() {
        TyKind::Signed => (value << spare) >> spare,
        _ => (((value as u64) << spare) >> spare) as i64,
    }
}

/// `a OP b` at type `ty`, wrapped to it; `None` for a division by zero, whose result PTX leaves open.
pub fn int_bin(op: IntOp, ty: Ty, a: i64, b: i64) -> Option<i64> {
    let signed = ty.kind() == TyKind::Signed;
    let (a, raw_b) = (wrap(ty, a), b);
    let b = wrap(ty, b);
    let value = match op {
        IntOp::Add => a.wrapping_add(b),
        IntOp::Sub => a.wrapping_sub(b),
        IntOp::MulLo => a.wrapping_mul(b),
        IntOp::MulHi if signed => ((i128::from(a) * i128::from(b)) >> ty.bits()) as i64,
        IntOp::MulHi => ((u128::from(a as u64) * u128::from(b as u64)) >> ty.bits()) as i64,
        IntOp::Div | IntOp::Rem if b == 0 => return None,
        IntOp::Div if signed => a.wrapping_div(b),
        IntOp::Div => (a as u64 / b as u64) as i64,
        IntOp::Rem if signed => a.wrapping_rem(b),
        IntOp::Rem => (a as u64 % b as u64) as i64,
        IntOp::Min if signed => a.min(b),
        IntOp::Min => (a as u64).min(b as u64) as i64,
        IntOp::Max if signed => a.max(b),
        IntOp::Max => (a as u64).max(b as u64) as i64,
        IntOp::And => a & b,
        IntOp::Or => a | b,
        IntOp::Xor => a ^ b,
        IntOp::Shl | IntOp::Shr => return Some(shift(op, ty, a, wrap(Ty::U32, raw_b) as u32)),
    };
    Some(wrap(ty, value))
}

/// Shifts clamp the amount, which is always 32 bits wide, to the width of the value.
fn shift(op: IntOp, ty: Ty, a: i64, amount: u32) -> i64 {
    let beyond = amount >= ty.bits();
    match op {
        IntOp::Shl if beyond => 0,
        IntOp::Shl => wrap(ty, a << amount),
        _ if ty.kind() == TyKind::Signed => a >> amount.min(63),
        _ if beyond => 0,
        _ => ((a as u64) >> amount) as i64,
    }
}

/// `OP a` at type `ty`, wrapped to the result's type.
pub fn int_un(op: IntUnOp, ty: Ty, a: i64) -> i64 {
    let bits = wrap(ty, a) as u64 & (u64::MAX >> (64 - ty.bits()));
    match op {
        IntUnOp::Neg => wrap(ty, wrap(ty, a).wrapping_neg()),
        IntUnOp::Abs => wrap(ty, wrap(ty, a).wrapping_abs()),
        IntUnOp::Not => wrap(ty, !a),
        IntUnOp::Popc => i64::from(bits.count_ones()),
        IntUnOp::Clz => i64::from(bits.leading_zeros() - (64 - ty.bits())),
        IntUnOp::Brev => (bits.reverse_bits() >> (64 - ty.bits())) as i64,
    }
}
