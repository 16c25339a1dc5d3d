//! The programs in the README and in the page about tests, as doc tests.

#[doc = include_str!("../../README.md")]
#[cfg(doctest)]
struct Readme;

#[doc = include_str!("../../docs/testing-kernels.md")]
#[cfg(doctest)]
struct TestingKernels;
