//! What the cross-crate suites share: cases of the language that run on every backend, and how results are compared.

pub mod faults;
pub mod harness;
pub mod held;
pub mod hopper;
pub mod input;
pub mod known;
pub mod lab;
pub mod language;
pub mod mistakes;
pub mod page;
pub mod probes;
mod readme;
pub mod small;
pub mod ssd;
pub mod tolerance;
