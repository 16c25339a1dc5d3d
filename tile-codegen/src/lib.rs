//! Tile IR and its compiler.
