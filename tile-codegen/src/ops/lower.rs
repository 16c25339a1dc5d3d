//! Lowering: how each operation becomes PTX.

use super::OpKind;
use crate::ir::{Kernel, Op, OpId};
use crate::lower::LowerCx;

/// The PTX hooks of an operation on a laid-out kernel.
pub trait Lower {
    /// Bytes of shared memory that it needs while it runs.
    fn scratch(&self, kernel: &Kernel, op: &Op) -> u32;
    /// Emits its instructions and binds its results' registers.
    fn lower(&self, cx: &mut LowerCx<'_>, id: OpId);
}

macro_rules! define_lower {
    ($($variant:ident $module:ident :: $op:ident,)*) => {
        impl Lower for OpKind {
            fn scratch(&self, kernel: &Kernel, op: &Op) -> u32 {
                match self { $(OpKind::$variant(k) => k.scratch(kernel, op),)* }
            }
            fn lower(&self, cx: &mut LowerCx<'_>, id: OpId) {
                match self { $(OpKind::$variant(k) => k.lower(cx, id),)* }
            }
        }
    };
}
crate::for_each_op!(define_lower);
