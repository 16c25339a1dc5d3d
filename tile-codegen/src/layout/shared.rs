//! Tiles in shared memory: swizzled placements, and register accesses to them.

use super::gf2::combine;
use super::linear::{Layout, LayoutError, axis_bits, bits_of, check_axes};

/// Bytes of the widest shared memory access of a thread, and of the chunks that swizzles move.
const CHUNK: u32 = 16;
/// Bytes of one row of the 32 banks.
const LINE: u32 = 128;

/// Where the elements of a tile lie in shared memory: a linear bijection from flat index bits to byte offsets.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SharedLayout {
    /// Shape of the tile.
    pub shape: Vec<usize>,
    /// Bytes of one element: 1, 2, 4, 8 or 16.
    pub elem_bytes: usize,
    /// Byte offset of each flat index bit (lowest first); offsets combine by XOR.
    pub bases: Vec<u32>,
    /// Bytes of the whole tile.
    pub bytes: u32,
    /// Width of the swizzle in bytes: 128, 64, 32, or 0 for none.
    pub swizzle: u32,
}

impl SharedLayout {
    /// A dense placement without swizzle; `order` lists the axes, fastest in memory first.
    ///
    /// # Errors
    /// If the shape is not made of powers of two, the element size is not 1, 2, 4, 8 or 16, or `order` is not a
    /// permutation of the axes.
    pub fn linear(shape: &[usize], order: &[usize], elem_bytes: usize) -> Result<SharedLayout, LayoutError> {
        let ranked = ordered_bits(shape, order)?;
        SharedLayout::place(shape, elem_bytes, &ranked)
    }

    /// A placement in which rows and 8-row columns of 16-byte chunks are read and written without bank conflicts.
    ///
    /// `order` lists the axes, fastest in memory first. A row of the fastest axis is cut into pieces of `w` bytes
    /// (`w` = 128, or the whole row if it is shorter). Pieces follow each other along the other axes in `order`;
    /// further pieces of the rows come last, as separate boxes. Then the 16-byte chunk number inside a piece is XORed
    /// with the number of the 128-byte line, exactly as TMA and `wgmma` do in their `w`-byte swizzle modes when the
    /// tile starts at a multiple of `8 w` bytes. Rows shorter than 32 bytes are left dense.
    ///
    /// # Errors
    /// If the shape is not made of powers of two, the element size is not 1, 2, 4, 8 or 16, or `order` is not a
    /// permutation of the axes.
    pub fn swizzled(
        shape: &[usize],
        order: &[usize],
        elem_bytes: usize,
    ) -> Result<SharedLayout, LayoutError> {
        let mut ranked = ordered_bits(shape, order)?;
        elem_bits(elem_bytes)?;
        let row_bits = order.first().map_or(0, |&axis| shape[axis].trailing_zeros());
        let line_bits = (LINE as usize / elem_bytes).trailing_zeros();
        let piece_bits = row_bits.min(line_bits) as usize;
        ranked[piece_bits..].rotate_left(row_bits as usize - piece_bits);
        let mut layout = SharedLayout::place(shape, elem_bytes, &ranked)?;
        let width = (elem_bytes as u32) << piece_bits;
        if (2 * CHUNK..=LINE).contains(&width) {
            layout.swizzle = width;
            let chunks = width / CHUNK - 1;
            for base in &mut layout.bases {
                *base ^= ((*base / LINE) & chunks) * CHUNK;
            }
        }
        Ok(layout)
    }

    /// Gives the flat bits in `ranked` consecutive offset bits.
    fn place(shape: &[usize], elem_bytes: usize, ranked: &[u32]) -> Result<SharedLayout, LayoutError> {
        if ranked.len() as u32 + elem_bits(elem_bytes)? > 31 {
            return Err(LayoutError::TooLarge(shape.to_vec()));
        }
        let mut bases = vec![0; ranked.len()];
        for (rank, &bit) in ranked.iter().enumerate() {
            bases[bit as usize] = (elem_bytes as u32) << rank;
        }
        let bytes = (elem_bytes as u32) << ranked.len();
        Ok(SharedLayout { shape: shape.to_vec(), elem_bytes, bases, bytes, swizzle: 0 })
    }

    /// Byte offset of the element with the flat row-major index `flat`.
    pub fn offset(&self, flat: u32) -> u32 {
        combine(&self.bases, flat as usize)
    }

    /// The same before the swizzle: what the address computation of hardware starts from.
    pub fn linear_offset(&self, flat: u32) -> u32 {
        let offset = self.offset(flat);
        match self.swizzle {
            0 => offset,
            width => offset ^ (((offset / LINE) & (width / CHUNK - 1)) * CHUNK),
        }
    }

    /// The tile seen in another shape of as many elements, in row-major order.
    ///
    /// # Errors
    /// If the number of elements differs.
    pub fn reshape(&self, shape: &[usize]) -> Result<SharedLayout, LayoutError> {
        let (from, to) = (bits_of(&self.shape)?, bits_of(shape)?);
        if from != to {
            return Err(LayoutError::Shape { from: self.shape.clone(), to: shape.to_vec() });
        }
        Ok(SharedLayout { shape: shape.to_vec(), ..self.clone() })
    }

    /// The tile with its axes permuted: axis i of the result is axis `axes[i]` of this.
    ///
    /// # Errors
    /// If `axes` is no permutation of the axes.
    pub fn permute(&self, axes: &[usize]) -> Result<SharedLayout, LayoutError> {
        check_axes(axes, self.shape.len())?;
        let bits = |axis: usize| (0..32u32).filter(move |bit| axis_bits(&self.shape, axis) >> bit & 1 == 1);
        let bases = axes.iter().rev().flat_map(|&axis| bits(axis)).map(|bit| self.bases[bit as usize]);
        let (bases, shape) = (bases.collect(), axes.iter().map(|&axis| self.shape[axis]).collect());
        Ok(SharedLayout { shape, bases, ..self.clone() })
    }

    /// Alignment in bytes at which the hardware swizzle modes agree with this placement.
    pub fn align(&self) -> u32 {
        (8 * self.swizzle).max(LINE)
    }

    /// Byte offsets of the register, lane and warp bases of `layout`.
    pub(super) fn compose(&self, layout: &Layout) -> (Vec<u32>, ThreadOffset) {
        let offsets = |bases: &[u32]| bases.iter().map(|&base| self.offset(base)).collect();
        let lane = layout.lane().map(|base| self.offset(base));
        (offsets(layout.reg()), ThreadOffset { lane, warp: offsets(layout.warp()) })
    }
}

fn elem_bits(elem_bytes: usize) -> Result<u32, LayoutError> {
    match elem_bytes {
        1 | 2 | 4 | 8 | 16 => Ok(elem_bytes.trailing_zeros()),
        _ => Err(LayoutError::ElementBytes(elem_bytes)),
    }
}

/// The flat index bit numbers of a tile, fastest in memory first.
fn ordered_bits(shape: &[usize], order: &[usize]) -> Result<Vec<u32>, LayoutError> {
    bits_of(shape)?;
    check_axes(order, shape.len())?;
    let bits = |axis| (0..32).filter(move |bit| axis_bits(shape, axis) >> bit & 1 == 1);
    Ok(order.iter().flat_map(|&axis| bits(axis)).collect())
}

/// A byte offset that depends linearly on the thread: XOR of the bases of the set lane and warp bits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ThreadOffset {
    /// Byte offsets of the lane bits.
    pub lane: [u32; 5],
    /// Byte offsets of the warp bits.
    pub warp: Vec<u32>,
}

impl ThreadOffset {
    /// The offset of one thread.
    pub fn at(&self, lane: usize, warp: usize) -> u32 {
        combine(&self.lane, lane) ^ combine(&self.warp, warp)
    }

    /// All offset bits that depend on the thread.
    pub fn mask(&self) -> u32 {
        self.lane.iter().chain(&self.warp).fold(0, |mask, base| mask | base)
    }

    /// Splits a constant offset into `(xor_part, add_part)` so that for every thread
    /// `at(..) ^ offset == (at(..) ^ xor_part) + add_part`: the second can be the immediate of an instruction, and
    /// accesses with the same first part share an address register.
    pub fn split(&self, offset: u32) -> (u32, u32) {
        (offset & self.mask(), offset & !self.mask())
    }
}

/// How the threads of a block read or write a shared tile that they hold in a register layout.
///
/// Vector access `i` of a thread moves the registers `vectors[i]` at byte offset
/// `thread.at(lane, warp) ^ offsets[i]`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SharedAccess {
    /// Elements of one access: contiguous, aligned to their size, at most 16 bytes.
    pub vector: usize,
    /// Bytes of one element.
    pub elem_bytes: usize,
    /// The thread's part of the byte offset.
    pub thread: ThreadOffset,
    /// Registers of each access, in ascending address.
    pub vectors: Vec<Vec<usize>>,
    /// Constant part of the byte offset of each access.
    pub offsets: Vec<u32>,
}

impl SharedAccess {
    /// The access of a tile held in `layout` and placed by `shared`; both are of the same shape.
    pub fn new(layout: &Layout, shared: &SharedLayout) -> SharedAccess {
        debug_assert_eq!(layout.shape(), shared.shape, "one tile, two placements");
        let (regs, thread) = shared.compose(layout);
        let elem = shared.elem_bytes as u32;
        // The register bits that step to the neighbouring element, the next pair, ...
        let mut inner: Vec<usize> = (0..)
            .map_while(|step| regs.iter().position(|&base| base == elem << step))
            .take((CHUNK / elem).trailing_zeros() as usize)
            .collect();
        // No other bit may move inside a vector, or accesses would be misaligned.
        let others = |inner: &[usize]| {
            let regs = regs.iter().enumerate().filter(|(bit, _)| !inner.contains(bit));
            regs.fold(thread.mask(), |mask, (_, base)| mask | base)
        };
        while others(&inner) & ((elem << inner.len()) - elem) != 0 {
            inner.pop();
        }
        let outer: Vec<usize> = (0..regs.len()).filter(|bit| !inner.contains(bit)).collect();
        let firsts: Vec<usize> = (0..1 << outer.len()).map(|index| spread(index, &outer)).collect();
        let vectors = firsts
            .iter()
            .map(|first| (0..1 << inner.len()).map(|index| first | spread(index, &inner)).collect())
            .collect();
        let offsets = firsts.iter().map(|&first| combine(&regs, first)).collect();
        SharedAccess { vector: 1 << inner.len(), elem_bytes: shared.elem_bytes, thread, vectors, offsets }
    }

    /// Splits a constant offset as [`ThreadOffset::split`] does.
    pub fn split(&self, offset: u32) -> (u32, u32) {
        self.thread.split(offset)
    }

    /// The wavefronts of one access of a warp. They are the same for every access and warp, because a constant XOR
    /// only renames the banks.
    pub fn wavefronts(&self) -> Wavefronts {
        Wavefronts::of(&self.thread.lane, self.vector * self.elem_bytes)
    }

    /// Extra wavefronts of one access of a warp over the ideal; 0 is conflict-free.
    pub fn bank_conflicts(&self) -> usize {
        let Wavefronts { actual, ideal } = self.wavefronts();
        actual - ideal
    }
}

/// Shared memory cycles of one access of a warp.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Wavefronts {
    /// Cycles that the access takes.
    pub actual: usize,
    /// Cycles without any bank conflict: one for every 128 bytes that the lanes ask for.
    pub ideal: usize,
}

impl Wavefronts {
    /// Counts the cycles of an access of `bytes` bytes per lane at the offsets that `lane` spans.
    ///
    /// Accesses of 8 bytes are served by half-warps, those of 16 by quarter-warps; in each, a bank delivers one
    /// 32-bit word a cycle, to any number of lanes.
    pub fn of(lane: &[u32; 5], bytes: usize) -> Wavefronts {
        let words = bytes.div_ceil(4);
        let group = 32 / words;
        let cycles = |first: usize| {
            let mut used: Vec<u32> = (first..first + group)
                .flat_map(|l| (0..words as u32).map(move |word| combine(lane, l) / 4 + word))
                .collect();
            used.sort_unstable();
            used.dedup();
            (0..32).map(|bank| used.iter().filter(|&word| word % 32 == bank).count()).max().unwrap_or(0)
        };
        Wavefronts { actual: (0..32).step_by(group).map(cycles).sum(), ideal: words }
    }
}

/// Moves bit i of `index` to bit `positions[i]`.
pub(super) fn spread(index: usize, positions: &[usize]) -> usize {
    positions.iter().enumerate().fold(0, |out, (from, to)| out | (index >> from & 1) << to)
}
