//! `convert_layout`: the same tile held by other registers of the same threads. Only `assign_layouts` makes it.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::OpError;
use crate::ir::Type;

/// Tile -> tile; a register permutation, never an exchange between threads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ConvertLayout;

impl TileOp for ConvertLayout {
    fn name(&self) -> &'static str {
        "convert_layout"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        Vec::new()
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "convert_layout").then(|| {
            let _ = attrs;
            Ok(Self)
        })
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [x] = super::rule::operands::<1>("convert_layout", operands)?;
        Ok(vec![Type::Tile(super::rule::tile("convert_layout", x)?.clone())])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

// ---- in kernels

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for ConvertLayout {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        Some(operands.tile())
    }
}

// ---- in PTX

use crate::layout::{Conversion, conversion};

super::place::place_nothing!(ConvertLayout);

impl super::lower::Lower for ConvertLayout {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let op = &cx.kernel.ops[id];
        let (x, result) = (op.operands[0], op.results[0]);
        let values = cx.values(x);
        let map = match conversion(cx.layout(x), cx.layout(result)) {
            Ok(Conversion::Registers(map)) => map,
            Ok(Conversion::Identity | Conversion::Shared) | Err(_) => (0..values.len()).collect(),
        };
        let out = map.into_iter().map(|r| values[r]).collect();
        cx.bind(result, out);
    }
}
