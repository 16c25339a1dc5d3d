//! Tile IR and its compiler.

pub mod config;
#[cfg(feature = "cpu")]
pub mod cpu;
pub mod diag;
pub mod dsl;
pub mod ir;
pub mod layout;
pub mod ops;
pub mod ptx;
pub mod target;
