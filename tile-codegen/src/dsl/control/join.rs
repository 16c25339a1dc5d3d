//! The value of an `if`: what its arms give, joined.

use std::panic::Location;

use super::branch::{Half, HostIf, Leaf, RtIf};
use crate::dsl::element::Element;
use crate::dsl::handle::{Scalar, Tile};
use crate::dsl::host::{HostNumber, Operand};
use crate::dsl::session::{self, Raw};

/// Arms whose values can be joined under a runtime condition: tiles or scalars of one element type, a literal beside
/// either, and tuples and arrays of these.
#[diagnostic::on_unimplemented(
    message = "the arms of this `if` have types `{Self}` and `{Z}`, which do not join under a runtime condition",
    label = "these two do not join at run time",
    note = "both arms must be tiles or scalars of one element type; a literal joins either",
    note = "a host value cannot depend on a runtime condition: make it a runtime value with `scalar(..)`"
)]
pub trait Arms<Z>: Sized {
    /// The joined type.
    type Out;
    #[doc(hidden)]
    fn collect(then: Option<Self>, other: Option<Z>, leaves: &mut Leaves);
    #[doc(hidden)]
    fn rebuild(results: &mut Results) -> Self::Out;
}

/// The single values that two arms give.
pub struct Leaves {
    list: Vec<Leaf>,
    /// The `if`.
    at: &'static Location<'static>,
}

/// The joined single values.
pub struct Results(std::vec::IntoIter<Raw>);

impl Results {
    fn next(&mut self) -> Raw {
        self.0.next().expect("an `if` has one result for each value of its arms")
    }
}

impl Leaves {
    fn push(&mut self, then: Option<Half>, other: Option<Half>) {
        self.list.push(Leaf { then, other });
    }

    fn constant<T: Element>(&self, x: impl HostNumber) -> Half {
        Half::Constant(session::with(|s| s.host::<T>(x, self.at)))
    }
}

impl Arms<()> for () {
    type Out = ();
    fn collect(_: Option<()>, _: Option<()>, _: &mut Leaves) {}
    fn rebuild(_: &mut Results) {}
}

macro_rules! runtime_arms {
    ($($handle:ident)*) => {$(
        impl<T: Element> Arms<$handle<T>> for $handle<T> {
            type Out = $handle<T>;
            fn collect(then: Option<Self>, other: Option<Self>, leaves: &mut Leaves) {
                leaves.push(then.map(|x| Half::Value(x.raw())), other.map(|x| Half::Value(x.raw())));
            }
            fn rebuild(results: &mut Results) -> Self {
                $handle::new(results.next())
            }
        }
        impl<T: Element, H: Operand<$handle<T>>> Arms<H> for $handle<T> {
            type Out = $handle<T>;
            fn collect(then: Option<Self>, other: Option<H>, leaves: &mut Leaves) {
                let other = other.map(|x| leaves.constant::<T>(x));
                leaves.push(then.map(|x| Half::Value(x.raw())), other);
            }
            fn rebuild(results: &mut Results) -> Self {
                $handle::new(results.next())
            }
        }
        impl<T: Element, H: Operand<$handle<T>>> Arms<$handle<T>> for H {
            type Out = $handle<T>;
            fn collect(then: Option<H>, other: Option<$handle<T>>, leaves: &mut Leaves) {
                let then = then.map(|x| leaves.constant::<T>(x));
                leaves.push(then, other.map(|x| Half::Value(x.raw())));
            }
            fn rebuild(results: &mut Results) -> $handle<T> {
                $handle::new(results.next())
            }
        }
    )*};
}
runtime_arms! { Tile Scalar }

// One type of each kind of literal, so that two literal arms have a type at once.
macro_rules! literal_arms {
    ($($host:ty)*) => {$(
        impl Arms<$host> for $host {
            type Out = Scalar<$host>;
            fn collect(then: Option<$host>, other: Option<$host>, leaves: &mut Leaves) {
                let half = |x: $host| leaves.constant::<$host>(x);
                let (then, other) = (then.map(half), other.map(half));
                leaves.push(then, other);
            }
            fn rebuild(results: &mut Results) -> Scalar<$host> {
                Scalar::new(results.next())
            }
        }
    )*};
}
literal_arms! { f32 i32 bool }

macro_rules! tuple_arms {
    ($(($($a:ident $z:ident $n:tt)*))*) => {$(
        impl<$($a: Arms<$z>, $z),*> Arms<($($z,)*)> for ($($a,)*) {
            type Out = ($($a::Out,)*);
            fn collect(then: Option<Self>, other: Option<($($z,)*)>, leaves: &mut Leaves) {
                let mut then = then.map(|t| ($(Some(t.$n),)*)).unwrap_or_default();
                let mut other = other.map(|t| ($(Some(t.$n),)*)).unwrap_or_default();
                $(<$a as Arms<$z>>::collect(then.$n.take(), other.$n.take(), leaves);)*
            }
            fn rebuild(results: &mut Results) -> Self::Out {
                ($(<$a as Arms<$z>>::rebuild(results),)*)
            }
        }
    )*};
}
tuple_arms! { (A Y 0) (A Y 0 B Z 1) (A V 0 B W 1 C X 2) (A V 0 B W 1 C X 2 D Y 3) (A V 0 B W 1 C X 2 D Y 3 E Z 4) }

impl<A: Arms<Z>, Z, const N: usize> Arms<[Z; N]> for [A; N] {
    type Out = [A::Out; N];
    fn collect(then: Option<Self>, other: Option<[Z; N]>, leaves: &mut Leaves) {
        let mut then = then.into_iter().flatten();
        let mut other = other.into_iter().flatten();
        for _ in 0..N {
            A::collect(then.next(), other.next(), leaves);
        }
    }
    fn rebuild(results: &mut Results) -> Self::Out {
        std::array::from_fn(|_| A::rebuild(results))
    }
}

/// Arms of types `A` and `Z` under this guard.
#[diagnostic::on_unimplemented(
    message = "the arms of this `if` have types `{A}` and `{Z}`",
    label = "arms of different type",
    note = "under a host condition both arms must have one Rust type"
)]
pub trait Join<A, Z> {
    /// The type of the `if`.
    type Out;
    #[doc(hidden)]
    fn join(&mut self, then: Option<A>, other: Option<Z>) -> Self::Out;
}

impl<A> Join<A, A> for HostIf {
    type Out = A;
    fn join(&mut self, then: Option<A>, other: Option<A>) -> A {
        then.or(other).expect("one arm of a host `if` ran to its end")
    }
}

impl<A: Arms<Z>, Z> Join<A, Z> for RtIf {
    type Out = A::Out;
    fn join(&mut self, then: Option<A>, other: Option<Z>) -> A::Out {
        let other_live = other.is_some();
        let mut leaves = Leaves { list: Vec::new(), at: self.at() };
        A::collect(then, other, &mut leaves);
        A::rebuild(&mut Results(self.close(leaves.list, other_live).into_iter()))
    }
}

/// Joins the values of two arms.
#[track_caller]
pub fn join<G: Join<A, Z>, A, Z>(guard: &mut G, then: Option<A>, other: Option<Z>) -> G::Out {
    guard.join(then, other)
}

/// The value of the only arm that ends, of type `A`, under this guard.
#[diagnostic::on_unimplemented(
    message = "an `if` under a runtime condition cannot have the host value `{A}`",
    label = "host value",
    note = "make it a runtime value with `scalar(..)`"
)]
pub trait JoinOne<A> {
    /// The type of the `if`.
    type Out;
    #[doc(hidden)]
    fn join_one(&mut self, value: Option<A>, live_is_else: bool) -> Self::Out;
}

impl<A> JoinOne<A> for HostIf {
    type Out = A;
    fn join_one(&mut self, value: Option<A>, _: bool) -> A {
        value.expect("the arm of a host `if` that has a value ran to its end")
    }
}

impl<A: Arms<A>> JoinOne<A> for RtIf {
    type Out = A::Out;
    fn join_one(&mut self, value: Option<A>, live_is_else: bool) -> A::Out {
        let (then, other) = if live_is_else { (None, value) } else { (value, None) };
        self.join(then, other)
    }
}

/// The value of an `if` one of whose arms never ends.
#[track_caller]
pub fn join_one<G: JoinOne<A>, A>(guard: &mut G, value: Option<A>, live_is_else: bool) -> G::Out {
    guard.join_one(value, live_is_else)
}
