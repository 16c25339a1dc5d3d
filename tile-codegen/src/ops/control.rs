//! Structured control flow and its terminators. Conditions, bounds and steps are scalars, equal in every thread, so
//! that a whole block takes one path. The verifier checks results against regions; `infer` passes types through.
//!
//! | op | operands | region arguments | results |
//! |---|---|---|---|
//! | `for` | low, high, step (> 0), initial values | index, carried values | carried values |
//! | `loop` | initial values | carried values | carried values |
//! | `if` | condition | (two regions) none | joined values |
//! | `scope` | none | none | values of the `exit` taken |
//! | `yield` | values | ends a `for`/`loop` body (next iteration) or an arm of an `if` | |
//! | `break`, `continue` | carried values | innermost `for`/`loop` around it, also from inside `if`s | |
//! | `exit` | values | innermost `scope` around it | |
//!
//! An arm of an `if` ends in `yield`, `break`, `continue` or `exit`. A `loop` ends by `break` alone.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::OpError;
use crate::ir::Type;

macro_rules! control {
    ($($(#[doc = $doc:literal])+ $op:ident $name:literal, $infer:expr;)*) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub struct $op;

        impl TileOp for $op {
            fn name(&self) -> &'static str {
                $name
            }
            fn attrs(&self) -> Vec<(&'static str, Attr)> {
                Vec::new()
            }
            fn parse(name: &str, _: &mut AttrReader) -> Option<Result<Self, OpError>> {
                (name == $name).then_some(Ok(Self))
            }
            fn result_count(&self) -> usize {
                0
            }
            fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
                let pass: fn(&[Type]) -> &[Type] = $infer;
                Ok(pass(operands).to_vec())
            }
            fn effects(&self) -> Effects {
                Effects::Control
            }
        }
    )*};
}

control! {
    /// A counted loop: the index runs from low by step while it is below high.
    For "for", |operands| operands.get(3..).unwrap_or(&[]);
    /// A loop that ends by `break`.
    Loop "loop", |operands| operands;
    /// Takes one of two regions.
    If "if", |_| &[];
    /// A region that `exit` leaves early.
    Scope "scope", |_| &[];
    /// Ends an arm or an iteration.
    Yield "yield", |_| &[];
    /// Leaves the innermost loop.
    Break "break", |_| &[];
    /// Starts the next iteration of the innermost loop.
    Continue "continue", |_| &[];
    /// Leaves the innermost scope.
    Exit "exit", |_| &[];
}

// ---- in kernels

// ---- on the CPU

/// The executor turns control flow into jumps; these are never evaluated.
macro_rules! jumps {
    ($($op:ident)*) => {$(
        #[cfg(feature = "cpu")]
        impl super::eval::Eval for $op {
            fn eval(
                &self,
                _: super::eval::EvalCx,
                _: &mut super::eval::Operands<'_>,
            ) -> Option<crate::cpu::TileValue> {
                unreachable!("control flow is compiled to jumps")
            }
        }
    )*};
}
jumps! { For Loop If Scope Yield Break Continue Exit }

// ---- in PTX

super::place::place_nothing!(For);
super::place::place_nothing!(Loop);
super::place::place_nothing!(If);
super::place::place_nothing!(Scope);
super::place::place_nothing!(Yield);
super::place::place_nothing!(Break);
super::place::place_nothing!(Continue);
super::place::place_nothing!(Exit);

impl super::lower::Lower for For {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        cx.lower_for(id);
    }
}

impl super::lower::Lower for Loop {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        cx.lower_loop(id);
    }
}

impl super::lower::Lower for If {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        cx.lower_if(id);
    }
}

impl super::lower::Lower for Scope {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        cx.lower_scope(id);
    }
}

impl super::lower::Lower for Yield {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        cx.lower_yield(id);
    }
}

impl super::lower::Lower for Break {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        cx.lower_break(id);
    }
}

impl super::lower::Lower for Continue {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        cx.lower_continue(id);
    }
}

impl super::lower::Lower for Exit {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        cx.lower_exit(id);
    }
}
