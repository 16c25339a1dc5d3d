//! The kernel that is being staged on this thread, and how operations reach it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use super::control::Frame;
use super::panics;
use super::params::Params;
use super::source::{self, KernelSource, SourceText};
use crate::diag::{Code, Diagnostic, Diagnostics, OpError, render};
use crate::ir::{Builder, Elem, Kernel, LocId, Type, ValueId, dim};
use crate::ops::broadcast_to::{self, BroadcastTo};
use crate::ops::constant::Constant;
use crate::ops::{Literal, OpKind};

/// A kernel as staged, with the lines that its locations point into.
#[derive(Clone, Debug)]
pub struct Staged {
    /// The kernel.
    pub kernel: Kernel,
    /// The user's lines, one piece a file.
    pub sources: Vec<SourceText>,
}

/// Why a kernel could not be staged, with the lines that the locations point into. It displays every fault with the
/// user's lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StageError {
    /// Every fault found.
    pub diagnostics: Diagnostics,
    /// The user's lines, one piece a file.
    pub sources: Vec<SourceText>,
}

impl std::fmt::Display for StageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&render(&self.diagnostics, |file| source::text(&self.sources, file)))
    }
}

impl std::error::Error for StageError {}

/// A value of the kernel being staged; what handles hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raw {
    id: ValueId,
    session: u64,
}

/// One kernel being staged.
pub struct Session {
    number: u64,
    pub(crate) builder: Builder,
    sources: Vec<&'static KernelSource>,
    constants: HashMap<(Literal, Elem), Raw>,
    /// The loops and scopes around the current place.
    pub(crate) frames: Vec<Frame>,
}

thread_local! {
    static SESSIONS: RefCell<Vec<Session>> = const { RefCell::new(Vec::new()) };
    static NEXT: Cell<u64> = const { Cell::new(1) };
}

/// Runs `body`, which records a kernel through the handles that it makes of its parameters.
///
/// # Errors
/// Every fault found on the way, also a panic of host code in `body`.
pub fn stage(
    name: &str,
    source: &'static KernelSource,
    body: impl FnOnce(&mut Params),
) -> Result<Staged, StageError> {
    let depth = SESSIONS.with_borrow_mut(|sessions| {
        sessions.push(Session::new(name, source));
        sessions.len()
    });
    let outcome = panics::quietly(|| catch_unwind(AssertUnwindSafe(|| body(&mut Params::new()))));
    let mut session = SESSIONS.with_borrow_mut(|sessions| {
        sessions.truncate(depth);
        sessions.pop().expect("sessions opened inside have been closed, and this one is below them")
    });
    if let Err(panic) = outcome {
        session.host_panic(panics::describe(panic));
    }
    session.finish()
}

/// Lives as long as the body of a helper function.
#[derive(Debug)]
pub struct SourceGuard(());

/// Makes the lines of a helper function known to the kernel that calls it.
pub fn source(source: &'static KernelSource) -> SourceGuard {
    SESSIONS.with_borrow_mut(|sessions| {
        if let Some(session) = sessions.last_mut()
            && !session.sources.iter().any(|s| std::ptr::eq(*s, source))
        {
            session.sources.push(source);
        }
    });
    SourceGuard(())
}

/// Works on the kernel being staged, if there is one.
pub(crate) fn try_with<R>(work: impl FnOnce(&mut Session) -> R) -> Option<R> {
    SESSIONS.with_borrow_mut(|sessions| sessions.last_mut().map(work))
}

/// Works on the kernel being staged.
#[track_caller]
pub(crate) fn with<R>(work: impl FnOnce(&mut Session) -> R) -> R {
    match try_with(work) {
        Some(result) => result,
        None => panic!(
            "tile operations work inside a kernel only: call this from a function with `#[tile_kernel]`, or from one that it calls"
        ),
    }
}

/// Records an operation with one result.
#[track_caller]
pub(crate) fn op(kind: impl Into<OpKind>, operands: &[Raw]) -> Raw {
    let at = Location::caller();
    with(|s| s.op(kind, operands, at))
}

/// Records an operation without results.
#[track_caller]
pub(crate) fn effect(kind: impl Into<OpKind>, operands: &[Raw]) {
    let at = Location::caller();
    with(|s| s.emit(kind, operands, at));
}

/// The tile repeated to a shape.
#[track_caller]
pub(crate) fn broadcast(x: Raw, shape: &[usize]) -> Raw {
    let at = Location::caller();
    with(|s| s.broadcast(x, shape, at))
}

/// Records a fault at the caller; the result silences follow-up faults.
#[track_caller]
pub(crate) fn fault(error: OpError) -> Raw {
    let at = Location::caller();
    with(|s| s.fault(error, at))
}

/// The shape of a tile; `None` after a fault.
#[track_caller]
pub(crate) fn shape(x: Raw) -> Option<Vec<usize>> {
    with(|s| s.shape(x))
}

impl Session {
    fn new(name: &str, source: &'static KernelSource) -> Self {
        let number = NEXT.replace(NEXT.get() + 1);
        let (constants, frames) = (HashMap::new(), Vec::new());
        Self { number, builder: Builder::new(name), sources: vec![source], constants, frames }
    }

    fn finish(self) -> Result<Staged, StageError> {
        let Builder { kernel, diagnostics, .. } = self.builder;
        let sources = source::merge(&self.sources);
        match diagnostics.into_result() {
            Ok(()) => Ok(Staged { kernel, sources }),
            Err(diagnostics) => Err(StageError { diagnostics, sources }),
        }
    }

    /// A panic after a fault can be the fault's own consequence (the shape of a refused tile is unknown), so it is
    /// reported only when it comes first.
    fn host_panic(&mut self, panic: panics::HostPanic) {
        if !self.builder.diagnostics.is_empty() {
            return;
        }
        let mut diagnostic =
            Diagnostic::new(Code::HostPanic, format!("host code of the kernel panicked: {}", panic.message));
        diagnostic.loc = panic.at.map(|at| source::range(&self.sources, &at));
        diagnostic.help = Some(
            "this code runs on the host while the kernel is specialised; the constants and options of this launch lead to the panic"
                .into(),
        );
        self.builder.diagnostics.push(diagnostic);
    }

    /// A handle's content for a value of this kernel.
    pub(crate) fn raw(&self, id: ValueId) -> Raw {
        Raw { id, session: self.number }
    }

    /// The value behind a handle; a fault if another kernel made it.
    pub(crate) fn id(&mut self, raw: Raw, at: &'static Location<'static>) -> ValueId {
        if raw.session == self.number {
            return raw.id;
        }
        let error = OpError::new(Code::Staging, "this value belongs to another kernel").help(
            "tiles, scalars and tensors live only while their kernel is staged; pass it as a parameter",
        );
        let error = self.fault(error, at);
        error.id
    }

    /// Interns a place.
    pub(crate) fn loc(&mut self, at: &Location<'_>) -> LocId {
        let range = source::range(&self.sources, &at.into());
        self.builder.kernel.locs.intern(range)
    }

    /// Records a fault.
    pub(crate) fn fault(&mut self, error: OpError, at: &Location<'_>) -> Raw {
        let loc = source::range(&self.sources, &at.into());
        self.builder.diagnostics.push(Diagnostic::from_op(error, Some(loc)));
        self.error()
    }

    /// A value that silences follow-up faults.
    pub(crate) fn error(&mut self) -> Raw {
        let id = self.builder.kernel.new_value(Type::Error);
        self.raw(id)
    }

    /// The type behind a handle.
    pub(crate) fn ty(&self, raw: Raw) -> Type {
        if raw.session == self.number { self.builder.kernel.ty(raw.id).clone() } else { Type::Error }
    }

    /// The shape of a tile; `None` after a fault.
    pub(crate) fn shape(&self, raw: Raw) -> Option<Vec<usize>> {
        self.ty(raw).as_tile().map(|t| t.shape.clone())
    }

    /// Appends an operation.
    pub(crate) fn emit(
        &mut self,
        kind: impl Into<OpKind>,
        operands: &[Raw],
        at: &'static Location<'static>,
    ) -> Vec<Raw> {
        let loc = self.loc(at);
        let operands = operands.iter().map(|&raw| self.id(raw, at)).collect();
        let results = self.builder.emit(kind.into(), operands, loc);
        results.into_iter().map(|id| self.raw(id)).collect()
    }

    /// Appends an operation with one result.
    pub(crate) fn op(
        &mut self,
        kind: impl Into<OpKind>,
        operands: &[Raw],
        at: &'static Location<'static>,
    ) -> Raw {
        self.emit(kind, operands, at)[0]
    }

    /// A scalar constant in the entry region, each once.
    pub(crate) fn constant(&mut self, value: Literal, elem: Elem, at: &'static Location<'static>) -> Raw {
        if let Some(&known) = self.constants.get(&(value, elem)) {
            return known;
        }
        if let Err(error) = value.check(elem) {
            return self.fault(error, at);
        }
        let loc = self.loc(at);
        let id = self.builder.emit_in_entry(Constant { value, elem }.into(), Vec::new(), loc)[0];
        let raw = self.raw(id);
        self.constants.insert((value, elem), raw);
        raw
    }

    /// The tile repeated to a shape; the tile itself if it has that shape.
    pub(crate) fn broadcast(&mut self, x: Raw, shape: &[usize], at: &'static Location<'static>) -> Raw {
        match self.shape(x) {
            Some(from) if from != shape => self.op(BroadcastTo { shape: shape.to_vec() }, &[x], at),
            Some(_) | None => x,
        }
    }

    /// The tiles repeated to their common shape.
    pub(crate) fn common<const N: usize>(
        &mut self,
        list: [Raw; N],
        what: &str,
        at: &'static Location<'static>,
    ) -> [Raw; N] {
        self.common_list(&list, what, at).try_into().expect("one tile for each of the list")
    }

    /// As [`Session::common`], of any number of tiles.
    pub(crate) fn common_list(
        &mut self,
        list: &[Raw],
        what: &str,
        at: &'static Location<'static>,
    ) -> Vec<Raw> {
        let shapes: Option<Vec<_>> = list.iter().map(|&x| self.shape(x)).collect();
        let Some(shapes) = shapes else {
            list.iter().for_each(|&x| {
                self.id(x, at);
            });
            return list.iter().map(|_| self.error()).collect();
        };
        let mut common = Vec::new();
        for shape in &shapes {
            common = match broadcast_to::common(&common, shape) {
                Ok(common) => common,
                Err(error) => {
                    let list_of = shapes.iter().map(|s| dim::show(s)).collect::<Vec<_>>().join(" and ");
                    let message = format!("`{what}` of the shapes {list_of}: {}", error.message);
                    let error = self.fault(OpError { message, ..error }, at);
                    return vec![error; list.len()];
                }
            };
        }
        list.iter().map(|&x| self.broadcast(x, &common, at)).collect()
    }
}
