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
        Some(crate::cpu::for_element!(a, T => crate::cpu::elementwise::compare::<T>(self.op, a, b)))
    }
}

// ---- in PTX

super::place::place_elementwise!(Compare);

impl super::lower::Lower for Compare {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        use crate::ptx::{Cmp, PredOp, Ty};
        let op = &cx.kernel.ops[id];
        let (a, b) = (op.operands[0], op.operands[1]);
        let elem = cx.elem(a);
        let pairs: Vec<_> = cx.values(a).into_iter().zip(cx.values(b)).collect();
        let mut out = Vec::new();
        for (x, y) in pairs {
            out.push(if elem == Elem::Bool {
                let (x, y) = (cx.in_reg(elem, x), cx.in_reg(elem, y));
                let differ = cx.f.pred(PredOp::Xor, x, y);
                if self.op == CompareOp::Ne { differ.into() } else { cx.f.pred_not(differ).into() }
            } else {
                let (x, y) = (cx.widen(elem, x), cx.widen(elem, y));
                let (cmp, ty) = match self.op {
                    CompareOp::Ne if elem.is_float() => (Cmp::Neu, Ty::F32),
                    op => (op.ptx(), if elem.is_float() { Ty::F32 } else { crate::lower::int_ty(elem) }),
                };
                cx.f.setp(cmp, ty, x, y).into()
            });
        }
        cx.bind_result(id, out);
    }
}

impl CompareOp {
    fn ptx(self) -> crate::ptx::Cmp {
        use crate::ptx::Cmp;
        match self {
            CompareOp::Eq => Cmp::Eq,
            CompareOp::Ne => Cmp::Ne,
            CompareOp::Lt => Cmp::Lt,
            CompareOp::Le => Cmp::Le,
            CompareOp::Gt => Cmp::Gt,
            CompareOp::Ge => Cmp::Ge,
        }
    }
}
