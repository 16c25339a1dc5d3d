//! `if`: on a host condition one arm runs, on a runtime one both are staged.

use std::cell::Cell;
use std::panic::Location;

use super::carry::{Carry, values};
use super::loops::changed;
use super::region::{Mark, differ};
use crate::diag::{Code, OpError};
use crate::dsl::handle::Scalar;
use crate::dsl::session::{self, Raw, Session};
use crate::ir::{RegionId, Type, ValueId};
use crate::ops::control::{If, Yield};

/// The condition of an `if`.
#[diagnostic::on_unimplemented(
    message = "a condition must be `bool` or `Scalar<bool>`, found `{Self}`",
    label = "not a condition",
    note = "a tile of booleans selects element by element with `where_(cond, a, b)`"
)]
pub trait Cond {
    /// What stages the `if`.
    type Guard;
    #[doc(hidden)]
    #[track_caller]
    fn begin(self) -> Self::Guard;
}

impl Cond for bool {
    type Guard = HostIf;
    fn begin(self) -> HostIf {
        HostIf(self)
    }
}

impl Cond for Scalar<bool> {
    type Guard = RtIf;
    #[track_caller]
    fn begin(self) -> RtIf {
        RtIf::new(self.raw(), Location::caller())
    }
}

/// Begins an `if`.
#[track_caller]
pub fn if_begin<C: Cond>(condition: C) -> C::Guard {
    condition.begin()
}

/// An `if` that the host decides. Its methods have no bounds: any variable may change under it.
pub struct HostIf(bool);

impl HostIf {
    /// Before the arms.
    pub fn save<C>(&mut self, _: &mut C) {}
    /// After the first arm.
    pub fn out_then<C>(&mut self, _: &mut C) {}
    /// After the second arm.
    pub fn out_else<C>(&mut self, _: &mut C) {}
    /// After the `if`.
    pub fn result<C>(&mut self, _: &mut C) {}
    /// Whether the first arm runs.
    pub fn then(&mut self) -> bool {
        self.0
    }
    /// Between the arms.
    pub fn then_done(&mut self, _: bool) {}
    /// Whether the second arm runs.
    pub fn els(&mut self) -> bool {
        !self.0
    }
    /// Whether the arm that ran was left by a jump.
    pub fn exited(&mut self, then: bool, other: bool) -> bool {
        if self.0 { then } else { other }
    }
}

/// An `if` under a runtime condition.
pub struct RtIf {
    mark: Mark,
    condition: Raw,
    variables: Vec<Variable>,
    /// The variable that comes next in `out_then` and `out_else`.
    next: usize,
    then: Option<RegionId>,
    then_live: bool,
    results: std::vec::IntoIter<Raw>,
    finished: bool,
    /// Whether a jump out of it has been reported.
    reported: Cell<bool>,
}

/// A variable that an arm assigns, as lists of its values.
struct Variable {
    at: &'static Location<'static>,
    before: Vec<Raw>,
    then: Vec<Raw>,
    other: Vec<Raw>,
}

/// A value that both arms give, or the one that ends.
pub(super) struct Leaf {
    pub(super) then: Option<Half>,
    pub(super) other: Option<Half>,
}

/// What one arm gives.
pub(super) enum Half {
    /// A runtime value.
    Value(Raw),
    /// A constant, which takes the shape of the other arm's value.
    Constant(Raw),
}

impl RtIf {
    fn new(condition: Raw, at: &'static Location<'static>) -> Self {
        let mark = session::with(|s| {
            let mark = Mark::new(s, at);
            s.builder.open(&[]);
            mark
        });
        Self {
            mark,
            condition,
            variables: Vec::new(),
            next: 0,
            then: None,
            then_live: false,
            results: Vec::new().into_iter(),
            finished: false,
            reported: Cell::new(false),
        }
    }

    /// Before the arms: remembers a variable that an arm assigns.
    #[track_caller]
    pub fn save<C: Carry>(&mut self, variable: &mut C) {
        let at = Location::caller();
        self.variables.push(Variable { at, before: values(variable), then: Vec::new(), other: Vec::new() });
    }

    /// Both arms are staged.
    pub fn then(&mut self) -> bool {
        true
    }

    /// After the first arm: takes its value of a variable, and gives the variable its old one.
    pub fn out_then<C: Carry>(&mut self, variable: &mut C) {
        if let Some(saved) = self.variables.get_mut(self.next) {
            saved.then = values(variable);
            variable.restore(&mut saved.before.iter().copied());
        }
        self.next += 1;
    }

    /// Between the arms; `live` if the first one reaches its end.
    pub fn then_done(&mut self, live: bool) {
        let mark = self.mark;
        self.next = 0;
        self.then_live = live;
        self.then = Some(session::with(|s| {
            let region = mark.close(s);
            s.builder.open(&[]);
            region
        }));
    }

    /// Both arms are staged.
    pub fn els(&mut self) -> bool {
        true
    }

    /// After the second arm: takes its value of a variable.
    pub fn out_else<C: Carry>(&mut self, variable: &mut C) {
        if let Some(saved) = self.variables.get_mut(self.next) {
            saved.other = values(variable);
        }
        self.next += 1;
    }

    /// Whether jumps leave both arms; the `if` then ends here.
    pub fn exited(&mut self, then: bool, other: bool) -> bool {
        let exited = then && other;
        if exited {
            self.close(Vec::new(), false);
        }
        exited
    }

    /// After the `if`: gives a variable its joined value.
    pub fn result<C: Carry>(&mut self, variable: &mut C) {
        variable.restore(&mut self.results);
    }

    pub(super) fn at(&self) -> &'static Location<'static> {
        self.mark.at
    }

    /// Ends the `if`; returns the joined leaves.
    pub(super) fn close(&mut self, leaves: Vec<Leaf>, other_live: bool) -> Vec<Raw> {
        let (mark, then_live) = (self.mark, self.then_live);
        let (Some(then), false) = (self.then, self.finished) else { return Vec::new() };
        self.finished = true;
        let variables = std::mem::take(&mut self.variables);
        let condition = self.condition;
        let (variables, leaves) = session::with(|s| {
            let other = mark.close(s);
            let mut yields = Yields::new(mark.at, (then, then_live), (other, other_live));
            let variables: Vec<Slot> = variables.iter().flat_map(|v| yields.variable(s, v)).collect();
            let leaves: Vec<Slot> = leaves.into_iter().map(|leaf| yields.leaf(s, leaf)).collect();
            let results = yields.finish(s, condition);
            let pick =
                |slots: Vec<Slot>| slots.into_iter().map(|slot| slot.pick(&results)).collect::<Vec<_>>();
            (pick(variables), pick(leaves))
        });
        self.results = variables.into_iter();
        leaves
    }
}

impl Drop for RtIf {
    fn drop(&mut self) {
        if !self.finished {
            self.mark.abandon("`if`", self.reported.get());
        }
    }
}

/// Where a joined value comes from.
enum Slot {
    Result(usize),
    /// Both arms leave the same value.
    Known(Raw),
}

impl Slot {
    fn pick(self, results: &[Raw]) -> Raw {
        match self {
            Slot::Result(i) => results[i],
            Slot::Known(raw) => raw,
        }
    }
}

/// The values that the arms yield.
struct Yields {
    at: &'static Location<'static>,
    then: (RegionId, bool),
    other: (RegionId, bool),
    then_values: Vec<ValueId>,
    other_values: Vec<ValueId>,
    types: Vec<Type>,
}

impl Yields {
    fn new(at: &'static Location<'static>, then: (RegionId, bool), other: (RegionId, bool)) -> Self {
        Self { at, then, other, then_values: Vec::new(), other_values: Vec::new(), types: Vec::new() }
    }

    fn push(&mut self, then: ValueId, other: ValueId, ty: Type) -> Slot {
        self.then_values.push(then);
        self.other_values.push(other);
        self.types.push(ty);
        Slot::Result(self.types.len() - 1)
    }

    fn variable(&mut self, s: &mut Session, v: &Variable) -> Vec<Slot> {
        if v.then.len() != v.before.len() || v.other.len() != v.before.len() {
            let error = OpError::new(Code::Staging, "a vector changes its length under a runtime condition")
                .help("both arms of a runtime `if` are staged; give the vector its length before");
            s.fault(error, v.at);
            return v.before.iter().map(|&raw| Slot::Known(raw)).collect();
        }
        v.then.iter().zip(&v.other).map(|(&then, &other)| self.value(s, then, other, v.at)).collect()
    }

    fn value(&mut self, s: &mut Session, then: Raw, other: Raw, at: &'static Location<'static>) -> Slot {
        if then == other {
            return Slot::Known(then);
        }
        let (then_ty, other_ty) = (s.ty(then), s.ty(other));
        if self.then.1 && self.other.1 && differ(&then_ty, &other_ty) {
            s.fault(changed("branch", &other_ty, &then_ty), at);
        }
        let ty = if self.then.1 { then_ty } else { other_ty };
        let (then, other) = (s.id(then, at), s.id(other, at));
        self.push(then, other, ty)
    }

    fn leaf(&mut self, s: &mut Session, leaf: Leaf) -> Slot {
        let at = self.at;
        match (leaf.then, leaf.other) {
            (Some(Half::Value(then)), Some(Half::Value(other))) => {
                let (a, b) = (s.ty(then), s.ty(other));
                if differ(&a, &b) {
                    s.fault(arms_differ(&a, &b), at);
                }
                let (then, other) = (s.id(then, at), s.id(other, at));
                self.push(then, other, a)
            }
            (Some(Half::Value(then)), Some(Half::Constant(other))) => {
                let ty = s.ty(then);
                let (then, other) = (s.id(then, at), s.id(other, at));
                let other = s.spread_in(self.other.0, other, &ty, at);
                self.push(then, other, ty)
            }
            (Some(Half::Constant(then)), Some(Half::Value(other))) => {
                let ty = s.ty(other);
                let (then, other) = (s.id(then, at), s.id(other, at));
                let then = s.spread_in(self.then.0, then, &ty, at);
                self.push(then, other, ty)
            }
            (Some(Half::Constant(then)), Some(Half::Constant(other))) => {
                let ty = s.ty(then);
                let (then, other) = (s.id(then, at), s.id(other, at));
                self.push(then, other, ty)
            }
            (Some(Half::Value(one) | Half::Constant(one)), None)
            | (None, Some(Half::Value(one) | Half::Constant(one))) => {
                let ty = s.ty(one);
                let id = s.id(one, at);
                self.push(id, id, ty)
            }
            (None, None) => Slot::Known(s.error()),
        }
    }

    fn finish(self, s: &mut Session, condition: Raw) -> Vec<Raw> {
        let at = self.at;
        for ((region, live), values) in [(self.then, self.then_values), (self.other, self.other_values)] {
            match live {
                true => s.end_region(region, Yield, values, at),
                false => s.seal(region, at),
            }
        }
        let condition = s.id(condition, at);
        let loc = s.loc(at);
        let regions = vec![self.then.0, self.other.0];
        let results = s.builder.emit_with_regions(If.into(), vec![condition], regions, self.types, loc);
        results.into_iter().map(|id| s.raw(id)).collect()
    }
}

fn arms_differ(then: &Type, other: &Type) -> OpError {
    let (a, b) = (super::region::describe(then), super::region::describe(other));
    OpError::new(
        Code::Carried,
        format!("the arms of this `if` do not join: the first gives {a}, the second {b}"),
    )
    .help("under a runtime condition both arms give one shape; `broadcast_to` the smaller one")
}

/// What a host jump needs to know of the `if`s that it leaves.
pub trait IfGuard {
    #[doc(hidden)]
    #[track_caller]
    fn host_jump(&self);
}

impl IfGuard for HostIf {
    fn host_jump(&self) {}
}

impl IfGuard for RtIf {
    #[track_caller]
    fn host_jump(&self) {
        self.reported.set(true);
        let error = OpError::new(
            Code::Staging,
            "a jump out of a loop or closure that runs while the kernel is built stands under a runtime condition",
        )
        .help("make the loop a runtime loop, `for i in a..b`; or select values with `if` and go on");
        session::fault(error);
    }
}

/// Refuses a jump of the host that leaves a runtime `if`.
#[track_caller]
pub fn host_jump_under_runtime_if<G: IfGuard>(guard: &G) {
    guard.host_jump();
}
