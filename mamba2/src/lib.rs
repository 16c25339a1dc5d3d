//! The Mamba-2 forward pass.
//!
//! [`reference`] defines it; every other implementation is measured against that one, within the limits of
//! [`tolerance`].

pub mod case;
pub mod file;
pub mod golden;
pub mod inputs;
pub mod problem;
pub mod reference;
pub mod tolerance;
