//! Tests of the PTX tree: texts from the PTX manual, folding, faults.

mod builder;
mod faults;
mod forms;
mod hopper;
mod text;
