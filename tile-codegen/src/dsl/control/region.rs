//! What every guard does with regions: close them, end them, and clean up after code that left without ending them.

use std::panic::Location;

use crate::diag::{Code, OpError};
use crate::dsl::session::{self, Raw, Session};
use crate::ir::{RegionId, Type, ValueId, dim};
use crate::ops::broadcast_to::BroadcastTo;
use crate::ops::control::{Continue, Exit};
use crate::ops::{Literal, OpKind};

/// A construct that jumps can leave.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    /// A loop and the arguments of its body.
    Loop(Vec<ValueId>),
    /// A scope and the types that its exits carry, once there is one.
    Scope(Vec<Type>),
}

/// Where a guard began, and how many regions and frames were open there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) at: &'static Location<'static>,
    pub(super) depth: usize,
    frames: usize,
}

impl Mark {
    pub(super) fn new(s: &Session, at: &'static Location<'static>) -> Self {
        Self { at, depth: s.builder.depth(), frames: s.frames.len() }
    }

    /// The innermost region that the guard opened; what was opened in it and left open is dropped.
    pub(super) fn close(&self, s: &mut Session) -> RegionId {
        self.unwind(s, 1);
        s.builder.close()
    }

    /// As [`Mark::close`], of a loop or a scope.
    pub(super) fn close_frame(&self, s: &mut Session) -> RegionId {
        let region = self.close(s);
        s.frames.truncate(self.frames);
        region
    }

    fn unwind(&self, s: &mut Session, keep: usize) {
        while s.builder.depth() > self.depth + keep {
            s.builder.close();
        }
    }

    /// For a guard that is dropped before its construct ended.
    pub(super) fn abandon(&self, construct: &str, reported: bool) {
        if std::thread::panicking() {
            return;
        }
        session::try_with(|s| {
            self.unwind(s, 0);
            s.frames.truncate(self.frames);
            if !reported {
                let error = OpError::new(Code::Staging, format!("host code leaves this {construct} before it ends"))
                    .help("a `?` or a host `return` cannot depend on a runtime condition; decide before, or return a tile");
                s.fault(error, self.at);
            }
        });
    }
}

impl Session {
    /// Appends an operation of known result types to a region that has been closed.
    fn append_in(
        &mut self,
        region: RegionId,
        kind: OpKind,
        operands: Vec<ValueId>,
        results: Vec<Type>,
        at: &Location<'_>,
    ) -> Vec<ValueId> {
        let loc = self.loc(at);
        let kernel = &mut self.builder.kernel;
        let op = kernel.new_op(kind, operands, results, loc);
        kernel.regions[region].ops.push(op);
        kernel.ops[op].results.clone()
    }

    /// Ends a closed region.
    pub(super) fn end_region(
        &mut self,
        region: RegionId,
        kind: impl Into<OpKind>,
        operands: Vec<ValueId>,
        at: &Location<'_>,
    ) {
        self.append_in(region, kind.into(), operands, Vec::new(), at);
    }

    /// A scalar repeated to a tile type, in a closed region.
    pub(super) fn spread_in(
        &mut self,
        region: RegionId,
        x: ValueId,
        ty: &Type,
        at: &Location<'_>,
    ) -> ValueId {
        match ty.as_tile() {
            Some(tile) if self.builder.kernel.ty(x) != ty => {
                let shape = tile.shape.clone();
                self.append_in(region, BroadcastTo { shape }.into(), vec![x], vec![ty.clone()], at)[0]
            }
            Some(_) | None => x,
        }
    }

    /// Whether a region ends in a terminator.
    pub(super) fn terminated(&self, region: RegionId) -> bool {
        let kernel = &self.builder.kernel;
        kernel.regions[region].ops.last().is_some_and(|&op| kernel.ops[op].kind.is_terminator())
    }

    /// Gives a closed region that jumps alone can leave, through an `if` both of whose arms jump, a terminator: it is
    /// never reached, but every region ends in one.
    pub(super) fn seal(&mut self, region: RegionId, at: &'static Location<'static>) {
        if self.terminated(region) {
            return;
        }
        match self.frames.last().cloned() {
            Some(Frame::Loop(args)) => self.end_region(region, Continue, args, at),
            Some(Frame::Scope(types)) => {
                let values = types.iter().map(|ty| self.zero_in(region, ty, at)).collect();
                self.end_region(region, Exit, values, at);
            }
            // Nothing to leave: a fault has been reported.
            None => {}
        }
    }

    fn zero_in(&mut self, region: RegionId, ty: &Type, at: &'static Location<'static>) -> ValueId {
        let Some(tile) = ty.as_tile() else { return self.builder.kernel.new_value(Type::Error) };
        let zero = match tile.elem.class() {
            crate::ir::Class::Float => Literal::float(0.0),
            crate::ir::Class::Int => Literal::Int(0),
            crate::ir::Class::Bool => Literal::Bool(false),
        };
        let zero = self.constant(zero, tile.elem, at);
        let zero = self.id(zero, at);
        self.spread_in(region, zero, ty, at)
    }

    /// The values behind handles.
    pub(super) fn ids(&mut self, raws: &[Raw], at: &'static Location<'static>) -> Vec<ValueId> {
        raws.iter().map(|&raw| self.id(raw, at)).collect()
    }
}

/// Whether two types certainly differ: nothing is said after a fault.
pub(super) fn differ(a: &Type, b: &Type) -> bool {
    a != b && *a != Type::Error && *b != Type::Error
}

/// A type as messages show it.
pub(super) fn describe(ty: &Type) -> String {
    match ty.as_tile() {
        Some(tile) if tile.rank() == 0 => format!("a `{}` scalar", tile.elem),
        Some(tile) => format!("a `{}` tile of shape {}", tile.elem, dim::show(&tile.shape)),
        None => "unknown".to_string(),
    }
}
