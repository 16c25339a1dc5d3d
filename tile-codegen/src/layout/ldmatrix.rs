//! When and how `ldmatrix` reads a shared tile into a register layout.
//!
//! `ldmatrix` reads 8x8 matrices whose rows are 16 contiguous bytes at addresses that lanes supply: lane `8i + r`
//! gives row `r` of matrix `i`. Lane `t` receives one 32-bit word of each matrix: word `t % 4` of row `t / 4`, or with
//! `.trans` (16-bit elements) the elements `(2 (t % 4), t / 4)` and `(2 (t % 4) + 1, t / 4)`. Rows may lie anywhere,
//! so a layout fits if, in terms of byte offsets of its bases, exactly the right bits step inside the 16 bytes and all
//! others keep to multiples of 16. The same description serves `stmatrix`.

use super::gf2::combine;
use super::linear::Layout;
use super::shared::{SharedLayout, ThreadOffset, Wavefronts, spread};

/// A sequence of `ldmatrix` that fills all registers of a layout from a shared tile.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ldmatrix {
    /// True for `.trans`.
    pub trans: bool,
    /// Matrices of each instruction: 1, 2 or 4 (`.x1`, `.x2`, `.x4`).
    pub matrices: usize,
    /// Consecutive layout registers that share one 32-bit destination, lowest bits first: `4 / elem_bytes`.
    pub packed: usize,
    /// The row address that a lane supplies, as a byte offset from the tile, before the step's constant.
    pub row: ThreadOffset,
    /// The instructions.
    pub steps: Vec<LdmatrixStep>,
}

/// One `ldmatrix` instruction.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LdmatrixStep {
    /// The first layout register of each 32-bit destination; `r..r + packed` lie in it.
    pub dests: Vec<usize>,
    /// XORed to the lane's row offset.
    pub offset: u32,
}

impl Ldmatrix {
    /// Shared memory cycles of one instruction of a warp; ideally one for each matrix.
    pub fn wavefronts(&self) -> Wavefronts {
        // All matrices have the same pattern, up to a constant XOR.
        let four = Wavefronts::of(&self.row.lane, 16);
        Wavefronts { actual: four.actual * self.matrices / 4, ideal: self.matrices }
    }
}

/// How to read a tile placed by `shared` into `layout` with `ldmatrix`, or `None` if the bits do not match (then use
/// [`super::SharedAccess`]). Both are of the same shape; the tile starts at a multiple of 16 bytes.
pub fn ldmatrix(layout: &Layout, shared: &SharedLayout) -> Option<Ldmatrix> {
    debug_assert_eq!(layout.shape(), shared.shape, "one tile, two placements");
    let elem = shared.elem_bytes as u32;
    let packed_bits = match elem {
        1 | 2 | 4 => (4 / elem).trailing_zeros() as usize,
        _ => return None,
    };
    let (regs, thread) = shared.compose(layout);
    if regs.len() < packed_bits {
        return None;
    }
    let (packed, outer) = regs.split_at(packed_bits);
    let lane = thread.lane;
    // What the 16 bytes of a row hold, what numbers the rows.
    let plain = ([packed, &lane[..2]].concat(), lane[2..].to_vec());
    let turned = (lane[2..].to_vec(), [packed, &lane[..2]].concat());
    let inside = |bases: &[u32]| bases.iter().enumerate().all(|(step, &base)| base == elem << step);
    let (trans, rows) = if inside(&plain.0) {
        (false, plain.1)
    } else if elem == 2 && inside(&turned.0) {
        (true, turned.1)
    } else {
        return None;
    };
    if rows.iter().chain(outer).chain(&thread.warp).any(|base| base % 16 != 0) {
        return None;
    }
    let matrix_bits = outer.len().min(2);
    let matrix = |bit: usize| if bit < matrix_bits { outer[bit] } else { 0 };
    let row = ThreadOffset { lane: [rows[0], rows[1], rows[2], matrix(0), matrix(1)], warp: thread.warp };
    let (inner, beyond): (Vec<usize>, Vec<usize>) =
        (packed_bits..regs.len()).partition(|bit| bit - packed_bits < matrix_bits);
    let step = |index| {
        let first = spread(index, &beyond);
        let dests = (0..1 << matrix_bits).map(|index| first | spread(index, &inner)).collect();
        LdmatrixStep { dests, offset: combine(&regs, first) }
    };
    let steps = (0..1 << beyond.len()).map(step).collect();
    Some(Ldmatrix { trans, matrices: 1 << matrix_bits, packed: 1 << packed_bits, row, steps })
}
