//! The `#[tile_kernel]` attribute.
