//! Arithmetic of a generic element type without its bound.

use tile_runtime::prelude::*;

#[tile_fn]
fn twice<T: Element>(t: Tile<T>) -> Tile<T> {
    t + t
}

fn main() {}
