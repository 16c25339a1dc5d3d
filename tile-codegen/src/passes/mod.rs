//! The passes over tile IR.

pub mod allocate_shared;
pub mod assign_layouts;
pub mod choose_warps;
pub mod insert_barriers;
