//! Tensor maps: how a bulk tensor copy finds the elements of a box, as a typed description with an encoding of our own.
//!
//! The driver's 128 bytes are its secret. A launch on the executor passes [`TensorMap::encode`] in their place: a magic word,
//! the address, and the fields below, little-endian.

use crate::lower::channels::MapPlan;
use crate::ptx::Coords;

/// How 16-byte pieces are permuted in shared memory: address bits 4.. are xored with bits 7.. (PTX ISA 5.5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorSwizzle {
    /// Not at all.
    None,
    /// Rows of 32 bytes: bit 4 with bit 7.
    B32,
    /// Rows of 64 bytes: bits 4 and 5 with bits 7 and 8.
    B64,
    /// Rows of 128 bytes: bits 4 to 6 with bits 7 to 9.
    B128,
}

impl TensorSwizzle {
    /// Bytes of a row, or `None` without a swizzle.
    pub fn span(self) -> Option<u64> {
        match self {
            TensorSwizzle::None => None,
            TensorSwizzle::B32 => Some(32),
            TensorSwizzle::B64 => Some(64),
            TensorSwizzle::B128 => Some(128),
        }
    }

    /// Where an address of shared memory really is.
    pub fn apply(self, address: u64) -> u64 {
        let mask = self.span().map_or(0, |span| span / 16 - 1);
        address ^ (address >> 7 & mask) << 4
    }
}

/// A tensor in global memory and the box that a copy moves. Dimension 0 is the innermost, whose elements are adjacent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// The address of element (0, 0, ..), a multiple of 16.
    pub address: u64,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub element: u32,
    /// Extents in elements, 1 to 5 of them, each at most 2^32.
    pub dims: Vec<u64>,
    /// Bytes between neighbours along dimensions 1.., multiples of 16 below 2^40.
    pub strides: Vec<u64>,
    /// The extents of the box, each 1 to 256.
    pub box_dims: Vec<u32>,
    /// The swizzle of the box in shared memory; its rows are then exactly as long as the box is wide.
    pub swizzle: TensorSwizzle,
}

/// Why a description is no tensor map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorMapError {
    /// A field breaks a limit of the hardware.
    #[error("{field} is {found}, expected {expected}")]
    Field {
        /// Which one.
        field: &'static str,
        /// What it is.
        found: u64,
        /// What it may be.
        expected: &'static str,
    },
}

const MAGIC: u64 = u64::from_le_bytes(*b"tile-map");
/// Bytes of a tensor map.
pub(super) const BYTES: usize = 128;

fn need(ok: bool, field: &'static str, found: u64, expected: &'static str) -> Result<(), TensorMapError> {
    if ok { Ok(()) } else { Err(TensorMapError::Field { field, found, expected }) }
}

impl TensorMap {
    /// A row-major tensor without gaps: `dims` innermost first.
    pub fn dense(
        address: u64,
        element: u32,
        dims: &[u64],
        box_dims: &[u32],
        swizzle: TensorSwizzle,
    ) -> TensorMap {
        let mut strides = Vec::new();
        let mut bytes = u64::from(element);
        for dim in &dims[..dims.len().saturating_sub(1)] {
            bytes *= dim;
            strides.push(bytes);
        }
        TensorMap { address, element, dims: dims.to_vec(), strides, box_dims: box_dims.to_vec(), swizzle }
    }

    /// The map that a compiled kernel asks for, of a tensor with these extents and strides in elements.
    pub fn of(plan: &MapPlan, address: u64, shape: &[u64], strides: &[i64]) -> TensorMap {
        let element = plan.elem_bytes;
        // The stride of an axis of one element is never used, and may be anything.
        let stride = |&axis: &usize| match shape[axis] {
            1 => 16,
            _ => strides[axis].cast_unsigned().wrapping_mul(u64::from(element)),
        };
        TensorMap {
            address,
            element,
            dims: plan.axes.iter().map(|&axis| shape[axis]).collect(),
            strides: plan.axes[1..].iter().map(stride).collect(),
            box_dims: plan.box_dims.clone(),
            swizzle: match plan.swizzle {
                128 => TensorSwizzle::B128,
                64 => TensorSwizzle::B64,
                32 => TensorSwizzle::B32,
                _ => TensorSwizzle::None,
            },
        }
    }

    /// Whether the hardware has such a map.
    ///
    /// # Errors
    /// The first field that breaks a limit.
    pub fn check(&self) -> Result<(), TensorMapError> {
        let rank = self.dims.len();
        need((1..=5).contains(&rank), "the rank", rank as u64, "1 to 5")?;
        let element = u64::from(self.element);
        need(matches!(element, 1 | 2 | 4 | 8), "the element", element, "1, 2, 4 or 8 bytes")?;
        need(self.address.is_multiple_of(16), "the address", self.address, "a multiple of 16")?;
        let strides = self.strides.len();
        need(strides + 1 == rank, "the number of strides", strides as u64, "the rank less 1")?;
        let boxes = self.box_dims.len();
        need(boxes == rank, "the number of box extents", boxes as u64, "the rank")?;
        for &dim in &self.dims {
            need((1..=1 << 32).contains(&dim), "an extent", dim, "1 to 2^32")?;
        }
        for &stride in &self.strides {
            let ok = stride.is_multiple_of(16) && stride < 1 << 40;
            need(ok, "a stride", stride, "a multiple of 16 below 2^40")?;
        }
        for &side in &self.box_dims {
            need((1..=256).contains(&side), "a side of the box", side.into(), "1 to 256")?;
        }
        let row = self.row_bytes();
        need(row.is_multiple_of(16), "the box's width", row, "a multiple of 16 bytes")?;
        let fits = self.swizzle.span().is_none_or(|span| span == row);
        need(fits, "the box's width", row, "as many bytes as the rows of the swizzle have")
    }

    /// The 128 bytes of the parameter.
    ///
    /// # Errors
    /// If the hardware has no such map.
    pub fn encode(&self) -> Result<Vec<u8>, TensorMapError> {
        self.check()?;
        let mut out = Vec::with_capacity(BYTES);
        out.extend(MAGIC.to_le_bytes());
        out.extend(self.address.to_le_bytes());
        out.extend([self.dims.len() as u8, self.element as u8, self.swizzle as u8, 0]);
        let padded = |list: &[u64]| (0..5).map(|i| list.get(i).copied().unwrap_or(0)).collect::<Vec<u64>>();
        // Extents and strides take 8 bytes, box sides 2.
        padded(&self.dims).iter().for_each(|dim| out.extend(dim.to_le_bytes()));
        padded(&self.strides)[..4].iter().for_each(|stride| out.extend(stride.to_le_bytes()));
        let sides: Vec<u64> = self.box_dims.iter().map(|&side| side.into()).collect();
        padded(&sides).iter().for_each(|side| out.extend((*side as u16).to_le_bytes()));
        out.resize(BYTES, 0);
        Ok(out)
    }

    /// The map of 128 bytes that [`TensorMap::encode`] made, else `None`.
    pub fn decode(bytes: &[u8]) -> Option<TensorMap> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        if bytes.len() != BYTES || word(0)? != MAGIC {
            return None;
        }
        let rank = usize::from(bytes[16]);
        let swizzle = [TensorSwizzle::None, TensorSwizzle::B32, TensorSwizzle::B64, TensorSwizzle::B128];
        let side = |i: usize| u32::from(u16::from_le_bytes([bytes[92 + 2 * i], bytes[93 + 2 * i]]));
        if !(1..=5).contains(&rank) {
            return None;
        }
        let map = TensorMap {
            address: word(8)?,
            element: bytes[17].into(),
            dims: (0..rank).map(|i| word(20 + 8 * i)).collect::<Option<_>>()?,
            strides: (0..rank - 1).map(|i| word(60 + 8 * i)).collect::<Option<_>>()?,
            box_dims: (0..rank).map(side).collect(),
            swizzle: *swizzle.get(usize::from(bytes[18]))?,
        };
        map.check().is_ok().then_some(map)
    }

    fn row_bytes(&self) -> u64 {
        u64::from(self.element) * u64::from(self.box_dims[0])
    }

    /// Bytes of a box in shared memory, those outside of the tensor included.
    pub fn box_bytes(&self) -> u64 {
        self.box_dims[1..].iter().fold(self.row_bytes(), |bytes, &side| bytes * u64::from(side))
    }

    /// The rows of the box at these coordinates, in the order of shared memory.
    pub(super) fn rows(&self, at: &[i64]) -> Vec<BoxRow> {
        let element = i64::from(self.element);
        let count = self.box_dims[1..].iter().product::<u32>();
        let mut rows = Vec::with_capacity(count as usize);
        for index in 0..count {
            let (mut rest, mut inside) = (index, true);
            let mut address = self.address.cast_signed() + at[0] * element;
            for (axis, first) in at.iter().enumerate().skip(1) {
                let place = first + i64::from(rest % self.box_dims[axis]);
                rest /= self.box_dims[axis];
                inside &= (0..self.dims[axis].cast_signed()).contains(&place);
                address = address.wrapping_add(place.wrapping_mul(self.strides[axis - 1].cast_signed()));
            }
            let width = i64::from(self.box_dims[0]);
            let first = (-at[0]).clamp(0, width);
            let last = (self.dims[0].cast_signed() - at[0]).clamp(first, width);
            let valid = if inside { first * element..last * element } else { 0..0 };
            rows.push(BoxRow {
                offset: u64::from(index) * self.row_bytes(),
                bytes: self.row_bytes(),
                valid: valid.start as u64..valid.end as u64,
                address: address.cast_unsigned(),
            });
        }
        rows
    }

    /// Why the hardware refuses a copy of the box at these coordinates: an illegal instruction on an H200
    /// (`tests/data/probes/README.md`). `None` if it does not.
    pub(super) fn refusal(&self, at: &[i64], load: bool) -> Option<String> {
        let (first, element) = (at[0], i64::from(self.element));
        if (first * element) % 16 != 0 {
            return Some(format!(
                "the innermost coordinate is {first}, expected a multiple of {}: boxes begin at multiples of 16 bytes",
                16 / element
            ));
        }
        let negative = at.iter().find(|&&coord| coord < 0).filter(|_| !load)?;
        Some(format!(
            "a store at coordinate {negative}, expected none below 0; only loads may begin before the tensor"
        ))
    }

    /// Whether a copy names as many coordinates as the map has dimensions.
    pub(super) fn fits(&self, coords: &Coords) -> bool {
        coords.len() == self.dims.len()
    }
}

/// A row of a box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoxRow {
    /// Where it starts in the box, without the swizzle.
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// The bytes of it that lie in the tensor.
    pub(super) valid: std::ops::Range<u64>,
    /// The address of byte 0 in global memory, if it were in the tensor.
    pub(super) address: u64,
}
