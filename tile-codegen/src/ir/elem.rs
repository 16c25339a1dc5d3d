//! Element types of tiles and tensors.

use std::fmt;

/// The type of one element of a tile or tensor.
///
/// `TF32` exists only as a tile element (an f32 rounded to a 10-bit mantissa for tensor cores); tensors never hold it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Elem {
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// bfloat16: the upper half of an f32.
    BF16,
    /// An f32 whose mantissa is rounded to 10 bits; held in 32 bits.
    TF32,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 32-bit integer.
    U32,
    /// Truth value; one byte in memory, any nonzero byte reads as true.
    Bool,
}

/// How an element is computed with: floats of every width compute in f32 and round once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// f32 arithmetic (F32, F16, BF16, TF32).
    Float,
    /// Wrapping two's complement or unsigned arithmetic (I32, I64, U32).
    Int,
    /// Logic.
    Bool,
}

impl Elem {
    /// Every element type, in declaration order.
    pub const ALL: [Elem; 8] =
        [Elem::F32, Elem::F16, Elem::BF16, Elem::TF32, Elem::I32, Elem::I64, Elem::U32, Elem::Bool];

    /// Bytes of one element in memory.
    pub fn bytes(self) -> usize {
        match self {
            Elem::F32 | Elem::TF32 | Elem::I32 | Elem::U32 => 4,
            Elem::F16 | Elem::BF16 => 2,
            Elem::I64 => 8,
            Elem::Bool => 1,
        }
    }

    /// How values of this type are computed with.
    pub fn class(self) -> Class {
        match self {
            Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 => Class::Float,
            Elem::I32 | Elem::I64 | Elem::U32 => Class::Int,
            Elem::Bool => Class::Bool,
        }
    }

    /// True for floating-point types.
    pub fn is_float(self) -> bool {
        self.class() == Class::Float
    }

    /// True for integer types (not `Bool`).
    pub fn is_int(self) -> bool {
        self.class() == Class::Int
    }

    /// The name in IR text and in messages, as Rust spells it where Rust has the type.
    pub fn name(self) -> &'static str {
        match self {
            Elem::F32 => "f32",
            Elem::F16 => "f16",
            Elem::BF16 => "bf16",
            Elem::TF32 => "tf32",
            Elem::I32 => "i32",
            Elem::I64 => "i64",
            Elem::U32 => "u32",
            Elem::Bool => "bool",
        }
    }

    /// The inverse of [`Elem::name`].
    pub fn from_name(name: &str) -> Option<Elem> {
        Elem::ALL.into_iter().find(|e| e.name() == name)
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
