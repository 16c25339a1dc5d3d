//! Elementwise operations of one operand: rows of a table.

use super::{Attr, AttrReader, Effects, TileOp, rule};
use crate::diag::{Code, OpError};
use crate::dsl::{Float, Number, Scalar, Tile, TileOrScalar, session};
use crate::ir::{Class, Elem, Type};

/// One row an operation: its name in IR text, the classes of elements it takes, its CPU meaning on each.
macro_rules! unary {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal
        { $(float: $float:expr,)? $(int: $int:expr,)? $(boolean: $boolean:expr,)? })*) => {
        /// Which elementwise operation.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub enum UnaryOp { $($(#[doc = $doc])+ $variant,)* }

        impl UnaryOp {
            /// Every operation, in table order.
            pub const ALL: &'static [UnaryOp] = &[$(UnaryOp::$variant,)*];
            /// The name in IR text.
            pub fn name(self) -> &'static str { match self { $(UnaryOp::$variant => $name,)* } }
            /// The meaning on floats, in f32; the caller rounds to the element type. `None`: no float has it.
            pub fn float(self) -> Option<fn(f32) -> f32> {
                match self { $(UnaryOp::$variant => unary!(@some $($float)?),)* }
            }
            /// The meaning on integers; the caller wraps to the element type.
            pub fn int(self) -> Option<fn(i64) -> i64> {
                match self { $(UnaryOp::$variant => unary!(@some $($int)?),)* }
            }
            /// The meaning on truth values.
            pub fn boolean(self) -> Option<fn(bool) -> bool> {
                match self { $(UnaryOp::$variant => unary!(@some $($boolean)?),)* }
            }
        }
    };
    (@some) => { None };
    (@some $f:expr) => { Some($f) };
}

unary! {
    /// Negation; integers wrap.
    Neg "neg" { float: |x| -x, int: i64::wrapping_neg, }
    /// Absolute value; integers wrap.
    Abs "abs" { float: f32::abs, int: i64::wrapping_abs, }
    /// Logical or bitwise complement.
    Not "not" { int: |x| !x, boolean: |x| !x, }
    /// e to the power x, within 2e-6 relative.
    Exp "exp" { float: f32::exp, }
    /// 2 to the power x.
    Exp2 "exp2" { float: f32::exp2, }
    /// Natural logarithm.
    Log "log" { float: f32::ln, }
    /// Logarithm to base 2.
    Log2 "log2" { float: f32::log2, }
    /// Square root.
    Sqrt "sqrt" { float: f32::sqrt, }
    /// Reciprocal square root.
    Rsqrt "rsqrt" { float: |x| 1.0 / x.sqrt(), }
    /// The logistic function 1 / (1 + exp(-x)).
    Sigmoid "sigmoid" { float: |x| 1.0 / (1.0 + (-x).exp()), }
    /// log(1 + exp(x)); x itself above 20, exp(x) for very negative x.
    Softplus "softplus" { float: |x| if x > 20.0 { x } else { x.exp().ln_1p() }, }
    /// Hyperbolic tangent.
    Tanh "tanh" { float: f32::tanh, }
    /// Largest integer not above x.
    Floor "floor" { float: f32::floor, }
    /// Smallest integer not below x.
    Ceil "ceil" { float: f32::ceil, }
}

/// Tile -> tile of the same type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Unary {
    /// Which operation.
    pub op: UnaryOp,
}

impl TileOp for Unary {
    fn name(&self) -> &'static str {
        self.op.name()
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        Vec::new()
    }
    fn parse(name: &str, _: &mut AttrReader) -> Option<Result<Self, OpError>> {
        UnaryOp::ALL.iter().find(|op| op.name() == name).map(|&op| Ok(Self { op }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let name = self.op.name();
        let [x] = rule::operands::<1>(name, operands)?;
        let x = rule::tile(name, x)?;
        let known = match x.elem.class() {
            Class::Float => self.op.float().is_some(),
            Class::Int => self.op.int().is_some(),
            Class::Bool => self.op.boolean().is_some(),
        };
        if !known {
            return Err(OpError::new(Code::ElementType, format!("`{name}` has no meaning for `{}`", x.elem))
                .help("cast the operand to a type that has it"));
        }
        Ok(vec![Type::Tile(x.clone())])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

// ---- in kernels

macro_rules! functions {
    ($($f:ident $op:ident $class:ident;)*) => {
        $(
            #[doc = concat!("Elementwise on a tile or scalar; see [`UnaryOp::", stringify!($op), "`].")]
            #[track_caller]
            pub fn $f<V: TileOrScalar>(x: V) -> V
            where
                V::Elem: $class,
            {
                V::from_raw(session::op(Unary { op: UnaryOp::$op }, &[x.to_raw()]))
            }
        )*
        functions!(@methods Tile: $($f $op $class;)*);
        functions!(@methods Scalar: $($f $op $class;)*);
    };
    (@methods $handle:ident: $($f:ident $op:ident $class:ident;)*) => {
        impl<T: Number> $handle<T> {
            $(
                #[doc = concat!("Elementwise; see [`UnaryOp::", stringify!($op), "`].")]
                #[track_caller]
                pub fn $f(self) -> Self
                where
                    T: $class,
                {
                    $f(self)
                }
            )*
        }
    };
}
functions! {
    abs Abs Number;
    exp Exp Float;
    exp2 Exp2 Float;
    log Log Float;
    log2 Log2 Float;
    sqrt Sqrt Float;
    rsqrt Rsqrt Float;
    sigmoid Sigmoid Float;
    softplus Softplus Float;
    tanh Tanh Float;
    floor Floor Float;
    ceil Ceil Float;
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Unary {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        Some(crate::cpu::elementwise::unary(self.op, operands.tile()))
    }
}

// ---- in PTX

super::place::place_elementwise!(Unary);

impl super::lower::Lower for Unary {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let x = cx.kernel.ops[id].operands[0];
        let elem = cx.elem(x);
        let mut out = Vec::new();
        let values = cx.values(x);
        match elem.class() {
            Class::Float => {
                for &value in &values {
                    let wide = cx.widen(elem, value);
                    out.push(self.lower_float(cx, wide));
                }
                out = cx.narrow_all(elem, &out);
            }
            Class::Int => out.extend(values.iter().map(|&v| self.lower_int(cx, elem, v))),
            Class::Bool => {
                for value in values {
                    let pred = cx.in_reg(elem, value);
                    out.push(cx.f.pred_not(pred).into());
                }
            }
        }
        cx.bind_result(id, out);
    }
}

use crate::lower::LowerCx;
use crate::ptx::{FloatUnOp, IntUnOp, Operand, Round, Ty};

impl Unary {
    fn lower_float(&self, cx: &mut LowerCx<'_>, x: Operand) -> Operand {
        let un = |cx: &mut LowerCx<'_>, op| cx.f.float_un(op, Ty::F32, x);
        match self.op {
            UnaryOp::Neg => un(cx, FloatUnOp::Neg).into(),
            UnaryOp::Abs => un(cx, FloatUnOp::Abs).into(),
            UnaryOp::Sqrt => un(cx, FloatUnOp::SqrtRn).into(),
            UnaryOp::Rsqrt => un(cx, FloatUnOp::RsqrtApprox).into(),
            UnaryOp::Exp => cx.exp(x).into(),
            UnaryOp::Exp2 => cx.exp2(x).into(),
            UnaryOp::Log => cx.log(x).into(),
            UnaryOp::Log2 => {
                let log = cx.log(x);
                cx.f.mul_f32(log, Operand::f32(std::f32::consts::LOG2_E)).into()
            }
            UnaryOp::Sigmoid => cx.sigmoid(x).into(),
            UnaryOp::Softplus => cx.softplus(x).into(),
            UnaryOp::Tanh => cx.tanh(x).into(),
            UnaryOp::Floor => cx.f.cvt_with(Ty::F32, Ty::F32, Some(Round::Rmi), x).into(),
            UnaryOp::Ceil => cx.f.cvt_with(Ty::F32, Ty::F32, Some(Round::Rpi), x).into(),
            UnaryOp::Not => x,
        }
    }

    fn lower_int(&self, cx: &mut LowerCx<'_>, elem: Elem, x: Operand) -> Operand {
        // Negation and absolute value exist for signed types; the bits of an unsigned negation are the same.
        let signed = if elem == Elem::I64 { Ty::S64 } else { Ty::S32 };
        let bits = if elem == Elem::I64 { Ty::B64 } else { Ty::B32 };
        match self.op {
            UnaryOp::Neg => cx.f.int_un(IntUnOp::Neg, signed, x),
            UnaryOp::Abs if elem == Elem::U32 => x,
            UnaryOp::Abs => cx.f.int_un(IntUnOp::Abs, signed, x),
            UnaryOp::Not => cx.f.int_un(IntUnOp::Not, bits, x),
            UnaryOp::Exp
            | UnaryOp::Exp2
            | UnaryOp::Log
            | UnaryOp::Log2
            | UnaryOp::Sqrt
            | UnaryOp::Rsqrt
            | UnaryOp::Sigmoid
            | UnaryOp::Softplus
            | UnaryOp::Tanh
            | UnaryOp::Floor
            | UnaryOp::Ceil => x,
        }
    }
}
