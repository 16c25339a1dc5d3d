//! The builder's arithmetic. Integer operations fold constants, so that callers may pass literals anywhere.

use super::fold::{int_bin, int_un, wrap};
use super::func::FuncBuilder;
use super::inst::{Inst, Regs};
use super::ops::*;
use super::reg::*;

macro_rules! int_shortcuts {
    ($($(#[$doc:meta])* $name:ident = $op:ident $ty:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(&mut self, a: impl Into<Operand>, b: impl Into<Operand>) -> Operand {
            self.int(IntOp::$op, Ty::$ty, a, b)
        }
    )*};
}

macro_rules! float_shortcuts {
    ($($(#[$doc:meta])* $name:ident = $op:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(&mut self, a: impl Into<Operand>, b: impl Into<Operand>) -> Reg {
            self.float(FloatOp::$op, Ty::F32, a, b)
        }
    )*};
}

macro_rules! float_un_shortcuts {
    ($($(#[$doc:meta])* $name:ident = $op:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(&mut self, a: impl Into<Operand>) -> Reg {
            self.float_un(FloatUnOp::$op, Ty::F32, a)
        }
    )*};
}

/// What `a OP b` is without an instruction, where one operand is a literal that decides it.
fn identity(op: IntOp, ty: Ty, a: Operand, b: Operand) -> Option<Operand> {
    let is = |x: Operand, value: i64| x.imm().is_some_and(|imm| wrap(ty, imm) == wrap(ty, value));
    match op {
        IntOp::Add | IntOp::Or | IntOp::Xor if is(a, 0) => Some(b),
        IntOp::Add | IntOp::Sub | IntOp::Or | IntOp::Xor if is(b, 0) => Some(a),
        IntOp::Shl | IntOp::Shr if b.imm() == Some(0) || is(a, 0) => Some(a),
        IntOp::MulLo | IntOp::And if is(a, 0) || is(b, 0) => Some(Operand::Imm(0)),
        IntOp::MulLo if is(a, 1) => Some(b),
        IntOp::MulLo | IntOp::Div if is(b, 1) => Some(a),
        IntOp::Rem if is(b, 1) => Some(Operand::Imm(0)),
        IntOp::And if is(a, -1) => Some(b),
        IntOp::And if is(b, -1) => Some(a),
        _ => None,
    }
}

impl FuncBuilder {
    /// `a OP b` at integer or bit type `ty`; folds literals and neutral elements.
    pub fn int(&mut self, op: IntOp, ty: Ty, a: impl Into<Operand>, b: impl Into<Operand>) -> Operand {
        let (a, b) = (a.into(), b.into());
        if let (Some(a), Some(b)) = (a.imm(), b.imm())
            && let Some(value) = int_bin(op, ty, a, b)
        {
            return Operand::Imm(value);
        }
        if let Some(known) = identity(op, ty, a, b) {
            return known;
        }
        let dst = self.reg(ty.class());
        self.emit(Inst::Int { op, ty, dst, a, b });
        dst.into()
    }

    /// `OP a` at integer or bit type `ty`; folds literals. `popc` and `clz` give 32 bits.
    pub fn int_un(&mut self, op: IntUnOp, ty: Ty, a: impl Into<Operand>) -> Operand {
        let a = a.into();
        if let Some(value) = a.imm() {
            return Operand::Imm(int_un(op, ty, value));
        }
        let class = if matches!(op, IntUnOp::Popc | IntUnOp::Clz) { RegClass::B32 } else { ty.class() };
        let dst = self.reg(class);
        self.emit(Inst::IntUn { op, ty, dst, a });
        dst.into()
    }

    int_shortcuts! {
        /// a + b on `.s32`.
        add_s32 = Add S32;
        /// a - b on `.s32`.
        sub_s32 = Sub S32;
        /// a · b on `.s32`, low half.
        mul_lo_s32 = MulLo S32;
        /// a / b on `.s32`, toward zero.
        div_s32 = Div S32;
        /// a % b on `.s32`.
        rem_s32 = Rem S32;
        /// a / b on `.u32`.
        div_u32 = Div U32;
        /// a % b on `.u32`.
        rem_u32 = Rem U32;
        /// The smaller `.s32`.
        min_s32 = Min S32;
        /// The larger `.s32`.
        max_s32 = Max S32;
        /// a + b on `.s64`.
        add_s64 = Add S64;
        /// a - b on `.s64`.
        sub_s64 = Sub S64;
        /// a · b on `.s64`, low half.
        mul_lo_s64 = MulLo S64;
        /// The smaller `.s64`.
        min_s64 = Min S64;
        /// The larger `.s64`.
        max_s64 = Max S64;
        /// a & b on `.b32`.
        and_b32 = And B32;
        /// a | b on `.b32`.
        or_b32 = Or B32;
        /// a ^ b on `.b32`.
        xor_b32 = Xor B32;
        /// a << b on `.b32`.
        shl_b32 = Shl B32;
        /// a >> b on `.u32`.
        shr_u32 = Shr U32;
        /// a >> b on `.s32`, arithmetic.
        shr_s32 = Shr S32;
        /// a << b on `.b64`; b is 32 bits wide.
        shl_b64 = Shl B64;
        /// a >> b on `.u64`; b is 32 bits wide.
        shr_u64 = Shr U64;
    }

    /// a·b + c on `ty`, low half; folds literals.
    pub fn mad_lo(
        &mut self,
        ty: Ty,
        a: impl Into<Operand>,
        b: impl Into<Operand>,
        c: impl Into<Operand>,
    ) -> Operand {
        let (a, b, c) = (a.into(), b.into(), c.into());
        if let (Some(x), Some(y)) = (a.imm(), b.imm()) {
            return self.int(IntOp::Add, ty, Operand::Imm(wrap(ty, x.wrapping_mul(y))), c);
        }
        if let Some(product) = identity(IntOp::MulLo, ty, a, b) {
            return self.int(IntOp::Add, ty, product, c);
        }
        if c.imm() == Some(0) {
            return self.int(IntOp::MulLo, ty, a, b);
        }
        let dst = self.reg(ty.class());
        self.emit(Inst::MadLo { ty, dst, a, b, c });
        dst.into()
    }

    /// a·b + c on `.s32`, low half; folds literals.
    pub fn mad_lo_s32(
        &mut self,
        a: impl Into<Operand>,
        b: impl Into<Operand>,
        c: impl Into<Operand>,
    ) -> Operand {
        self.mad_lo(Ty::S32, a, b, c)
    }

    /// a·b as `.s64` from `.s32`; folds literals.
    pub fn mul_wide_s32(&mut self, a: impl Into<Operand>, b: impl Into<Operand>) -> Operand {
        self.mul_wide(Ty::S32, Ty::S64, a.into(), b.into())
    }

    /// a·b as `.u64` from `.u32`; folds literals.
    pub fn mul_wide_u32(&mut self, a: impl Into<Operand>, b: impl Into<Operand>) -> Operand {
        self.mul_wide(Ty::U32, Ty::U64, a.into(), b.into())
    }

    fn mul_wide(&mut self, ty: Ty, wide: Ty, a: Operand, b: Operand) -> Operand {
        if let (Some(x), Some(y)) = (a.imm(), b.imm()) {
            return Operand::Imm(wrap(ty, x).wrapping_mul(wrap(ty, y)));
        }
        if a.imm() == Some(0) || b.imm() == Some(0) {
            return Operand::Imm(0);
        }
        let dst = self.reg(wide.class());
        self.emit(Inst::MulWide { ty, dst, a, b });
        dst.into()
    }

    /// a·b + c as `.s64` from `.s32` a and b; folds literals.
    pub fn mad_wide_s32(
        &mut self,
        a: impl Into<Operand>,
        b: impl Into<Operand>,
        c: impl Into<Operand>,
    ) -> Operand {
        let (a, b, c) = (a.into(), b.into(), c.into());
        let known = a.imm() == Some(0) || b.imm() == Some(0) || (a.imm().is_some() && b.imm().is_some());
        if known || c.imm() == Some(0) {
            let product = self.mul_wide_s32(a, b);
            return self.add_s64(product, c);
        }
        let dst = self.reg(RegClass::B64);
        self.emit(Inst::MadWide { ty: Ty::S32, dst, a, b, c });
        dst.into()
    }

    /// `lop3.b32` with truth table `lut` (0xF0 for a, 0xCC for b, 0xAA for c).
    pub fn lop3(
        &mut self,
        a: impl Into<Operand>,
        b: impl Into<Operand>,
        c: impl Into<Operand>,
        lut: u8,
    ) -> Reg {
        let dst = self.reg(RegClass::B32);
        self.emit(Inst::Lop3 { dst, a: a.into(), b: b.into(), c: c.into(), lut });
        dst
    }

    /// `prmt.b32`: byte i of the result is byte (selector >> 4i) & 7 of {b, a}.
    pub fn prmt(
        &mut self,
        a: impl Into<Operand>,
        b: impl Into<Operand>,
        selector: impl Into<Operand>,
    ) -> Reg {
        let dst = self.reg(RegClass::B32);
        self.emit(Inst::Prmt { dst, a: a.into(), b: b.into(), selector: selector.into() });
        dst
    }

    /// `a OP b` at float type `ty`, without `.ftz`.
    pub fn float(&mut self, op: FloatOp, ty: Ty, a: impl Into<Operand>, b: impl Into<Operand>) -> Reg {
        let dst = self.reg(ty.class());
        self.emit(Inst::Float { op, ty, ftz: false, dst, a: a.into(), b: b.into() });
        dst
    }

    /// `OP a` at float type `ty`, without `.ftz`.
    pub fn float_un(&mut self, op: FloatUnOp, ty: Ty, a: impl Into<Operand>) -> Reg {
        let dst = self.reg(ty.class());
        self.emit(Inst::FloatUn { op, ty, ftz: false, dst, a: a.into() });
        dst
    }

    float_shortcuts! {
        /// a + b on `.f32`, rounded to nearest.
        add_f32 = Add;
        /// a - b on `.f32`, rounded to nearest.
        sub_f32 = Sub;
        /// a · b on `.f32`, rounded to nearest.
        mul_f32 = Mul;
        /// a / b on `.f32`, IEEE.
        div_f32 = DivRn;
        /// The smaller `.f32`; the other one if one is NaN.
        min_f32 = Min;
        /// The larger `.f32`; the other one if one is NaN.
        max_f32 = Max;
        /// The smaller `.f32`; NaN if either is.
        min_nan_f32 = MinNan;
        /// The larger `.f32`; NaN if either is.
        max_nan_f32 = MaxNan;
    }

    float_un_shortcuts! {
        /// -a on `.f32`.
        neg_f32 = Neg;
        /// |a| on `.f32`.
        abs_f32 = Abs;
        /// Square root on `.f32`, IEEE.
        sqrt_f32 = SqrtRn;
        /// Approximate reciprocal square root on `.f32`.
        rsqrt_f32 = RsqrtApprox;
        /// Approximate reciprocal on `.f32`.
        rcp_approx_f32 = RcpApprox;
        /// Approximate 2^a on `.f32`, subnormals kept.
        ex2 = Ex2Approx;
        /// Approximate log2 a on `.f32`, subnormals kept.
        lg2 = Lg2Approx;
        /// Approximate tanh a on `.f32`.
        tanh_approx_f32 = TanhApprox;
    }

    /// a·b + c on `.f32` with one rounding.
    pub fn fma_f32(&mut self, a: impl Into<Operand>, b: impl Into<Operand>, c: impl Into<Operand>) -> Reg {
        self.fma(Ty::F32, a, b, c)
    }

    /// a·b + c at float type `ty` with one rounding.
    pub fn fma(
        &mut self,
        ty: Ty,
        a: impl Into<Operand>,
        b: impl Into<Operand>,
        c: impl Into<Operand>,
    ) -> Reg {
        let dst = self.reg(ty.class());
        self.emit(Inst::Fma { ty, ftz: false, dst, a: a.into(), b: b.into(), c: c.into() });
        dst
    }

    /// `setp.CMP.TY`: a fresh predicate.
    pub fn setp(&mut self, cmp: Cmp, ty: Ty, a: impl Into<Operand>, b: impl Into<Operand>) -> Reg {
        let dst = self.reg(RegClass::Pred);
        self.emit(Inst::Setp { cmp, ty, dst, a: a.into(), b: b.into() });
        dst
    }

    /// a where `pred`, else b.
    pub fn selp(&mut self, ty: Ty, a: impl Into<Operand>, b: impl Into<Operand>, pred: Reg) -> Operand {
        let (a, b) = (a.into(), b.into());
        if a == b {
            return a;
        }
        let dst = self.reg(ty.class());
        self.emit(Inst::Selp { ty, dst, a, b, pred });
        dst.into()
    }

    /// `a OP b` on predicates.
    pub fn pred(&mut self, op: PredOp, a: Reg, b: Reg) -> Reg {
        let dst = self.reg(RegClass::Pred);
        self.emit(Inst::Pred { op, dst, a, b });
        dst
    }

    /// Not `a`.
    pub fn pred_not(&mut self, a: Reg) -> Reg {
        let dst = self.reg(RegClass::Pred);
        self.emit(Inst::PredNot { dst, a });
        dst
    }

    /// Converts without saturation or `.ftz` (not at all between equal types), with the rounding that the types need: none for widening and between
    /// integers, toward zero to integers, to nearest even to floats (ties away for tf32). Integer literals fold
    /// between integer types.
    pub fn cvt(&mut self, dst_ty: Ty, src_ty: Ty, src: impl Into<Operand>) -> Operand {
        let src = src.into();
        if dst_ty == src_ty {
            return src;
        }
        if let Some(value) = src.imm()
            && dst_ty.is_int()
            && src_ty.is_int()
        {
            return Operand::Imm(wrap(dst_ty, wrap(src_ty, value)));
        }
        let round = match (dst_ty, src_ty) {
            (Ty::TF32, _) => Some(Round::Rna),
            (d, s) if d.is_int() => s.is_float().then_some(Round::Rzi),
            (d, s) if s.is_int() || d.bits() < s.bits() => Some(Round::Rn),
            (Ty::BF16, Ty::F16) | (Ty::F16, Ty::BF16) => Some(Round::Rn),
            _ => None,
        };
        self.cvt_with(dst_ty, src_ty, round, src).into()
    }

    /// Converts with the rounding given, without saturation or `.ftz`.
    pub fn cvt_with(&mut self, dst_ty: Ty, src_ty: Ty, round: Option<Round>, src: impl Into<Operand>) -> Reg {
        let dst = self.reg(dst_ty.class());
        self.emit(Inst::Cvt { dst_ty, src_ty, round, ftz: false, sat: false, dst, src: src.into() });
        dst
    }

    /// Two `.f32` rounded to a pair (`F16x2` or `BF16x2`); `lo` is the first element in memory.
    pub fn cvt_pack(&mut self, ty: Ty, lo: impl Into<Operand>, hi: impl Into<Operand>) -> Reg {
        let dst = self.reg(RegClass::B32);
        self.emit(Inst::CvtPack { ty, dst, hi: hi.into(), lo: lo.into() });
        dst
    }

    /// A fresh register with the value of `src`.
    pub fn mov(&mut self, ty: Ty, src: impl Into<Operand>) -> Reg {
        let dst = self.reg(ty.class());
        self.mov_to(ty, dst, src);
        dst
    }

    /// Copies `src` to `dst`.
    pub fn mov_to(&mut self, ty: Ty, dst: Reg, src: impl Into<Operand>) {
        self.emit(Inst::Mov { ty, dst, src: src.into() });
    }

    /// A fresh register with an integer literal.
    pub fn mov_imm(&mut self, ty: Ty, value: i64) -> Reg {
        self.mov(ty, Operand::Imm(value))
    }

    /// The operand itself if it is a register, else a fresh register with its value.
    pub fn materialize(&mut self, ty: Ty, operand: impl Into<Operand>) -> Reg {
        match operand.into() {
            Operand::Reg(reg) => reg,
            other => self.mov(ty, other),
        }
    }

    /// A fresh register with a special register's value.
    pub fn special(&mut self, special: SpecialReg) -> Reg {
        self.mov(special.ty(), special)
    }

    /// Joins parts, the lowest first, into `.b32` or `.b64`.
    pub fn pack(&mut self, ty: Ty, parts: &[Reg]) -> Reg {
        let dst = self.reg(ty.class());
        self.emit(Inst::Pack { ty, dst, parts: Regs::from_slice(parts) });
        dst
    }

    /// Splits `.b32` or `.b64` into `N` parts of `class`, the lowest first.
    pub fn unpack<const N: usize>(&mut self, ty: Ty, class: RegClass, src: Reg) -> [Reg; N] {
        let dsts = self.regs::<N>(class);
        self.emit(Inst::Unpack { ty, dsts: Regs::from_slice(&dsts), src });
        dsts
    }
}
