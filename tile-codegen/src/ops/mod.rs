//! The operations: one file each, holding the op's DSL signature, shape and type rule, CPU meaning, layout rule and
//! PTX lowering. `ops!` below is the list; everything else is generated from it, so that an op cannot lack a hook.

/// Operations that divide a kernel into roles, and asynchronous copies. The CPU runs kernels before that, and refuses others.
macro_rules! refused_by_cpu {
    ($op:ty) => {
        #[cfg(feature = "cpu")]
        impl $crate::ops::eval::Eval for $op {
            fn eval(
                &self,
                _: $crate::ops::eval::EvalCx,
                _: &mut $crate::ops::eval::Operands<'_>,
            ) -> Option<$crate::cpu::TileValue> {
                unreachable!("the CPU refuses kernels with roles or asynchronous copies")
            }
        }
    };
}
pub(crate) use refused_by_cpu;

pub mod arange;
pub mod atomic;
pub mod attr;
pub mod barrier;
pub mod bid;
pub mod binary;
pub mod broadcast_to;
pub mod cast;
pub mod compare;
pub mod constant;
pub mod control;
pub mod convert_layout;
pub mod copied;
pub mod copy_async;
pub mod copy_commit;
pub mod copy_wait;
pub mod cumsum;
#[cfg(feature = "cpu")]
pub mod eval;
pub mod extent;
pub mod extract;
pub mod fma;
pub mod from_shared;
pub mod gather;
pub mod indexed;
pub mod load;
pub mod lower;
pub mod mma;
pub mod mma_wait;
pub mod num_blocks;
pub mod permute;
pub mod place;
pub mod receive;
pub mod reduce;
pub mod release;
pub mod reshape;
pub mod roles;
pub(crate) mod rule;
pub mod scatter;
pub mod send;
pub mod send_tile;
pub mod store;
pub mod to_shared;
pub mod unary;
pub mod view_shared;
pub mod where_;
pub mod window;

use std::fmt::Debug;

pub use attr::{Attr, AttrReader, Literal};

use crate::diag::OpError;
use crate::ir::Type;

/// What an operation does besides computing its results.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effects {
    /// Nothing: it may be removed, moved and merged.
    Pure,
    /// It reads global memory.
    ReadsGlobal,
    /// It writes global memory.
    WritesGlobal,
    /// It writes its shared-memory result.
    WritesShared,
    /// It reads its shared-memory operand.
    ReadsShared,
    /// It orders the threads of a block.
    Barrier,
    /// It uses channels or rings, or waits for products or copies: its place among others of this kind matters.
    Channel,
    /// It transfers control or holds regions.
    Control,
}

/// The hooks that the IR itself needs of an operation: name, attributes, types, effects.
pub trait TileOp: Sized + Clone + PartialEq + Debug {
    /// The name in IR text.
    fn name(&self) -> &'static str;
    /// The attributes in the order of IR text.
    fn attrs(&self) -> Vec<(&'static str, Attr)>;
    /// Reads an operation of this kind back from its name and attributes; `None` if the name is another's.
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>>;
    /// The number of results.
    fn result_count(&self) -> usize;
    /// The shape and type rule: result types from operand types.
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError>;
    /// What it does besides computing its results.
    fn effects(&self) -> Effects;
}

/// Calls a macro with the list of operations: `(Variant module::Struct)`.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_op {
    ($then:ident) => {
        $then! {
            Constant constant::Constant, Arange arange::Arange, Bid bid::Bid, NumBlocks num_blocks::NumBlocks,
            Extent extent::Extent, Load load::Load, Store store::Store, Gather gather::Gather,
            Scatter scatter::Scatter, Atomic atomic::Atomic, Unary unary::Unary, Binary binary::Binary, Compare compare::Compare, Where where_::Where, Fma fma::Fma, Cast cast::Cast, Reshape reshape::Reshape,
            Permute permute::Permute, BroadcastTo broadcast_to::BroadcastTo, Extract extract::Extract,
            Reduce reduce::Reduce, Cumsum cumsum::Cumsum, Mma mma::Mma, For control::For, Loop control::Loop,
            If control::If, Scope control::Scope, Yield control::Yield, Break control::Break,
            Continue control::Continue, Exit control::Exit, ConvertLayout convert_layout::ConvertLayout,
            ToShared to_shared::ToShared, FromShared from_shared::FromShared, Barrier barrier::Barrier,
            ViewShared view_shared::ViewShared, Roles roles::Roles, Send send::Send, SendTile send_tile::SendTile,
            Receive receive::Receive, Release release::Release, MmaWait mma_wait::MmaWait,
            CopyAsync copy_async::CopyAsync, CopyCommit copy_commit::CopyCommit, CopyWait copy_wait::CopyWait,
            Copied copied::Copied,
        }
    };
}

macro_rules! define_op_kind {
    ($($variant:ident $module:ident :: $op:ident,)*) => {
        /// An operation with its attributes.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub enum OpKind { $(#[doc = concat!("See [`", stringify!($module), "`].")] $variant($module::$op),)* }

        $(impl From<$module::$op> for OpKind {
            fn from(op: $module::$op) -> OpKind { OpKind::$variant(op) }
        })*

        impl TileOp for OpKind {
            fn name(&self) -> &'static str { match self { $(OpKind::$variant(op) => op.name(),)* } }
            fn attrs(&self) -> Vec<(&'static str, Attr)> { match self { $(OpKind::$variant(op) => op.attrs(),)* } }
            fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
                $(if let Some(op) = $module::$op::parse(name, attrs) { return Some(op.map(OpKind::$variant)); })*
                None
            }
            fn result_count(&self) -> usize { match self { $(OpKind::$variant(op) => op.result_count(),)* } }
            fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
                match self { $(OpKind::$variant(op) => op.infer(operands),)* }
            }
            fn effects(&self) -> Effects { match self { $(OpKind::$variant(op) => op.effects(),)* } }
        }
    };
}
for_each_op!(define_op_kind);

impl OpKind {
    /// Whether the operation reads or writes elements of a tensor.
    pub fn accesses_tensor(&self) -> bool {
        matches!(
            self,
            OpKind::Load(_)
                | OpKind::Store(_)
                | OpKind::Gather(_)
                | OpKind::Scatter(_)
                | OpKind::Atomic(_)
                | OpKind::Send(_)
                | OpKind::CopyAsync(_)
        )
    }

    /// Whether the operation ends its region.
    pub fn is_terminator(&self) -> bool {
        matches!(self, OpKind::Yield(_) | OpKind::Break(_) | OpKind::Continue(_) | OpKind::Exit(_))
    }
}
