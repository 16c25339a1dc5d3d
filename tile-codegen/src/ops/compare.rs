//! Comparisons. With NaN every comparison is false, except `ne`, which is true.

use super::{Attr, AttrReader, Effects, TileOp, rule};
use crate::diag::{Code, OpError};
use crate::ir::{Elem, Type};

/// Which comparison.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum CompareOp {
    /// Equal.
    Eq,
    /// Not equal; true with NaN.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

impl CompareOp {
    /// Every comparison.
    pub const ALL: [CompareOp; 6] =
        [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];

    /// The name in IR text.
    pub fn name(self) -> &'static str {
        match self {
            CompareOp::Eq => "eq",
            CompareOp::Ne => "ne",
            CompareOp::Lt => "lt",
            CompareOp::Le => "le",
            CompareOp::Gt => "gt",
            CompareOp::Ge => "ge",
        }
    }

    /// The meaning on any ordered type.
    pub fn holds<T: PartialOrd>(self, a: T, b: T) -> bool {
        match self {
            CompareOp::Eq => a == b,
            CompareOp::Ne => a != b,
            CompareOp::Lt => a < b,
            CompareOp::Le => a <= b,
            CompareOp::Gt => a > b,
            CompareOp::Ge => a >= b,
        }
    }
}

/// (tile, tile) -> bool tile of the same shape.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Compare {
    /// Which comparison.
    pub op: CompareOp,
}

impl TileOp for Compare {
    fn name(&self) -> &'static str {
        self.op.name()
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        Vec::new()
    }
    fn parse(name: &str, _: &mut AttrReader) -> Option<Result<Self, OpError>> {
        CompareOp::ALL.iter().find(|op| op.name() == name).map(|&op| Ok(Self { op }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let name = self.op.name();
        let [a, b] = rule::operands::<2>(name, operands)?;
        let (a, b) = (rule::tile(name, a)?, rule::tile(name, b)?);
        rule::same(name, a, b)?;
        if a.elem == Elem::Bool && !matches!(self.op, CompareOp::Eq | CompareOp::Ne) {
            return Err(OpError::new(Code::ElementType, format!("`{name}` has no meaning for `bool`"))
                .help("truth values compare with `==` and `!=` only"));
        }
        Ok(vec![Type::Tile(a.with_elem(Elem::Bool))])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

// ---- in kernels

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Compare {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let (a, b) = (operands.tile(), operands.tile());
        Some(crate::cpu::for_element!(a, T => crate::cpu::elementwise::compare::<T>(self.op, &a, &b)))
    }
}

// ---- in PTX
