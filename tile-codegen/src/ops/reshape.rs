//! `reshape`: the same elements in row-major order under another shape.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::ir::{Dim, TileType, Type, dim};

/// Tile -> tile with as many elements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reshape {
    /// The new shape.
    pub shape: Vec<usize>,
}

impl TileOp for Reshape {
    fn name(&self) -> &'static str {
        "reshape"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("shape", Attr::list(&self.shape))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "reshape").then(|| Ok(Self { shape: attrs.indices("shape")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [x] = super::rule::operands::<1>("reshape", operands)?;
        let x = super::rule::tile("reshape", x)?;
        Ok(vec![Type::Tile(rule(x, &self.shape)?)])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

/// The shape rule: element counts agree.
pub fn rule<D: Dim>(x: &TileType<D>, shape: &[D]) -> Result<TileType<D>, OpError> {
    super::rule::tile_shape(shape)?;
    let (from, to) = (dim::count(&x.shape), dim::count(shape));
    if from.differs(&to) {
        return Err(OpError::new(
            Code::Reshape,
            format!(
                "cannot reshape {} ({from} elements) to {} ({to} elements)",
                dim::show(&x.shape),
                dim::show(shape)
            ),
        )
        .help(format!("the dimensions of the new shape must multiply to {from}")));
    }
    Ok(x.with_shape(shape.to_vec()))
}

// ---- in kernels

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Reshape {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        Some(operands.tile().reshape(&self.shape))
    }
}

// ---- in PTX
