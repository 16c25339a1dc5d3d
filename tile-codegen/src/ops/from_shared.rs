//! `from_shared`: reads a tile, or a sub-tile, from shared memory. Only `assign_layouts` makes it.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::ir::Type;

/// Shared tile -> tile.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FromShared {
    /// The first element of the sub-tile, along each axis of the shared tile.
    pub origin: Vec<usize>,
    /// The shape that is read.
    pub shape: Vec<usize>,
}

impl TileOp for FromShared {
    fn name(&self) -> &'static str {
        "from_shared"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("origin", Attr::list(&self.origin)), ("shape", Attr::list(&self.shape))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "from_shared")
            .then(|| Ok(Self { origin: attrs.indices("origin")?, shape: attrs.indices("shape")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [x] = super::rule::operands::<1>("from_shared", operands)?;
        let x = x
            .as_shared()
            .ok_or_else(|| OpError::new(Code::Structure, "`from_shared` reads a shared tile"))?;
        Ok(vec![Type::tile(x.elem, self.shape.clone())])
    }
    fn effects(&self) -> Effects {
        Effects::ReadsShared
    }
}

// ---- in kernels

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for FromShared {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let x = operands.tile();
        let skip = self.origin.iter().zip(x.strides()).map(|(origin, stride)| origin * stride).sum();
        let strides = x.strides().into();
        Some(x.with_view(self.shape.as_slice().into(), strides, skip))
    }
}

// ---- in PTX

super::place::place_nothing!(FromShared);

impl super::lower::Lower for FromShared {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let op = &cx.kernel.ops[id];
        let (x, result) = (op.operands[0], op.results[0]);
        let (layout, at) = (cx.layout(result).clone(), cx.shared_at(x));
        let shared = cx.kernel.ty(x).as_shared().expect("from_shared reads a shared tile").clone();
        let out = cx.read_shared(shared.elem, &layout, &shared.layout, &self.origin, at);
        cx.bind(result, out);
    }
}
