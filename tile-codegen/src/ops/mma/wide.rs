//! Products of warpgroups: where operands must be for `wgmma`, and which of the two ways round it is done.

use super::super::place::{PlaceCx, Want};
use super::{Mma, sizes};
use crate::explain::{Product, Reason, Source};
use crate::ir::{Elem, TileType};
use crate::layout::{Layout, ROWS, SharedLayout, WgmmaOperand, wgmma_a, wgmma_acc};

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

/// The flat index bits of the rows and of the columns of a matrix.
pub(crate) fn matrix_bits(shape: &[usize]) -> [Vec<u32>; 2] {
    let (rows, cols) = (shape[0].trailing_zeros(), shape[1].trailing_zeros());
    [(cols..cols + rows).collect(), (0..cols).collect()]
}

/// `a` as the left operand of instructions, out of shared memory.
pub(crate) fn left(shared: &SharedLayout) -> Option<WgmmaOperand> {
    let [m, k] = matrix_bits(&shared.shape);
    WgmmaOperand::new(shared, &m, &k, ROWS)
}

/// `b` as the right operand of instructions that take all of its columns.
pub(crate) fn right(shared: &SharedLayout) -> Option<WgmmaOperand> {
    let [k, n] = matrix_bits(&shared.shape);
    WgmmaOperand::new(shared, &n, &k, shared.shape[1])
}

fn transposed(shared: &SharedLayout) -> SharedLayout {
    shared.permute(&[1, 0]).expect("a matrix has two axes")
}

impl Mma {
    /// Whether warpgroups can do a product of these types, given operands where they must be.
    pub(crate) fn wide(a: &TileType, acc: &TileType, num_warps: usize) -> Result<(), Reason> {
        let [_, m, n, k] = sizes(a, acc);
        let groups = num_warps / 4;
        match a.elem {
            Elem::F16 | Elem::BF16 => {}
            Elem::F32 => return Err(Reason::Exact),
            elem => return Err(Reason::Operands(elem)),
        }
        if acc.rank() != 2 {
            return Err(Reason::Batched);
        }
        if groups == 0 || !num_warps.is_multiple_of(4) {
            return Err(Reason::NotWarpgroups(num_warps));
        }
        if k < 16 {
            return Err(Reason::Depth { k, least: 16 });
        }
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
        if shared_a.is_none() && shared_b.is_none() {
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
        let [_, m, n, k] = sizes(a, acc);
        let groups = cx.num_warps / 4;
        let fits = |rows: usize, cols: usize| rows >= ROWS * groups && cols <= COLUMNS;
        let placed = |shared: Option<&SharedLayout>| shared.cloned().map(Want::Placed);
        if fits(m, n)
            && let Some(b) = placed(shared_b.filter(|s| right(s).is_some()))
        {
            let a = placed(shared_a.filter(|s| left(s).is_some()));
            let a = a.or_else(|| Some(Want::Regs(wgmma_a(&[m, k], groups, 2).ok()?)))?;
            let acc = wgmma_acc(&[m, n], groups).ok()?;
            return Some(Wide { acc, operands: [a, b], swapped: false, groups });
        }
        if fits(n, m)
            && let Some(a) = placed(shared_a.filter(|s| right(&transposed(s)).is_some()))
        {
            let b = placed(shared_b.filter(|s| left(&transposed(s)).is_some()));
            let registers = || wgmma_a(&[n, k], groups, 2).ok()?.permute(&[1, 0]).ok().map(Want::Regs);
            let acc = wgmma_acc(&[n, m], groups).ok()?.permute(&[1, 0]).ok()?;
            return Some(Wide { acc, operands: [a, b.or_else(registers)?], swapped: true, groups });
        }
        if fits(m, n)
            && let Some(a) = placed(shared_a.filter(|s| left(s).is_some()))
        {
            let order = if n * 2 >= 32 { [1, 0] } else { [0, 1] };
            let staged = SharedLayout::swizzled(&b.shape, &order, 2).ok().filter(|s| right(s).is_some())?;
            let acc = wgmma_acc(&[m, n], groups).ok()?;
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
        let (m, n) = if self.swapped { (shape[1], shape[0]) } else { (shape[0], shape[1]) };
        Product::Warpgroups {
            a: place(0),
            b: place(1),
            swapped: self.swapped,
            groups: self.groups,
            rows: m / self.groups,
            columns: n,
        }
    }
}
