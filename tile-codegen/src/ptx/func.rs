//! The builder of a kernel: fresh registers and labels, lines with guards and locations.

use super::inst::Inst;
use super::module::{Kernel, Line, Param, ParamKind, Shared};
use super::reg::*;

/// Builds one kernel, line by line. See also the methods in `arith.rs` and `memory.rs`.
#[derive(Clone, Debug)]
pub struct FuncBuilder {
    kernel: Kernel,
    next_reg: [u32; RegClass::ALL.len()],
    next_label: u32,
    loc: u32,
}

impl FuncBuilder {
    /// An empty kernel with `threads` threads per block.
    pub fn new(name: impl Into<String>, threads: u32) -> FuncBuilder {
        FuncBuilder {
            kernel: Kernel {
                name: name.into(),
                params: Vec::new(),
                reqntid: threads,
                min_ctas: None,
                max_regs: None,
                shared: Shared::None,
                local_bytes: 0,
                lines: Vec::new(),
            },
            next_reg: [0; RegClass::ALL.len()],
            next_label: 0,
            loc: 0,
        }
    }

    /// Everything but the body: launch bounds, shared and local memory may be set here at any time.
    pub fn kernel_mut(&mut self) -> &mut Kernel {
        &mut self.kernel
    }

    /// Adds a parameter and returns its index.
    pub fn param(&mut self, name: impl Into<String>, kind: ParamKind) -> u32 {
        self.kernel.params.push(Param { name: name.into(), kind });
        self.kernel.params.len() as u32 - 1
    }

    /// A fresh register.
    pub fn reg(&mut self, class: RegClass) -> Reg {
        let id = self.next_reg[class as usize];
        self.next_reg[class as usize] += 1;
        Reg { class, id }
    }

    /// `N` fresh registers.
    pub fn regs<const N: usize>(&mut self, class: RegClass) -> [Reg; N] {
        std::array::from_fn(|_| self.reg(class))
    }

    /// Sets the location of the lines that follow; 0 for none.
    pub fn set_loc(&mut self, loc: u32) {
        self.loc = loc;
    }

    /// The location of the lines that follow.
    pub fn loc(&self) -> u32 {
        self.loc
    }

    /// Appends an instruction.
    pub fn emit(&mut self, inst: Inst) {
        self.kernel.lines.push(Line { guard: None, inst, loc: self.loc });
    }

    /// Appends an instruction that runs where `pred` is true.
    pub fn emit_if(&mut self, pred: Reg, inst: Inst) {
        self.emit_guarded(Some((pred, false)), inst);
    }

    /// Appends an instruction that runs where `pred` is false.
    pub fn emit_unless(&mut self, pred: Reg, inst: Inst) {
        self.emit_guarded(Some((pred, true)), inst);
    }

    /// Appends an instruction under a guard: a predicate and whether it is negated.
    pub fn emit_guarded(&mut self, guard: Option<(Reg, bool)>, inst: Inst) {
        self.kernel.lines.push(Line { guard, inst, loc: self.loc });
    }

    /// A fresh label, to be placed once.
    pub fn label(&mut self) -> Label {
        self.next_label += 1;
        Label(self.next_label - 1)
    }

    /// Places a label here.
    pub fn place(&mut self, label: Label) {
        self.emit(Inst::Label(label));
    }

    /// Jumps to `label`; `uni` promises that all threads of the warp do.
    pub fn bra(&mut self, label: Label, uni: bool) {
        self.emit(Inst::Bra { label, uni });
    }

    /// Jumps to `label` where `pred` is true.
    pub fn bra_if(&mut self, pred: Reg, label: Label, uni: bool) {
        self.emit_if(pred, Inst::Bra { label, uni });
    }

    /// Jumps to `label` where `pred` is false.
    pub fn bra_unless(&mut self, pred: Reg, label: Label, uni: bool) {
        self.emit_unless(pred, Inst::Bra { label, uni });
    }

    /// How many lines there are so far.
    pub fn len(&self) -> usize {
        self.kernel.lines.len()
    }

    /// Whether there is no line yet.
    pub fn is_empty(&self) -> bool {
        self.kernel.lines.is_empty()
    }

    /// The kernel; appends `ret` if control could reach the end.
    pub fn finish(mut self) -> Kernel {
        let ends =
            self.kernel.lines.last().is_some_and(|line| line.guard.is_none() && line.inst.ends_block());
        if !ends {
            self.emit(Inst::Ret);
        }
        self.kernel
    }
}
