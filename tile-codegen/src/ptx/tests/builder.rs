//! The builder's folding, against Rust's own integer arithmetic.

use proptest::prelude::*;

use crate::ptx::*;

fn folded(op: IntOp, ty: Ty, a: i64, b: i64) -> Option<i64> {
    let mut builder = FuncBuilder::new("k", 32);
    let result = builder.int(op, ty, a, b);
    assert_eq!(builder.is_empty(), result.imm().is_some());
    result.imm()
}

proptest! {
    #[test]
    fn s32_folds_like_rust(a: i32, b: i32, amount in 0u32..40) {
        let fold = |op, b: i64| folded(op, Ty::S32, a.into(), b);
        prop_assert_eq!(fold(IntOp::Add, b.into()), Some(a.wrapping_add(b).into()));
        prop_assert_eq!(fold(IntOp::Sub, b.into()), Some(a.wrapping_sub(b).into()));
        prop_assert_eq!(fold(IntOp::MulLo, b.into()), Some(a.wrapping_mul(b).into()));
        prop_assert_eq!(fold(IntOp::MulHi, b.into()), Some((i64::from(a) * i64::from(b)) >> 32));
        prop_assert_eq!(fold(IntOp::Min, b.into()), Some(a.min(b).into()));
        prop_assert_eq!(fold(IntOp::Max, b.into()), Some(a.max(b).into()));
        if b != 0 {
            prop_assert_eq!(fold(IntOp::Div, b.into()), Some(a.wrapping_div(b).into()));
            prop_assert_eq!(fold(IntOp::Rem, b.into()), Some(a.wrapping_rem(b).into()));
        }
        let shifted = a.checked_shr(amount).unwrap_or(if a < 0 { -1 } else { 0 });
        prop_assert_eq!(fold(IntOp::Shr, amount.into()), Some(shifted.into()));
        prop_assert_eq!(int_un(IntUnOp::Neg, Ty::S32, a.into()), i64::from(a.wrapping_neg()));
        prop_assert_eq!(int_un(IntUnOp::Clz, Ty::B32, a.into()), i64::from(a.leading_zeros()));
        prop_assert_eq!(int_un(IntUnOp::Brev, Ty::B32, a.into()), i64::from((a as u32).reverse_bits()));
    }

    #[test]
    fn u32_and_u64_fold_like_rust(a: u64, b: u64, amount in 0u32..70) {
        let (c, d) = (a as u32, b as u32);
        let fold = |op, b: u32| folded(op, Ty::U32, c.into(), b.into());
        prop_assert_eq!(fold(IntOp::Add, d), Some(c.wrapping_add(d).into()));
        prop_assert_eq!(fold(IntOp::MulHi, d), Some(((u64::from(c) * u64::from(d)) >> 32) as i64));
        prop_assert_eq!(fold(IntOp::Shr, amount), Some(c.checked_shr(amount).unwrap_or(0).into()));
        prop_assert_eq!(fold(IntOp::Max, d), Some(c.max(d).into()));
        if let Some(quotient) = c.checked_div(d) {
            prop_assert_eq!(fold(IntOp::Div, d), Some(quotient.into()));
        }
        let wide = |op, b: u64| folded(op, Ty::U64, a as i64, b as i64).map(|x| x as u64);
        prop_assert_eq!(wide(IntOp::MulHi, b), Some(((u128::from(a) * u128::from(b)) >> 64) as u64));
        prop_assert_eq!(wide(IntOp::Min, b), Some(a.min(b)));
        prop_assert_eq!(wide(IntOp::Shr, amount.into()), Some(a.checked_shr(amount).unwrap_or(0)));
        let bits = |op, b: i64| folded(op, Ty::B64, a as i64, b).map(|x| x as u64);
        prop_assert_eq!(bits(IntOp::Shl, amount.into()), Some(a.checked_shl(amount).unwrap_or(0)));
        prop_assert_eq!(bits(IntOp::Xor, b as i64), Some(a ^ b));
        prop_assert_eq!(int_un(IntUnOp::Popc, Ty::B64, a as i64), i64::from(a.count_ones()));
        prop_assert_eq!(int_un(IntUnOp::Clz, Ty::B64, a as i64), i64::from(a.leading_zeros()));
    }

    #[test]
    fn wide_products_and_sums_fold_like_rust(a: i32, b: i32, c: i32) {
        let mut f = FuncBuilder::new("k", 32);
        let product = i64::from(a) * i64::from(b);
        prop_assert_eq!(f.mul_wide_s32(a, b), Operand::Imm(product));
        prop_assert_eq!(f.mad_wide_s32(a, b, i64::from(c)), Operand::Imm(product.wrapping_add(c.into())));
        let low = a.wrapping_mul(b).wrapping_add(c);
        prop_assert_eq!(f.mad_lo_s32(a, b, c), Operand::Imm(low.into()));
        prop_assert_eq!(f.mul_wide_u32(a, b), Operand::Imm((u64::from(a as u32) * u64::from(b as u32)) as i64));
        prop_assert_eq!(f.cvt(Ty::U8, Ty::S32, a), Operand::Imm((a as u8).into()));
        prop_assert_eq!(f.cvt(Ty::S64, Ty::U32, a), Operand::Imm((a as u32).into()));
        prop_assert!(f.is_empty());
    }
}

#[test]
fn neutral_operands_need_no_instruction() {
    let mut b = FuncBuilder::new("k", 32);
    let x = b.reg(RegClass::B32);
    let (same, zero) = (Operand::Reg(x), Operand::Imm(0));
    let results = [
        b.add_s32(x, 0),
        b.add_s32(0, x),
        b.sub_s32(x, 0),
        b.mul_lo_s32(1, x),
        b.div_s32(x, 1),
        b.shl_b32(x, 0),
        b.and_b32(x, -1),
        b.and_b32(x, 0xffff_ffffu32),
        b.or_b32(0, x),
        b.xor_b32(x, 0),
        b.mad_lo_s32(x, 1, 0),
        b.mad_lo_s32(0, 5, x),
    ];
    assert_eq!(results, [same; 12]);
    assert_eq!([b.mul_lo_s32(x, 0), b.and_b32(0, x), b.rem_s32(x, 1), b.mul_wide_s32(x, 0)], [zero; 4]);
    assert!(b.is_empty());
    assert_ne!(b.sub_s32(0, x), same);
    assert_eq!(b.len(), 1);
}

#[test]
fn divisions_by_zero_stay_in_the_code() {
    assert_eq!(folded(IntOp::Div, Ty::S32, 7, 0), None);
    assert_eq!(folded(IntOp::Rem, Ty::U64, 7, 0), None);
}
