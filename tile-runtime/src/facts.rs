//! What one launch knows of a tensor, packed into one word of the specialisation's key.

use tile_codegen::ir::TensorFacts;

use crate::tensor_any::AnyTensor;

/// Alignments beyond this many bytes or elements are not told apart.
const CAP: u64 = 16;

/// Axes that a key word has room for; the most that a kernel's tensor may have.
pub(crate) const MAX_RANK: usize = 5;

/// Facts as a word: axis fields of 3 bits each, from the lowest bit on: exponents of the pointer's alignment, of the
/// alignment of 5 strides and of 5 extents, the unit axis (7: none), whether offsets fit 31 bits, the rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PackedFacts(pub(crate) u64);

const NO_AXIS: u64 = 7;
const STRIDES: u32 = 3;
const EXTENTS: u32 = STRIDES + 3 * MAX_RANK as u32;
const UNIT: u32 = EXTENTS + 3 * MAX_RANK as u32;
const FITS: u32 = UNIT + 3;
const RANK: u32 = FITS + 1;
/// Bits that the facts take.
pub(crate) const BITS: u32 = RANK + 3;

impl PackedFacts {
    /// The facts of a tensor of at most [`MAX_RANK`] axes. Meta tensors lie at address 0, as well aligned as can be.
    ///
    /// An axis of extent 1 (or 0) has no stride: it counts as 0, and is never the unit axis.
    pub(crate) fn of(tensor: &AnyTensor) -> Self {
        let view = tensor.view();
        let bytes = tensor.elem().bytes() as u64;
        let address = tensor.storage().base().wrapping_add(view.offset() as u64 * bytes);
        let (mut word, mut unit, mut reach) = (exponent(address), NO_AXIS, 0_u128);
        for (axis, (&extent, &stride)) in view.shape().iter().zip(view.strides()).enumerate() {
            let stride = if extent > 1 { stride } else { 0 };
            if stride == 1 {
                unit = axis as u64;
            }
            reach += u128::from(stride.unsigned_abs()) * extent.saturating_sub(1) as u128;
            word |= exponent(stride.unsigned_abs().wrapping_mul(bytes)) << (STRIDES + 3 * axis as u32);
            word |= exponent(extent as u64) << (EXTENTS + 3 * axis as u32);
        }
        let fits = u64::from(reach <= i32::MAX as u128);
        Self(word | unit << UNIT | fits << FITS | (view.rank() as u64) << RANK)
    }

    /// The facts as the tile IR holds them.
    pub(crate) fn unpack(self) -> TensorFacts {
        let field = |from: u32| self.0 >> from & 7;
        let align = |from: u32| 1_u32 << field(from);
        let axes = |from: u32| (0..field(RANK) as u32).map(|axis| align(from + 3 * axis)).collect();
        let unit = field(UNIT);
        TensorFacts {
            unit_axis: (unit != NO_AXIS).then_some(unit as usize),
            align: align(0),
            stride_align: axes(STRIDES),
            extent_align: axes(EXTENTS),
            offsets_fit_i32: self.0 >> FITS & 1 == 1,
        }
    }
}

/// The exponent of the largest power of two, at most [`CAP`], that divides `number`; every one divides 0.
fn exponent(number: u64) -> u64 {
    u64::from((number | CAP).trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, DeviceTensor};

    fn facts(tensor: &DeviceTensor<f32>) -> TensorFacts {
        PackedFacts::of(tensor.as_any()).unpack()
    }

    #[test]
    fn a_row_major_matrix() {
        let tensor = DeviceTensor::<f32>::meta(&[6, 8]).expect("a small shape");
        let expected = TensorFacts {
            unit_axis: Some(1),
            align: 16,
            // Strides of 32 bytes (capped) and 4 bytes.
            stride_align: vec![16, 4],
            extent_align: vec![2, 8],
            offsets_fit_i32: true,
        };
        assert_eq!(facts(&tensor), expected);
    }

    #[test]
    fn a_view_with_an_offset() {
        // Element 2 of 4-byte elements, rows of 10 elements: 8 bytes and 40 bytes.
        let tensor = DeviceTensor::<f32>::zeros(&Device::cpu(), &[4, 10]).expect("fits");
        let view = tensor.slice(1, 2..9).expect("inside");
        let expected = TensorFacts {
            unit_axis: Some(1),
            align: 8,
            stride_align: vec![8, 4],
            extent_align: vec![4, 1],
            offsets_fit_i32: true,
        };
        assert_eq!(facts(&view), expected);
    }

    #[test]
    fn axes_of_extent_one_have_no_stride() {
        let column = DeviceTensor::<f32>::meta(&[12, 1]).expect("a small shape");
        let f = facts(&column);
        assert_eq!((f.unit_axis, f.stride_align, f.extent_align), (Some(0), vec![4, 16], vec![4, 1]));
        assert_eq!(facts(&DeviceTensor::meta(&[1, 1]).expect("a small shape")).unit_axis, None);
        let transposed =
            DeviceTensor::<f32>::meta(&[3, 5]).and_then(|t| t.transpose(0, 1)).expect("two axes");
        assert_eq!(facts(&transposed).unit_axis, Some(0));
    }

    #[test]
    fn offsets_of_more_than_31_bits() {
        let near = DeviceTensor::<f32>::meta(&[1 << 15, 1 << 16]).expect("63 bits");
        assert!(facts(&near).offsets_fit_i32);
        let far = DeviceTensor::<f32>::meta(&[(1 << 15) + 1, 1 << 16]).expect("63 bits");
        assert!(!facts(&far).offsets_fit_i32);
    }
}
