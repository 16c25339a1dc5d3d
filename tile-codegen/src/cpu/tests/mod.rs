//! Tests of CPU execution.

mod basics;
