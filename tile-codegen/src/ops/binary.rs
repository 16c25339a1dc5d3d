//! Elementwise operations of two operands of one type: rows of a table.

use super::{Attr, AttrReader, Effects, TileOp, rule};
use crate::diag::{Code, OpError};
use crate::dsl::{Mix, Number, Scalar, Tile, arith};
use crate::ir::{Class, Type};

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
    /// Smaller operand; a NaN operand is ignored.
    Minimum "minimum" { float: f32::min, int: |a, b, _| a.min(b), }
    /// Larger operand; a NaN operand is ignored.
    Maximum "maximum" { float: f32::max, int: |a, b, _| a.max(b), }
    /// Smaller operand; a NaN operand wins.
    MinimumNan "minimum_nan" { float: |a, b| if a.is_nan() || b.is_nan() { f32::NAN } else { a.min(b) }, }
    /// Larger operand; a NaN operand wins.
    MaximumNan "maximum_nan" { float: |a, b| if a.is_nan() || b.is_nan() { f32::NAN } else { a.max(b) }, }
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
