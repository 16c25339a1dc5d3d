//! `where`: selects element by element. Both sides are evaluated; it is a select, never a product.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::session::Raw;
use crate::dsl::{Mix, Scalar, Tile, TileOrScalar, session};
use crate::ir::{Elem, Type};

/// (bool tile, tile, tile) -> tile, all of one shape.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Where;

impl TileOp for Where {
    fn name(&self) -> &'static str {
        "where"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        Vec::new()
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "where").then(|| {
            let _ = attrs;
            Ok(Self)
        })
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [cond, a, b] = super::rule::operands::<3>("where", operands)?;
        let cond = super::rule::tile("where", cond)?;
        let (a, b) = (super::rule::tile("where", a)?, super::rule::tile("where", b)?);
        if cond.elem != Elem::Bool {
            return Err(OpError::new(
                Code::ElementType,
                format!("the condition of `where_` is `bool`, found `{}`", cond.elem),
            )
            .help("compare first: `where_(x > 0.0, a, b)`"));
        }
        super::rule::same("where", a, b)?;
        super::rule::same_shape("where", &cond.shape, &a.shape)?;
        Ok(vec![Type::Tile(a.clone())])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

// ---- in kernels

/// What chooses between two values of type `V`, element by element.
#[diagnostic::on_unimplemented(
    message = "the condition of `where_` must be a `Tile<bool>` or a `Scalar<bool>`, found `{Self}`",
    label = "not a runtime condition",
    note = "compare first: `where_(x > 0.0, a, b)`; under a host condition write `if`"
)]
pub trait WhereCondition<V: TileOrScalar> {
    /// A tile if the condition or a value is one, else a scalar.
    type Out: TileOrScalar<Elem = V::Elem>;
    #[doc(hidden)]
    fn condition_raw(self) -> Raw;
}

impl<V: TileOrScalar> WhereCondition<V> for Tile<bool> {
    type Out = Tile<V::Elem>;
    fn condition_raw(self) -> Raw {
        self.raw()
    }
}

impl<V: TileOrScalar> WhereCondition<V> for Scalar<bool> {
    type Out = V;
    fn condition_raw(self) -> Raw {
        self.raw()
    }
}

/// `a` where the condition holds, else `b`, element by element; both are evaluated. `a` and `b` are tiles, scalars or
/// numbers, and broadcast.
#[track_caller]
pub fn where_<C, A, B>(cond: C, a: A, b: B) -> C::Out
where
    A: Mix<B>,
    C: WhereCondition<A::Out>,
{
    let (a, b) = a.raws(b);
    let at = std::panic::Location::caller();
    let cond = cond.condition_raw();
    TileOrScalar::from_raw(session::with(|s| {
        let operands = s.common([cond, a, b], "where_", at);
        s.op(Where, &operands, at)
    }))
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Where {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let (cond, a, b) = (operands.tile(), operands.tile(), operands.tile());
        Some(crate::cpu::for_element!(a, T => crate::cpu::elementwise::select::<T>(&cond, a, b)))
    }
}

// ---- in PTX

super::place::place_elementwise!(Where);

impl super::lower::Lower for Where {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        use crate::ptx::PredOp;
        let op = &cx.kernel.ops[id];
        let [cond, a, b] = [op.operands[0], op.operands[1], op.operands[2]];
        let elem = cx.elem(a);
        let (conds, xs, ys) = (cx.values(cond), cx.values(a), cx.values(b));
        let mut out = Vec::new();
        for ((cond, x), y) in conds.into_iter().zip(xs).zip(ys) {
            let cond = cx.in_reg(Elem::Bool, cond);
            out.push(if elem == Elem::Bool {
                let (x, y) = (cx.in_reg(elem, x), cx.in_reg(elem, y));
                let taken = cx.f.pred(PredOp::And, cond, x);
                let not = cx.f.pred_not(cond);
                let other = cx.f.pred(PredOp::And, not, y);
                cx.f.pred(PredOp::Or, taken, other).into()
            } else {
                cx.f.selp(crate::lower::move_ty(elem), x, y, cond)
            });
        }
        cx.bind_result(id, out);
    }
}
