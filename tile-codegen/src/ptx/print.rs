//! The text of a module: registers and labels numbered by first appearance, and a line map beside the text.

use std::fmt::Write;

use super::inst::Inst;
use super::module::*;
use super::print_inst::Numbers;
use super::reg::{RegClass, TyKind};
use super::version::module_version;

/// A printed module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxText {
    /// The PTX source.
    pub text: String,
    /// The source location's number of every line of `text`, 0 for none.
    pub locs: Vec<u32>,
}

/// Prints a module. The same module always gives the same text. A module that the checker faults still prints, but
/// an assembler would refuse the text.
pub fn print_module(module: &Module) -> PtxText {
    let mut out = Printer { text: String::new(), locs: Vec::new() };
    out.line(0, &format!(".version {}", module_version(module)));
    out.line(0, &format!(".target {}", module.target));
    out.line(0, ".address_size 64");
    let dynamic = module.kernels.iter().filter_map(|kernel| match kernel.shared {
        Shared::Dynamic { align } => Some(align.max(128)),
        Shared::None | Shared::Static { .. } => None,
    });
    if let Some(align) = dynamic.max() {
        out.line(0, "");
        out.line(0, &format!(".extern .shared .align {align} .b8 smem[];"));
    }
    for kernel in &module.kernels {
        out.line(0, "");
        out.kernel(kernel);
    }
    PtxText { text: out.text, locs: out.locs }
}

struct Printer {
    text: String,
    locs: Vec<u32>,
}

impl Printer {
    fn line(&mut self, loc: u32, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
        self.locs.push(loc);
    }

    fn kernel(&mut self, kernel: &Kernel) {
        self.header(kernel);
        let numbers = Numbers::of(kernel);
        self.line(0, "{");
        for class in RegClass::ALL {
            let count = numbers.count(class);
            if count > 0 {
                self.line(0, &format!("    .reg .{} {}<{count}>;", class.declared(), class.prefix()));
            }
        }
        if let Shared::Static { bytes, align } = kernel.shared {
            self.line(0, &format!("    .shared .align {align} .b8 smem[{bytes}];"));
        }
        if kernel.local_bytes > 0 {
            self.line(0, &format!("    .local .align 16 .b8 lmem[{}];", kernel.local_bytes));
        }
        let mut text = String::new();
        for line in &kernel.lines {
            text.clear();
            numbers.write_line(&mut text, line, &kernel.params);
            self.line(line.loc, &text);
        }
        self.line(0, "}");
    }

    fn header(&mut self, kernel: &Kernel) {
        if kernel.params.is_empty() {
            self.line(0, &format!(".visible .entry {}()", kernel.name));
        } else {
            self.line(0, &format!(".visible .entry {}(", kernel.name));
            for (i, param) in kernel.params.iter().enumerate() {
                let comma = if i + 1 < kernel.params.len() { "," } else { "" };
                self.line(0, &format!("    {}{comma}", parameter(param)));
            }
            self.line(0, ")");
        }
        let mut bounds = format!(".reqntid {}, 1, 1", kernel.reqntid);
        if let Some(ctas) = kernel.min_ctas {
            write!(bounds, " .minnctapersm {ctas}").expect("writing to a string cannot fail");
        }
        if let Some(regs) = kernel.max_regs {
            write!(bounds, " .maxnreg {regs}").expect("writing to a string cannot fail");
        }
        self.line(0, &bounds);
    }
}

fn parameter(param: &Param) -> String {
    let name = &param.name;
    match param.kind {
        ParamKind::Scalar(ty) if ty.kind() == TyKind::SmallFloat => {
            format!(".param .b{} p_{name}", ty.bits())
        }
        ParamKind::Scalar(ty) => format!(".param .{ty} p_{name}"),
        ParamKind::Pointer { align } => format!(".param .u64 .ptr .global .align {align} p_{name}"),
        ParamKind::Bytes { size, align } => format!(".param .align {align} .b8 p_{name}[{size}]"),
    }
}

/// The text of one instruction of `kernel`, for messages.
pub(super) fn line_text(kernel: &Kernel, line: &Line) -> String {
    let mut text = String::new();
    Numbers::of(kernel).write_line(&mut text, line, &kernel.params);
    text.trim().to_string()
}

impl Numbers {
    fn of(kernel: &Kernel) -> Numbers {
        let mut numbers = Numbers::default();
        for line in &kernel.lines {
            line.inst.for_each_def(|reg| numbers.number(reg));
            if let Inst::Label(label) = line.inst {
                numbers.number_label(label);
            }
        }
        // What is never defined is a fault, but it must have a name in the message about it.
        for line in &kernel.lines {
            line.guard.iter().for_each(|&(reg, _)| numbers.number(reg));
            line.inst.for_each_use(|reg| numbers.number(reg));
            if let Inst::Bra { label, .. } = line.inst {
                numbers.number_label(label);
            }
        }
        numbers
    }
}
