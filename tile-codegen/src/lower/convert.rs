//! Conversions between element types in registers.

use super::{LowerCx, class, int_ty};
use crate::ir::{Class, Elem};
use crate::ptx::{Cmp, Inst, Operand, Reg, RegClass, Regs, Round, Ty};

impl LowerCx<'_> {
    /// A float of any width as f32.
    pub fn widen(&mut self, elem: Elem, x: Operand) -> Operand {
        match (elem, x) {
            (Elem::BF16, Operand::Imm(bits)) => Operand::F32((bits as u32) << 16),
            (Elem::F16, Operand::Imm(bits)) => Operand::f32(half::f16::from_bits(bits as u16).to_f32()),
            (Elem::BF16, Operand::Reg(reg)) => {
                // A bf16 is the upper half of its f32.
                let zero = self.f.mov_imm(Ty::B16, 0);
                let dst = self.f.reg(RegClass::F32);
                self.f.emit(Inst::Pack { ty: Ty::B32, dst, parts: Regs::from_slice(&[zero, reg]) });
                dst.into()
            }
            (Elem::F16, x) => self.f.cvt_with(Ty::F32, Ty::F16, None, x).into(),
            (_, x) => x,
        }
    }

    /// An f32 rounded to a float of any width.
    pub fn narrow(&mut self, elem: Elem, x: Operand) -> Operand {
        match elem {
            Elem::F16 => self.f.cvt_with(Ty::F16, Ty::F32, Some(Round::Rn), x).into(),
            Elem::BF16 => self.f.cvt_with(Ty::BF16, Ty::F32, Some(Round::Rn), x).into(),
            Elem::TF32 => {
                let bits = self.f.cvt_with(Ty::TF32, Ty::F32, Some(Round::Rna), x);
                let dst = self.f.reg(RegClass::F32);
                self.f.mov_to(Ty::B32, dst, bits);
                dst.into()
            }
            Elem::F32 | Elem::I32 | Elem::I64 | Elem::U32 | Elem::Bool => x,
        }
    }

    /// f32 values rounded to 16 bits, in pairs where there are pairs: one instruction rounds two.
    pub fn narrow_all(&mut self, elem: Elem, xs: &[Operand]) -> Vec<Operand> {
        let pair = match elem {
            Elem::F16 => Ty::F16x2,
            Elem::BF16 => Ty::BF16x2,
            Elem::F32 | Elem::TF32 | Elem::I32 | Elem::I64 | Elem::U32 | Elem::Bool => {
                return xs.iter().map(|&x| self.narrow(elem, x)).collect();
            }
        };
        if xs.len() % 2 == 1 {
            return xs.iter().map(|&x| self.narrow(elem, x)).collect();
        }
        let mut out = Vec::with_capacity(xs.len());
        for two in xs.chunks(2) {
            let (low, high) = (self.in_reg(Elem::F32, two[0]), self.in_reg(Elem::F32, two[1]));
            let whole = self.f.cvt_pack(pair, low, high);
            out.extend(self.unpack2(whole).map(Operand::from));
        }
        out
    }

    /// One element converted from one type to another, by the rules of `cast`.
    pub fn convert(&mut self, from: Elem, to: Elem, x: Operand) -> Operand {
        match (from.class(), to.class()) {
            _ if from == to => x,
            (Class::Float, Class::Float) => {
                let wide = self.widen(from, x);
                self.narrow(to, wide)
            }
            (Class::Float, Class::Int) => {
                let wide = self.widen(from, x);
                let int = self.f.cvt_with(int_ty(to), Ty::F32, Some(Round::Rzi), wide);
                if to != Elem::I64 {
                    return int.into();
                }
                // In 64 bits the instruction gives another result for NaN.
                let nan = self.f.setp(Cmp::Nan, Ty::F32, wide, wide);
                self.f.selp(Ty::B64, 0, int, nan)
            }
            (Class::Float, Class::Bool) => {
                let wide = self.widen(from, x);
                self.f.setp(Cmp::Neu, Ty::F32, wide, Operand::f32(0.0)).into()
            }
            (Class::Int, Class::Float) => {
                if to == Elem::F16 {
                    return self.f.cvt_with(Ty::F16, int_ty(from), Some(Round::Rn), x).into();
                }
                if to == Elem::F32 {
                    return self.f.cvt_with(Ty::F32, int_ty(from), Some(Round::Rn), x).into();
                }
                let wide = self.round_to_odd(from, x);
                self.narrow(to, wide)
            }
            (Class::Int, Class::Int) if from.bytes() == to.bytes() => x,
            (Class::Int, Class::Int) => self.f.cvt(int_ty(to), int_ty(from), x),
            (Class::Int, Class::Bool) => self.f.setp(Cmp::Ne, int_ty(from), x, 0).into(),
            (Class::Bool, Class::Float) => {
                let pred = self.in_reg(from, x);
                let wide = self.f.selp(Ty::F32, Operand::f32(1.0), Operand::f32(0.0), pred);
                self.narrow(to, wide)
            }
            (Class::Bool, Class::Int) => {
                let pred = self.in_reg(from, x);
                self.f.selp(super::move_ty(to), 1, 0, pred)
            }
            (Class::Bool, Class::Bool) => x,
        }
    }

    /// An integer as f32, rounded toward zero with the last bit set where that was inexact: another rounding to fewer
    /// bits then is as if there had been one.
    fn round_to_odd(&mut self, from: Elem, x: Operand) -> Operand {
        let ty = int_ty(from);
        let near = self.f.cvt_with(Ty::F32, ty, Some(Round::Rz), x);
        let back = self.f.cvt_with(ty, Ty::F32, Some(Round::Rzi), near);
        let inexact = self.f.setp(Cmp::Ne, ty, back, x);
        let sticky = self.f.selp(Ty::B32, 1, 0, inexact);
        let bits = self.f.reg(RegClass::B32);
        self.f.mov_to(Ty::B32, bits, near);
        let odd = self.f.int(crate::ptx::IntOp::Or, Ty::B32, bits, sticky);
        let dst = self.f.reg(RegClass::F32);
        self.f.mov_to(Ty::B32, dst, odd);
        dst.into()
    }

    /// The bits of an element as an unsigned word of its size (`bool` as 0 or 1 in 16 bits), for memory.
    pub fn raw_bits(&mut self, elem: Elem, x: Operand) -> Reg {
        match elem {
            Elem::Bool => {
                let pred = self.in_reg(elem, x);
                match self.f.selp(Ty::U16, 1, 0, pred) {
                    Operand::Reg(reg) => reg,
                    other => self.f.materialize(Ty::U16, other),
                }
            }
            Elem::F32 | Elem::TF32 | Elem::F16 | Elem::BF16 | Elem::I32 | Elem::U32 | Elem::I64 => {
                self.in_reg(elem, x)
            }
        }
    }

    /// An element as memory has it: `bool` from a byte, others as they are.
    pub fn from_bits(&mut self, elem: Elem, x: Reg) -> Operand {
        match elem {
            Elem::Bool => self.f.setp(Cmp::Ne, Ty::U16, x, 0).into(),
            Elem::F32 | Elem::TF32 | Elem::F16 | Elem::BF16 | Elem::I32 | Elem::U32 | Elem::I64 => {
                debug_assert_eq!(x.class, class(elem));
                x.into()
            }
        }
    }
}
