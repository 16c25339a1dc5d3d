//! Checks a kernel and lists every fault. A kernel without faults can be printed, run and lowered without panics.
//!
//! # Rules
//!
//! Structure
//! * Every id names something in its arena. Regions and operations form a tree: each is attached at most once.
//! * Every value is defined once: as a parameter, a region argument or a result.
//! * Every operand is defined before its use, in the same region or one around it.
//!
//! Types
//! * No value has the type `error`.
//! * Tile dimensions are powers of two, and a tile has at most 2^31 elements. Tensors have 1 to 5 axes and no `tf32`.
//! * Result types are those that the operation's own rule infers from its operands.
//! * Tensors are operands of `load`, `store` and `extent` only.
//!
//! Parameters
//! * Names differ. A tensor has facts for each of its axes; alignments are powers of two, at most 16. Other parameters
//!   are scalars.
//!
//! Control flow (the table in [`crate::ops::control`])
//! * The entry region has no arguments and no terminator; every other region ends in one. Terminators occur nowhere else.
//! * `constant` occurs in the entry region, or in that of a role, only.
//! * `roles` stands alone in the entry region.
//! * `for`, `loop` and `scope` have one region, `if` has two, other operations none.
//! * The bounds, the step and the index of a `for` are scalars of one integer type; the condition of an `if` is a
//!   `bool` scalar.
//! * Initial values, region arguments, results and the operands of `yield`, `break` and `continue` of a loop have the
//!   same types; so have the results of an `if` and its `yield`s, and those of a `scope` and its `exit`s.
//! * `yield` ends a loop body or an arm. `break` and `continue` are inside a loop, `exit` inside a `scope`.
//!
//! Layouts
//! * At [`Stage::Tile`] no value has a layout, and none is in shared memory.
//! * At [`Stage::LaidOut`] the number of warps is known, every tile has a layout of its shape for so many warps, and
//!   nothing else has one. A shared tile's layout is of its element size.

use super::kernel::{Kernel, Op, OpId, ParamKind, RegionId, Stage, TensorFacts, Value, ValueId};
use super::print::{Names, show_type};
use super::types::{TensorType, TileType, Type};
use super::{Elem, dim};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ops::{OpKind, TileOp};

mod control;
mod tree;

use control::Frame;

/// Checks all rules of this module.
///
/// # Errors
/// Every fault found. If the regions form no tree, only faults of that kind are listed.
pub fn verify(kernel: &Kernel) -> Result<(), Diagnostics> {
    tree::check(kernel)?;
    let mut verifier = Verifier {
        kernel,
        names: Names::new(kernel),
        visible: vec![false; kernel.values.len()],
        defined: vec![false; kernel.values.len()],
        frames: Vec::new(),
        warps: kernel.num_warps,
        out: Diagnostics::default(),
    };
    verifier.kernel();
    verifier.out.into_result()
}

struct Verifier<'k> {
    kernel: &'k Kernel,
    names: Names,
    /// Which values may be used at the current place.
    visible: Vec<bool>,
    /// Which values have been defined, here or in a region that is closed.
    defined: Vec<bool>,
    /// The control-flow operations around the current place, outermost first.
    frames: Vec<Frame<'k>>,
    /// Warps of the role around the current place, or of the block.
    warps: Option<usize>,
    out: Diagnostics,
}

impl<'k> Verifier<'k> {
    fn fault(&mut self, code: Code, message: impl Into<String>) {
        self.out.push(Diagnostic::new(code, message));
    }

    /// A structural fault of an operation.
    fn op_fault(&mut self, op: &Op, message: impl AsRef<str>) {
        self.op_fault_coded(op, Code::Structure, message);
    }

    fn op_fault_coded(&mut self, op: &Op, code: Code, message: impl AsRef<str>) {
        let mut fault = Diagnostic::new(code, format!("`{}`: {}", op.kind.name(), message.as_ref()));
        fault.loc = self.kernel.locs.get(op.loc).cloned();
        self.out.push(fault);
    }

    fn kernel(&mut self) {
        let kernel = self.kernel;
        for (i, param) in kernel.params.iter().enumerate() {
            if kernel.params[..i].iter().any(|p| p.name == param.name) {
                self.fault(Code::Structure, format!("two parameters are called `{}`", param.name));
            }
            self.define(param.value, None);
            self.param(&param.name, kernel.ty(param.value), &param.kind);
        }
        if kernel.stage == Stage::LaidOut && kernel.num_warps.is_none() {
            self.fault(Code::Structure, "the number of warps is not set, but layouts are assigned");
        }
        if !kernel.regions[kernel.body].args.is_empty() {
            self.fault(Code::Structure, "the entry region has arguments; parameters are not among them");
        }
        self.region(kernel.body);
    }

    fn param(&mut self, name: &str, ty: &Type, kind: &ParamKind) {
        let fault = match (ty, kind) {
            _ if type_fault(ty).is_some() => None,
            (Type::Tensor(tensor), ParamKind::Tensor(facts)) => facts_fault(tensor, facts),
            (Type::Tile(tile), ParamKind::Scalar) if tile.rank() == 0 => None,
            _ => Some(format!(
                "its type is `{}`; a parameter is a tensor with facts or a scalar",
                show_type(ty)
            )),
        };
        if let Some(fault) = fault {
            self.fault(Code::Structure, format!("parameter `{name}`: {fault}"));
        }
    }

    /// Marks a value as defined, and checks its type and layout.
    fn define(&mut self, value: ValueId, op: Option<&Op>) {
        let name = self.names.of(value);
        let fault = if std::mem::replace(&mut self.defined[value.index()], true) {
            Some((Code::Structure, format!("{name} is defined twice")))
        } else {
            value_fault(self.kernel, &self.kernel.values[value], self.warps)
                .map(|(code, fault)| (code, format!("{name}: {fault}")))
        };
        self.visible[value.index()] = true;
        match (fault, op) {
            (Some((code, fault)), Some(op)) => self.op_fault_coded(op, code, fault),
            (Some((code, fault)), None) => self.fault(code, fault),
            (None, _) => {}
        }
    }

    fn region(&mut self, id: RegionId) {
        let kernel = self.kernel;
        let region = &kernel.regions[id];
        let owner = self.frames.last().map(|frame| frame.op);
        for &arg in &region.args {
            self.define(arg, owner);
        }
        for (i, &op) in region.ops.iter().enumerate() {
            self.op(op, i + 1 == region.ops.len());
        }
        let terminated = region.ops.last().is_some_and(|&op| kernel.ops[op].kind.is_terminator());
        if let (Some(owner), false) = (owner, terminated) {
            self.op_fault(owner, "a region does not end in `yield`, `break`, `continue` or `exit`");
        }
        let inner = region.args.iter().chain(region.ops.iter().flat_map(|&op| &kernel.ops[op].results));
        for &value in inner {
            self.visible[value.index()] = false;
        }
    }

    fn op(&mut self, id: OpId, last: bool) {
        let kernel = self.kernel;
        let op = &kernel.ops[id];
        let known = self.operands(op);
        if op.kind.is_terminator() && (!last || self.frames.is_empty()) {
            self.op_fault(op, "a terminator stands at the end of a region inside the kernel's body only");
        }
        if matches!(op.kind, OpKind::Constant(_))
            && self.frames.iter().any(|f| !matches!(f.op.kind, OpKind::Roles(_)))
        {
            self.op_fault(op, "constants live in the entry region, or that of a role");
        }
        if op.kind.is_terminator() && self.frames.is_empty() {
            // There is nothing that it could leave.
        } else if op.kind.effects() == crate::ops::Effects::Control {
            self.control(op, known);
        } else {
            if !op.regions.is_empty() {
                self.op_fault(op, "the operation holds regions");
            }
            if known {
                self.types(op);
            }
        }
        for &result in &op.results {
            self.define(result, Some(op));
        }
    }

    /// Checks that operands are visible and tensors are where they may be; false if a type is broken, so that rules
    /// that compute with types are skipped.
    fn operands(&mut self, op: &Op) -> bool {
        let mut known = true;
        for &value in &op.operands {
            let name = self.names.of(value);
            if !self.visible[value.index()] {
                let where_ = match self.defined[value.index()] {
                    true => "is defined in a region that is closed here",
                    false => "is used before its definition",
                };
                self.op_fault(op, format!("{name} {where_}"));
            }
            let ty = self.kernel.ty(value);
            let takes_tensor = op.kind.accesses_tensor() || matches!(op.kind, OpKind::Extent(_));
            if ty.as_tensor().is_some() && !takes_tensor {
                known = false;
                self.op_fault(
                    op,
                    format!("the tensor {name} can only be loaded from, stored to and measured"),
                );
            }
            known &= type_fault(ty).is_none();
        }
        known
    }

    /// Checks result types against the operation's rule.
    fn types(&mut self, op: &Op) {
        let kernel = self.kernel;
        let operands: Vec<_> = op.operands.iter().map(|&v| kernel.ty(v).clone()).collect();
        let results: Vec<_> = op.results.iter().map(|&v| kernel.ty(v).clone()).collect();
        match op.kind.infer(&operands) {
            Err(error) => {
                let at = kernel.locs.get(op.loc).cloned();
                self.out.push(Diagnostic::from_op(error, at));
            }
            Ok(_) if results.contains(&Type::Error) => {}
            Ok(expected) if expected != results => {
                let (found, expected) = (show_types(&results), show_types(&expected));
                self.op_fault(op, format!("the result types are `{found}`, expected `{expected}`"));
            }
            Ok(_) => {}
        }
    }
}

fn show_types(types: &[Type]) -> String {
    match types {
        [] => "()".to_string(),
        list => list.iter().map(show_type).collect::<Vec<_>>().join(", "),
    }
}

/// What is wrong with a type on its own.
fn type_fault(ty: &Type) -> Option<(Code, String)> {
    match ty {
        Type::Tile(tile) => tile_fault(tile),
        Type::Tensor(t) if !(1..=5).contains(&t.rank) => {
            Some((Code::Rank, format!("a tensor has 1 to 5 axes, found {}", t.rank)))
        }
        Type::Tensor(t) if t.elem == Elem::TF32 => {
            Some((Code::ElementType, "`tf32` exists in tiles only".to_string()))
        }
        Type::Tensor(_) => None,
        Type::Shared(s) if s.elem.bytes() != s.layout.elem_bytes => Some((
            Code::Structure,
            format!("`{}` has {} bytes, its layout places {}", s.elem, s.elem.bytes(), s.layout.elem_bytes),
        )),
        Type::Shared(s) => tile_fault(&TileType::new(s.elem, s.layout.shape.clone())),
        Type::Error => Some((Code::Structure, "the operation that makes it was refused".to_string())),
    }
}

fn tile_fault(tile: &TileType) -> Option<(Code, String)> {
    let shape = dim::show(&tile.shape);
    if tile.shape.iter().any(|d| !d.is_power_of_two()) {
        return Some((
            Code::TileDimension,
            format!("a tile dimension must be a power of two, found {shape}"),
        ));
    }
    let bits: u32 = tile.shape.iter().map(|d| d.trailing_zeros()).sum();
    (bits > 31).then(|| (Code::TileDimension, format!("a tile has at most 2^31 elements, found {shape}")))
}

/// What is wrong with a value's type or layout.
fn value_fault(kernel: &Kernel, value: &Value, warps: Option<usize>) -> Option<(Code, String)> {
    if let Some(fault) = type_fault(&value.ty) {
        return Some(fault);
    }
    let structure = |message: &str| Some((Code::Structure, message.to_string()));
    match (kernel.stage, &value.ty, &value.layout) {
        (Stage::Tile, _, Some(_)) => structure("it has a layout before layouts are assigned"),
        (Stage::Tile, Type::Shared(_), None) => {
            structure("it is in shared memory before layouts are assigned")
        }
        (Stage::LaidOut, Type::Tile(_), None) => structure("it has no layout"),
        (Stage::LaidOut, Type::Tile(tile), Some(layout)) => {
            if layout.shape() != tile.shape {
                let (found, expected) = (dim::show(layout.shape()), dim::show(&tile.shape));
                return Some((
                    Code::Structure,
                    format!("its layout is of shape {found}, expected {expected}"),
                ));
            }
            let (found, expected) = (layout.num_warps(), warps?);
            // The warps of all roles together need be no power of two; parameters are known to all of them.
            let roles = tile.rank() == 0 && !expected.is_power_of_two();
            (found != expected && !roles)
                .then(|| (Code::Structure, format!("its layout is for {found} warps, expected {expected}")))
        }
        (Stage::LaidOut, Type::Tensor(_) | Type::Shared(_) | Type::Error, Some(_)) => {
            structure("it has a register layout, but is no tile")
        }
        (Stage::Tile | Stage::LaidOut, _, None) => None,
    }
}

fn facts_fault(tensor: &TensorType, facts: &TensorFacts) -> Option<String> {
    if facts.stride_align.len() != tensor.rank || facts.extent_align.len() != tensor.rank {
        return Some(format!("its facts are not of rank {}", tensor.rank));
    }
    if facts.unit_axis.is_some_and(|axis| axis >= tensor.rank) {
        return Some("its unit axis does not exist".to_string());
    }
    let aligns = facts.stride_align.iter().chain(&facts.extent_align).chain([&facts.align]);
    let bad = aligns.copied().find(|a| !a.is_power_of_two() || *a > 16);
    bad.map(|a| format!("an alignment is a power of two up to 16, found {a}"))
}
