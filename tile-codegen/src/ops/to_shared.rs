//! `to_shared`: writes a tile to shared memory. Only `assign_layouts` makes it.

use super::{Attr, AttrReader, Effects, OpKind, TileOp};
use crate::diag::OpError;
use crate::ir::{SharedType, Type};
use crate::layout::SharedLayout;

/// Tile -> shared tile.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ToShared {
    /// Where each element goes.
    pub layout: SharedLayout,
}

impl TileOp for ToShared {
    fn name(&self) -> &'static str {
        "to_shared"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("layout", Attr::Shared(self.layout.clone()))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "to_shared").then(|| Ok(Self { layout: attrs.shared("layout")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [x] = super::rule::operands::<1>("to_shared", operands)?;
        let x = super::rule::tile("to_shared", x)?;
        Ok(vec![Type::Shared(SharedType { elem: x.elem, layout: self.layout.clone() })])
    }
    fn effects(&self) -> Effects {
        Effects::WritesShared
    }
}

// ---- in kernels

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for ToShared {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        Some(operands.tile())
    }
}

// ---- in PTX

use crate::ir::{Op, OpId};
use crate::lower::wgmma::is_wide;

super::place::place_nothing!(ToShared);

impl super::lower::Lower for ToShared {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let op = &cx.kernel.ops[id];
        let (x, result) = (op.operands[0], op.results[0]);
        let (elem, layout, values) = (cx.elem(x), cx.layout(x).clone(), cx.values(x));
        let at = cx.shared_at(result);
        cx.write_shared(elem, &values, &layout, &self.layout, at);
        let multiplied = |id: OpId, op: &Op| {
            let asynchronous = is_wide(cx.kernel, id) || matches!(op.kind, OpKind::Store(_));
            op.operands.contains(&result) && asynchronous
        };
        let mut asynchronous = false;
        cx.kernel.walk(|id, op| asynchronous |= multiplied(id, op));
        if asynchronous {
            cx.f.fence_proxy_async_shared();
        }
    }
}
