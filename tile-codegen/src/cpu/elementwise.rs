//! Tight loops of the elementwise operations, one a (operation, element type), chosen outside of the loop.

use super::strided;
use super::value::{Element, TileValue};
use super::{math, round};
use crate::ir::Elem;
use crate::ops::binary::{BinaryOp, larger, smaller};
use crate::ops::compare::CompareOp;
use crate::ops::unary::UnaryOp;

/// Integers as the operation tables see them: widened to i64, wrapped on the way back.
pub(crate) trait Int: Element + Ord {
    /// Width.
    const BITS: u32;
    fn wide(self) -> i64;
    fn wrap_from(wide: i64) -> Self;
}

macro_rules! int {
    ($($ty:ty)*) => {$(
        impl Int for $ty {
            const BITS: u32 = <$ty>::BITS;
            #[inline(always)]
            fn wide(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn wrap_from(wide: i64) -> Self {
                wide as $ty
            }
        }
    )*};
}
int! { i32 i64 u32 }

/// `out = out op b`, element by element.
type Step<'a, T> = &'a mut dyn FnMut(&mut [T], &[T]);

fn float_unary(op: UnaryOp, values: &mut [f32]) {
    macro_rules! each {
        ($x:ident => $value:expr) => {
            values.iter_mut().for_each(|place| {
                let $x = *place;
                *place = $value;
            })
        };
    }
    match op {
        UnaryOp::Neg => each!(x => -x),
        UnaryOp::Abs => each!(x => x.abs()),
        UnaryOp::Exp => each!(x => math::exp(x)),
        UnaryOp::Exp2 => each!(x => math::exp2(x)),
        UnaryOp::Sqrt => each!(x => x.sqrt()),
        UnaryOp::Rsqrt => each!(x => 1.0 / x.sqrt()),
        UnaryOp::Sigmoid => each!(x => math::sigmoid(x)),
        UnaryOp::Not
        | UnaryOp::Log
        | UnaryOp::Log2
        | UnaryOp::Softplus
        | UnaryOp::Tanh
        | UnaryOp::Floor
        | UnaryOp::Ceil => {
            let f = op.float().expect("the type rule checks that floats have the operation");
            each!(x => f(x))
        }
    }
}

/// A unary operation.
pub(crate) fn unary(op: UnaryOp, x: TileValue) -> TileValue {
    fn int<T: Int>(op: UnaryOp, x: TileValue) -> TileValue {
        let f = op.int().expect("the type rule checks that integers have the operation");
        let elem = x.elem();
        x.map_in_place::<T>(elem, |values| values.iter_mut().for_each(|x| *x = T::wrap_from(f(x.wide()))))
    }
    match x.elem() {
        elem @ (Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32) => x.map_in_place::<f32>(elem, |values| {
            float_unary(op, values);
            round::slice(elem, values);
        }),
        Elem::I32 => int::<i32>(op, x),
        Elem::I64 => int::<i64>(op, x),
        Elem::U32 => int::<u32>(op, x),
        Elem::Bool => {
            let f = op.boolean().expect("the type rule checks that truth values have the operation");
            x.map_in_place::<bool>(Elem::Bool, |values| values.iter_mut().for_each(|x| *x = f(*x)))
        }
    }
}

/// Picks the loop for `out op b`, or for `b op out` when `flipped`, and runs `$run` with it.
macro_rules! pick {
    ($flipped:expr, $run:expr, $a:ident, $b:ident => $value:expr) => {
        if $flipped {
            $run(&mut |out: &mut [_], b: &[_]| {
                out.iter_mut().zip(b).for_each(|(out, &$a)| {
                    let $b = *out;
                    *out = $value;
                })
            })
        } else {
            $run(&mut |out: &mut [_], b: &[_]| {
                out.iter_mut().zip(b).for_each(|(out, &$b)| {
                    let $a = *out;
                    *out = $value;
                })
            })
        }
    };
}

fn float_binary(op: BinaryOp, flipped: bool, mut run: impl FnMut(Step<'_, f32>)) {
    let run = &mut run as &mut dyn FnMut(Step<'_, f32>);
    match op {
        BinaryOp::Add => pick!(flipped, run, a, b => a + b),
        BinaryOp::Sub => pick!(flipped, run, a, b => a - b),
        BinaryOp::Mul => pick!(flipped, run, a, b => a * b),
        BinaryOp::Div => pick!(flipped, run, a, b => a / b),
        BinaryOp::Minimum => pick!(flipped, run, a, b => smaller(a, b)),
        BinaryOp::Maximum => pick!(flipped, run, a, b => larger(a, b)),
        BinaryOp::MinimumNan => pick!(flipped, run, a, b => {
            if a.is_nan() || b.is_nan() { f32::NAN } else { smaller(a, b) }
        }),
        BinaryOp::MaximumNan => pick!(flipped, run, a, b => {
            if a.is_nan() || b.is_nan() { f32::NAN } else { larger(a, b) }
        }),
        BinaryOp::Rem | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => {
            let f = op.float().expect("the type rule checks that floats have the operation");
            pick!(flipped, run, a, b => f(a, b))
        }
    }
}

fn int_binary<T: Int>(op: BinaryOp, flipped: bool, mut run: impl FnMut(Step<'_, T>)) {
    let run = &mut run as &mut dyn FnMut(Step<'_, T>);
    match op {
        BinaryOp::Add => pick!(flipped, run, a, b => T::wrap_from(a.wide().wrapping_add(b.wide()))),
        BinaryOp::Sub => pick!(flipped, run, a, b => T::wrap_from(a.wide().wrapping_sub(b.wide()))),
        BinaryOp::Mul => pick!(flipped, run, a, b => T::wrap_from(a.wide().wrapping_mul(b.wide()))),
        BinaryOp::Minimum | BinaryOp::MinimumNan => pick!(flipped, run, a, b => a.min(b)),
        BinaryOp::Maximum | BinaryOp::MaximumNan => pick!(flipped, run, a, b => a.max(b)),
        BinaryOp::Div
        | BinaryOp::Rem
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Shl
        | BinaryOp::Shr => {
            let f = op.int().expect("the type rule checks that integers have the operation");
            pick!(flipped, run, a, b => T::wrap_from(f(a.wide(), b.wide(), T::BITS)))
        }
    }
}

/// Runs one elementwise loop over two tiles: in place of a dying operand where there is one, over the held elements
/// alone where both tiles see theirs in the same way. `step` is told whether the operands are exchanged.
fn combine<T: Element>(
    mut a: TileValue,
    mut b: TileValue,
    step: impl FnOnce(bool, &mut dyn FnMut(Step<'_, T>)),
) -> TileValue {
    let elem = a.elem();
    if a.same_view(&b) {
        let (view, data) = a.into_parts();
        let mut out = T::take(data).expect("the type rules fix the element type");
        let (_, other) = b.into_parts();
        let other = T::of(&other).expect("the type rules fix the element type");
        let values: &mut Vec<T> = std::sync::Arc::make_mut(&mut out);
        step(false, &mut |f| f(values, other));
        return TileValue::from_parts(elem, view, T::wrap(out));
    }
    let flipped = !a.is_reusable() && b.is_reusable();
    if flipped {
        std::mem::swap(&mut a, &mut b);
    }
    let shape: strided::Dims = a.shape().into();
    let mut out = a.into_dense::<T>();
    let values: &mut Vec<T> = std::sync::Arc::make_mut(&mut out);
    step(flipped, &mut |f| strided::zip(values, &shape, b.expect::<T>(), f));
    let strides = strided::row_major(&shape);
    TileValue::from_arc(elem, shape, strides, out)
}

/// A binary operation.
pub(crate) fn binary(op: BinaryOp, a: TileValue, b: TileValue) -> TileValue {
    fn int<T: Int>(op: BinaryOp, a: TileValue, b: TileValue) -> TileValue {
        combine::<T>(a, b, |flipped, run| int_binary(op, flipped, run))
    }
    match a.elem() {
        Elem::F32 => combine::<f32>(a, b, |flipped, run| float_binary(op, flipped, run)),
        elem @ (Elem::F16 | Elem::BF16 | Elem::TF32) => {
            let result = combine::<f32>(a, b, |flipped, run| float_binary(op, flipped, run));
            result.map_in_place::<f32>(elem, |values| round::slice(elem, values))
        }
        Elem::I32 => int::<i32>(op, a, b),
        Elem::I64 => int::<i64>(op, a, b),
        Elem::U32 => int::<u32>(op, a, b),
        Elem::Bool => {
            let f = op.boolean().expect("the type rule checks that truth values have the operation");
            combine::<bool>(a, b, |flipped, run| pick!(flipped, run, a, b => f(a, b)))
        }
    }
}

fn compare_loop<T: Element>(op: CompareOp, out: &mut [bool], a: &[T], b: &[T]) {
    macro_rules! each {
        ($op:tt) => {
            out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (a, b))| *out = a $op b)
        };
    }
    match op {
        CompareOp::Eq => each!(==),
        CompareOp::Ne => each!(!=),
        CompareOp::Lt => each!(<),
        CompareOp::Le => each!(<=),
        CompareOp::Gt => each!(>),
        CompareOp::Ge => each!(>=),
    }
}

/// A comparison. Tiles that repeat their elements in the same way are compared once for each.
pub(crate) fn compare<T: Element>(op: CompareOp, a: TileValue, b: TileValue) -> TileValue {
    if a.same_view(&b) {
        let (view, a) = a.into_parts();
        let (_, b) = b.into_parts();
        let held = "the type rules fix the element type";
        let (a, b) = (T::of(&a).expect(held), T::of(&b).expect(held));
        let mut out = vec![false; a.len()];
        compare_loop(op, &mut out, a, b);
        return TileValue::from_parts(Elem::Bool, view, bool::wrap(std::sync::Arc::new(out)));
    }
    let mut out = vec![false; a.numel()];
    strided::zip2(&mut out, a.shape(), a.expect::<T>(), b.expect::<T>(), &mut |out, a, b| {
        compare_loop(op, out, a, b);
    });
    TileValue::new(Elem::Bool, a.shape(), out)
}

/// `a * b + c`, rounded once to f32 and then to the element type.
pub(crate) fn fma(a: TileValue, b: &TileValue, c: &TileValue) -> TileValue {
    let (elem, shape) = (a.elem(), strided::Dims::from(a.shape()));
    let mut out = a.into_dense::<f32>();
    let values: &mut Vec<f32> = std::sync::Arc::make_mut(&mut out);
    strided::zip2(values, &shape, b.expect::<f32>(), c.expect::<f32>(), &mut |out, b, c| {
        let pairs = b.iter().zip(c);
        out.iter_mut().zip(pairs).for_each(|(out, (&b, &c))| *out = out.mul_add(b, c));
    });
    round::slice(elem, values);
    let strides = strided::row_major(&shape);
    TileValue::from_arc(elem, shape, strides, out)
}

/// Selects elements of `a` where `cond` is true, else of `b`.
pub(crate) fn select<T: Element>(cond: &TileValue, mut a: TileValue, mut b: TileValue) -> TileValue {
    let flipped = !a.is_reusable() && b.is_reusable();
    if flipped {
        std::mem::swap(&mut a, &mut b);
    }
    let (elem, shape) = (a.elem(), strided::Dims::from(a.shape()));
    let mut out = a.into_dense::<T>();
    let values: &mut Vec<T> = std::sync::Arc::make_mut(&mut out);
    let other = b.expect::<T>();
    if flipped {
        strided::zip2(values, &shape, cond.expect::<bool>(), other, &mut |out, cond, other| {
            let pairs = cond.iter().zip(other);
            out.iter_mut().zip(pairs).for_each(|(out, (&c, &x))| *out = if c { x } else { *out });
        });
    } else {
        strided::zip2(values, &shape, cond.expect::<bool>(), other, &mut |out, cond, other| {
            let pairs = cond.iter().zip(other);
            out.iter_mut().zip(pairs).for_each(|(out, (&c, &x))| *out = if c { *out } else { x });
        });
    }
    let strides = strided::row_major(&shape);
    TileValue::from_arc(elem, shape, strides, out)
}
