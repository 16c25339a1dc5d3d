//! Elementwise operations of two operands of one type: rows of a table.

use super::{Attr, AttrReader, Effects, TileOp, rule};
use crate::diag::{Code, OpError};
use crate::dsl::{Mix, Number, Scalar, Tile, arith};
use crate::ir::{Class, Type};

/// The smaller number, of zeros the negative one as in PTX; `f32::min` may give either. NaN is ignored.
#[inline]
pub(crate) fn smaller(a: f32, b: f32) -> f32 {
    // Equal numbers have equal bits, but for zeros, which differ in the sign.
    if a == b { f32::from_bits(a.to_bits() | b.to_bits()) } else { a.min(b) }
}

/// The larger number, of zeros the positive one. NaN is ignored.
#[inline]
pub(crate) fn larger(a: f32, b: f32) -> f32 {
    if a == b { f32::from_bits(a.to_bits() & b.to_bits()) } else { a.max(b) }
}

/// One row an operation: its name in IR text, the classes of elements it takes, its CPU meaning on each.
macro_rules! binary {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal
        { $(float: $float:expr,)? $(int: $int:expr,)? $(boolean: $boolean:expr,)? })*) => {
        /// Which elementwise operation.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub enum BinaryOp { $($(#[doc = $doc])+ $variant,)* }

        impl BinaryOp {
            /// Every operation, in table order.
            pub const ALL: &'static [BinaryOp] = &[$(BinaryOp::$variant,)*];
            /// The name in IR text.
            pub fn name(self) -> &'static str { match self { $(BinaryOp::$variant => $name,)* } }
            /// The meaning on floats, in f32; the caller rounds to the element type.
            pub fn float(self) -> Option<fn(f32, f32) -> f32> {
                match self { $(BinaryOp::$variant => binary!(@some $($float)?),)* }
            }
            /// The meaning on integers, given in i64 (u32 zero-extended); the caller wraps to the element type.
            /// The third argument is the width in bits.
            pub fn int(self) -> Option<fn(i64, i64, u32) -> i64> {
                match self { $(BinaryOp::$variant => binary!(@some $($int)?),)* }
            }
            /// The meaning on truth values.
            pub fn boolean(self) -> Option<fn(bool, bool) -> bool> {
                match self { $(BinaryOp::$variant => binary!(@some $($boolean)?),)* }
            }
        }
    };
    (@some) => { None };
    (@some $f:expr) => { Some($f) };
}

binary! {
    /// Sum; integers wrap.
    Add "add" { float: |a, b| a + b, int: |a, b, _| a.wrapping_add(b), }
    /// Difference; integers wrap.
    Sub "sub" { float: |a, b| a - b, int: |a, b, _| a.wrapping_sub(b), }
    /// Product; integers wrap.
    Mul "mul" { float: |a, b| a * b, int: |a, b, _| a.wrapping_mul(b), }
    /// Quotient; integers truncate as in Rust, and a zero divisor gives 0.
    Div "div" { float: |a, b| a / b, int: |a, b, _| if b == 0 { 0 } else { a.wrapping_div(b) }, }
    /// Remainder with the sign of the dividend, as in Rust; a zero divisor gives the dividend.
    Rem "rem" { int: |a, b, _| if b == 0 { a } else { a.wrapping_rem(b) }, }
    /// Smaller operand, -0 below +0; a NaN operand is ignored.
    Minimum "minimum" { float: smaller, int: |a, b, _| a.min(b), }
    /// Larger operand, +0 above -0; a NaN operand is ignored.
    Maximum "maximum" { float: larger, int: |a, b, _| a.max(b), }
    /// Smaller operand; a NaN operand wins.
    MinimumNan "minimum_nan" { float: |a, b| if a.is_nan() || b.is_nan() { f32::NAN } else { smaller(a, b) }, }
    /// Larger operand; a NaN operand wins.
    MaximumNan "maximum_nan" { float: |a, b| if a.is_nan() || b.is_nan() { f32::NAN } else { larger(a, b) }, }
    /// Logical or bitwise and.
    And "and" { int: |a, b, _| a & b, boolean: |a, b| a & b, }
    /// Logical or bitwise or.
    Or "or" { int: |a, b, _| a | b, boolean: |a, b| a | b, }
    /// Logical or bitwise exclusive or.
    Xor "xor" { int: |a, b, _| a ^ b, boolean: |a, b| a ^ b, }
    /// Left shift; the amount is taken modulo the width.
    Shl "shl" { int: |a, b, width| a.wrapping_shl(b as u32 & (width - 1)), }
    /// Right shift, arithmetic for signed types; the amount is taken modulo the width.
    Shr "shr" { int: |a, b, width| a.wrapping_shr(b as u32 & (width - 1)), }
}

/// (tile, tile) -> tile, all of one type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Binary {
    /// Which operation.
    pub op: BinaryOp,
}

impl TileOp for Binary {
    fn name(&self) -> &'static str {
        self.op.name()
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        Vec::new()
    }
    fn parse(name: &str, _: &mut AttrReader) -> Option<Result<Self, OpError>> {
        BinaryOp::ALL.iter().find(|op| op.name() == name).map(|&op| Ok(Self { op }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let name = self.op.name();
        let [a, b] = rule::operands::<2>(name, operands)?;
        let (a, b) = (rule::tile(name, a)?, rule::tile(name, b)?);
        rule::same(name, a, b)?;
        let known = match a.elem.class() {
            Class::Float => self.op.float().is_some(),
            Class::Int => self.op.int().is_some(),
            Class::Bool => self.op.boolean().is_some(),
        };
        if !known {
            return Err(OpError::new(Code::ElementType, format!("`{name}` has no meaning for `{}`", a.elem))
                .help("cast the operands to a type that has it"));
        }
        Ok(vec![Type::Tile(a.clone())])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

// ---- in kernels

macro_rules! functions {
    ($($f:ident $op:ident;)*) => {
        $(
            #[doc = concat!("Elementwise on tiles, scalars and numbers; see [`BinaryOp::", stringify!($op), "`].")]
            #[track_caller]
            pub fn $f<A: Mix<B>, B>(a: A, b: B) -> A::Out
            where
                A::Elem: Number,
            {
                arith::mixed(BinaryOp::$op, a, b)
            }
        )*
        functions!(@methods Tile: $($f;)*);
        functions!(@methods Scalar: $($f;)*);
    };
    (@methods $handle:ident: $($f:ident;)*) => {
        impl<T: Number> $handle<T> {
            $(
                #[doc = concat!("Elementwise; see [`", stringify!($f), "`].")]
                #[track_caller]
                pub fn $f<B>(self, other: B) -> <Self as Mix<B>>::Out
                where
                    Self: Mix<B>,
                    <Self as Mix<B>>::Elem: Number,
                {
                    $f(self, other)
                }
            )*
        }
    };
}
functions! {
    minimum Minimum;
    maximum Maximum;
    minimum_nan MinimumNan;
    maximum_nan MaximumNan;
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Binary {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let (a, b) = (operands.tile(), operands.tile());
        Some(crate::cpu::elementwise::binary(self.op, a, b))
    }
}

// ---- in PTX

super::place::place_elementwise!(Binary);

impl super::lower::Lower for Binary {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let op = &cx.kernel.ops[id];
        let (a, b) = (op.operands[0], op.operands[1]);
        let elem = cx.elem(a);
        let (xs, ys) = (cx.values(a), cx.values(b));
        let mut out = Vec::new();
        match elem.class() {
            Class::Float => {
                for (&x, &y) in xs.iter().zip(&ys) {
                    let (x, y) = (cx.widen(elem, x), cx.widen(elem, y));
                    out.push(self.lower_float(cx, x, y));
                }
                out = cx.narrow_all(elem, &out);
            }
            Class::Int => out.extend(xs.iter().zip(&ys).map(|(&x, &y)| self.lower_int(cx, elem, x, y))),
            Class::Bool => {
                let op = match self.op {
                    BinaryOp::Or => PredOp::Or,
                    BinaryOp::Xor => PredOp::Xor,
                    _ => PredOp::And,
                };
                for (x, y) in xs.into_iter().zip(ys) {
                    let (x, y) = (cx.in_reg(elem, x), cx.in_reg(elem, y));
                    out.push(cx.f.pred(op, x, y).into());
                }
            }
        }
        cx.bind_result(id, out);
    }
}

use crate::ir::Elem;
use crate::lower::{LowerCx, int_ty};
use crate::ptx::{Cmp, FloatOp, IntOp, Operand, PredOp, Ty};

impl Binary {
    fn lower_float(&self, cx: &mut LowerCx<'_>, x: Operand, y: Operand) -> Operand {
        let op = match self.op {
            BinaryOp::Add => FloatOp::Add,
            BinaryOp::Sub => FloatOp::Sub,
            BinaryOp::Mul => FloatOp::Mul,
            BinaryOp::Div => FloatOp::DivFull,
            BinaryOp::Minimum => FloatOp::Min,
            BinaryOp::Maximum => FloatOp::Max,
            BinaryOp::MinimumNan => FloatOp::MinNan,
            BinaryOp::MaximumNan => FloatOp::MaxNan,
            BinaryOp::Rem | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => {
                return x;
            }
        };
        cx.f.float(op, Ty::F32, x, y).into()
    }

    fn lower_int(&self, cx: &mut LowerCx<'_>, elem: Elem, x: Operand, y: Operand) -> Operand {
        let ty = int_ty(elem);
        let (bits, width) = if elem == Elem::I64 { (Ty::B64, 64) } else { (Ty::B32, 32) };
        match self.op {
            BinaryOp::Add => cx.f.int(IntOp::Add, ty, x, y),
            BinaryOp::Sub => cx.f.int(IntOp::Sub, ty, x, y),
            BinaryOp::Mul => cx.f.int(IntOp::MulLo, ty, x, y),
            BinaryOp::Div => self.divide(cx, IntOp::Div, ty, x, y, Operand::Imm(0)),
            BinaryOp::Rem => self.divide(cx, IntOp::Rem, ty, x, y, x),
            BinaryOp::Minimum | BinaryOp::MinimumNan => cx.f.int(IntOp::Min, ty, x, y),
            BinaryOp::Maximum | BinaryOp::MaximumNan => cx.f.int(IntOp::Max, ty, x, y),
            BinaryOp::And => cx.f.int(IntOp::And, bits, x, y),
            BinaryOp::Or => cx.f.int(IntOp::Or, bits, x, y),
            BinaryOp::Xor => cx.f.int(IntOp::Xor, bits, x, y),
            BinaryOp::Shl | BinaryOp::Shr => {
                let amount = cx.f.int(IntOp::And, bits, y, width - 1);
                let amount = if elem == Elem::I64 { cx.f.cvt(Ty::U32, Ty::S64, amount) } else { amount };
                if self.op == BinaryOp::Shl {
                    cx.f.int(IntOp::Shl, bits, x, amount)
                } else {
                    cx.f.int(IntOp::Shr, ty, x, amount)
                }
            }
        }
    }

    /// A zero divisor has a defined result, which the instruction has not.
    fn divide(
        &self,
        cx: &mut LowerCx<'_>,
        op: IntOp,
        ty: Ty,
        x: Operand,
        y: Operand,
        by_zero: Operand,
    ) -> Operand {
        let quotient = cx.f.int(op, ty, x, y);
        match y {
            Operand::Imm(0) => by_zero,
            Operand::Imm(_) => quotient,
            _ => {
                let zero = cx.f.setp(Cmp::Eq, ty, y, 0);
                cx.f.selp(ty, by_zero, quotient, zero)
            }
        }
    }
}
