//! Changes to a kernel's syntax tree: finding, removing and inserting lines.

use tile_codegen::ptx::{Cmp, Hopper, Inst, Kernel, Line, Operand, Reg, RegClass, SpecialReg, Ty};

/// The nth line, from 0, whose instruction is such a one.
pub(super) fn find(kernel: &Kernel, nth: usize, is: impl Fn(&Inst) -> bool) -> usize {
    let mut places = (0..kernel.lines.len()).filter(|&at| is(&kernel.lines[at].inst));
    places.nth(nth).unwrap_or_else(|| panic!("`{}` has no instruction {nth} of this kind", kernel.name))
}

/// As [`find`], of Hopper's instructions.
pub(super) fn find_hopper(kernel: &Kernel, nth: usize, is: impl Fn(&Hopper) -> bool) -> usize {
    find(kernel, nth, |inst| matches!(inst, Inst::Hopper(hopper) if is(hopper)))
}

/// Removes the nth such line.
pub(super) fn remove(kernel: &mut Kernel, nth: usize, is: impl Fn(&Inst) -> bool) {
    let at = find(kernel, nth, is);
    kernel.lines.remove(at);
}

/// As [`remove`], of Hopper's instructions.
pub(super) fn remove_hopper(kernel: &mut Kernel, nth: usize, is: impl Fn(&Hopper) -> bool) {
    let at = find_hopper(kernel, nth, is);
    kernel.lines.remove(at);
}

/// The nth instruction of Hopper of some kind.
pub(super) fn hopper(kernel: &mut Kernel, nth: usize, is: impl Fn(&Hopper) -> bool) -> &mut Hopper {
    let at = find_hopper(kernel, nth, is);
    match &mut kernel.lines[at].inst {
        Inst::Hopper(inst) => inst,
        _ => unreachable!("it was found"),
    }
}

/// Inserts an instruction before a line, with that line's source location.
pub(super) fn insert(kernel: &mut Kernel, at: usize, guard: Option<(Reg, bool)>, inst: impl Into<Inst>) {
    let loc = kernel.lines[at].loc;
    kernel.lines.insert(at, Line { guard, inst: inst.into(), loc });
}

/// The line that writes a register last before `at`.
pub(super) fn definition(kernel: &Kernel, at: usize, reg: Reg) -> usize {
    let defines = |line: &Line| {
        let mut found = false;
        line.inst.for_each_def(|def| found |= def == reg);
        found
    };
    (0..at).rev().find(|&at| defines(&kernel.lines[at])).expect("registers are written before they are read")
}

/// A register that the kernel does not have yet.
pub(super) fn fresh(kernel: &Kernel, class: RegClass) -> Reg {
    let mut id = 0;
    let mut see = |reg: Reg| {
        if reg.class == class {
            id = id.max(reg.id + 1);
        }
    };
    for line in &kernel.lines {
        line.guard.iter().for_each(|&(reg, _)| see(reg));
        line.inst.for_each_def(&mut see);
        line.inst.for_each_use(&mut see);
    }
    Reg { class, id }
}

/// Guards the line: only threads below `count` execute it.
pub(super) fn only_threads_below(kernel: &mut Kernel, at: usize, count: i64) {
    let (tid, dst) = (fresh(kernel, RegClass::B32), fresh(kernel, RegClass::Pred));
    kernel.lines[at].guard = Some((dst, false));
    insert(
        kernel,
        at,
        None,
        Inst::Setp { cmp: Cmp::Lt, ty: Ty::U32, dst, a: tid.into(), b: Operand::Imm(count) },
    );
    insert(kernel, at, None, Inst::Mov { ty: Ty::U32, dst: tid, src: SpecialReg::TidX.into() });
}
