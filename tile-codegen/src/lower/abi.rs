//! The parameters of a compiled kernel: what the host passes, in order.

use crate::ir::{Elem, Kernel, ParamKind};
use crate::ptx;
use crate::ptx::{FuncBuilder, Ty};

/// One PTX parameter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Slot {
    /// The address of element (0, 0, ..) of tensor parameter `param`: u64.
    Pointer {
        /// Index into the kernel's parameters.
        param: usize,
    },
    /// The extent of an axis in elements: u32.
    Extent {
        /// Index into the kernel's parameters.
        param: usize,
        /// Tensor axis.
        axis: usize,
    },
    /// The stride of an axis in elements: i64; 0 for an axis of extent 1.
    Stride {
        /// Index into the kernel's parameters.
        param: usize,
        /// Tensor axis.
        axis: usize,
    },
    /// A scalar parameter, of its element type (`bool` as u32).
    Scalar {
        /// Index into the kernel's parameters.
        param: usize,
    },
    /// The number of blocks along a grid axis: u32. Blocks are launched as one axis, x fastest.
    Blocks {
        /// Grid axis.
        axis: usize,
    },
    /// A tensor map: 128 bytes.
    Map {
        /// Index into the compiled kernel's maps.
        map: usize,
    },
}

impl Slot {
    /// The type that the kernel loads it as.
    pub fn ty(self, kernel: &Kernel) -> Ty {
        match self {
            Slot::Pointer { .. } | Slot::Map { .. } => Ty::U64,
            Slot::Extent { .. } | Slot::Blocks { .. } => Ty::U32,
            Slot::Stride { .. } => Ty::S64,
            Slot::Scalar { param } => match kernel.tile(kernel.params[param].value).elem {
                Elem::F32 | Elem::TF32 => Ty::F32,
                Elem::F16 | Elem::BF16 => Ty::B16,
                Elem::I32 => Ty::S32,
                Elem::U32 | Elem::Bool => Ty::U32,
                Elem::I64 => Ty::S64,
            },
        }
    }
}

/// The parameters of a kernel in order: each tensor's pointer, extents and strides, each scalar, then the grid
/// and the tensor maps.
pub fn slots(kernel: &Kernel) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (param, p) in kernel.params.iter().enumerate() {
        match &p.kind {
            ParamKind::Scalar => slots.push(Slot::Scalar { param }),
            ParamKind::Tensor(facts) => {
                let rank = facts.stride_align.len();
                slots.push(Slot::Pointer { param });
                slots.extend((0..rank).map(|axis| Slot::Extent { param, axis }));
                slots.extend((0..rank).map(|axis| Slot::Stride { param, axis }));
            }
        }
    }
    slots.extend((0..3).map(|axis| Slot::Blocks { axis }));
    slots.extend((0..super::channels::maps(kernel).len()).map(|map| Slot::Map { map }));
    slots
}

/// Declares a slot as a PTX parameter.
pub(super) fn declare(f: &mut FuncBuilder, kernel: &Kernel, slot: Slot) -> u32 {
    let name = |param: usize, part: &str| {
        // Users' names are Rust identifiers, which may hold letters that PTX has not.
        let base: String =
            kernel.params[param].name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        format!("arg{param}_{base}{part}")
    };
    let (name, kind) = match slot {
        Slot::Pointer { param } => (name(param, ""), ptx::ParamKind::Scalar(Ty::U64)),
        Slot::Extent { param, axis } => {
            (name(param, &format!("_extent{axis}")), ptx::ParamKind::Scalar(Ty::U32))
        }
        Slot::Stride { param, axis } => {
            (name(param, &format!("_stride{axis}")), ptx::ParamKind::Scalar(Ty::S64))
        }
        Slot::Scalar { param } => (name(param, ""), ptx::ParamKind::Scalar(slot.ty(kernel))),
        Slot::Map { map } => (format!("map{map}"), ptx::ParamKind::Bytes { size: 128, align: 64 }),
        Slot::Blocks { axis } => (format!("blocks{axis}"), ptx::ParamKind::Scalar(Ty::U32)),
    };
    f.param(name, kind)
}
