//! Suites.

mod readme;
