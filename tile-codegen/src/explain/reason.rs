//! Why a faster path was not taken: what the functions that decide return.

use std::fmt;

use super::count;

/// Why an operation is not done in the faster way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    // Bulk tensor copies through a channel.
    /// The target of this name has no bulk tensor copies.
    TargetWithoutBulk(&'static str),
    /// The configuration forbids bulk tensor copies.
    ConfigForbids,
    /// The load's own hint forbids them.
    HintForbids,
    /// So many warps compute, which is no number of whole warpgroups.
    NotWarpgroups(usize),
    /// With channels, or with rings, the kernel would need so many bytes of shared memory.
    NoRoom {
        /// Bytes that it needs.
        bytes: u32,
        /// Bytes that the target has.
        most: usize,
    },
    /// No product of the kernel is one that warpgroups do.
    NoWideProduct,
    /// The kernel has atomic operations that are ordered with what it loads and stores, or whose old values it uses.
    Atomics,
    /// Which tile is loaded, or whether, depends on elements of tiles, or of a tensor that the kernel writes: one thread
    /// alone cannot know.
    DataPath,
    /// No tile is copied in a loop, so that one of the threads that compute starts all copies before anything else.
    LoadedOnce,
    /// The tile is computed, not loaded.
    Computed,
    /// The kernel writes the tensor.
    Written,
    /// The elements are truth values.
    Truth,
    /// No axis of the tensor has stride 1.
    NoUnitAxis,
    /// The tensor's address is a multiple of so many bytes only.
    Pointer(u32),
    /// The stride of an axis is a multiple of so many bytes only.
    Stride {
        /// The axis.
        axis: usize,
        /// Bytes.
        bytes: u32,
    },
    /// Elements outside the tensor are not zero.
    Padding,
    /// The tile has so few elements.
    FewElements(usize),
    /// A row of the tile has so few bytes.
    ShortRow(usize),
    /// The index counts elements.
    Steps,

    // Bulk stores.
    /// No tile of the kernel comes through a channel.
    Undivided,
    /// The kernel accesses the tensor in so many places.
    Accesses(usize),
    /// Iterations of a loop may store the same tile.
    SameTile,

    // Asynchronous copies into a ring.
    /// `stages` of the configuration is 1.
    OneStage,
    /// A product by FMAs reads neighbours that are no neighbours in memory.
    FmaOrder,

    // Loads ahead of their iteration.
    /// The load is not in the body of a counted loop around a product.
    NoLoop,
    /// So few elements are better loaded where they are used.
    Small(usize),
    /// The address depends on what the loop computes.
    Address,
    /// So many bytes more are not free in registers.
    Budget(usize),
    /// The load's hint is a latency of 1.
    LatencyOne,

    // Wide accesses.
    /// The extent of the unit axis is a multiple of so many elements only.
    Extent(u32),
    /// A thread has so few neighbouring elements.
    FewPerThread(usize),
    /// The window begins at a multiple of so many elements only.
    Start(u32),

    // Products.
    /// The target of this name has no products of warpgroups.
    TargetWithoutWarpgroups(&'static str),
    /// The operands are exact f32.
    Exact,
    /// The depth K is less than the least.
    Depth {
        /// K of the product.
        k: usize,
        /// K of one instruction.
        least: usize,
    },
    /// The longer side has fewer rows than 64 for each warpgroup.
    Rows {
        /// The longer of M and N.
        rows: usize,
        /// Warpgroups.
        groups: usize,
    },
    /// The shorter side has so many columns, which one instruction cannot have.
    Columns(usize),
    /// No operand comes through a channel.
    NoChannel,
    /// The operand in shared memory does not lie as the instruction reads it.
    Unreadable,
    /// The product is smaller than one `mma.sync`.
    SmallProduct {
        /// Rows.
        m: usize,
        /// Columns.
        n: usize,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::TargetWithoutBulk(target) => write!(f, "{target} has no bulk tensor copies"),
            Reason::ConfigForbids => write!(f, "`allow_tma` of the configuration is false"),
            Reason::HintForbids => write!(f, "its hint `allow_tma` is false"),
            Reason::NotWarpgroups(1) => write!(f, "1 warp computes, and a warpgroup has 4"),
            Reason::NotWarpgroups(warps) => write!(f, "{warps} warps compute, and a warpgroup has 4"),
            Reason::NoRoom { bytes, most } => {
                write!(
                    f,
                    "with tiles copied to shared memory the kernel needs {bytes} bytes of shared memory, and there are {most}"
                )
            }
            Reason::NoWideProduct => write!(f, "the kernel has no product that warpgroups do"),
            Reason::Atomics => {
                write!(f, "the kernel has atomic operations that order others, or whose old values it uses")
            }
            Reason::DataPath => {
                write!(
                    f,
                    "which tile is loaded, or whether, depends on elements of tiles, or of a tensor that the kernel writes"
                )
            }
            Reason::LoadedOnce => {
                write!(
                    f,
                    "no tile is copied in a loop; the first thread starts all copies before anything else"
                )
            }
            Reason::Computed => write!(f, "the tile is computed, not loaded"),
            Reason::Written => write!(f, "the kernel writes the tensor"),
            Reason::Truth => write!(f, "elements are bool"),
            Reason::NoUnitAxis => write!(f, "no axis of the tensor has stride 1"),
            Reason::Pointer(bytes) => {
                write!(f, "the tensor's address is a multiple of {bytes} bytes only, not of 16")
            }
            Reason::Stride { axis, bytes } => {
                write!(f, "the stride of axis {axis} is a multiple of {bytes} bytes only, not of 16")
            }
            Reason::Padding => write!(f, "elements outside the tensor are not zero"),
            Reason::FewElements(elements) => {
                write!(f, "the tile has {}, fewer than 16", count(*elements, "element"))
            }
            Reason::ShortRow(bytes) => write!(f, "a row of the tile has {bytes} bytes, fewer than 16"),
            Reason::Steps => write!(f, "its index counts elements, so that it may begin anywhere"),
            Reason::Undivided => write!(f, "no tile of the kernel comes through a channel"),
            Reason::Accesses(n) => write!(f, "the kernel accesses the tensor in {n} places"),
            Reason::SameTile => write!(f, "iterations of a loop may store the same tile"),
            Reason::OneStage => write!(f, "`stages` of the configuration is 1"),
            Reason::FmaOrder => {
                write!(f, "a product by FMAs reads neighbours that are not side by side in the tensor")
            }
            Reason::NoLoop => write!(f, "it is not in the body of a counted loop around a product"),
            Reason::Small(elements) => {
                write!(f, "the tile has {}, fewer than 1024", count(*elements, "element"))
            }
            Reason::Address => write!(f, "its index depends on what the loop carries or loads"),
            Reason::Budget(bytes) => write!(f, "the registers have no room for its {bytes} bytes"),
            Reason::LatencyOne => write!(f, "its hint `latency` is 1"),
            Reason::Extent(elements) => {
                write!(f, "the extent along the rows is a multiple of {elements} elements only")
            }
            Reason::FewPerThread(1) => write!(f, "a thread has no neighbouring elements"),
            Reason::FewPerThread(n) => write!(f, "a thread has {n} neighbouring elements"),
            Reason::Start(elements) => {
                write!(
                    f,
                    "along the rows it begins at a multiple of {elements} elements only, as far as is known"
                )
            }
            Reason::TargetWithoutWarpgroups(target) => write!(f, "{target} has no products of warpgroups"),
            Reason::Exact => write!(f, "operands are f32, whose products are exact; cast to tf32 or bf16"),
            Reason::Depth { k, least } => write!(f, "K = {k} is less than {least}"),
            Reason::Rows { rows, groups: 1 } => {
                write!(f, "the longer side has {rows} rows, and a warpgroup takes 64")
            }
            Reason::Rows { rows, groups } => {
                write!(f, "the longer side has {rows} rows, and {groups} warpgroups take {}", 64 * groups)
            }
            Reason::Columns(columns) => {
                write!(f, "the shorter side has {columns} columns, and an instruction takes 8 to 256")
            }
            Reason::NoChannel => write!(f, "no operand comes through a channel"),
            Reason::Unreadable => write!(f, "the operand in shared memory does not lie as `wgmma` reads it"),
            Reason::SmallProduct { m, n } => {
                write!(f, "M = {m} and N = {n}, and one `mma.sync` has 16 and 8")
            }
        }
    }
}
