//! Products of warpgroups: where operands must be for `wgmma`, and which of the two ways round it is done.

use super::super::place::{PlaceCx, Want};
use super::{Mma, sizes};
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
    pub(crate) fn wide(a: &TileType, acc: &TileType, num_warps: usize) -> bool {
        let [_, m, n, k] = sizes(a, acc);
        let groups = num_warps / 4;
        let fits = |rows: usize, cols: usize| rows >= ROWS * groups && (8..=COLUMNS).contains(&cols);
        let narrow = matches!(a.elem, Elem::F16 | Elem::BF16);
        narrow
            && acc.rank() == 2
            && num_warps.is_multiple_of(4)
            && groups > 0
            && k >= 16
            && (fits(m, n) || fits(n, m))
    }

    /// How warpgroups do this product; `None` if they cannot, or if no operand comes through a channel, so that
    /// `mma.sync` out of registers is as good.
    ///
    /// An operand that was computed stays in registers, as the left one: `a @ b` is done as `(b^T @ a^T)^T` where that is b.
    pub(crate) fn wide_plan(cx: &PlaceCx<'_>) -> Option<Wide> {
        let (a, b, acc) = (cx.tile(0)?, cx.tile(1)?, cx.result());
        if !cx.warpgroups || !Self::wide(a, acc, cx.num_warps) {
            return None;
        }
        let [_, m, n, k] = sizes(a, acc);
        let groups = cx.num_warps / 4;
        let fits = |rows: usize, cols: usize| rows >= ROWS * groups && cols <= COLUMNS;
        let (shared_a, shared_b) = (cx.shared_operand(0), cx.shared_operand(1));
        let placed = |shared: Option<&SharedLayout>| shared.cloned().map(Want::Placed);
        if fits(m, n)
            && let Some(b) = placed(shared_b.filter(|s| right(s).is_some()))
        {
            let a = placed(shared_a.filter(|s| left(s).is_some()));
            let a = a.or_else(|| Some(Want::Regs(wgmma_a(&[m, k], groups, 2).ok()?)))?;
            return Some(Wide { acc: wgmma_acc(&[m, n], groups).ok()?, operands: [a, b] });
        }
        if fits(n, m)
            && let Some(a) = placed(shared_a.filter(|s| right(&transposed(s)).is_some()))
        {
            let b = placed(shared_b.filter(|s| left(&transposed(s)).is_some()));
            let registers = || wgmma_a(&[n, k], groups, 2).ok()?.permute(&[1, 0]).ok().map(Want::Regs);
            let acc = wgmma_acc(&[n, m], groups).ok()?.permute(&[1, 0]).ok()?;
            return Some(Wide { acc, operands: [a, b.or_else(registers)?] });
        }
        if fits(m, n)
            && let Some(a) = placed(shared_a.filter(|s| left(s).is_some()))
        {
            let order = if n * 2 >= 32 { [1, 0] } else { [0, 1] };
            let staged = SharedLayout::swizzled(&b.shape, &order, 2).ok().filter(|s| right(s).is_some())?;
            let acc = wgmma_acc(&[m, n], groups).ok()?;
            return Some(Wide { acc, operands: [a, Want::Placed(staged)] });
        }
        None
    }
}
