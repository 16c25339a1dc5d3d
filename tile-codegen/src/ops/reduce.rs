//! `reduce`: sum, max or min over axes, which stay as size 1. Floats accumulate in f32.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::ir::{Dim, Elem, TileType, Type};

/// How elements combine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceKind {
    /// Sum; 16-bit floats accumulate in f32 and round once, integers wrap, `bool` is refused.
    Sum,
    /// Maximum; NaN wins when `propagate_nan`, else it is ignored.
    Max,
    /// Minimum; likewise.
    Min,
}

impl ReduceKind {
    /// The name in IR text.
    pub fn name(self) -> &'static str {
        match self {
            ReduceKind::Sum => "sum",
            ReduceKind::Max => "max",
            ReduceKind::Min => "min",
        }
    }
}

/// Tile -> tile with `axes` of size 1.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reduce {
    /// How elements combine.
    pub kind: ReduceKind,
    /// The axes that are reduced, ascending.
    pub axes: Vec<usize>,
    /// Whether NaN wins a max or min (for a sum it always does).
    pub propagate_nan: bool,
}

impl TileOp for Reduce {
    fn name(&self) -> &'static str {
        "reduce"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![
            ("kind", Attr::Word(self.kind.name())),
            ("axes", Attr::list(&self.axes)),
            ("propagate_nan", Attr::Bool(self.propagate_nan)),
        ]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "reduce").then(|| {
            let kind = attrs.word("kind")?;
            let kind =
                [ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min].into_iter().find(|k| k.name() == kind);
            let kind =
                kind.ok_or_else(|| OpError::new(Code::Parse, "`kind` must be `sum`, `max` or `min`"))?;
            Ok(Self { kind, axes: attrs.indices("axes")?, propagate_nan: attrs.flag("propagate_nan")? })
        })
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [x] = super::rule::operands::<1>(self.kind.name(), operands)?;
        let x = super::rule::tile(self.kind.name(), x)?;
        if x.elem == Elem::Bool {
            return Err(OpError::new(
                Code::ElementType,
                format!("`{}` over a `bool` tile", self.kind.name()),
            )
            .help("convert it first: `.cast::<i32>()`"));
        }
        Ok(vec![Type::Tile(rule(x, &self.axes)?)])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

/// The shape rule: reduced axes become 1.
pub fn rule<D: Dim>(x: &TileType<D>, axes: &[usize]) -> Result<TileType<D>, OpError> {
    super::rule::axes(axes, x.rank())?;
    let size = |(axis, d): (usize, &D)| if axes.contains(&axis) { D::from_usize(1) } else { d.clone() };
    Ok(x.with_shape(x.shape.iter().enumerate().map(size).collect()))
}

// ---- in kernels

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Reduce {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        Some(crate::cpu::reduce::reduce(&operands.tile(), self.kind, &self.axes, self.propagate_nan))
    }
}

// ---- in PTX
