//! Products of warpgroups: where operands must be for `wgmma`, and which of the two ways round it is done.

use super::super::place::{PlaceCx, Want};
use super::{Mma, sizes};
use crate::explain::{Product, Reason, Source};
use crate::ir::{Elem, TileType};
use crate::layout::{DEPTH_BYTES, Layout, ROWS, SharedLayout, Warpgroups, WgmmaOperand, wgmma_a, wgmma_acc};

/// Columns of one instruction at most.
const COLUMNS: usize = 256;

/// How a product is done by warpgroups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wide {
    /// The layout of the accumulator.
    pub acc: Layout,
    /// What it wants of a and b.
    pub operands: [Want; 2],
    /// Whether it is done as `(b^T @ a^T)^T`.
    pub swapped: bool,
    /// Warpgroups.
    pub groups: usize,
}

/// The flat index bits of the batch, the rows and the columns of a matrix or a batch of them.
fn matrix_bits(shape: &[usize]) -> [Vec<u32>; 3] {
    let rank = shape.len();
    let (rows, cols) = (shape[rank - 2].trailing_zeros(), shape[rank - 1].trailing_zeros());
    let all: u32 = shape.iter().map(|n| n.trailing_zeros()).sum();
    [(cols + rows..all).collect(), (cols..cols + rows).collect(), (0..cols).collect()]
}

/// `a` as the left operand of instructions, out of shared memory.
pub(crate) fn left(shared: &SharedLayout) -> Option<WgmmaOperand> {
    let [batch, m, k] = matrix_bits(&shared.shape);
    WgmmaOperand::new(shared, &batch, &m, &k, ROWS)
}

/// `b` as the right operand of instructions that take all of its columns.
pub(crate) fn right(shared: &SharedLayout) -> Option<WgmmaOperand> {
    let [batch, k, n] = matrix_bits(&shared.shape);
    WgmmaOperand::new(shared, &batch, &n, &k, *shared.shape.last()?)
}

/// The axes of a transposed matrix, or batch of them.
pub(crate) fn turn(rank: usize) -> &'static [usize] {
    if rank == 3 { &[0, 2, 1] } else { &[1, 0] }
}

fn transposed(shared: &SharedLayout) -> SharedLayout {
    shared.permute(turn(shared.shape.len())).expect("a permutation of the axes")
}

impl Mma {
    /// Whether warpgroups can do a product of these types, given operands where they must be.
    pub(crate) fn wide(a: &TileType, acc: &TileType, num_warps: usize) -> Result<(), Reason> {
        let [batch, m, n, k] = sizes(a, acc);
        match a.elem {
            Elem::F16 | Elem::BF16 | Elem::TF32 => {}
            Elem::F32 | Elem::I32 | Elem::I64 | Elem::U32 | Elem::Bool => return Err(Reason::Exact),
        }
        if num_warps < 4 || !num_warps.is_multiple_of(4) {
            return Err(Reason::NotWarpgroups(num_warps));
        }
        let least = DEPTH_BYTES / a.elem.bytes();
        if k < least {
            return Err(Reason::Depth { k, least });
        }
        let groups = Warpgroups::new(num_warps / 4, batch).m;
        let (rows, columns) = (m.max(n), m.min(n));
        let fits = |rows: usize, cols: usize| rows >= ROWS * groups && (8..=COLUMNS).contains(&cols);
        match fits(m, n) || fits(n, m) {
            true => Ok(()),
            false if rows < ROWS * groups => Err(Reason::Rows { rows, groups }),
            false => Err(Reason::Columns(columns)),
        }
    }

    /// How warpgroups do this product; an error if they cannot, or if no operand comes through a channel, so that
    /// `mma.sync` out of registers is as good.
    ///
    /// An operand that was computed stays in registers, as the left one: `a @ b` is done as `(b^T @ a^T)^T` where that is b.
    pub(crate) fn wide_plan(cx: &PlaceCx<'_>) -> Result<Wide, Reason> {
        let (Some(a), Some(b)) = (cx.tile(0), cx.tile(1)) else { return Err(Reason::Unreadable) };
        let acc = cx.result();
        if !cx.target.warpgroups {
            return Err(Reason::TargetWithoutWarpgroups(cx.target.name));
        }
        Self::wide(a, acc, cx.num_warps)?;
        let (shared_a, shared_b) = (cx.shared_operand(0), cx.shared_operand(1));
        if shared_a.is_none() && shared_b.is_none() && a.elem != Elem::TF32 {
            return Err(Reason::NoChannel);
        }
        Self::placed_plan(cx, [a, b, acc], [shared_a, shared_b]).ok_or(Reason::Unreadable)
    }

    /// The plan for operands that are in shared memory already, or nowhere yet.
    fn placed_plan(
        cx: &PlaceCx<'_>,
        [a, b, acc]: [&TileType; 3],
        [shared_a, shared_b]: [Option<&SharedLayout>; 2],
    ) -> Option<Wide> {
        let [batch, m, n, k] = sizes(a, acc);
        let (groups, bytes, rank) = (cx.num_warps / 4, a.elem.bytes(), acc.rank());
        let shares = Warpgroups::new(groups, batch);
        let fits = |rows: usize, cols: usize| rows >= ROWS * shares.m && cols <= COLUMNS;
        let shaped = |rows: usize, cols: usize| match rank {
            3 => vec![batch, rows, cols],
            _ => vec![rows, cols],
        };
        let registers = |rows: usize| wgmma_a(&shaped(rows, k), groups, bytes).ok();
        let placed = |shared: Option<&SharedLayout>| shared.cloned().map(Want::Placed);
        if fits(m, n)
            && let Some(b) = placed(shared_b.filter(|s| right(s).is_some()))
        {
            let a = placed(shared_a.filter(|s| left(s).is_some()));
            let a = a.or_else(|| registers(m).map(Want::Regs))?;
            let acc = wgmma_acc(&shaped(m, n), groups).ok()?;
            return Some(Wide { acc, operands: [a, b], swapped: false, groups });
        }
        let turned = |layout: Layout| layout.permute(turn(rank)).ok();
        if fits(n, m)
            && let Some(a) = placed(shared_a.filter(|s| right(&transposed(s)).is_some()))
        {
            let b = placed(shared_b.filter(|s| left(&transposed(s)).is_some()));
            let b = b.or_else(|| registers(n).and_then(turned).map(Want::Regs))?;
            let acc = turned(wgmma_acc(&shaped(n, m), groups).ok()?)?;
            return Some(Wide { acc, operands: [a, b], swapped: true, groups });
        }
        let left_a = placed(shared_a.filter(|s| left(s).is_some()));
        if fits(m, n) && (left_a.is_some() || a.elem == Elem::TF32) {
            // b was computed and cannot be the left operand: it is written to shared memory.
            let fastest =
                if bytes == 2 && n * bytes >= 32 { [rank - 1, rank - 2] } else { [rank - 2, rank - 1] };
            let order: Vec<usize> = fastest.into_iter().chain((0..rank - 2).rev()).collect();
            let staged =
                SharedLayout::swizzled(&b.shape, &order, bytes).ok().filter(|s| right(s).is_some())?;
            let a = left_a.or_else(|| registers(m).map(Want::Regs))?;
            let acc = wgmma_acc(&shaped(m, n), groups).ok()?;
            return Some(Wide { acc, operands: [a, Want::Placed(staged)], swapped: false, groups });
        }
        None
    }
}

impl Wide {
    /// What `explain` says of this plan.
    pub(super) fn product(&self, cx: &PlaceCx<'_>) -> Product {
        let place = |operand: usize| match &self.operands[operand] {
            Want::Placed(layout) if cx.shared_operand(operand) == Some(layout) => Source::Channel,
            Want::Placed(_) | Want::Shared(_) => Source::Shared,
            Want::Regs(_) | Want::Any => Source::Registers,
        };
        let shape = &cx.result().shape;
        let rank = shape.len();
        let batch = if rank == 3 { shape[0] } else { 1 };
        let (m, n) = match self.swapped {
            true => (shape[rank - 1], shape[rank - 2]),
            false => (shape[rank - 2], shape[rank - 1]),
        };
        Product::Warpgroups {
            a: place(0),
            b: place(1),
            swapped: self.swapped,
            groups: self.groups,
            rows: m / Warpgroups::new(self.groups, batch).m,
            columns: n,
        }
    }
}
