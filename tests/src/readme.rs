//! The programs in the README and in pages of `docs`, as doc tests.

#[doc = include_str!("../../README.md")]
#[cfg(doctest)]
struct Readme;

#[doc = include_str!("../../docs/testing-kernels.md")]
#[cfg(doctest)]
struct TestingKernels;

#[doc = include_str!("../../docs/hints.md")]
#[cfg(doctest)]
struct Hints;

#[doc = include_str!("../../docs/from-mamba-ssm.md")]
#[cfg(doctest)]
struct FromMambaSsm;
