//! The tile IR: SSA values in typed arenas, structured control flow, effects on every op, locations beside the ops.

pub mod arena;
pub mod builder;
pub mod dim;
pub mod elem;
pub mod kernel;
pub mod loc;
pub mod types;

pub use arena::{Arena, Id};
pub use builder::Builder;
pub use dim::Dim;
pub use elem::{Class, Elem};
pub use kernel::{Kernel, Op, OpId, Param, ParamKind, Region, RegionId, Stage, TensorFacts, Value, ValueId};
pub use loc::{Loc, LocId, Locs};
pub use types::{SharedType, TensorType, TileType, Type};
