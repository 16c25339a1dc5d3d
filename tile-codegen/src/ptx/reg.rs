//! What PTX instructions name: register classes, types, operands and addresses.

use std::fmt;

/// A register class: the declared type of a virtual register (PTX ISA 5.2, fundamental types).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegClass {
    /// One predicate bit, `%p`.
    Pred,
    /// 16 bits: integers, f16 and bf16, `%h`.
    B16,
    /// 32 bits: integers, tf32 and packed pairs of 16-bit floats, `%r`.
    B32,
    /// 64 bits: integers and addresses, `%d`.
    B64,
    /// A single-precision float, `%f`.
    F32,
    /// A double-precision float, `%g`.
    F64,
}

impl RegClass {
    /// Every class, in the order in which they are declared in the text.
    pub const ALL: [RegClass; 6] =
        [RegClass::Pred, RegClass::B16, RegClass::B32, RegClass::B64, RegClass::F32, RegClass::F64];

    /// The name that registers of this class start with.
    pub fn prefix(self) -> &'static str {
        match self {
            RegClass::Pred => "%p",
            RegClass::B16 => "%h",
            RegClass::B32 => "%r",
            RegClass::B64 => "%d",
            RegClass::F32 => "%f",
            RegClass::F64 => "%g",
        }
    }

    /// The type in the declaration `.reg TYPE`.
    pub fn declared(self) -> Ty {
        match self {
            RegClass::Pred => Ty::Pred,
            RegClass::B16 => Ty::B16,
            RegClass::B32 => Ty::B32,
            RegClass::B64 => Ty::B64,
            RegClass::F32 => Ty::F32,
            RegClass::F64 => Ty::F64,
        }
    }

    /// The width in bits (1 for predicates).
    pub fn bits(self) -> u32 {
        self.declared().bits()
    }
}

/// A virtual register. Ids count per class; the printed number is given by the printer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg {
    /// The class.
    pub class: RegClass,
    /// The number inside the class.
    pub id: u32,
}

/// An instruction or parameter type (PTX ISA 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ty {
    /// `.pred`
    Pred,
    /// `.b8`
    B8,
    /// `.b16`
    B16,
    /// `.b32`
    B32,
    /// `.b64`
    B64,
    /// `.u8`
    U8,
    /// `.u16`
    U16,
    /// `.u32`
    U32,
    /// `.u64`
    U64,
    /// `.s8`
    S8,
    /// `.s16`
    S16,
    /// `.s32`
    S32,
    /// `.s64`
    S64,
    /// `.f16`
    F16,
    /// `.bf16`
    BF16,
    /// `.f32`
    F32,
    /// `.f64`
    F64,
    /// `.tf32`, in a 32-bit register
    TF32,
    /// `.f16x2`, in a 32-bit register
    F16x2,
    /// `.bf16x2`, in a 32-bit register
    BF16x2,
}

/// What the bits of a type mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TyKind {
    /// A predicate.
    Pred,
    /// Untyped bits.
    Bits,
    /// An unsigned integer.
    Unsigned,
    /// A signed integer.
    Signed,
    /// A float with 32 or 64 bits.
    Float,
    /// tf32, 16-bit floats and their pairs, which live in registers of untyped bits.
    SmallFloat,
}

impl Ty {
    /// The name without the leading dot.
    pub fn name(self) -> &'static str {
        match self {
            Ty::Pred => "pred",
            Ty::B8 => "b8",
            Ty::B16 => "b16",
            Ty::B32 => "b32",
            Ty::B64 => "b64",
            Ty::U8 => "u8",
            Ty::U16 => "u16",
            Ty::U32 => "u32",
            Ty::U64 => "u64",
            Ty::S8 => "s8",
            Ty::S16 => "s16",
            Ty::S32 => "s32",
            Ty::S64 => "s64",
            Ty::F16 => "f16",
            Ty::BF16 => "bf16",
            Ty::F32 => "f32",
            Ty::F64 => "f64",
            Ty::TF32 => "tf32",
            Ty::F16x2 => "f16x2",
            Ty::BF16x2 => "bf16x2",
        }
    }

    /// The width in bits (1 for predicates).
    pub fn bits(self) -> u32 {
        match self {
            Ty::Pred => 1,
            Ty::B8 | Ty::U8 | Ty::S8 => 8,
            Ty::B16 | Ty::U16 | Ty::S16 | Ty::F16 | Ty::BF16 => 16,
            Ty::B32 | Ty::U32 | Ty::S32 | Ty::F32 | Ty::TF32 | Ty::F16x2 | Ty::BF16x2 => 32,
            Ty::B64 | Ty::U64 | Ty::S64 | Ty::F64 => 64,
        }
    }

    /// The size in memory, in bytes; predicates are never in memory and count 0.
    pub fn bytes(self) -> u32 {
        self.bits() / 8
    }

    /// What the bits mean.
    pub fn kind(self) -> TyKind {
        match self {
            Ty::Pred => TyKind::Pred,
            Ty::B8 | Ty::B16 | Ty::B32 | Ty::B64 => TyKind::Bits,
            Ty::U8 | Ty::U16 | Ty::U32 | Ty::U64 => TyKind::Unsigned,
            Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64 => TyKind::Signed,
            Ty::F32 | Ty::F64 => TyKind::Float,
            Ty::F16 | Ty::BF16 | Ty::TF32 | Ty::F16x2 | Ty::BF16x2 => TyKind::SmallFloat,
        }
    }

    /// Whether this is a signed or unsigned integer type.
    pub fn is_int(self) -> bool {
        matches!(self.kind(), TyKind::Signed | TyKind::Unsigned)
    }

    /// Whether this is a floating-point type of any width.
    pub fn is_float(self) -> bool {
        matches!(self.kind(), TyKind::Float | TyKind::SmallFloat)
    }

    /// The register class that holds a value of this type (8-bit values live in 16-bit registers).
    pub fn class(self) -> RegClass {
        match (self.kind(), self.bits()) {
            (TyKind::Pred, _) => RegClass::Pred,
            (TyKind::Float, 32) => RegClass::F32,
            (TyKind::Float, _) => RegClass::F64,
            (_, 64) => RegClass::B64,
            (_, 32) => RegClass::B32,
            _ => RegClass::B16,
        }
    }

    /// Whether a register of `class` may stand where an operand of this type is wanted: untyped bits go with
    /// everything of their size, floats and integers do not mix.
    pub fn accepts(self, class: RegClass) -> bool {
        let same_bits = class.bits() == self.bits().max(if self == Ty::Pred { 1 } else { 16 });
        same_bits
            && match class {
                RegClass::Pred => self == Ty::Pred,
                RegClass::B16 | RegClass::B32 | RegClass::B64 => true,
                RegClass::F32 | RegClass::F64 => matches!(self.kind(), TyKind::Float | TyKind::Bits),
            }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! special_regs {
    ($($(#[$doc:meta])* $name:ident = $text:literal : $ty:ident,)*) => {
        /// A predefined read-only register (PTX ISA 10, special registers).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum SpecialReg { $($(#[$doc])* $name,)* }

        impl SpecialReg {
            /// The name in the text.
            pub fn name(self) -> &'static str {
                match self { $(SpecialReg::$name => $text,)* }
            }

            /// The type that `mov` reads it with.
            pub fn ty(self) -> Ty {
                match self { $(SpecialReg::$name => Ty::$ty,)* }
            }
        }
    };
}

special_regs! {
    /// Thread index in the block, x.
    TidX = "%tid.x": U32,
    /// Thread index in the block, y.
    TidY = "%tid.y": U32,
    /// Thread index in the block, z.
    TidZ = "%tid.z": U32,
    /// Threads in the block, x.
    NTidX = "%ntid.x": U32,
    /// Block index in the grid, x.
    CtaIdX = "%ctaid.x": U32,
    /// Block index in the grid, y.
    CtaIdY = "%ctaid.y": U32,
    /// Block index in the grid, z.
    CtaIdZ = "%ctaid.z": U32,
    /// Blocks in the grid, x.
    NCtaIdX = "%nctaid.x": U32,
    /// Blocks in the grid, y.
    NCtaIdY = "%nctaid.y": U32,
    /// Blocks in the grid, z.
    NCtaIdZ = "%nctaid.z": U32,
    /// Lane in the warp.
    LaneId = "%laneid": U32,
    /// The multiprocessor that runs the block.
    SmId = "%smid": U32,
    /// Rank of the block in its cluster (sm_90).
    ClusterCtaRank = "%cluster_ctarank": U32,
    /// Cycle counter.
    Clock64 = "%clock64": U64,
    /// Nanoseconds.
    GlobalTimer = "%globaltimer": U64,
}

/// A source operand. Its type is the instruction's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A virtual register.
    Reg(Reg),
    /// An integer literal, cut to the instruction's width.
    Imm(i64),
    /// A float literal for `.f32`, by its bits.
    F32(u32),
    /// A float literal for `.f64`, by its bits.
    F64(u64),
    /// A special register; only `mov` reads these.
    Special(SpecialReg),
}

impl Operand {
    /// An `.f32` literal.
    pub fn f32(value: f32) -> Operand {
        Operand::F32(value.to_bits())
    }

    /// An `.f64` literal.
    pub fn f64(value: f64) -> Operand {
        Operand::F64(value.to_bits())
    }

    /// The register, if it is one.
    pub fn reg(self) -> Option<Reg> {
        match self {
            Operand::Reg(reg) => Some(reg),
            _ => None,
        }
    }

    /// The integer literal, if it is one.
    pub fn imm(self) -> Option<i64> {
        match self {
            Operand::Imm(value) => Some(value),
            _ => None,
        }
    }
}

impl From<Reg> for Operand {
    fn from(reg: Reg) -> Operand {
        Operand::Reg(reg)
    }
}

impl From<SpecialReg> for Operand {
    fn from(reg: SpecialReg) -> Operand {
        Operand::Special(reg)
    }
}

macro_rules! operand_from_int {
    ($($int:ty)*) => {$(
        impl From<$int> for Operand {
            fn from(value: $int) -> Operand {
                Operand::Imm(i64::from(value))
            }
        }
    )*};
}
operand_from_int!(i32 u32 i64);

/// A place in the code, local to its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(pub u32);

/// What an address counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddrBase {
    /// A register: 64-bit for global, 32-bit for shared memory.
    Reg(Reg),
    /// The kernel parameter with this index.
    Param(u32),
    /// The start of the kernel's shared memory.
    Shared,
    /// The start of the thread's local memory.
    Local,
}

/// A memory address: base plus a constant number of bytes (PTX ISA 6.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Addr {
    /// What the address counts from.
    pub base: AddrBase,
    /// Bytes added to the base; the PTX field holds 32 bits.
    pub offset: i64,
}

impl Addr {
    /// The address in `reg`, plus `offset` bytes.
    pub fn reg(reg: Reg, offset: i64) -> Addr {
        Addr { base: AddrBase::Reg(reg), offset }
    }

    /// The kernel parameter with this index.
    pub fn param(index: u32) -> Addr {
        Addr { base: AddrBase::Param(index), offset: 0 }
    }

    /// `offset` bytes into the kernel's shared memory.
    pub fn shared(offset: i64) -> Addr {
        Addr { base: AddrBase::Shared, offset }
    }

    /// `offset` bytes into the thread's local memory.
    pub fn local(offset: i64) -> Addr {
        Addr { base: AddrBase::Local, offset }
    }
}

impl From<Reg> for Addr {
    fn from(reg: Reg) -> Addr {
        Addr::reg(reg, 0)
    }
}
