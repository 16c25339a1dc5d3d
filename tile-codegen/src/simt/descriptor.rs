//! Descriptors of shared operands: which 16-byte pieces a product of warpgroups reads (PTX ISA 9.7.15.5.1).
//!
//! | bits | field |
//! |---|---|
//! | 0..14 | start address / 16 |
//! | 16..30, 32..46 | leading and stride byte offset / 16 |
//! | 49..52 | base offset: 0, for swizzle patterns at their natural alignment |
//! | 62..64 | swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes |
//!
//! With S bytes in a row of the swizzle (16 without one), piece (i, k) of a K-major operand, row i and half k of its 32
//! bytes, lies at `i % 8 · S + i / 8 · stride + k · 16` (without a swizzle `k · leading`). Piece (i, k) of an MN-major one, 8
//! elements along M or N from 8 i on, at depth k, lies at `i % (S/16) · 16 + i / (S/16) · leading + k % 8 · S + k / 8 · stride`;
//! without a swizzle at `i · stride + k % 8 · 16 + k / 8 · leading`. The swizzle then permutes address bits.

use super::tensor_map::TensorSwizzle;

/// A descriptor, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) start: u64,
    leading: u64,
    stride: u64,
    base_offset: u64,
    swizzle: TensorSwizzle,
}

impl Descriptor {
    pub(super) fn of(bits: u64) -> Descriptor {
        let field = |at: u32| (bits >> at & 0x3fff) << 4;
        let swizzle = match bits >> 62 {
            0 => TensorSwizzle::None,
            1 => TensorSwizzle::B128,
            2 => TensorSwizzle::B64,
            _ => TensorSwizzle::B32,
        };
        Descriptor {
            start: field(0),
            leading: field(16),
            stride: field(32),
            base_offset: bits >> 49 & 7,
            swizzle,
        }
    }

    /// What is wrong with it whatever it points to.
    pub(super) fn fault(&self) -> Option<String> {
        let offset = self.base_offset;
        (offset != 0)
            .then(|| format!("base offset {offset}; expected 0, patterns start at their own alignment"))
    }

    /// The address of piece `k` (of 2) of row `i`, K-major.
    pub(super) fn k_major(&self, i: u64, k: u64) -> u64 {
        let (row, along) = match self.swizzle.span() {
            Some(span) => (span, 16),
            None => (16, self.leading),
        };
        self.swizzle.apply(self.start + i % 8 * row + i / 8 * self.stride + k * along)
    }

    /// The address of the 8 elements from `8 i` on along M or N at depth `k`, MN-major, 16-bit elements.
    pub(super) fn mn_major(&self, i: u64, k: u64) -> u64 {
        let offset = match self.swizzle.span() {
            Some(span) => {
                let wide = span / 16;
                i % wide * 16 + i / wide * self.leading + k % 8 * span + k / 8 * self.stride
            }
            None => i * self.stride + k % 8 * 16 + k / 8 * self.leading,
        };
        self.swizzle.apply(self.start + offset)
    }
}
