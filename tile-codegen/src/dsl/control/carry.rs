//! Values that a loop or a branch hands on: runtime values and what is made of them.

use crate::dsl::handle::{Scalar, Tile};
use crate::dsl::session::Raw;

/// A variable that control flow may change: tiles, scalars, and tuples, arrays and vectors of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is a host value: it cannot change inside a runtime loop or under a runtime condition",
    label = "this variable changes at run time but holds a host value",
    note = "make it a runtime value, `let mut x = scalar(..)`; or decide on the host: `for .. in unroll(..)`, or an `if` with a host condition"
)]
pub trait Carry {
    #[doc(hidden)]
    fn flatten(&self, out: &mut Vec<Raw>);
    /// Takes as many values as `flatten` gives.
    #[doc(hidden)]
    fn restore(&mut self, from: &mut dyn Iterator<Item = Raw>);
}

macro_rules! leaves {
    ($($handle:ident)*) => {$(
        impl<T> Carry for $handle<T> {
            fn flatten(&self, out: &mut Vec<Raw>) {
                out.push(self.raw());
            }
            fn restore(&mut self, from: &mut dyn Iterator<Item = Raw>) {
                if let Some(raw) = from.next() {
                    self.set(raw);
                }
            }
        }
    )*};
}
leaves! { Tile Scalar }

macro_rules! tuples {
    ($(($($t:ident $n:tt)*))*) => {$(
        impl<$($t: Carry),*> Carry for ($($t,)*) {
            fn flatten(&self, _out: &mut Vec<Raw>) {
                $(self.$n.flatten(_out);)*
            }
            fn restore(&mut self, _from: &mut dyn Iterator<Item = Raw>) {
                $(self.$n.restore(_from);)*
            }
        }
    )*};
}
tuples! { () (A 0) (A 0 B 1) (A 0 B 1 C 2) (A 0 B 1 C 2 D 3) (A 0 B 1 C 2 D 3 E 4) (A 0 B 1 C 2 D 3 E 4 F 5) }

macro_rules! sequences {
    ($([$($generics:tt)*] $ty:ty;)*) => {$(
        impl<$($generics)*> Carry for $ty {
            fn flatten(&self, out: &mut Vec<Raw>) {
                self.iter().for_each(|item| item.flatten(out));
            }
            fn restore(&mut self, from: &mut dyn Iterator<Item = Raw>) {
                self.iter_mut().for_each(|item| item.restore(from));
            }
        }
    )*};
}
sequences! { [C: Carry, const N: usize] [C; N]; [C: Carry] Vec<C>; }

/// The values of a variable in order.
pub(super) fn values(variable: &impl Carry) -> Vec<Raw> {
    let mut out = Vec::new();
    variable.flatten(&mut out);
    out
}
