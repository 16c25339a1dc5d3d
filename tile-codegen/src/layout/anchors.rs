//! Layouts that instructions ask for: coalesced global accesses and tensor core fragments.

use super::linear::{Layout, LayoutError, axis_bits, bits_of, check_axes, warp_bits};

/// A layout for coalesced global accesses.
///
/// `order` lists the axes, fastest in memory first. Each thread holds `vector` consecutive elements of the fastest
/// axis (fewer if the axis is shorter), the lanes of a warp continue along `order`, then the warps, and what is left
/// of the tile goes to more registers (low order first). Lanes and warps that find no elements left replicate.
///
/// # Errors
/// If `shape`, `vector` or `num_warps` is not made of powers of two, or `order` is not a permutation of the axes.
pub fn blocked(
    shape: &[usize],
    order: &[usize],
    vector: usize,
    num_warps: usize,
) -> Result<Layout, LayoutError> {
    bits_of(shape)?;
    if !vector.is_power_of_two() {
        return Err(LayoutError::Vector(vector));
    }
    check_axes(order, shape.len())?;
    let warps = warp_bits(num_warps)?;
    let mut bits = order.iter().flat_map(|&axis| single_bits(axis_bits(shape, axis)));
    let fastest = order.first().map_or(1, |&axis| shape[axis]);
    let mut reg: Vec<u32> = bits.by_ref().take(vector.min(fastest).trailing_zeros() as usize).collect();
    let lane = [(); 5].map(|()| bits.next().unwrap_or(0));
    let warp = (0..warps).map(|_| bits.next().unwrap_or(0)).collect();
    reg.extend(bits);
    Layout::new(shape.to_vec(), reg, lane, warp)
}

/// The single bits of a mask, lowest first.
fn single_bits(mask: u32) -> impl Iterator<Item = u32> {
    (0..32).map(|bit| 1 << bit).filter(move |bit| mask & bit != 0)
}

/// Shape of one `mma.sync` instruction: `[m, k] x [k, n]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MmaTile {
    /// Rows of A and of the accumulator.
    pub m: usize,
    /// Columns of B and of the accumulator.
    pub n: usize,
    /// Depth: 32 bytes of operand.
    pub k: usize,
}

impl MmaTile {
    /// The instruction for operands of `elem_bytes`: m16n8k8 for 4 (tf32), m16n8k16 for 2, m16n8k32 for 1.
    ///
    /// # Errors
    /// For any other size.
    pub fn new(elem_bytes: usize) -> Result<MmaTile, LayoutError> {
        match elem_bytes {
            1 | 2 | 4 => Ok(MmaTile { m: 16, n: 8, k: 32 / elem_bytes }),
            _ => Err(LayoutError::Mma(format!(
                "tensor cores take operands of 1, 2 or 4 bytes, found {elem_bytes} bytes"
            ))),
        }
    }
}

/// How the warps of a block share a product: each owns a contiguous part of every axis.
///
/// The lowest warp bits select the part of N, the next ones that of M, the highest that of the batch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WarpGrid {
    /// Parts of the batch axis.
    pub batch: usize,
    /// Parts of the rows.
    pub m: usize,
    /// Parts of the columns.
    pub n: usize,
}

impl WarpGrid {
    /// Number of warps.
    pub fn num_warps(&self) -> usize {
        self.batch * self.m * self.n
    }
}

/// The accumulator layout of `mma.sync` on a `[M, N]` or `[batch, M, N]` tile.
///
/// Registers `4i..4i+4` are the fragment `c0..c3` of one instruction; `i` counts n blocks first, then m blocks, then
/// the batch.
///
/// # Errors
/// If the rank is not 2 or 3, or a warp would own less than one instruction (16 rows, 8 columns).
pub fn mma_acc(shape: &[usize], warps: WarpGrid) -> Result<Layout, LayoutError> {
    let (batch, [m, n]) = split_axes(shape, warps, "accumulator")?;
    let (m, n) = (m.part(warps.m, 16, "M")?, n.part(warps.n, 8, "N")?);
    let mut reg = vec![n.bit(0), m.bit(3)];
    reg.extend(n.above(3).chain(m.above(4)).chain(batch.above(0)));
    let lane = [n.bit(1), n.bit(2), m.bit(0), m.bit(1), m.bit(2)];
    let warp = n.warps().chain(m.warps()).chain(batch.warps()).collect();
    Layout::new(shape.to_vec(), reg, lane, warp)
}

/// The layout of operand A of `mma.sync`, a `[M, K]` or `[batch, M, K]` tile of elements of `elem_bytes`.
///
/// The registers of one instruction are consecutive, in fragment order (`a0..a7` for 2 bytes, `a0..a3` for 4); k
/// blocks come first, then m blocks, then the batch. Warps that differ in their part of N hold copies.
///
/// # Errors
/// If the rank is not 2 or 3, a warp would own less than 16 rows, or K is less than one instruction.
pub fn mma_a(shape: &[usize], warps: WarpGrid, elem_bytes: usize) -> Result<Layout, LayoutError> {
    let tile = MmaTile::new(elem_bytes)?;
    let (batch, [m, k]) = split_axes(shape, warps, "operand A")?;
    let (m, k) = (m.part(warps.m, tile.m, "M")?, k.part(1, tile.k, "K")?);
    let packed = packed_bits(elem_bytes);
    let mut reg: Vec<u32> = (0..packed).map(|bit| k.bit(bit)).collect();
    reg.extend([m.bit(3), k.bit(packed + 2)]);
    reg.extend(k.above(packed + 3).chain(m.above(4)).chain(batch.above(0)));
    let lane = [k.bit(packed), k.bit(packed + 1), m.bit(0), m.bit(1), m.bit(2)];
    let mut warp = vec![0; warp_bits(warps.n)?];
    warp.extend(m.warps().chain(batch.warps()));
    Layout::new(shape.to_vec(), reg, lane, warp)
}

/// The layout of operand B of `mma.sync`, a `[K, N]` or `[batch, K, N]` tile of elements of `elem_bytes`.
///
/// The registers of one instruction are consecutive, in fragment order (`b0..b3` for 2 bytes, `b0, b1` for 4); k
/// blocks come first, then n blocks, then the batch. Warps that differ in their part of M hold copies.
///
/// # Errors
/// If the rank is not 2 or 3, a warp would own less than 8 columns, or K is less than one instruction.
pub fn mma_b(shape: &[usize], warps: WarpGrid, elem_bytes: usize) -> Result<Layout, LayoutError> {
    let tile = MmaTile::new(elem_bytes)?;
    let (batch, [k, n]) = split_axes(shape, warps, "operand B")?;
    let (k, n) = (k.part(1, tile.k, "K")?, n.part(warps.n, tile.n, "N")?);
    let packed = packed_bits(elem_bytes);
    let mut reg: Vec<u32> = (0..packed).map(|bit| k.bit(bit)).collect();
    reg.push(k.bit(packed + 2));
    reg.extend(k.above(packed + 3).chain(n.above(3)).chain(batch.above(0)));
    let lane = [k.bit(packed), k.bit(packed + 1), n.bit(0), n.bit(1), n.bit(2)];
    let mut warp: Vec<u32> = n.warps().collect();
    warp.extend(vec![0; warp_bits(warps.m)?]);
    warp.extend(batch.warps());
    Layout::new(shape.to_vec(), reg, lane, warp)
}

/// Log2 of the elements that one 32-bit operand register holds.
fn packed_bits(elem_bytes: usize) -> u32 {
    (4 / elem_bytes).trailing_zeros()
}

/// The flat index bits of one axis, the low `own` of which stay in a warp while the others are split over warps.
#[derive(Clone, Copy)]
struct Axis {
    shift: u32,
    own: u32,
    bits: u32,
}

impl Axis {
    fn bit(self, bit: u32) -> u32 {
        1 << (self.shift + bit)
    }

    /// The bits from `from` on that stay in a warp.
    fn above(self, from: u32) -> impl Iterator<Item = u32> {
        (from..self.own).map(move |bit| self.bit(bit))
    }

    fn warps(self) -> impl Iterator<Item = u32> {
        (self.own..self.bits).map(move |bit| self.bit(bit))
    }

    /// Splits the axis into `parts` of at least `least` elements.
    fn part(self, parts: usize, least: usize, name: &str) -> Result<Axis, LayoutError> {
        let (size, bits) = (1usize << self.bits, warp_bits(parts)? as u32);
        if size < parts * least {
            return Err(LayoutError::Mma(format!(
                "{name} = {size} over {parts} warps leaves fewer than the {least} that one mma covers; \
                 use {name} of at least {}, or fewer warps along it",
                parts * least
            )));
        }
        Ok(Axis { own: self.bits - bits, ..self })
    }
}

/// The batch axis (split over warps, empty for rank 2) and the two matrix axes of an operand.
fn split_axes(shape: &[usize], warps: WarpGrid, what: &str) -> Result<(Axis, [Axis; 2]), LayoutError> {
    let bits = bits_of(shape)?;
    let (rows, cols) = match shape {
        [rows, cols] | [_, rows, cols] => (rows.trailing_zeros(), cols.trailing_zeros()),
        _ => return Err(LayoutError::Mma(format!("{what} of mma has rank 2 or 3, found shape {shape:?}"))),
    };
    let axis = |shift, bits| Axis { shift, own: bits, bits };
    let batch = axis(rows + cols, bits - rows - cols).part(warps.batch, 1, "batch")?;
    Ok((batch, [axis(cols, rows), axis(0, cols)]))
}
