//! Functions with an early `return`.

use std::cell::RefCell;
use std::panic::Location;

use super::carry::{Carry, values};
use super::region::{Frame, Mark, describe, differ};
use crate::diag::{Code, OpError};
use crate::dsl::session::{self, Raw, Session};
use crate::ir::Type;
use crate::ops::control;

/// What a function with an early `return` gives: runtime values under any condition, host values under host conditions.
#[diagnostic::on_unimplemented(
    message = "a function with an early `return` cannot give `{Self}`",
    label = "expected tiles, scalars, host numbers, or tuples and arrays of tiles and scalars",
    note = "return once, at the end: `if .. {{ a }} else {{ b }}`"
)]
pub trait Ret: Clone {
    /// Whether the value has a part that the host knows.
    #[doc(hidden)]
    const HOST: bool;
    #[doc(hidden)]
    fn flat(&self) -> Vec<Raw>;
    #[doc(hidden)]
    fn set(&mut self, from: &mut dyn Iterator<Item = Raw>);
}

impl<C: Carry + Clone> Ret for C {
    const HOST: bool = false;
    fn flat(&self) -> Vec<Raw> {
        values(self)
    }
    fn set(&mut self, from: &mut dyn Iterator<Item = Raw>) {
        self.restore(from);
    }
}

macro_rules! host_values {
    ($($host:ty)*) => {$(
        impl Ret for $host {
            const HOST: bool = true;
            fn flat(&self) -> Vec<Raw> {
                Vec::new()
            }
            fn set(&mut self, _: &mut dyn Iterator<Item = Raw>) {}
        }
    )*};
}
host_values! { bool char i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64 String &'static str }

/// Whether there is a value is known to the host.
impl<C: Ret> Ret for Option<C> {
    const HOST: bool = true;
    fn flat(&self) -> Vec<Raw> {
        self.iter().flat_map(Ret::flat).collect()
    }
    fn set(&mut self, from: &mut dyn Iterator<Item = Raw>) {
        self.iter_mut().for_each(|c| c.set(from));
    }
}

/// The body of a function with an early `return`.
pub struct Scope<C> {
    mark: Mark,
    state: RefCell<State<C>>,
}

struct State<C> {
    /// The value of the first exit, and the types of its parts.
    first: Option<(C, Vec<Type>)>,
    exits: usize,
    finished: bool,
}

/// Begins the body.
#[track_caller]
pub fn fn_begin<C: Ret>() -> Scope<C> {
    let at = Location::caller();
    let mark = session::with(|s| {
        let mark = Mark::new(s, at);
        s.builder.open(&[]);
        s.frames.push(Frame::Scope(Vec::new()));
        mark
    });
    Scope { mark, state: RefCell::new(State { first: None, exits: 0, finished: false }) }
}

impl<C: Ret> Scope<C> {
    /// `return value`.
    #[track_caller]
    pub fn ret(&self, value: C) {
        self.exit(value, Location::caller());
    }

    /// Ends the body, with the value at its end if it is reached.
    #[track_caller]
    pub fn end(&self, value: Option<C>) -> C {
        let at = Location::caller();
        if let Some(value) = value {
            self.exit(value, at);
        }
        let mut state = self.state.borrow_mut();
        state.finished = true;
        let (mut value, types) = state.first.take().expect("a body ends or returns");
        let (mark, exits) = (self.mark, state.exits);
        if let Some(results) = session::with(|s| close(s, mark, exits, types)) {
            value.set(&mut results.into_iter());
        }
        value
    }

    fn exit(&self, value: C, at: &'static Location<'static>) {
        let mut state = self.state.borrow_mut();
        state.exits += 1;
        let raws = value.flat();
        session::with(|s| {
            let types: Vec<Type> = raws.iter().map(|&raw| s.ty(raw)).collect();
            if C::HOST && (state.exits > 1 || s.builder.depth() > self.mark.depth + 1) {
                s.fault(host_return(), at);
            }
            match &state.first {
                None => {
                    if let Some(Frame::Scope(known)) =
                        s.frames.iter_mut().rev().find(|f| matches!(f, Frame::Scope(_)))
                    {
                        known.clone_from(&types);
                    }
                    state.first = Some((value, types));
                }
                Some((_, first)) => {
                    let fault = first.iter().zip(&types).find(|(a, b)| differ(a, b));
                    if let Some((a, b)) = fault {
                        s.fault(returns_differ(a, b), at);
                    } else if first.len() != types.len() && !C::HOST {
                        s.fault(host_return(), at);
                    }
                }
            }
            s.emit(control::Exit, &raws, at);
        });
    }
}

/// Emits the scope, unless its only exit is at its end: then its operations go where it stands, and `None` is returned.
fn close(s: &mut Session, mark: Mark, exits: usize, types: Vec<Type>) -> Option<Vec<Raw>> {
    let region = mark.close_frame(s);
    let parent = s.builder.region();
    let kernel = &mut s.builder.kernel;
    let last = kernel.regions[region].ops.last().copied();
    if exits == 1
        && let Some(last) = last
        && matches!(kernel.ops[last].kind, crate::ops::OpKind::Exit(_))
    {
        kernel.regions[region].ops.pop();
        let ops = std::mem::take(&mut kernel.regions[region].ops);
        kernel.regions[parent].ops.extend(ops);
        return None;
    }
    s.frames.push(Frame::Scope(types.clone()));
    s.seal(region, mark.at);
    s.frames.pop();
    let loc = s.loc(mark.at);
    let results = s.builder.emit_with_regions(control::Scope.into(), Vec::new(), vec![region], types, loc);
    Some(results.into_iter().map(|id| s.raw(id)).collect())
}

impl<C> Drop for Scope<C> {
    fn drop(&mut self) {
        if !self.state.borrow().finished {
            self.mark.abandon("function", false);
        }
    }
}

fn host_return() -> OpError {
    OpError::new(Code::Staging, "a host value is returned under a runtime condition")
        .help("return a tile or a scalar, `scalar(..)`; or make the condition a host value")
}

fn returns_differ(first: &Type, here: &Type) -> OpError {
    OpError::new(
        Code::Carried,
        format!("a function returns {} first and {} here", describe(first), describe(here)),
    )
    .help("every `return` of a function gives one shape")
}
