//! A kernel prepared for execution: numbered registers, resolved labels, and the text that reports quote.

use smallvec::SmallVec;

use super::counts::Class;
use super::hopper::initial_registers;
use crate::ptx::{
    self, AddrBase, Hopper, Inst, Label, Module, Param, ParamKind, Reg, RegClass, Shared, Space,
};

/// Why a kernel cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// The module has no kernel of this name.
    #[error("the module has no kernel `{0}`")]
    NoKernel(String),
    /// The checker of PTX finds faults in the module.
    #[error("the module is malformed: {0}")]
    Malformed(String),
    /// Blocks are too large.
    #[error("{0} threads in a block; expected a multiple of 32, at most 1024")]
    Threads(u32),
}

/// One instruction.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) inst: Inst,
    /// The predicate register's number and whether it is negated.
    pub(super) guard: Option<(usize, bool)>,
    /// The numbers of the registers read, without the guard.
    pub(super) uses: SmallVec<[u32; 8]>,
    /// The numbers of the registers written.
    pub(super) defs: SmallVec<[u32; 4]>,
    /// Where a branch goes.
    pub(super) target: usize,
    pub(super) class: Class,
    pub(super) loc: u32,
}

/// A kernel prepared for execution. It can run any number of times, on several threads at once.
#[derive(Debug)]
pub struct Program {
    pub(super) lines: Vec<Line>,
    /// The first number of each class; predicates come first.
    pub(super) first: [usize; RegClass::ALL.len()],
    pub(super) registers: usize,
    pub(super) predicates: usize,
    pub(super) warps: usize,
    pub(super) params: Vec<Param>,
    pub(super) shared: Shared,
    pub(super) local_bytes: u32,
    /// Bytes of shared and of global memory that one access never splits: races are tracked in such pieces.
    pub(super) shared_granule: usize,
    pub(super) global_granule: usize,
    pub(super) communicates: bool,
    /// Whether there are products of warpgroups.
    pub(super) has_products: bool,
    /// Registers of each thread at the start.
    pub(super) initial_registers: u32,
    texts: Vec<String>,
    first_line: u32,
}

impl Program {
    /// Prepares the kernel `entry` of a module.
    ///
    /// # Errors
    /// If there is no such kernel, the module is malformed, or its blocks are too large.
    pub fn new(module: &Module, entry: &str) -> Result<Program, ProgramError> {
        let kernel = module.kernels.iter().find(|kernel| kernel.name == entry);
        let kernel = kernel.ok_or_else(|| ProgramError::NoKernel(entry.to_string()))?;
        ptx::check_module(module)
            .map_err(|faults| ProgramError::Malformed(faults.first().expect("a fault").to_string()))?;
        if kernel.reqntid == 0 || kernel.reqntid > 1024 || !kernel.reqntid.is_multiple_of(32) {
            return Err(ProgramError::Threads(kernel.reqntid));
        }
        let numbers = Numbers::of(kernel);
        let place = |label: Label| kernel.lines.iter().position(|line| line.inst == Inst::Label(label));
        let lines = kernel.lines.iter().map(|line| numbers.line(line, place)).collect();
        let (texts, first_line) = body_text(module, kernel);
        Ok(Program {
            lines,
            first: numbers.first,
            registers: numbers.total,
            predicates: numbers.first[RegClass::B16 as usize],
            warps: kernel.reqntid as usize / 32,
            params: kernel.params.clone(),
            shared: kernel.shared,
            local_bytes: kernel.local_bytes,
            shared_granule: granule(kernel, Space::Shared),
            global_granule: granule(kernel, Space::Global),
            communicates: kernel.lines.iter().any(|line| communicates(&line.inst)),
            has_products: kernel.lines.iter().any(|line| matches!(line.inst, Inst::Hopper(Hopper::Wgmma(_)))),
            initial_registers: initial_registers(kernel.reqntid, kernel.max_regs, kernel.min_ctas),
            texts,
            first_line,
        })
    }

    /// Whether blocks may depend on each other: the kernel has atomics or ordered accesses to global memory. The blocks
    /// of such a kernel belong into one run; those of others may be split over several runs at once.
    pub fn communicates(&self) -> bool {
        self.communicates
    }

    /// Threads per block.
    pub fn threads(&self) -> u32 {
        32 * self.warps as u32
    }

    /// The sizes of the parameters in bytes.
    pub fn param_sizes(&self) -> Vec<u32> {
        self.params.iter().map(|param| param_bytes(param.kind)).collect()
    }

    pub(super) fn line_number(&self, pc: usize) -> u32 {
        self.first_line + pc as u32
    }

    pub(super) fn line_text(&self, pc: usize) -> &str {
        &self.texts[pc]
    }

    /// A line as messages name it.
    pub(super) fn line_name(&self, pc: usize) -> String {
        format!("line {}, `{}`", self.line_number(pc), self.texts[pc])
    }
}

fn param_bytes(kind: ParamKind) -> u32 {
    match kind {
        ParamKind::Scalar(ty) => ty.bytes(),
        ParamKind::Pointer { .. } => 8,
        ParamKind::Bytes { size, .. } => size,
    }
}

struct Numbers {
    first: [usize; RegClass::ALL.len()],
    total: usize,
}

impl Numbers {
    fn of(kernel: &ptx::Kernel) -> Numbers {
        let mut counts = [0usize; RegClass::ALL.len()];
        let mut see = |reg: Reg| {
            let count = &mut counts[reg.class as usize];
            *count = (*count).max(reg.id as usize + 1);
        };
        for line in &kernel.lines {
            line.guard.iter().for_each(|&(reg, _)| see(reg));
            line.inst.for_each_def(&mut see);
            line.inst.for_each_use(&mut see);
        }
        let mut total = 0;
        let first = counts.map(|count| {
            total += count;
            total - count
        });
        Numbers { first, total }
    }

    fn number(&self, reg: Reg) -> usize {
        self.first[reg.class as usize] + reg.id as usize
    }

    fn line(&self, line: &ptx::Line, place: impl Fn(Label) -> Option<usize>) -> Line {
        let (mut uses, mut defs) = (SmallVec::<[u32; 8]>::new(), SmallVec::new());
        line.inst.for_each_use(|reg| {
            let number = self.number(reg) as u32;
            if !uses.contains(&number) {
                uses.push(number);
            }
        });
        line.inst.for_each_def(|reg| defs.push(self.number(reg) as u32));
        let target = match line.inst {
            Inst::Bra { label, .. } => place(label).expect("the checker has found every label"),
            _ => 0,
        };
        Line {
            inst: line.inst.clone(),
            guard: line.guard.map(|(reg, negated)| (self.number(reg), negated)),
            uses,
            defs,
            target,
            class: Class::of(&line.inst),
            loc: line.loc,
        }
    }
}

/// The bytes that a lane accesses at once, for accesses to memory that is tracked.
fn access(inst: &Inst, space: Space) -> Option<u32> {
    match inst {
        Inst::Ld { space: s, ty, dsts, .. } if *s == space => Some(ty.bytes() * dsts.len() as u32),
        Inst::St { space: s, ty, srcs, .. } if *s == space => Some(ty.bytes() * srcs.len() as u32),
        Inst::Atom { space: s, ty, .. } | Inst::Red { space: s, ty, .. } if *s == space => Some(ty.bytes()),
        Inst::CpAsync { bytes, .. } if space == Space::Shared => Some(*bytes),
        // A box ends at any element.
        Inst::Hopper(Hopper::TensorStore { .. }) if space == Space::Global => Some(2),
        _ => None,
    }
}

/// The largest power of two that divides every access, at most 8 bytes.
fn granule(kernel: &ptx::Kernel, space: Space) -> usize {
    let sizes = kernel.lines.iter().filter_map(|line| access(&line.inst, space));
    sizes.fold(8, |least, bytes| least.min(1 << bytes.trailing_zeros()))
}

fn communicates(inst: &Inst) -> bool {
    match inst {
        Inst::Atom { space, .. } | Inst::Red { space, .. } => *space == Space::Global,
        Inst::Ld { space, sem, .. } | Inst::St { space, sem, .. } => {
            *space == Space::Global && sem.scope().is_some()
        }
        _ => false,
    }
}

/// The texts of the lines of a kernel's body, and the number of the first in the module's text.
fn body_text(module: &Module, kernel: &ptx::Kernel) -> (Vec<String>, u32) {
    let text = ptx::print_module(module).text;
    let lines: Vec<&str> = text.lines().collect();
    let head = format!(".visible .entry {}(", kernel.name);
    let start = lines.iter().position(|line| line.starts_with(&head)).expect("the kernel is printed");
    let length = lines[start..].iter().position(|&line| line == "}").expect("the kernel ends");
    let first = start + length - kernel.lines.len();
    let texts = lines[first..start + length].iter().map(|line| line.trim().trim_end_matches(';').to_string());
    (texts.collect(), first as u32 + 1)
}

/// The base of an address as a register's number, if it is one.
pub(super) fn base_register(program: &Program, base: AddrBase) -> Option<usize> {
    match base {
        AddrBase::Reg(reg) => Some(program.first[reg.class as usize] + reg.id as usize),
        AddrBase::Param(_) | AddrBase::Shared | AddrBase::Local => None,
    }
}
