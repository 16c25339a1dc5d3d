//! The modifiers of instructions as enums, each with its spelling in the text.

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The spelling in the text, without the leading dot.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

named! {
    /// Integer and bit operations with two sources (PTX ISA 9.7.1, 9.7.8).
    IntOp {
        /// Wrapping sum.
        Add = "add",
        /// Wrapping difference.
        Sub = "sub",
        /// Low half of the product.
        MulLo = "mul.lo",
        /// High half of the product.
        MulHi = "mul.hi",
        /// Quotient toward zero.
        Div = "div",
        /// Remainder with the dividend's sign.
        Rem = "rem",
        /// Smaller value.
        Min = "min",
        /// Larger value.
        Max = "max",
        /// Bitwise and (bit types).
        And = "and",
        /// Bitwise or (bit types).
        Or = "or",
        /// Bitwise exclusive or (bit types).
        Xor = "xor",
        /// Shift left (bit types); the amount is `.u32`, amounts beyond the width give 0.
        Shl = "shl",
        /// Shift right, arithmetic for signed types; the amount is `.u32` and clamped to the width.
        Shr = "shr",
    }
}

named! {
    /// Integer and bit operations with one source (PTX ISA 9.7.1, 9.7.8).
    IntUnOp {
        /// Wrapping negation (signed types).
        Neg = "neg",
        /// Absolute value (signed types).
        Abs = "abs",
        /// Bitwise complement (bit types).
        Not = "not",
        /// Number of set bits (`.b32`, `.b64`), a 32-bit result.
        Popc = "popc",
        /// Number of leading zero bits (`.b32`, `.b64`), a 32-bit result.
        Clz = "clz",
        /// Bits in reverse order (`.b32`, `.b64`).
        Brev = "brev",
    }
}

named! {
    /// Float operations with two sources (PTX ISA 9.7.3).
    FloatOp {
        /// Sum, rounded to nearest even and never contracted.
        Add = "add.rn",
        /// Difference, rounded to nearest even and never contracted.
        Sub = "sub.rn",
        /// Product, rounded to nearest even and never contracted.
        Mul = "mul.rn",
        /// IEEE quotient.
        DivRn = "div.rn",
        /// Quotient within 2 ulp, full range (`.f32`).
        DivFull = "div.full",
        /// Quotient by approximate reciprocal (`.f32`).
        DivApprox = "div.approx",
        /// Smaller value; the other one if one is NaN.
        Min = "min",
        /// Larger value; the other one if one is NaN.
        Max = "max",
        /// Smaller value; NaN if either is (`.f32`).
        MinNan = "min.NaN",
        /// Larger value; NaN if either is (`.f32`).
        MaxNan = "max.NaN",
    }
}

named! {
    /// Float operations with one source (PTX ISA 9.7.3).
    FloatUnOp {
        /// Sign flipped.
        Neg = "neg",
        /// Sign cleared.
        Abs = "abs",
        /// IEEE square root.
        SqrtRn = "sqrt.rn",
        /// Approximate square root (`.f32`).
        SqrtApprox = "sqrt.approx",
        /// Approximate reciprocal square root.
        RsqrtApprox = "rsqrt.approx",
        /// IEEE reciprocal.
        RcpRn = "rcp.rn",
        /// Approximate reciprocal (`.f32`).
        RcpApprox = "rcp.approx",
        /// Approximate power of two (`.f32`).
        Ex2Approx = "ex2.approx",
        /// Approximate logarithm to base two (`.f32`).
        Lg2Approx = "lg2.approx",
        /// Approximate sine (`.f32`).
        SinApprox = "sin.approx",
        /// Approximate cosine (`.f32`).
        CosApprox = "cos.approx",
        /// Approximate hyperbolic tangent (`.f32`, no `.ftz`).
        TanhApprox = "tanh.approx",
    }
}

named! {
    /// Rounding of `cvt` (PTX ISA 9.7.9.21).
    Round {
        /// To nearest even.
        Rn = "rn",
        /// Toward zero.
        Rz = "rz",
        /// Toward minus infinity.
        Rm = "rm",
        /// Toward plus infinity.
        Rp = "rp",
        /// To nearest, ties away from zero (tf32).
        Rna = "rna",
        /// To the nearest integer, ties to even.
        Rni = "rni",
        /// To an integer toward zero.
        Rzi = "rzi",
        /// To an integer toward minus infinity.
        Rmi = "rmi",
        /// To an integer toward plus infinity.
        Rpi = "rpi",
    }
}

named! {
    /// Comparisons of `setp` (PTX ISA 9.7.6): with NaN the ordered ones are false, the unordered ones true.
    Cmp {
        /// Equal.
        Eq = "eq",
        /// Not equal (ordered for floats).
        Ne = "ne",
        /// Less.
        Lt = "lt",
        /// Less or equal.
        Le = "le",
        /// Greater.
        Gt = "gt",
        /// Greater or equal.
        Ge = "ge",
        /// Equal or unordered (floats).
        Equ = "equ",
        /// Not equal or unordered (floats): Rust's `!=`.
        Neu = "neu",
        /// Less or unordered (floats).
        Ltu = "ltu",
        /// Less, equal or unordered (floats).
        Leu = "leu",
        /// Greater or unordered (floats).
        Gtu = "gtu",
        /// Greater, equal or unordered (floats).
        Geu = "geu",
        /// Neither is NaN (floats).
        Num = "num",
        /// One is NaN (floats).
        Nan = "nan",
    }
}

named! {
    /// Logic on predicates (PTX ISA 9.7.8).
    PredOp {
        /// Both.
        And = "and",
        /// Either.
        Or = "or",
        /// One but not both.
        Xor = "xor",
    }
}

named! {
    /// State spaces of loads, stores and atomics (PTX ISA 5.1).
    Space {
        /// Device memory; 64-bit addresses.
        Global = "global",
        /// The block's shared memory; 32-bit addresses.
        Shared = "shared",
        /// Kernel parameters; read only.
        Param = "param",
        /// The thread's own memory; 32-bit addresses.
        Local = "local",
    }
}

named! {
    /// Cache operators of loads (PTX ISA 9.7.9.1).
    LdCache {
        /// All levels.
        Ca = "ca",
        /// L2 only.
        Cg = "cg",
        /// Likely read once.
        Cs = "cs",
        /// Do not cache, fetch again.
        Cv = "cv",
        /// The read-only path: the data does not change while the kernel runs (global only).
        Nc = "nc",
        /// The read-only path without allocation in L1 (global only).
        NcNoAllocate = "nc.L1::no_allocate",
    }
}

named! {
    /// Cache operators of stores (PTX ISA 9.7.9.1).
    StCache {
        /// Write back at all levels.
        Wb = "wb",
        /// L2 only.
        Cg = "cg",
        /// Likely written once.
        Cs = "cs",
        /// Write through to system memory.
        Wt = "wt",
    }
}

named! {
    /// The threads among which an ordering holds (PTX ISA 8.5).
    Scope {
        /// The block.
        Cta = "cta",
        /// The cluster (sm_90).
        Cluster = "cluster",
        /// The device.
        Gpu = "gpu",
        /// The whole system.
        Sys = "sys",
    }
}

/// Ordering of a memory access (PTX ISA 8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemSem {
    /// No ordering; races are undefined.
    Weak,
    /// `.relaxed`: morally strong, no ordering of other accesses.
    Relaxed(Scope),
    /// `.acquire` (loads and atomics).
    Acquire(Scope),
    /// `.release` (stores and atomics).
    Release(Scope),
    /// `.acq_rel` (atomics).
    AcqRel(Scope),
}

impl MemSem {
    /// The scope, for all but weak accesses.
    pub fn scope(self) -> Option<Scope> {
        match self {
            MemSem::Weak => None,
            MemSem::Relaxed(s) | MemSem::Acquire(s) | MemSem::Release(s) | MemSem::AcqRel(s) => Some(s),
        }
    }

    /// The spelling of the ordering, without scope; empty for weak accesses.
    pub fn name(self) -> &'static str {
        match self {
            MemSem::Weak => "",
            MemSem::Relaxed(_) => "relaxed",
            MemSem::Acquire(_) => "acquire",
            MemSem::Release(_) => "release",
            MemSem::AcqRel(_) => "acq_rel",
        }
    }
}

named! {
    /// Ordering of a `fence` (PTX ISA 9.7.13.4).
    FenceSem {
        /// Acquire and release.
        AcqRel = "acq_rel",
        /// Sequentially consistent.
        Sc = "sc",
    }
}

named! {
    /// Levels of `membar` (PTX ISA 9.7.13.4).
    MembarLevel {
        /// The block.
        Cta = "cta",
        /// The device.
        Gl = "gl",
        /// The system.
        Sys = "sys",
    }
}

named! {
    /// Operations of `atom` and `red` (PTX ISA 9.7.13.5).
    AtomOp {
        /// Sum.
        Add = "add",
        /// Smaller value.
        Min = "min",
        /// Larger value.
        Max = "max",
        /// Bitwise and.
        And = "and",
        /// Bitwise or.
        Or = "or",
        /// Bitwise exclusive or.
        Xor = "xor",
        /// Exchange (`atom` only).
        Exch = "exch",
        /// Compare and swap (`atom` only).
        Cas = "cas",
    }
}

named! {
    /// Operations of `redux.sync` (PTX ISA 9.7.13.8).
    ReduxOp {
        /// Sum (integers).
        Add = "add",
        /// Smaller value (integers).
        Min = "min",
        /// Larger value (integers).
        Max = "max",
        /// Bitwise and (bit types).
        And = "and",
        /// Bitwise or (bit types).
        Or = "or",
        /// Bitwise exclusive or (bit types).
        Xor = "xor",
    }
}

named! {
    /// Where `shfl.sync` reads from (PTX ISA 9.7.9.6).
    ShflMode {
        /// The given lane.
        Idx = "idx",
        /// Own lane xor the given number.
        Bfly = "bfly",
        /// Own lane minus the given number.
        Up = "up",
        /// Own lane plus the given number.
        Down = "down",
    }
}

named! {
    /// What `vote.sync` computes (PTX ISA 9.7.13.7).
    VoteMode {
        /// True in all lanes (a predicate).
        All = "all",
        /// True in some lane (a predicate).
        Any = "any",
        /// The same in all lanes (a predicate).
        Uni = "uni",
        /// The mask of lanes where it is true (`.b32`).
        Ballot = "ballot",
    }
}

named! {
    /// Shapes of `mma.sync` (PTX ISA 9.7.14).
    MmaShape {
        /// 16-bit floats, 4 + 2 registers.
        M16N8K16 = "m16n8k16",
        /// 16-bit floats, 2 + 1 registers; tf32, 4 + 2 registers.
        M16N8K8 = "m16n8k8",
        /// tf32, 2 + 1 registers.
        M16N8K4 = "m16n8k4",
    }
}

impl MmaShape {
    /// How many 32-bit registers A and B take for element type `ty`, or `None` if there is no such form.
    pub fn registers(self, ty: super::Ty) -> Option<(usize, usize)> {
        use super::Ty;
        match (self, ty) {
            (MmaShape::M16N8K16, Ty::F16 | Ty::BF16) | (MmaShape::M16N8K8, Ty::TF32) => Some((4, 2)),
            (MmaShape::M16N8K8, Ty::F16 | Ty::BF16) | (MmaShape::M16N8K4, Ty::TF32) => Some((2, 1)),
            _ => None,
        }
    }
}

named! {
    /// Cache operators of `cp.async` (PTX ISA 9.7.9.25).
    CpCache {
        /// All levels; 4, 8 or 16 bytes.
        Ca = "ca",
        /// L2 only; 16 bytes.
        Cg = "cg",
    }
}
