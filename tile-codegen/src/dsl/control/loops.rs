//! `for`, `while` and `loop` at run time.

use std::marker::PhantomData;
use std::panic::Location;

use super::carry::{Carry, values};
use super::range::{Bounds, Step};
use super::region::{Frame, Mark, describe, differ};
use crate::diag::{Code, OpError};
use crate::dsl::element::{Element, Int};
use crate::dsl::handle::Scalar;
use crate::dsl::session::{self, Raw, Session};
use crate::ir::{Type, ValueId};
use crate::ops::OpKind;
use crate::ops::control;

/// What the two kinds of loops share.
struct Body {
    mark: Mark,
    kind: OpKind,
    /// Low, high and step of a `for`.
    bounds: Vec<ValueId>,
    index: Option<Raw>,
    carried: Vec<Carried>,
    /// Values handed on by the jump that is being staged, variable by variable.
    outs: Vec<ValueId>,
    /// The variable that comes next in `out` and `result`.
    next: usize,
    results: std::vec::IntoIter<Raw>,
    finished: bool,
}

struct Carried {
    inits: Vec<ValueId>,
    args: Vec<ValueId>,
}

impl Body {
    fn new(
        s: &mut Session,
        kind: OpKind,
        bounds: Vec<ValueId>,
        index: Option<Type>,
        at: &'static Location<'static>,
    ) -> Self {
        let mark = Mark::new(s, at);
        let (_, args) = s.builder.open(index.as_slice());
        s.frames.push(Frame::Loop(Vec::new()));
        let index = args.first().map(|&id| s.raw(id));
        let results = Vec::new().into_iter();
        Self {
            mark,
            kind,
            bounds,
            index,
            carried: Vec::new(),
            outs: Vec::new(),
            next: 0,
            results,
            finished: false,
        }
    }

    fn carry(&mut self, variable: &mut impl Carry, at: &'static Location<'static>) {
        let inits = values(variable);
        let carried = session::with(|s| {
            let inits = s.ids(&inits, at);
            let region = s.builder.region();
            let kernel = &mut s.builder.kernel;
            let args: Vec<_> = inits.iter().map(|&id| kernel.new_value(kernel.ty(id).clone())).collect();
            kernel.regions[region].args.extend(&args);
            if let Some(Frame::Loop(all)) = s.frames.last_mut() {
                all.extend(&args);
            }
            Carried { inits, args }
        });
        let args: Vec<Raw> = session::with(|s| carried.args.iter().map(|&id| s.raw(id)).collect());
        variable.restore(&mut args.into_iter());
        self.carried.push(carried);
    }

    fn out(&mut self, variable: &impl Carry, at: &'static Location<'static>) {
        let found = values(variable);
        let Some(carried) = self.carried.get(self.next) else { return };
        self.next += 1;
        session::with(|s| {
            let found = s.ids(&found, at);
            if found.len() != carried.args.len() {
                let (before, after) = (carried.args.len(), found.len());
                let error = OpError::new(
                    Code::Staging,
                    format!("a variable that a runtime loop carries holds {before} values before a round and {after} after it"),
                )
                .help("the length of a vector cannot change at run time; use `unroll(..)`");
                s.fault(error, at);
                return self.outs.extend(&carried.args);
            }
            for (&arg, &value) in carried.args.iter().zip(&found) {
                let (before, after) = (s.builder.kernel.ty(arg).clone(), s.builder.kernel.ty(value).clone());
                if differ(&before, &after) {
                    s.fault(changed("loop", &before, &after), at);
                }
            }
            self.outs.extend(found);
        });
    }

    fn jump(&mut self, kind: impl Into<OpKind>, at: &'static Location<'static>) {
        let outs = std::mem::take(&mut self.outs);
        self.next = 0;
        session::with(|s| {
            let loc = s.loc(at);
            s.builder.emit(kind.into(), outs, loc);
        });
    }

    fn end(&mut self, live: bool, at: &'static Location<'static>) {
        let outs = std::mem::take(&mut self.outs);
        self.next = 0;
        self.finished = true;
        let args: Vec<ValueId> = self.carried.iter().flat_map(|c| c.args.clone()).collect();
        let inits = self.carried.iter().flat_map(|c| c.inits.clone());
        let operands: Vec<ValueId> = self.bounds.iter().copied().chain(inits).collect();
        let kind = self.kind.clone();
        let mark = self.mark;
        let results = session::with(|s| {
            let region = mark.close(s);
            match live {
                true => s.end_region(region, control::Yield, outs, at),
                false => s.seal(region, at),
            }
            s.frames.pop();
            let types = args.iter().map(|&id| s.builder.kernel.ty(id).clone()).collect();
            let loc = s.loc(mark.at);
            let results = s.builder.emit_with_regions(kind, operands, vec![region], types, loc);
            results.into_iter().map(|id| s.raw(id)).collect::<Vec<_>>()
        });
        self.results = results.into_iter();
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if !self.finished {
            self.mark.abandon("loop", false);
        }
    }
}

/// A variable of another type than before.
pub(super) fn changed(construct: &str, before: &Type, after: &Type) -> OpError {
    let error = OpError::new(
        Code::Carried,
        format!(
            "a variable changes its type in a {construct}: {} before, {} after",
            describe(before),
            describe(after)
        ),
    );
    match after.as_tile() {
        Some(tile) => error.help(format!(
            "give it this shape from the start: `zeros({})`, or `broadcast_to` the value that it had",
            crate::ir::dim::show(&tile.shape)
        )),
        None => error,
    }
}

/// A `for` loop over a runtime range.
pub struct For<T> {
    body: Body,
    marker: PhantomData<T>,
}

/// Begins `for i in start..end`, or with a step.
#[track_caller]
pub fn for_begin<A: Bounds<Z>, Z>(start: A, end: Z, step: impl Step<A::Var>) -> For<A::Var> {
    let at = Location::caller();
    let body = session::with(|s| {
        let (low, high) = start.raws(end, s, at);
        let step = step.step_raw(s, at);
        let bounds = s.ids(&[low, high, step], at);
        Body::new(s, control::For.into(), bounds, Some(Type::scalar(A::Var::ELEM)), at)
    });
    For { body, marker: PhantomData }
}

impl<T: Int> For<T> {
    /// Enters the body; the loop variable.
    pub fn enter(&mut self) -> Scalar<T> {
        Scalar::new(self.body.index.expect("a `for` opens its body with an index"))
    }
}

/// A `while` or `loop`.
pub struct Loop {
    body: Body,
}

/// Begins `while` or `loop`.
#[track_caller]
pub fn loop_begin() -> Loop {
    let at = Location::caller();
    Loop { body: session::with(|s| Body::new(s, control::Loop.into(), Vec::new(), None, at)) }
}

impl Loop {
    /// Enters the body.
    pub fn enter(&mut self) {}

    /// Leaves the loop unless the condition holds.
    #[track_caller]
    pub fn test(&mut self, condition: impl RtCond) {
        let at = Location::caller();
        let args: Vec<ValueId> = self.body.carried.iter().flat_map(|c| c.args.clone()).collect();
        session::with(|s| {
            let condition = s.id(condition.condition(), at);
            let (go_on, _) = s.builder.open(&[]);
            s.builder.close();
            s.end_region(go_on, control::Yield, Vec::new(), at);
            let (leave, _) = s.builder.open(&[]);
            s.builder.close();
            s.end_region(leave, control::Break, args, at);
            let loc = s.loc(at);
            s.builder.emit_with_regions(
                control::If.into(),
                vec![condition],
                vec![go_on, leave],
                Vec::new(),
                loc,
            );
        });
    }
}

macro_rules! guards {
    ($([$($generics:tt)*] $guard:ty;)*) => {$(
        impl<$($generics)*> $guard {
            /// Hands a variable into the loop.
            #[track_caller]
            pub fn carry<C: Carry>(&mut self, variable: &mut C) {
                self.body.carry(variable, Location::caller());
            }
            /// Hands a variable on, to the next round or out of the loop.
            #[track_caller]
            pub fn out<C: Carry>(&mut self, variable: &C) {
                self.body.out(variable, Location::caller());
            }
            /// `break`, after `out` of every variable.
            #[track_caller]
            pub fn brk(&mut self) {
                self.body.jump(control::Break, Location::caller());
            }
            /// `continue`, after `out` of every variable.
            #[track_caller]
            pub fn cont(&mut self) {
                self.body.jump(control::Continue, Location::caller());
            }
            /// Ends the loop; `live` if its body reaches its end.
            #[track_caller]
            pub fn end(&mut self, live: bool) {
                self.body.end(live, Location::caller());
            }
            /// Takes a variable out of the loop.
            pub fn result<C: Carry>(&mut self, variable: &mut C) {
                variable.restore(&mut self.body.results);
            }
        }
    )*};
}
guards! { [T: Element] For<T>; [] Loop; }

/// The condition of a `while`.
#[diagnostic::on_unimplemented(
    message = "the condition of a runtime loop must be a runtime boolean, found `{Self}`",
    label = "host value",
    note = "a `while` loop is a runtime loop; use `for .. in unroll(..)` for a loop that runs while the kernel is built"
)]
pub trait RtCond {
    #[doc(hidden)]
    fn condition(self) -> Raw;
}

impl RtCond for Scalar<bool> {
    fn condition(self) -> Raw {
        self.raw()
    }
}
