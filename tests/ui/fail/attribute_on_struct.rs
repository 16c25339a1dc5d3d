//! The attribute on what is no function.

use tile_runtime::prelude::*;

#[tile_kernel]
struct Kernel {
    rows: usize,
}

fn main() {}
