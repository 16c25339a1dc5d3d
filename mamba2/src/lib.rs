//! Mamba-2.
