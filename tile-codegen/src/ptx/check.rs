//! Structural faults of a module: operand classes, labels, guards, names, needs of the target, undefined registers.

use std::collections::BTreeSet;
use std::fmt;

use super::defined::undefined_uses;
use super::forms::check_form;
use super::inst::Inst;
use super::module::*;
use super::print::line_text;
use super::reg::*;
use super::version::need;
use super::visit::{Slot, Want};

/// One fault of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckError {
    /// The kernel's name.
    pub kernel: String,
    /// The index of the line in the kernel's body, if one line is at fault.
    pub line: Option<usize>,
    /// The text of that line, else empty.
    pub text: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}, line {line}: {}: {}", self.kernel, self.text, self.message),
            None => write!(f, "{}: {}", self.kernel, self.message),
        }
    }
}

impl std::error::Error for CheckError {}

/// Every fault of a module's kernels, in order.
pub fn check_module(module: &Module) -> Result<(), Vec<CheckError>> {
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    for kernel in &module.kernels {
        if !names.insert(&kernel.name) {
            errors.push(fault(kernel, "the module has two kernels of this name".to_string()));
        }
        errors.extend(check_kernel(kernel, module.target).err().unwrap_or_default());
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Every fault of a kernel for a target, in order.
pub fn check_kernel(kernel: &Kernel, target: Sm) -> Result<(), Vec<CheckError>> {
    let mut errors = Vec::new();
    check_header(kernel, &mut errors);
    let placed = check_labels(kernel, &mut errors);
    for (i, line) in kernel.lines.iter().enumerate() {
        let mut report = |message: String| errors.push(fault_at(kernel, i, message));
        check_line(kernel, line, target, &placed, &mut report);
    }
    for (i, reg) in undefined_uses(kernel) {
        let message = format!("reads a {} register that may not be written yet", reg.class.prefix());
        errors.push(fault_at(kernel, i, message));
    }
    let ends = kernel.lines.last().is_some_and(|line| line.guard.is_none() && line.inst.ends_block());
    if !ends {
        errors.push(fault(kernel, "control can reach the end; the last line must be ret".to_string()));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn fault(kernel: &Kernel, message: String) -> CheckError {
    CheckError { kernel: kernel.name.clone(), line: None, text: String::new(), message }
}

fn fault_at(kernel: &Kernel, line: usize, message: String) -> CheckError {
    let text = line_text(kernel, &kernel.lines[line]);
    CheckError { kernel: kernel.name.clone(), line: Some(line), text, message }
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn check_header(kernel: &Kernel, errors: &mut Vec<CheckError>) {
    if !is_identifier(&kernel.name) || kernel.name == "_" {
        errors.push(fault(kernel, format!("`{}` is not an ASCII identifier", kernel.name)));
    }
    let mut names = BTreeSet::new();
    for param in &kernel.params {
        if !is_identifier(&param.name) {
            errors.push(fault(kernel, format!("parameter `{}` is not an ASCII identifier", param.name)));
        }
        if !names.insert(&param.name) {
            errors.push(fault(kernel, format!("two parameters are named `{}`", param.name)));
        }
        let align = match param.kind {
            ParamKind::Scalar(Ty::Pred) => 0,
            ParamKind::Scalar(_) => 1,
            ParamKind::Pointer { align } | ParamKind::Bytes { align, .. } => align,
        };
        if !align.is_power_of_two() {
            errors.push(fault(kernel, format!("parameter `{}` has no valid type or alignment", param.name)));
        }
    }
    if !(1..=1024).contains(&kernel.reqntid) {
        errors.push(fault(kernel, format!("{} threads per block, expected 1 to 1024", kernel.reqntid)));
    }
    if let Shared::Static { align, .. } | Shared::Dynamic { align } = kernel.shared
        && !align.is_power_of_two()
    {
        errors.push(fault(kernel, format!("shared memory aligned to {align}, not a power of two")));
    }
    if let Shared::Static { bytes, .. } = kernel.shared
        && bytes > 48 * 1024
    {
        errors.push(fault(
            kernel,
            format!("{bytes} bytes of static shared memory, at most 49152; use dynamic"),
        ));
    }
}

fn check_labels(kernel: &Kernel, errors: &mut Vec<CheckError>) -> BTreeSet<Label> {
    let mut placed = BTreeSet::new();
    for (i, line) in kernel.lines.iter().enumerate() {
        if let Inst::Label(label) = line.inst
            && !placed.insert(label)
        {
            errors.push(fault_at(kernel, i, "the label is placed twice".to_string()));
        }
    }
    placed
}

fn check_line(
    kernel: &Kernel,
    line: &Line,
    target: Sm,
    placed: &BTreeSet<Label>,
    report: &mut dyn FnMut(String),
) {
    if let Some((guard, _)) = line.guard {
        if guard.class != RegClass::Pred {
            report("the guard is not a predicate".to_string());
        }
        if matches!(line.inst, Inst::Label(_)) {
            report("a label has no guard".to_string());
        }
    }
    if let Inst::Bra { label, .. } = line.inst
        && !placed.contains(&label)
    {
        report("the label is not placed".to_string());
    }
    if let Err(message) = check_form(&line.inst) {
        report(message);
    }
    let need = need(&line.inst);
    if target.number < need.sm {
        report(format!("needs sm_{}, the target is {target}", need.sm));
    } else if need.specific && (target.number != need.sm || !target.specific) {
        report(format!("needs exactly sm_{}a, the target is {target}", need.sm));
    }
    line.inst.for_each_operand(|slot| {
        if let Err(message) = check_slot(slot) {
            report(message);
        }
    });
    check_symbols(kernel, &line.inst, report);
}

fn check_slot(slot: Slot) -> Result<(), String> {
    let (ty, special) = match slot.want {
        Want::Ty(ty) | Want::AtLeast(ty) => (ty, false),
        Want::MovSrc(ty) => (ty, true),
        Want::Base(64) => (Ty::U64, false),
        Want::Base(_) => (Ty::U32, false),
    };
    let ok = match slot.operand {
        Operand::Reg(reg) => match slot.want {
            Want::AtLeast(ty) => holds(reg.class, ty),
            Want::Base(_) | Want::Ty(_) | Want::MovSrc(_) => ty.accepts(reg.class),
        },
        Operand::Imm(value) => ty.kind() != TyKind::Float && fits(value, ty, special),
        Operand::F32(_) => matches!(ty, Ty::F32 | Ty::B32),
        Operand::F64(_) => matches!(ty, Ty::F64 | Ty::B64),
        Operand::Special(reg) => special && reg.ty().bits() == ty.bits() && ty.kind() != TyKind::Float,
    };
    if ok { Ok(()) } else { Err(format!("{:?} does not fit .{ty}", slot.operand)) }
}

/// Data of loads and stores: a register of the type, or a wider one of untyped bits for integers.
fn holds(class: RegClass, ty: Ty) -> bool {
    let wider = matches!(class, RegClass::B16 | RegClass::B32 | RegClass::B64) && class.bits() > ty.bits();
    ty.accepts(class) || (wider && !ty.is_float())
}

/// A literal fits as signed or as unsigned; predicates take literals in `mov` alone.
fn fits(value: i64, ty: Ty, mov: bool) -> bool {
    match ty {
        Ty::Pred => mov && (0..2).contains(&value),
        _ if ty.bits() == 64 => true,
        _ => value >= -(1i64 << (ty.bits() - 1)) && value < (1i64 << ty.bits()),
    }
}

fn check_symbols(kernel: &Kernel, inst: &Inst, report: &mut dyn FnMut(String)) {
    let mut check = |base: AddrBase| match base {
        AddrBase::Param(index) if index as usize >= kernel.params.len() => {
            report(format!("the kernel has no parameter {index}"));
        }
        AddrBase::Shared if kernel.shared == Shared::None => {
            report("the kernel declares no shared memory".to_string());
        }
        AddrBase::Local if kernel.local_bytes == 0 => {
            report("the kernel declares no local memory".to_string())
        }
        _ => {}
    };
    match inst {
        Inst::SharedAddr { .. } => check(AddrBase::Shared),
        Inst::Ld { addr, .. }
        | Inst::St { addr, .. }
        | Inst::Atom { addr, .. }
        | Inst::Red { addr, .. }
        | Inst::Ldmatrix { addr, .. }
        | Inst::Stmatrix { addr, .. } => check(addr.base),
        Inst::CpAsync { dst, src, .. } => {
            check(dst.base);
            check(src.base);
        }
        Inst::Hopper(inst) => inst.addresses().iter().for_each(|(_, addr)| check(addr.base)),
        _ => {}
    }
}
