//! Explanations: for each load, product and store, which path was taken, and why no faster one.
//!
//! The functions that decide return their [`Reason`]s and passes note them beside the kernel; nothing is worked out anew here.

mod collect;
mod explanation;
mod note;
mod reason;

pub(crate) use collect::explain;
pub use explanation::{Explanation, Item, Path, RoleLine};
pub use note::{Choice, Note, Product, Source, title};
pub use reason::Reason;

/// `1 warp`, `2 warps`.
fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
