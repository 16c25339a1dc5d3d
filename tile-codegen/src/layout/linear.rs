//! The layout type and its algebra.

use super::gf2::{Span, combine, compress, deposit};

/// Why a layout cannot be made.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum LayoutError {
    /// A tile dimension is not a power of two.
    #[error("a tile of shape {0:?} has a dimension that is not a power of two")]
    NotPowerOfTwo(Vec<usize>),
    /// The tile has more than 2^31 elements.
    #[error("a tile of shape {0:?} has more than 2^31 elements")]
    TooLarge(Vec<usize>),
    /// The number of warps is not a power of two.
    #[error("found {0} warps, expected a power of two")]
    Warps(usize),
    /// The number of elements per thread is not a power of two.
    #[error("found vectors of {0} elements, expected a power of two")]
    Vector(usize),
    /// The element size has no shared memory access.
    #[error("found elements of {0} bytes, expected 1, 2, 4, 8 or 16")]
    ElementBytes(usize),
    /// A basis addresses an element outside the tile.
    #[error("base {base:#x} is outside a tile of {numel} elements")]
    OutOfRange {
        /// The offending basis.
        base: u32,
        /// Elements of the tile.
        numel: usize,
    },
    /// Two registers of a thread would hold the same element.
    #[error("register bases {0:?} are not linearly independent")]
    DuplicateRegisters(Vec<u32>),
    /// Some element is held by no thread.
    #[error("the bases reach only 2^{rank} of {numel} elements")]
    NotSurjective {
        /// Independent bases found.
        rank: usize,
        /// Elements of the tile.
        numel: usize,
    },
    /// Two shapes that should have the same elements do not.
    #[error("shape {from:?} cannot become {to:?}")]
    Shape {
        /// Shape of the operand.
        from: Vec<usize>,
        /// Shape asked for.
        to: Vec<usize>,
    },
    /// A list of axes is not a permutation of `0..rank`.
    #[error("axes {axes:?} are not a permutation of 0..{rank}")]
    Axes {
        /// The list found.
        axes: Vec<usize>,
        /// The rank expected.
        rank: usize,
    },
    /// A tensor core operand does not fit the instruction or the warps.
    #[error("{0}")]
    Mma(String),
}

/// Where the elements of a tile live: a linear map from (register, lane, warp) bits to flat row-major index bits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    shape: Vec<usize>,
    reg: Vec<u32>,
    lane: [u32; 5],
    warp: Vec<u32>,
}

impl Layout {
    /// A layout of a tile of `shape` from its bases: `reg[i]`, `lane[i]`, `warp[i]` are the flat indices held by
    /// register, lane, warp `1 << i`.
    ///
    /// # Errors
    /// If a dimension is not a power of two, the bases do not reach every element, one lies outside the tile, or the
    /// register bases are not linearly independent. Lane and warp bases may be zero or dependent (replication).
    pub fn new(
        shape: Vec<usize>,
        reg: Vec<u32>,
        lane: [u32; 5],
        warp: Vec<u32>,
    ) -> Result<Layout, LayoutError> {
        let numel = 1usize << bits_of(&shape)?;
        let layout = Layout { shape, reg, lane, warp };
        if let Some(base) = layout.bases().find(|&base| base as usize >= numel) {
            return Err(LayoutError::OutOfRange { base, numel });
        }
        if Span::of(layout.reg.iter().copied()).rank() != layout.reg.len() {
            return Err(LayoutError::DuplicateRegisters(layout.reg));
        }
        let rank = layout.span().rank();
        if 1 << rank != numel {
            return Err(LayoutError::NotSurjective { rank, numel });
        }
        Ok(layout)
    }

    /// The layout of a rank 0 tile: one register, replicated in every thread of `num_warps` warps.
    ///
    /// # Errors
    /// If `num_warps` is not a power of two.
    pub fn scalar(num_warps: usize) -> Result<Layout, LayoutError> {
        Layout::with_rank(0, num_warps)
    }

    /// The layout of a tile of shape `[1; rank]`: one register, replicated in every thread.
    ///
    /// # Errors
    /// If `num_warps` is not a power of two.
    pub fn with_rank(rank: usize, num_warps: usize) -> Result<Layout, LayoutError> {
        Layout::new(vec![1; rank], vec![], [0; 5], vec![0; warp_bits(num_warps)?])
    }

    /// Shape of the tile.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Bases of the register bits.
    pub fn reg(&self) -> &[u32] {
        &self.reg
    }

    /// Bases of the five lane bits.
    pub fn lane(&self) -> &[u32; 5] {
        &self.lane
    }

    /// Bases of the warp bits.
    pub fn warp(&self) -> &[u32] {
        &self.warp
    }

    /// Number of warps.
    pub fn num_warps(&self) -> usize {
        1 << self.warp.len()
    }

    /// Number of elements that each thread holds.
    pub fn num_regs(&self) -> usize {
        1 << self.reg.len()
    }

    /// Number of elements of the tile.
    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    /// Flat row-major index of the element in register `reg` of lane `lane` of warp `warp`.
    pub fn flat(&self, reg: usize, lane: usize, warp: usize) -> u32 {
        combine(&self.reg, reg) ^ combine(&self.lane, lane) ^ combine(&self.warp, warp)
    }

    /// Coordinates of the element in register `reg` of lane `lane` of warp `warp`.
    pub fn coords(&self, reg: usize, lane: usize, warp: usize) -> Vec<usize> {
        unflatten(&self.shape, self.flat(reg, lane, warp))
    }

    /// One owner `(register, lane, warp)` of element `flat`; bits that replicate are zero.
    pub fn locate(&self, flat: u32) -> (usize, usize, usize) {
        let bits =
            self.span().solve(flat).expect("a layout is surjective, and flat is inside the tile") as usize;
        let (reg, thread) = (bits & (self.num_regs() - 1), bits >> self.reg.len());
        (reg, thread & 31, thread >> 5)
    }

    /// The lane bits and the warp bits (as masks) that replicate data: every element has an owner in which these bits
    /// are zero, so `lane & lane_mask == 0 && warp & warp_mask == 0` elects exactly one owner of each element.
    pub fn replication(&self) -> (u32, u32) {
        let mut span = Span::of(self.reg.iter().copied());
        let mut dependent = |bases: &[u32]| {
            bases.iter().enumerate().fold(0, |mask, (bit, &base)| mask | u32::from(!span.push(base)) << bit)
        };
        (dependent(&self.lane), dependent(&self.warp))
    }

    /// True if every basis is zero or a single bit, and no bit occurs twice: each location bit is one coordinate bit.
    pub fn is_permutation(&self) -> bool {
        let mut seen = 0;
        self.bases().filter(|&base| base != 0).all(|base| {
            let fresh = base.is_power_of_two() && seen & base == 0;
            seen |= base;
            fresh
        })
    }

    /// Mask of the flat index bits that belong to `axis`.
    pub fn axis_bits(&self, axis: usize) -> u32 {
        axis_bits(&self.shape, axis)
    }

    /// Mask of the register bits whose bases move along `axis`.
    pub fn reg_bits_on(&self, axis: usize) -> u32 {
        touching(&self.reg, self.axis_bits(axis))
    }

    /// Mask of the lane bits whose bases move along `axis`.
    pub fn lane_bits_on(&self, axis: usize) -> u32 {
        touching(&self.lane, self.axis_bits(axis))
    }

    /// Mask of the warp bits whose bases move along `axis`.
    pub fn warp_bits_on(&self, axis: usize) -> u32 {
        touching(&self.warp, self.axis_bits(axis))
    }

    /// The layout of the same registers seen as a tile of another shape with as many elements.
    ///
    /// # Errors
    /// If the number of elements differs, or a dimension is not a power of two.
    pub fn reshape(&self, shape: &[usize]) -> Result<Layout, LayoutError> {
        if 1usize << bits_of(shape)? != self.numel() {
            return Err(LayoutError::Shape { from: self.shape.clone(), to: shape.to_vec() });
        }
        Ok(Layout { shape: shape.to_vec(), ..self.clone() })
    }

    /// The layout of the same registers seen as the transposed tile whose axis `i` is this tile's axis `axes[i]`.
    ///
    /// # Errors
    /// If `axes` is not a permutation of `0..rank`.
    pub fn permute(&self, axes: &[usize]) -> Result<Layout, LayoutError> {
        check_axes(axes, self.shape.len())?;
        let shape: Vec<usize> = axes.iter().map(|&axis| self.shape[axis]).collect();
        let pairs: Vec<(u32, u32)> = axes
            .iter()
            .enumerate()
            .map(|(to, &from)| (self.axis_bits(from), axis_bits(&shape, to)))
            .collect();
        Ok(self.map(shape.clone(), |base| {
            pairs.iter().fold(0, |out, &(from, to)| out | deposit(compress(base, from), to))
        }))
    }

    /// Undoes [`Layout::permute`] with the same `axes`: the layout `x` for which `x.permute(axes)` is `self`.
    ///
    /// # Errors
    /// If `axes` is not a permutation of `0..rank`.
    pub fn inverse_permute(&self, axes: &[usize]) -> Result<Layout, LayoutError> {
        check_axes(axes, self.shape.len())?;
        let mut inverse = vec![0; axes.len()];
        for (to, &from) in axes.iter().enumerate() {
            inverse[from] = to;
        }
        self.permute(&inverse)
    }

    /// The layout of the tile with `axes` collapsed to size 1, in which every thread keeps what it held, once.
    ///
    /// Used for the result of a reduction and for the operand of a broadcast. Registers that now coincide are merged
    /// (see [`Layout::project_map`]); lanes and warps along `axes` become replicas.
    pub fn project(&self, axes: &[usize]) -> Layout {
        let keep = self.kept_bits(axes);
        let shape = self.shape.iter().enumerate().map(|(axis, &n)| if axes.contains(&axis) { 1 } else { n });
        let mut projected = self.map(shape.collect(), |base| compress(base, keep));
        let mut span = Span::default();
        projected.reg.retain(|&base| span.push(base));
        projected
    }

    /// For each register of this layout, the register of `self.project(axes)` that holds its value in the same thread.
    pub fn project_map(&self, axes: &[usize]) -> Vec<usize> {
        let keep = self.kept_bits(axes);
        let span = Span::of(self.project(axes).reg);
        let find = |reg| {
            let value = compress(combine(&self.reg, reg), keep);
            span.solve(value).expect("project keeps the span of the register bases") as usize
        };
        (0..self.num_regs()).map(find).collect()
    }

    /// The layout of this tile broadcast to `shape`: every axis of size 1 may grow, and each thread holds all copies
    /// of its elements. Register `r` of the result holds a copy of register `r % self.num_regs()`.
    ///
    /// # Errors
    /// If the ranks differ or an axis that is not 1 changes.
    pub fn expand(&self, shape: &[usize]) -> Result<Layout, LayoutError> {
        let grows = |(&from, &to): (&usize, &usize)| from == to || from == 1;
        if shape.len() != self.shape.len() || !self.shape.iter().zip(shape).all(grows) {
            return Err(LayoutError::Shape { from: self.shape.clone(), to: shape.to_vec() });
        }
        let bits = bits_of(shape)?;
        let old = (0..shape.len())
            .filter(|&axis| self.shape[axis] == shape[axis])
            .fold(0, |mask, axis| mask | axis_bits(shape, axis));
        let mut expanded = self.map(shape.to_vec(), |base| deposit(base, old));
        expanded.reg.extend((0..bits).map(|bit| 1 << bit).filter(|bit| old & bit == 0));
        Ok(expanded)
    }

    fn kept_bits(&self, axes: &[usize]) -> u32 {
        let kept = (0..self.shape.len()).filter(|axis| !axes.contains(axis));
        kept.fold(0, |mask, axis| mask | self.axis_bits(axis))
    }

    /// Applies a linear function of flat indices to every basis.
    fn map(&self, shape: Vec<usize>, f: impl Fn(u32) -> u32) -> Layout {
        Layout {
            shape,
            reg: self.reg.iter().map(|&base| f(base)).collect(),
            lane: self.lane.map(&f),
            warp: self.warp.iter().map(|&base| f(base)).collect(),
        }
    }

    fn bases(&self) -> impl Iterator<Item = u32> + '_ {
        self.reg.iter().chain(&self.lane).chain(&self.warp).copied()
    }

    fn span(&self) -> Span {
        Span::of(self.bases())
    }
}

/// Number of flat index bits of a tile of `shape`.
pub(super) fn bits_of(shape: &[usize]) -> Result<u32, LayoutError> {
    if !shape.iter().all(|dim| dim.is_power_of_two()) {
        return Err(LayoutError::NotPowerOfTwo(shape.to_vec()));
    }
    let bits: u32 = shape.iter().map(|dim| dim.trailing_zeros()).sum();
    if bits > 31 { Err(LayoutError::TooLarge(shape.to_vec())) } else { Ok(bits) }
}

/// Number of warp bits of `num_warps` warps.
pub(super) fn warp_bits(num_warps: usize) -> Result<usize, LayoutError> {
    if !num_warps.is_power_of_two() {
        return Err(LayoutError::Warps(num_warps));
    }
    Ok(num_warps.trailing_zeros() as usize)
}

/// Mask of the flat index bits of `axis` in a tile of `shape`.
pub(super) fn axis_bits(shape: &[usize], axis: usize) -> u32 {
    let inner: usize = shape[axis + 1..].iter().product();
    ((shape[axis] - 1) * inner) as u32
}

/// Checks that `axes` is a permutation of `0..rank`.
pub(super) fn check_axes(axes: &[usize], rank: usize) -> Result<(), LayoutError> {
    let mut sorted = axes.to_vec();
    sorted.sort_unstable();
    if sorted.into_iter().eq(0..rank) { Ok(()) } else { Err(LayoutError::Axes { axes: axes.to_vec(), rank }) }
}

fn unflatten(shape: &[usize], flat: u32) -> Vec<usize> {
    (0..shape.len()).map(|axis| compress(flat, axis_bits(shape, axis)) as usize).collect()
}

fn touching(bases: &[u32], bits: u32) -> u32 {
    bases.iter().enumerate().fold(0, |mask, (bit, base)| mask | u32::from(base & bits != 0) << bit)
}
