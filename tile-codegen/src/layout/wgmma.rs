//! Products of warpgroups: fragments in registers, and descriptors of operands in shared memory.
//!
//! A warpgroup is four warps; each holds 16 of the 64 rows of one instruction, as `mma.sync` would. A product of more rows
//! gives each warpgroup a contiguous part of them, in blocks of 64.

use super::anchors::MmaTile;
use super::linear::{Layout, LayoutError, bits_of, warp_bits};
use super::shared::SharedLayout;

/// Rows of one instruction.
pub const ROWS: usize = 64;
/// Bytes of depth of one instruction.
pub const DEPTH_BYTES: usize = 32;

/// The accumulator of a `[M, N]` product over `groups` warpgroups (PTX ISA 9.7.15.5.1.1.2).
///
/// Registers come as the instruction takes them, all of one block of 64 rows before the next.
///
/// # Errors
/// If a warpgroup would own less than 64 rows, or N is less than 8.
pub fn wgmma_acc(shape: &[usize], groups: usize) -> Result<Layout, LayoutError> {
    let [m, n] = matrix(shape)?;
    let (own, warps) = rows(m, groups)?;
    if n < 8 {
        return Err(LayoutError::Mma(format!("N = {n} is less than the 8 columns of one wgmma")));
    }
    let (col, row) = (|bit: u32| 1u32 << bit, |bit: u32| (n as u32) << bit);
    let mut reg = vec![col(0), row(3)];
    reg.extend((3..n.trailing_zeros()).map(col));
    reg.extend((6..own).map(row));
    let lane = [col(1), col(2), row(0), row(1), row(2)];
    Layout::new(shape.to_vec(), reg, lane, warps.into_iter().map(row).collect())
}

/// Operand A in registers, `[M, K]` of elements of `elem_bytes` (PTX ISA 9.7.15.5.1.1.1).
///
/// The registers of one instruction are consecutive; the steps of K come first, then the blocks of 64 rows. An accumulator
/// whose elements were narrowed to 16 bits is in this layout already.
///
/// # Errors
/// If a warpgroup would own less than 64 rows, or K is less than one instruction.
pub fn wgmma_a(shape: &[usize], groups: usize, elem_bytes: usize) -> Result<Layout, LayoutError> {
    let [m, k] = matrix(shape)?;
    let (own, warps) = rows(m, groups)?;
    let tile = MmaTile::new(elem_bytes)?;
    if k < tile.k {
        return Err(LayoutError::Mma(format!("K = {k} is less than the {} of one wgmma", tile.k)));
    }
    let (col, row) = (|bit: u32| 1u32 << bit, |bit: u32| (k as u32) << bit);
    let packed = (4 / elem_bytes).trailing_zeros();
    let mut reg: Vec<u32> = (0..packed).map(col).collect();
    reg.extend([row(3), col(packed + 2)]);
    reg.extend((packed + 3..k.trailing_zeros()).map(col));
    reg.extend((6..own).map(row));
    let lane = [col(packed), col(packed + 1), row(0), row(1), row(2)];
    Layout::new(shape.to_vec(), reg, lane, warps.into_iter().map(row).collect())
}

fn matrix(shape: &[usize]) -> Result<[usize; 2], LayoutError> {
    bits_of(shape)?;
    match shape {
        [rows, cols] => Ok([*rows, *cols]),
        _ => Err(LayoutError::Mma(format!("an operand of wgmma has rank 2, found shape {shape:?}"))),
    }
}

/// How many row bits a warpgroup owns, and which row bits select the warp.
fn rows(m: usize, groups: usize) -> Result<(u32, Vec<u32>), LayoutError> {
    let bits = warp_bits(groups)? as u32;
    if m < ROWS * groups {
        return Err(LayoutError::Mma(format!(
            "M = {m} over {groups} warpgroups leaves fewer than the 64 rows of one wgmma"
        )));
    }
    let own = m.trailing_zeros() - bits;
    Ok((own, [4, 5].into_iter().chain(own..own + bits).collect()))
}

/// An operand in shared memory as the instruction reads it: the constant parts of its descriptors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WgmmaOperand {
    /// The descriptor of an operand at address 0.
    pub descriptor: u64,
    /// Whether it is MN-major: adjacent elements lie along M or N, not along K.
    pub transposed: bool,
    rows: Vec<u32>,
    depth: Vec<u32>,
}

impl WgmmaOperand {
    /// The operand whose element (i along M or N, k) is at flat index bits `mn` and `k` of `shared` (lowest first), if
    /// instructions of `span` rows (64 for A, N for B) can read it.
    pub fn new(shared: &SharedLayout, mn: &[u32], k: &[u32], span: usize) -> Option<WgmmaOperand> {
        let at = |bits: &[u32]| bits.iter().map(|&bit| shared.linear_offset(1 << bit)).collect::<Vec<u32>>();
        let (rows, depth) = (at(mn), at(k));
        let elem = shared.elem_bytes as u32;
        let step = (DEPTH_BYTES as u32 / elem).trailing_zeros() as usize;
        let span = span.trailing_zeros() as usize;
        let mode = match shared.swizzle {
            128 => 1u64,
            64 => 2,
            32 => 3,
            _ => return None,
        };
        if rows.len() < span || depth.len() < step {
            return None;
        }
        let width = (shared.swizzle / elem).trailing_zeros() as usize;
        let run = |offsets: &[u32], first: u32| offsets.iter().enumerate().all(|(i, &o)| o == first << i);
        let transposed = rows.first() == Some(&elem);
        let (leading, stride) = if transposed {
            let fits = elem == 2
                && run(&rows[..width.min(span)], elem)
                && run(&depth[..3.min(step)], shared.swizzle)
                && span >= width;
            let pieces = &rows[width.min(span)..span];
            let leading = pieces.first().copied().unwrap_or(0);
            let stride = depth.get(3).copied().unwrap_or(0);
            (fits && run(pieces, leading)).then_some((leading, stride))?
        } else {
            let fits = run(&depth[..step], elem) && run(&rows[..3], shared.swizzle);
            let groups = &rows[3..span];
            let stride = groups.first().copied().unwrap_or(8 * shared.swizzle);
            (fits && run(groups, stride)).then_some((0, stride))?
        };
        let field = |bytes: u32| u64::from(bytes >> 4 & 0x3fff);
        let descriptor = field(leading) << 16 | field(stride) << 32 | mode << 62;
        Some(WgmmaOperand { descriptor, transposed, rows, depth })
    }

    /// The byte offset of the instruction that starts at row `mn` and depth `k`, to be added to the address.
    pub fn offset(&self, mn: usize, k: usize) -> u32 {
        let pick = |bases: &[u32], index: usize| {
            let set = bases.iter().enumerate().filter(|(bit, _)| index >> bit & 1 == 1);
            set.map(|(_, &base)| base).sum::<u32>()
        };
        pick(&self.rows, mn) + pick(&self.depth, k)
    }
}
