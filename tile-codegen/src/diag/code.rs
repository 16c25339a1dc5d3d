//! Error codes: one number a kind of fault.

use std::fmt;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $number:literal;)*) => {
        /// The kind of a fault; printed as `E0101`.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Code { $($(#[doc = $doc])+ $name = $number,)* }
        impl Code {
            /// Every code with its explanation.
            pub const ALL: &'static [(Code, &'static str)] = &[$((Code::$name, concat!($($doc),+)),)*];
        }
    };
}

codes! {
    /// A tile dimension is not a power of two.
    TileDimension = 101;
    /// Element types differ, or an operation has no meaning for an element type.
    ElementType = 102;
    /// Two shapes do not broadcast to one.
    Broadcast = 103;
    /// A reshape changes the number of elements.
    Reshape = 104;
    /// An axis is out of range or named twice.
    Axis = 105;
    /// The shapes of a matrix product do not fit.
    MmaShape = 106;
    /// The element types of a matrix product do not fit.
    MmaType = 107;
    /// The rank of an index, a shape or a tensor is not the expected one.
    Rank = 108;
    /// An `extract` reaches outside its tile.
    Extract = 109;
    /// A variable changes its type or shape across a loop or a branch.
    Carried = 110;
    /// A host value or jump depends on a runtime condition.
    Staging = 111;
    /// Host code inside a kernel panicked while the kernel was specialised.
    HostPanic = 112;
    /// A literal does not fit its element type.
    Literal = 113;
    /// A hint is out of its range.
    Hint = 114;
    /// IR text could not be parsed.
    Parse = 201;
    /// IR breaks a structural rule.
    Structure = 202;
    /// A kernel needs more shared memory than the target has.
    SharedMemory = 301;
    /// The target or configuration cannot run the kernel.
    Target = 302;
}

impl Code {
    /// A few words for the place in the source, where they say more than the message does.
    pub(super) fn label(self) -> Option<&'static str> {
        match self {
            Code::TileDimension => Some("not a power of two"),
            Code::ElementType | Code::MmaType => Some("unexpected element type"),
            Code::Broadcast | Code::MmaShape => Some("different shapes"),
            Code::Reshape => Some("different numbers of elements"),
            Code::Axis => Some("no such axis"),
            Code::Rank => Some("unexpected rank"),
            Code::Extract => Some("outside the tile"),
            Code::Carried => Some("its type or shape changes here"),
            Code::Staging => Some("depends on a runtime condition"),
            Code::HostPanic => Some("panicked here"),
            Code::Literal => Some("does not fit"),
            Code::Hint => Some("out of range"),
            Code::Parse | Code::Structure | Code::SharedMemory | Code::Target => None,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "E{:04}", *self as u16)
    }
}
