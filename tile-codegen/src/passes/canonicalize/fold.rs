//! Constants: what scalar operations give on them. Only what every machine computes alike is folded: IEEE arithmetic,
//! rounded once as the operation's contract says, but no `exp` and its like, nothing that gives NaN (whose bits differ)
//! and no `tf32`.

use half::{bf16, f16};

use crate::ir::{Class, Elem};
use crate::ops::Literal;
use crate::ops::binary::BinaryOp;
use crate::ops::compare::CompareOp;
use crate::ops::constant::Constant;
use crate::ops::unary::UnaryOp;

/// A scalar of a known type. Floats are values of the element type; integers are widened.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Const {
    /// F32, F16 or BF16.
    Float(f32, Elem),
    /// I32, I64 or U32.
    Int(i64, Elem),
    /// Bool.
    Bool(bool),
}

impl Const {
    /// The value of a `constant`.
    pub(super) fn of(op: &Constant) -> Option<Const> {
        match (op.elem.class(), op.value) {
            (Class::Float, literal) => float(op.elem, to_odd(op.elem, literal.as_f64())),
            (Class::Int, Literal::Int(i)) => Some(Const::Int(wrap(op.elem, i), op.elem)),
            (Class::Bool, Literal::Bool(b)) => Some(Const::Bool(b)),
            (Class::Int | Class::Bool, _) => None,
        }
    }

    /// The `constant` of this value.
    pub(super) fn op(self) -> Constant {
        match self {
            Const::Float(x, elem) => Constant { value: Literal::float(f64::from(x)), elem },
            Const::Int(i, elem) => Constant { value: Literal::Int(i), elem },
            Const::Bool(b) => Constant { value: Literal::Bool(b), elem: Elem::Bool },
        }
    }

    /// Whether this is the integer or the float of this value; zeros only of the same sign.
    pub(super) fn is(self, value: f64) -> bool {
        match self {
            Const::Float(x, _) => f64::from(x).to_bits() == value.to_bits(),
            Const::Int(i, _) => i as f64 == value && i.unsigned_abs() < 1 << 52,
            Const::Bool(_) => false,
        }
    }
}

/// A float rounded to its type, unless it is NaN.
fn float(elem: Elem, x: f32) -> Option<Const> {
    let x = match elem {
        Elem::F32 => x,
        Elem::F16 => f16::from_f32(x).to_f32(),
        Elem::BF16 => bf16::from_f32(x).to_f32(),
        Elem::TF32 | Elem::I32 | Elem::I64 | Elem::U32 | Elem::Bool => return None,
    };
    (!x.is_nan()).then_some(Const::Float(x, elem))
}

/// An f64 as f32, so that rounding that to `elem` gives what rounding once would: for narrow types, inexact values get
/// an odd last bit, which no tie has.
fn to_odd(elem: Elem, x: f64) -> f32 {
    let nearest = x as f32;
    if elem == Elem::F32 || f64::from(nearest) == x || x.is_nan() {
        return nearest;
    }
    let away = f64::from(nearest).abs() > x.abs();
    f32::from_bits((nearest.to_bits() - u32::from(away)) | 1)
}

/// An integer wrapped to its type.
fn wrap(elem: Elem, i: i64) -> i64 {
    match elem {
        Elem::I32 => i64::from(i as i32),
        Elem::U32 => i64::from(i as u32),
        Elem::I64 | Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::Bool => i,
    }
}

fn int(elem: Elem, i: i64) -> Option<Const> {
    Some(Const::Int(wrap(elem, i), elem))
}

/// A unary operation.
pub(super) fn unary(op: UnaryOp, x: Const) -> Option<Const> {
    let exact = matches!(op, UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not | UnaryOp::Floor | UnaryOp::Ceil);
    match x {
        Const::Float(x, elem) if exact => float(elem, op.float()?(x)),
        Const::Float(..) => None,
        Const::Int(i, elem) => int(elem, op.int()?(i)),
        Const::Bool(b) => Some(Const::Bool(op.boolean()?(b))),
    }
}

/// A binary operation on two scalars of one type.
pub(super) fn binary(op: BinaryOp, a: Const, b: Const) -> Option<Const> {
    match (a, b) {
        (Const::Float(a, elem), Const::Float(b, _)) => {
            let arithmetic = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div);
            // The sign of the smaller of two zeros is not fixed.
            (arithmetic || a != b || a != 0.0).then(|| float(elem, op.float()?(a, b)))?
        }
        (Const::Int(a, elem), Const::Int(b, _)) => int(elem, op.int()?(a, b, 8 * elem.bytes() as u32)),
        (Const::Bool(a), Const::Bool(b)) => Some(Const::Bool(op.boolean()?(a, b))),
        (Const::Float(..) | Const::Int(..) | Const::Bool(_), _) => None,
    }
}

/// A comparison of two scalars of one type.
pub(super) fn compare(op: CompareOp, a: Const, b: Const) -> Option<Const> {
    match (a, b) {
        (Const::Float(a, _), Const::Float(b, _)) => Some(Const::Bool(op.holds(a, b))),
        (Const::Int(a, _), Const::Int(b, _)) => Some(Const::Bool(op.holds(a, b))),
        (Const::Bool(a), Const::Bool(b)) => Some(Const::Bool(op.holds(a, b))),
        (Const::Float(..) | Const::Int(..) | Const::Bool(_), _) => None,
    }
}

/// A cast, by the rules of Rust's `as`; numbers are true when they are not zero.
pub(super) fn cast(x: Const, to: Elem) -> Option<Const> {
    match (x, to.class()) {
        (Const::Float(x, _), Class::Float) => float(to, x),
        (Const::Float(x, _), Class::Int) => Some(Const::Int(float_to_int(x, to), to)),
        (Const::Float(x, _), Class::Bool) => Some(Const::Bool(x != 0.0)),
        (Const::Int(i, _), Class::Float) if to == Elem::F32 => float(to, i as f32),
        // Larger numbers are no f64, and could be rounded twice.
        (Const::Int(i, _), Class::Float) if i.unsigned_abs() > 1 << 53 => None,
        (Const::Int(i, _), Class::Float) => float(to, to_odd(to, i as f64)),
        (Const::Int(i, _), Class::Int) => int(to, i),
        (Const::Int(i, _), Class::Bool) => Some(Const::Bool(i != 0)),
        (Const::Bool(b), Class::Float) => float(to, f32::from(u8::from(b))),
        (Const::Bool(b), Class::Int) => int(to, i64::from(b)),
        (Const::Bool(b), Class::Bool) => Some(Const::Bool(b)),
    }
}

fn float_to_int(x: f32, to: Elem) -> i64 {
    match to {
        Elem::I32 => i64::from(x as i32),
        Elem::U32 => i64::from(x as u32),
        Elem::I64 | Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::Bool => x as i64,
    }
}
