//! Layouts: which thread holds which element of a tile, as linear maps over bits.
//!
//! # What a layout is
//!
//! Every tile dimension is a power of two, so the flat row-major index of an element (last axis = lowest bits) is
//! the concatenation of the bits of its coordinates. In a `[4, 8]` tile, element `(r, c)` has the flat index
//! `r1 r0 c2 c1 c0`. Where an element lives is a number made of bits too: a register index, a lane (5 bits) and a
//! warp. A [`Layout`] maps the second kind of number to the first, and the map is *linear over GF(2)*: it is given
//! by one flat index for every register, lane and warp bit (its *bases*), and
//!
//! ```text
//! flat(reg, lane, warp) = XOR of the bases of all bits that are set in reg, lane and warp
//! ```
//!
//! With `reg = [1]`, `lane = [2, 4, 8, 16, 0]`, `warp = []` on the `[4, 8]` tile, lane 3 register 1 holds
//! `1 ^ 2 ^ 4 = 7`, which is `(0, 7)`. Lane bit 4 has a zero base: lanes 16..31 hold copies of lanes 0..15.
//!
//! This one type describes coalesced global accesses ([`blocked`]), every tensor core fragment ([`mma_acc`],
//! [`mma_a`], [`mma_b`]) and everything that reshapes, transposes, reductions and broadcasts make of them. It cannot
//! describe sizes that are not powers of two, or padding.
//!
//! # Invariants
//!
//! * Every element is held by some thread (the map is surjective).
//! * Register bases are linearly independent: a thread holds no element twice.
//! * Lane and warp bases may be zero or depend on others: such bits *replicate* data. [`Layout::replication`] says
//!   which, so that a store can be left to one owner.
//!
//! # What follows from linearity
//!
//! | operation | in terms of bases |
//! |---|---|
//! | [`Layout::reshape`] | nothing changes: the flat index is the same |
//! | [`Layout::permute`] | the bits of every base are permuted |
//! | [`Layout::project`] (reduction, operand of a broadcast) | the bits of the axis are cleared and removed |
//! | [`Layout::expand`] (default result of a broadcast) | new register bases for the new bits |
//! | [`Layout::locate`] | solve a linear system |
//! | [`SharedLayout`] (swizzles) | flat index bit -> byte offset, also XOR-linear |
//! | [`SharedAccess`], [`ldmatrix`] | composition of the two; patterns of instructions are conditions on bases |
//! | [`conversion`] | do lane and warp bases agree, and the register bases span the same space? |
//!
//! Addresses in shared memory are therefore `base + (f(thread) ^ g(register))` with two linear functions, of which
//! `g` is a compile-time constant for each access.

mod anchors;
mod convert;
mod gf2;
mod ldmatrix;
mod linear;
mod shared;
mod wgmma;

pub use anchors::{MmaTile, WarpGrid, blocked, mma_a, mma_acc, mma_b};
pub use convert::{Conversion, conversion, scratch};
pub use ldmatrix::{Ldmatrix, LdmatrixStep, ldmatrix};
pub use linear::{Layout, LayoutError};
pub use shared::{SharedAccess, SharedLayout, ThreadOffset, Wavefronts};
pub use wgmma::{DEPTH_BYTES, ROWS, Warpgroups, WgmmaOperand, wgmma_a, wgmma_acc};

#[cfg(test)]
mod tests;
