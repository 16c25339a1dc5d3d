//! `view_shared`: a shared tile seen in another shape or with its axes permuted. Only `assign_layouts` makes it.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::ir::{SharedType, Type};
use crate::layout::SharedLayout;

/// Shared tile -> the same bytes under another layout.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ViewShared {
    /// Where each element of the view lies.
    pub layout: SharedLayout,
}

impl TileOp for ViewShared {
    fn name(&self) -> &'static str {
        "view_shared"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("layout", Attr::Shared(self.layout.clone()))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "view_shared").then(|| Ok(Self { layout: attrs.shared("layout")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [x] = super::rule::operands::<1>("view_shared", operands)?;
        match x.as_shared() {
            Some(x) if x.layout.bytes == self.layout.bytes => {
                Ok(vec![Type::Shared(SharedType { elem: x.elem, layout: self.layout.clone() })])
            }
            Some(_) | None => {
                Err(OpError::new(Code::Structure, "`view_shared` sees a shared tile of as many bytes"))
            }
        }
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

// ---- in kernels

// ---- on the CPU

super::refused_by_cpu!(ViewShared);

// ---- in PTX

super::place::place_nothing!(ViewShared);

impl super::lower::Lower for ViewShared {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let op = &cx.kernel.ops[id];
        cx.alias_shared(op.results[0], op.operands[0]);
    }
}
