//! Moves and integer arithmetic.

use super::regs::Lanes;
use super::step::Step;
use crate::ptx::{IntOp, IntUnOp, Operand, Reg, RegClass, Ty, TyKind, int_bin, int_un, wrap};

/// `f` of two values in every lane.
fn zip(a: &Lanes, b: &Lanes, f: impl Fn(u64, u64) -> u64) -> Lanes {
    std::array::from_fn(|lane| f(a[lane], b[lane]))
}

impl Step<'_, '_> {
    pub(super) fn mov(&mut self, ty: Ty, dst: Reg, src: Operand) {
        let values = self.operand(src, ty);
        if dst.class != RegClass::Pred {
            return self.set(dst, &values);
        }
        let bits = (0..32).fold(0, |bits, lane| bits | (values[lane] as u32 & 1) << lane);
        self.warp.regs.set_pred(dst, self.mask, bits);
    }

    pub(super) fn pack(&mut self, ty: Ty, dst: Reg, parts: &[Reg]) {
        let width = ty.bits() / parts.len() as u32;
        let mut out = [0; 32];
        for (i, &part) in parts.iter().enumerate() {
            let values = self.warp.regs.plane(part);
            out.iter_mut().zip(values).for_each(|(out, value)| *out |= value << (i as u32 * width));
        }
        self.set(dst, &out);
    }

    pub(super) fn unpack(&mut self, ty: Ty, dsts: &[Reg], src: Reg) {
        let width = ty.bits() / dsts.len() as u32;
        let values = *self.warp.regs.plane(src);
        for (i, &dst) in dsts.iter().enumerate() {
            self.set(dst, &values.map(|value| value >> (i as u32 * width)));
        }
    }

    pub(super) fn int(&mut self, op: IntOp, ty: Ty, dst: Reg, a: Operand, b: Operand) {
        let b_ty = if matches!(op, IntOp::Shl | IntOp::Shr) { Ty::U32 } else { ty };
        let (a, b) = (self.operand(a, ty), self.operand(b, b_ty));
        let values = match op {
            // The register's width cuts these.
            IntOp::Add => zip(&a, &b, u64::wrapping_add),
            IntOp::Sub => zip(&a, &b, u64::wrapping_sub),
            IntOp::MulLo => zip(&a, &b, u64::wrapping_mul),
            IntOp::And => zip(&a, &b, |a, b| a & b),
            IntOp::Or => zip(&a, &b, |a, b| a | b),
            IntOp::Xor => zip(&a, &b, |a, b| a ^ b),
            // The value of a division by zero is not specified; all ones is what GPUs give.
            IntOp::MulHi | IntOp::Div | IntOp::Rem | IntOp::Min | IntOp::Max | IntOp::Shl | IntOp::Shr => {
                zip(&a, &b, |a, b| int_bin(op, ty, a as i64, b as i64).map_or(u64::MAX, |value| value as u64))
            }
        };
        self.set(dst, &values);
    }

    pub(super) fn int_un(&mut self, op: IntUnOp, ty: Ty, dst: Reg, a: Operand) {
        let a = self.operand(a, ty);
        self.set(dst, &a.map(|a| int_un(op, ty, a as i64) as u64));
    }

    /// a·b + c; `wide` where c and the result are twice as wide.
    pub(super) fn mad(&mut self, ty: Ty, wide: bool, dst: Reg, [a, b, c]: [Operand; 3]) {
        let c_ty = match (wide, ty.kind(), ty.bits()) {
            (false, _, _) => ty,
            (true, TyKind::Signed, 16) => Ty::S32,
            (true, TyKind::Signed, _) => Ty::S64,
            (true, _, 16) => Ty::U32,
            (true, _, _) => Ty::U64,
        };
        let (a, b, c) = (self.operand(a, ty), self.operand(b, ty), self.operand(c, c_ty));
        let number = |bits: u64| wrap(ty, bits as i64);
        let values: Lanes = std::array::from_fn(|lane| {
            number(a[lane]).wrapping_mul(number(b[lane])).wrapping_add(c[lane] as i64) as u64
        });
        self.set(dst, &values);
    }

    pub(super) fn lop3(&mut self, dst: Reg, [a, b, c]: [Operand; 3], lut: u8) {
        let [a, b, c] = [a, b, c].map(|x| self.operand(x, Ty::B32));
        let term = |i: usize, lane: usize| {
            let pick = |x: u64, bit: usize| if i >> bit & 1 != 0 { x } else { !x };
            pick(a[lane], 2) & pick(b[lane], 1) & pick(c[lane], 0)
        };
        let values: Lanes = std::array::from_fn(|lane| {
            (0..8).filter(|i| lut >> i & 1 != 0).fold(0, |bits, i| bits | term(i, lane))
        });
        self.set(dst, &values);
    }

    pub(super) fn bfe(&mut self, ty: Ty, dst: Reg, a: Operand, pos: Operand, len: Operand) {
        let (a, pos, len) = (self.operand(a, ty), self.operand(pos, Ty::U32), self.operand(len, Ty::U32));
        let values: Lanes =
            std::array::from_fn(|lane| field(ty, a[lane], place(ty, pos[lane]), place(ty, len[lane])));
        self.set(dst, &values);
    }

    pub(super) fn bfi(&mut self, ty: Ty, dst: Reg, [a, b]: [Operand; 2], pos: Operand, len: Operand) {
        let (a, b) = (self.operand(a, ty), self.operand(b, ty));
        let (pos, len) = (self.operand(pos, Ty::U32), self.operand(len, Ty::U32));
        let values: Lanes = std::array::from_fn(|lane| {
            let (pos, len) = (place(ty, pos[lane]), place(ty, len[lane]));
            let inside = (0..len).take_while(|i| pos + i < u64::from(ty.bits()));
            inside.fold(b[lane], |out, i| out & !(1 << (pos + i)) | (a[lane] >> i & 1) << (pos + i))
        });
        self.set(dst, &values);
    }

    pub(super) fn shf(&mut self, left: bool, dst: Reg, [a, b, c]: [Operand; 3]) {
        let [a, b, c] = [a, b, c].map(|x| self.operand(x, Ty::B32));
        let values: Lanes = std::array::from_fn(|lane| {
            let (pair, amount) = (b[lane] << 32 | a[lane] & 0xffff_ffff, c[lane] & 31);
            if left { (pair << amount) >> 32 } else { pair >> amount }
        });
        self.set(dst, &values);
    }

    pub(super) fn prmt(&mut self, dst: Reg, [a, b, selector]: [Operand; 3]) {
        let [a, b, selector] = [a, b, selector].map(|x| self.operand(x, Ty::B32));
        let values: Lanes = std::array::from_fn(|lane| {
            let bytes = b[lane] << 32 | a[lane] & 0xffff_ffff;
            (0..4).fold(0, |out, i| {
                let pick = selector[lane] >> (4 * i) & 15;
                let byte = bytes >> (8 * (pick & 7)) & 0xff;
                // The highest bit of a selector repeats the sign of the byte.
                let byte = if pick < 8 { byte } else { (byte >> 7) * 0xff };
                out | byte << (8 * i)
            })
        });
        self.set(dst, &values);
    }
}

/// The position or length of a bit field. The PTX manual takes the operand's low 8 bits; the chip does so for 32-bit fields
/// and takes all 32 bits for 64-bit fields. Beyond the width all are equal.
fn place(ty: Ty, operand: u64) -> u64 {
    if ty.bits() == 64 { (operand & 0xffff_ffff).min(64) } else { operand & 255 }
}

/// `bfe`: the field, filled with its sign for signed types (PTX ISA 9.7.1.19).
fn field(ty: Ty, a: u64, pos: u64, len: u64) -> u64 {
    let top = u64::from(ty.bits()) - 1;
    let signed = ty.kind() == TyKind::Signed && len > 0;
    let sign = if signed { a >> (pos + len - 1).min(top) & 1 } else { 0 };
    (0..=top).fold(0, |out, i| {
        let bit = if i < len && pos + i <= top { a >> (pos + i) & 1 } else { sign };
        out | bit << i
    })
}
