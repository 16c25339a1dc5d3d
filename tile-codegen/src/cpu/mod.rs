//! CPU execution of tile IR: the meaning of every operation, and an executor whose blocks can be suspended.

pub mod memory;
