//! Placement: the layout rules of operations, as `assign_layouts` asks for them.

use std::collections::{BTreeMap, BTreeSet};

use super::OpKind;
use crate::ir::{Kernel, Op, OpId, TileType, Type, ValueId};
use crate::layout::{Layout, SharedLayout, blocked};
use crate::target::Target;

/// The layout that a value has without any exchange between threads, and how much it matters to keep it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Natural {
    /// The layout.
    pub layout: Layout,
    /// Higher wins where operands differ: 1 for loads, 2 for reductions and scans, 3 for accumulators.
    pub weight: u8,
    /// Whether the value is better made again in another layout than converted: it was computed out of narrower loads,
    /// which cross threads at less cost than their wide results.
    pub soft: bool,
}

/// What an operation wants of one operand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Want {
    /// Nothing: a tensor, or a scalar, which every thread has.
    Any,
    /// The tile in registers, in this layout.
    Regs(Layout),
    /// The tile in shared memory, with these axes from the fastest to the slowest, not swizzled.
    Shared(Vec<usize>),
    /// The tile in shared memory, in exactly this layout.
    Placed(SharedLayout),
}

/// What placement rules may look at.
#[derive(Clone, Copy, Debug)]
pub struct PlaceCx<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The operation's id.
    pub id: OpId,
    /// The operation.
    pub op: &'a Op,
    /// Warps per block.
    pub num_warps: usize,
    /// Products of which one, computed on, is an operand of another: they keep a warp's rows together.
    pub chained: &'a [OpId],
    /// The GPU architecture.
    pub target: &'a Target,
    /// Values that are in shared memory when they come to be.
    pub shared: &'a BTreeMap<ValueId, SharedLayout>,
    /// Those of them that asynchronous copies of all threads bring.
    pub copied: &'a BTreeSet<ValueId>,
}

impl PlaceCx<'_> {
    /// The tile type of an operand, if it is a tile.
    pub fn tile(&self, operand: usize) -> Option<&TileType> {
        self.kernel.ty(self.op.operands[operand]).as_tile()
    }
    /// The place of an operand that a channel has put in shared memory.
    pub fn shared_operand(&self, operand: usize) -> Option<&SharedLayout> {
        let value = self.op.operands[operand];
        self.shared.get(&value).filter(|_| !self.copied.contains(&value))
    }
    /// The place of an operand that asynchronous copies have put in shared memory.
    pub fn copied_operand(&self, operand: usize) -> Option<&SharedLayout> {
        let value = self.op.operands[operand];
        self.shared.get(&value).filter(|_| self.copied.contains(&value))
    }
    /// The tile type of the result.
    pub fn result(&self) -> &TileType {
        self.kernel.tile(self.op.results[0])
    }
    /// A default layout for a tile.
    pub fn default_layout(&self, tile: &TileType) -> Layout {
        default_layout(tile, self.num_warps)
    }
    /// `Any` for every operand.
    pub fn any(&self) -> Vec<Want> {
        vec![Want::Any; self.op.operands.len()]
    }
    /// `Regs(layout)` for every tile operand that is no scalar, `Any` for the others.
    pub fn all(&self, layout: &Layout) -> Vec<Want> {
        let want = |&v: &ValueId| match self.kernel.ty(v) {
            Type::Tile(t) if t.rank() > 0 => Want::Regs(layout.clone()),
            Type::Tile(_) | Type::Tensor(_) | Type::Shared(_) | Type::Error => Want::Any,
        };
        self.op.operands.iter().map(want).collect()
    }
}

/// The layout of a tile that nothing else decides: rows over lanes, then warps, 16 bytes a thread where there is enough.
pub fn default_layout(tile: &TileType, num_warps: usize) -> Layout {
    let order: Vec<usize> = (0..tile.rank()).rev().collect();
    let per_thread = (tile.numel() / (32 * num_warps)).max(1);
    let vector = (16 / tile.elem.bytes()).min(per_thread);
    blocked(&tile.shape, &order, vector, num_warps).expect("tile dimensions and warps are powers of two")
}

/// The operand layout with the highest weight; the first of equals. It is soft if all are.
pub fn strongest(operands: &[Option<Natural>]) -> Option<Natural> {
    let soft = operands.iter().flatten().all(|n| n.soft);
    let strongest = operands.iter().flatten().fold(None, |best: Option<Natural>, n| match best {
        Some(b) if b.weight >= n.weight => Some(b),
        Some(_) | None => Some(n.clone()),
    });
    strongest.map(|n| Natural { soft, ..n })
}

/// The layout rules of an operation. Control flow is `assign_layouts`' own matter.
pub trait Place {
    /// The layout that the result has for free, given those of the operands (`None`: any layout is as good). A `None`
    /// result means that the operation can produce any layout that its users ask for, more than one if need be.
    fn natural(&self, cx: &PlaceCx<'_>, operands: &[Option<Natural>]) -> Option<Natural>;
    /// What it wants of each operand to produce its result in `result` (`None`: it has no tile result).
    fn wants(&self, cx: &PlaceCx<'_>, operands: &[Option<Natural>], result: Option<&Layout>) -> Vec<Want>;
}

macro_rules! define_place {
    ($($variant:ident $module:ident :: $op:ident,)*) => {
        impl Place for OpKind {
            fn natural(&self, cx: &PlaceCx<'_>, operands: &[Option<Natural>]) -> Option<Natural> {
                match self { $(OpKind::$variant(op) => op.natural(cx, operands),)* }
            }
            fn wants(&self, cx: &PlaceCx<'_>, operands: &[Option<Natural>], result: Option<&Layout>) -> Vec<Want> {
                match self { $(OpKind::$variant(op) => op.wants(cx, operands, result),)* }
            }
        }
    };
}
crate::for_each_op!(define_place);

/// Operations that keep the layout of their operands: elementwise ones.
macro_rules! place_elementwise {
    ($op:ty) => {
        impl $crate::ops::place::Place for $op {
            fn natural(
                &self,
                _: &$crate::ops::place::PlaceCx<'_>,
                operands: &[Option<$crate::ops::place::Natural>],
            ) -> Option<$crate::ops::place::Natural> {
                $crate::ops::place::strongest(operands)
            }
            fn wants(
                &self,
                cx: &$crate::ops::place::PlaceCx<'_>,
                _: &[Option<$crate::ops::place::Natural>],
                result: Option<&$crate::layout::Layout>,
            ) -> Vec<$crate::ops::place::Want> {
                result.map_or_else(|| cx.any(), |layout| cx.all(layout))
            }
        }
    };
}
pub(crate) use place_elementwise;

/// Operations without tile operands or results, and those that `assign_layouts` handles itself.
macro_rules! place_nothing {
    ($op:ty) => {
        impl $crate::ops::place::Place for $op {
            fn natural(
                &self,
                _: &$crate::ops::place::PlaceCx<'_>,
                _: &[Option<$crate::ops::place::Natural>],
            ) -> Option<$crate::ops::place::Natural> {
                None
            }
            fn wants(
                &self,
                cx: &$crate::ops::place::PlaceCx<'_>,
                _: &[Option<$crate::ops::place::Natural>],
                _: Option<&$crate::layout::Layout>,
            ) -> Vec<$crate::ops::place::Want> {
                vec![$crate::ops::place::Want::Any; cx.op.operands.len()]
            }
        }
    };
}
pub(crate) use place_nothing;
