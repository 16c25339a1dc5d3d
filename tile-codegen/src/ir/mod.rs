//! The tile IR: SSA values in typed arenas, structured control flow, effects on every op, locations beside the ops.

pub mod arena;
pub mod builder;
pub mod dim;
pub mod elem;
pub mod kernel;
mod lex;
pub mod loc;
pub mod parse;
pub mod print;
pub mod types;
pub mod verify;

pub use arena::{Arena, Id};
pub use builder::Builder;
pub use dim::Dim;
pub use elem::{Class, Elem};
pub use kernel::{Kernel, Op, OpId, Param, ParamKind, Region, RegionId, Stage, TensorFacts, Value, ValueId};
pub use loc::{Loc, LocId, Locs};
pub use parse::{parse, parse_file};
pub use print::{Names, print, print_with_locs, show_type};
pub use types::{SharedType, TensorType, TileType, Type};
pub use verify::verify;

#[cfg(test)]
pub(crate) mod tests;
