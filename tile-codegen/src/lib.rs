//! Tile IR and its compiler.

pub mod compile;
pub mod config;
#[cfg(feature = "cpu")]
pub mod cpu;
pub mod diag;
pub mod dsl;
pub mod explain;
pub mod ir;
pub mod layout;
pub mod lower;
pub mod ops;
pub mod passes;
pub mod ptx;
pub mod simt;
pub mod target;
