//! `where`: selects element by element. Both sides are evaluated; it is a select, never a product.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
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
