//! The programs in the README, as doc tests.

#[doc = include_str!("../../README.md")]
#[cfg(doctest)]
struct Readme;
