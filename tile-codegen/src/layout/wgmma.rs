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

/// How warpgroups share a product: a leading batch axis first, then rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Warpgroups {
    /// Parts of the batch axis.
    pub batch: usize,
    /// Parts of the rows.
    pub m: usize,
}

impl Warpgroups {
    /// The shares of `groups` warpgroups of a product with a batch of so many.
    pub fn new(groups: usize, batch: usize) -> Warpgroups {
        let batch = batch.min(groups);
        Warpgroups { batch, m: groups / batch }
    }
}

/// The accumulator of a `[M, N]` or `[batch, M, N]` product over warpgroups (PTX ISA 9.7.15.5.1.1.2).
///
/// Registers come as the instruction takes them, all of one block of 64 rows before the next, then the batch.
///
/// # Errors
/// If a warpgroup would own less than 64 rows, or N is less than 8.
pub fn wgmma_acc(shape: &[usize], groups: usize) -> Result<Layout, LayoutError> {
    let rows = Rows::new(shape, groups)?;
    let n = rows.cols;
    if n < 8 {
        return Err(LayoutError::Mma(format!("N = {n} is less than the 8 columns of one wgmma")));
    }
    let col = |bit: u32| 1u32 << bit;
    let mut reg = vec![col(0), rows.row(3)];
    reg.extend((3..n.trailing_zeros()).map(col));
    let lane = [col(1), col(2), rows.row(0), rows.row(1), rows.row(2)];
    rows.layout(shape, reg, lane)
}

/// Operand A in registers, `[M, K]` or `[batch, M, K]` of elements of `elem_bytes` (PTX ISA 9.7.15.5.1.1.1).
///
/// The registers of one instruction are consecutive; the steps of K come first, then the blocks of 64 rows, then the batch.
/// An accumulator whose elements were narrowed to 16 bits is in this layout already.
///
/// # Errors
/// If a warpgroup would own less than 64 rows, or K is less than one instruction.
pub fn wgmma_a(shape: &[usize], groups: usize, elem_bytes: usize) -> Result<Layout, LayoutError> {
    let rows = Rows::new(shape, groups)?;
    let (k, tile) = (rows.cols, MmaTile::new(elem_bytes)?);
    if k < tile.k {
        return Err(LayoutError::Mma(format!("K = {k} is less than the {} of one wgmma", tile.k)));
    }
    let col = |bit: u32| 1u32 << bit;
    let packed = (4 / elem_bytes).trailing_zeros();
    let mut reg: Vec<u32> = (0..packed).map(col).collect();
    reg.extend([rows.row(3), col(packed + 2)]);
    reg.extend((packed + 3..k.trailing_zeros()).map(col));
    let lane = [col(packed), col(packed + 1), rows.row(0), rows.row(1), rows.row(2)];
    rows.layout(shape, reg, lane)
}

/// Which rows and which part of the batch each warpgroup owns.
struct Rows {
    cols: usize,
    /// Row bits, those that a warpgroup owns, batch bits, those that a warpgroup owns.
    m: u32,
    own_m: u32,
    batch: u32,
    own_batch: u32,
}

impl Rows {
    fn new(shape: &[usize], groups: usize) -> Result<Rows, LayoutError> {
        bits_of(shape)?;
        warp_bits(groups)?;
        let (batch, m, cols) = match *shape {
            [m, cols] => (1, m, cols),
            [batch, m, cols] => (batch, m, cols),
            _ => {
                let message = format!("an operand of wgmma has rank 2 or 3, found shape {shape:?}");
                return Err(LayoutError::Mma(message));
            }
        };
        let shares = Warpgroups::new(groups, batch);
        if m < ROWS * shares.m {
            return Err(LayoutError::Mma(format!(
                "M = {m} over {} warpgroups leaves fewer than the 64 rows of one wgmma",
                shares.m
            )));
        }
        let bits = |n: usize| n.trailing_zeros();
        let (own_m, own_batch) = (bits(m) - bits(shares.m), bits(batch) - bits(shares.batch));
        Ok(Rows { cols, m: bits(m), own_m, batch: bits(batch), own_batch })
    }

    fn row(&self, bit: u32) -> u32 {
        (self.cols as u32) << bit
    }

    fn plane(&self, bit: u32) -> u32 {
        self.row(self.m + bit)
    }

    /// Adds the blocks of rows and the batch to the registers of one instruction.
    fn layout(&self, shape: &[usize], mut reg: Vec<u32>, lane: [u32; 5]) -> Result<Layout, LayoutError> {
        reg.extend((6..self.own_m).map(|bit| self.row(bit)));
        reg.extend((0..self.own_batch).map(|bit| self.plane(bit)));
        let rows = [4, 5].into_iter().chain(self.own_m..self.m).map(|bit| self.row(bit));
        let warp = rows.chain((self.own_batch..self.batch).map(|bit| self.plane(bit))).collect();
        Layout::new(shape.to_vec(), reg, lane, warp)
    }
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
    planes: Vec<u32>,
}

impl WgmmaOperand {
    /// The operand of each plane whose element (i along M or N, k) is at flat index bits `mn` and `k` of `shared` (lowest
    /// first), if instructions of `span` rows (64 for A, N for B) can read it; `batch` are the bits of the planes.
    pub fn new(
        shared: &SharedLayout,
        batch: &[u32],
        mn: &[u32],
        k: &[u32],
        span: usize,
    ) -> Option<WgmmaOperand> {
        let at = |bits: &[u32]| bits.iter().map(|&bit| shared.linear_offset(1 << bit)).collect::<Vec<u32>>();
        let (planes, rows, depth) = (at(batch), at(mn), at(k));
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
        // Another plane, block of rows or step of depth is an addition to the address, which must not move the swizzle's
        // pattern: beyond a row of it, strides are of whole patterns.
        let whole = |offsets: &[u32]| offsets.iter().all(|o| o % (8 * shared.swizzle) == 0);
        let beyond = if transposed { &rows[width.min(span)..] } else { &rows[3..] };
        let deeper = if transposed { &depth[3..] } else { &depth[width.min(depth.len())..] };
        (whole(&planes) && whole(beyond) && whole(deeper)).then_some(())?;
        Some(WgmmaOperand { descriptor, transposed, rows, depth, planes })
    }

    /// The byte offset of the instruction that starts in plane `plane` at row `mn` and depth `k`, to be added to the address.
    pub fn offset(&self, plane: usize, mn: usize, k: usize) -> u32 {
        let pick = |bases: &[u32], index: usize| {
            let set = bases.iter().enumerate().filter(|(bit, _)| index >> bit & 1 == 1);
            set.map(|(_, &base)| base).sum::<u32>()
        };
        pick(&self.planes, plane) + pick(&self.rows, mn) + pick(&self.depth, k)
    }
}
