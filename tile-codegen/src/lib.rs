//! Tile IR and its compiler.

pub mod layout;
