//! Element types: the Rust types that a tensor may hold, and how they are stored.

use half::{bf16, f16};
use tile_codegen::ir::Elem;

/// A Rust type that tensors can hold: `f32 f16 bf16 i32 i64 u32 bool`. Sealed.
///
/// `size_of::<Self>()` equals [`Elem::bytes`] of [`Element::TYPE`], and values have no padding.
pub trait Element:
    sealed::Stored + Copy + std::fmt::Debug + PartialEq + Default + Send + Sync + 'static
{
    /// The element type that this Rust type stands for.
    const TYPE: Elem;
}

/// Keeps [`Element`] to the types listed here, and says how a value is stored.
pub(crate) mod sealed {
    use crate::cpu_buffer::Word;

    /// Conversion to and from the unsigned integer that memory holds.
    pub trait Stored: Sized {
        /// The unsigned integer of the same size.
        type Word: Word;
        /// The stored form.
        fn to_word(self) -> Self::Word;
        /// The value of a stored form; total, so that no bit pattern in memory is undefined behaviour.
        fn from_word(word: Self::Word) -> Self;
    }
}

macro_rules! element {
    ($type:ty, $name:ident, $word:ty, $to:expr, $from:expr) => {
        impl sealed::Stored for $type {
            type Word = $word;
            #[inline]
            fn to_word(self) -> $word {
                ($to)(self)
            }
            #[inline]
            fn from_word(word: $word) -> Self {
                ($from)(word)
            }
        }
        impl Element for $type {
            const TYPE: Elem = Elem::$name;
        }
    };
}

element!(f32, F32, u32, f32::to_bits, f32::from_bits);
element!(f16, F16, u16, f16::to_bits, f16::from_bits);
element!(bf16, BF16, u16, bf16::to_bits, bf16::from_bits);
element!(i32, I32, u32, i32::cast_unsigned, u32::cast_signed);
element!(i64, I64, u64, i64::cast_unsigned, u64::cast_signed);
element!(u32, U32, u32, std::convert::identity, std::convert::identity);
element!(bool, Bool, u8, u8::from, |word| word != 0);
