//! Dimensions: what shape rules compute with.

use std::fmt::{Debug, Display};

/// A tile dimension: a number now, a symbolic expression of a kernel's constants when shapes are checked before
/// specialisation. Shape rules are written once, generic over this trait.
pub trait Dim: Clone + PartialEq + Debug + Display {
    /// The dimension of the given size.
    fn from_usize(n: usize) -> Self;
    /// The product of two dimensions.
    fn product(&self, other: &Self) -> Self;
    /// Whether the dimension is one; `false` when it cannot be decided.
    fn is_one(&self) -> bool;
    /// Whether two dimensions certainly differ.
    fn differs(&self, other: &Self) -> bool;
    /// Whether the dimension is certainly not a positive power of two.
    fn breaks_power_of_two(&self) -> bool;
}

impl Dim for usize {
    fn from_usize(n: usize) -> Self {
        n
    }
    fn product(&self, other: &Self) -> Self {
        self.saturating_mul(*other)
    }
    fn is_one(&self) -> bool {
        *self == 1
    }
    fn differs(&self, other: &Self) -> bool {
        self != other
    }
    fn breaks_power_of_two(&self) -> bool {
        !self.is_power_of_two()
    }
}

/// The number of elements of a shape.
pub fn count<D: Dim>(shape: &[D]) -> D {
    shape.iter().fold(D::from_usize(1), |n, d| n.product(d))
}

/// A shape as messages show it: `(64, 128)`, `(64,)`, `()`.
pub fn show<D: Dim>(shape: &[D]) -> String {
    match shape {
        [one] => format!("({one},)"),
        many => format!("({})", many.iter().map(|d| d.to_string()).collect::<Vec<_>>().join(", ")),
    }
}
