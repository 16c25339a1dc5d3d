//! The text of one instruction.

use std::fmt::Write;

use super::fold::wrap;
use super::inst::Inst;
use super::module::{Line, Param};
use super::ops::*;
use super::reg::*;

/// The printed numbers of registers and labels.
#[derive(Default)]
pub(super) struct Numbers {
    regs: [Vec<Option<u32>>; RegClass::ALL.len()],
    counts: [u32; RegClass::ALL.len()],
    labels: Vec<Option<u32>>,
    label_count: u32,
}

/// Gives the slot at `index` the next number, once.
fn assign(slots: &mut Vec<Option<u32>>, count: &mut u32, index: u32) {
    let index = index as usize;
    if slots.len() <= index {
        slots.resize(index + 1, None);
    }
    if slots[index].is_none() {
        slots[index] = Some(*count);
        *count += 1;
    }
}

impl Numbers {
    pub(super) fn number(&mut self, reg: Reg) {
        let class = reg.class as usize;
        assign(&mut self.regs[class], &mut self.counts[class], reg.id);
    }

    pub(super) fn number_label(&mut self, label: Label) {
        assign(&mut self.labels, &mut self.label_count, label.0);
    }

    pub(super) fn count(&self, class: RegClass) -> u32 {
        self.counts[class as usize]
    }

    pub(super) fn reg(&self, reg: Reg) -> String {
        let number = self.regs[reg.class as usize][reg.id as usize].expect("every register was numbered");
        format!("{}{number}", reg.class.prefix())
    }

    fn label(&self, label: Label) -> String {
        format!("$L{}", self.labels[label.0 as usize].expect("every label was numbered"))
    }

    pub(super) fn op(&self, operand: Operand, ty: Ty) -> String {
        match operand {
            Operand::Reg(reg) => self.reg(reg),
            Operand::Imm(value) => literal(value, ty),
            Operand::F32(bits) => format!("0f{bits:08X}"),
            Operand::F64(bits) => format!("0d{bits:016X}"),
            Operand::Special(special) => special.name().to_string(),
        }
    }

    pub(super) fn ops(&self, operands: &[Operand], ty: Ty) -> String {
        let texts: Vec<String> = operands.iter().map(|&operand| self.op(operand, ty)).collect();
        texts.join(", ")
    }

    /// Registers in braces.
    pub(super) fn list(&self, regs: &[Reg]) -> String {
        let texts: Vec<String> = regs.iter().map(|&reg| self.reg(reg)).collect();
        format!("{{{}}}", texts.join(", "))
    }

    pub(super) fn addr(&self, addr: Addr, params: &[Param]) -> String {
        let base = match addr.base {
            AddrBase::Reg(reg) => self.reg(reg),
            AddrBase::Param(index) => match params.get(index as usize) {
                Some(param) => format!("p_{}", param.name),
                None => format!("p_{index}"),
            },
            AddrBase::Shared => "smem".to_string(),
            AddrBase::Local => "lmem".to_string(),
        };
        match addr.offset {
            0 => format!("[{base}]"),
            offset => format!("[{base}+{offset}]"),
        }
    }

    pub(super) fn write_line(&self, out: &mut String, line: &Line, params: &[Param]) {
        if let Inst::Label(label) = line.inst {
            out.push_str(&self.label(label));
            out.push(':');
            return;
        }
        out.push_str("    ");
        if let Some((pred, negated)) = line.guard {
            let not = if negated { "!" } else { "" };
            write!(out, "@{not}{} ", self.reg(pred)).expect("writing to a string cannot fail");
        }
        out.push_str(&self.inst(&line.inst, params));
        out.push(';');
    }

    fn inst(&self, inst: &Inst, params: &[Param]) -> String {
        match inst {
            Inst::Mov { ty, dst, src } => format!("mov.{ty} {}, {}", self.reg(*dst), self.op(*src, *ty)),
            Inst::SharedAddr { dst } => format!("mov.u32 {}, smem", self.reg(*dst)),
            Inst::CvtaTo { space, dst, src } => {
                format!("cvta.to.{}.u64 {}, {}", space.name(), self.reg(*dst), self.reg(*src))
            }
            Inst::Pack { ty, dst, parts } => format!("mov.{ty} {}, {}", self.reg(*dst), self.list(parts)),
            Inst::Unpack { ty, dsts, src } => format!("mov.{ty} {}, {}", self.list(dsts), self.reg(*src)),
            Inst::Float { op, ty, ftz, dst, a, b } => {
                let name = with_ftz(op.name(), *ftz);
                format!("{name}.{ty} {}, {}", self.reg(*dst), self.ops(&[*a, *b], *ty))
            }
            Inst::FloatUn { op, ty, ftz, dst, a } => {
                format!("{}.{ty} {}, {}", with_ftz(op.name(), *ftz), self.reg(*dst), self.op(*a, *ty))
            }
            Inst::Fma { ty, ftz, dst, a, b, c } => {
                let name = with_ftz("fma.rn", *ftz);
                format!("{name}.{ty} {}, {}", self.reg(*dst), self.ops(&[*a, *b, *c], *ty))
            }
            Inst::Cvt { dst_ty, src_ty, round, ftz, sat, dst, src } => {
                let round = round.map_or(String::new(), |round| format!(".{}", round.name()));
                let (ftz, sat) = (if *ftz { ".ftz" } else { "" }, if *sat { ".sat" } else { "" });
                let (dst, src) = (self.reg(*dst), self.op(*src, *src_ty));
                format!("cvt{round}{ftz}{sat}.{dst_ty}.{src_ty} {dst}, {src}")
            }
            Inst::CvtPack { ty, dst, hi, lo } => {
                format!("cvt.rn.{ty}.f32 {}, {}", self.reg(*dst), self.ops(&[*hi, *lo], Ty::F32))
            }
            Inst::Setp { cmp, ty, dst, a, b } => {
                format!("setp.{}.{ty} {}, {}", cmp.name(), self.reg(*dst), self.ops(&[*a, *b], *ty))
            }
            Inst::Selp { ty, dst, a, b, pred } => {
                format!("selp.{ty} {}, {}, {}", self.reg(*dst), self.ops(&[*a, *b], *ty), self.reg(*pred))
            }
            Inst::Pred { op, dst, a, b } => {
                format!("{}.pred {}, {}, {}", op.name(), self.reg(*dst), self.reg(*a), self.reg(*b))
            }
            Inst::PredNot { dst, a } => format!("not.pred {}, {}", self.reg(*dst), self.reg(*a)),
            Inst::Int { .. }
            | Inst::IntUn { .. }
            | Inst::MulWide { .. }
            | Inst::MadLo { .. }
            | Inst::MadWide { .. }
            | Inst::Lop3 { .. }
            | Inst::Bfe { .. }
            | Inst::Bfi { .. }
            | Inst::Shf { .. }
            | Inst::Prmt { .. } => self.integer(inst),
            Inst::Ld { .. }
            | Inst::St { .. }
            | Inst::Atom { .. }
            | Inst::Red { .. }
            | Inst::CpAsync { .. } => self.memory(inst, params),
            Inst::Shfl { .. }
            | Inst::Vote { .. }
            | Inst::Redux { .. }
            | Inst::Mma { .. }
            | Inst::Ldmatrix { .. }
            | Inst::Stmatrix { .. } => self.warp(inst, params),
            Inst::BarSync { id, threads: None } => format!("bar.sync {}", self.op(*id, Ty::U32)),
            Inst::BarSync { id, threads: Some(n) } => format!("bar.sync {}, {n}", self.op(*id, Ty::U32)),
            Inst::BarArrive { id, threads } => format!("bar.arrive {}, {threads}", self.op(*id, Ty::U32)),
            Inst::BarWarpSync { mask } => format!("bar.warp.sync {}", self.op(*mask, Ty::B32)),
            Inst::Membar { level } => format!("membar.{}", level.name()),
            Inst::Fence { sem, scope } => format!("fence.{}.{}", sem.name(), scope.name()),
            Inst::Label(label) => format!("{}:", self.label(*label)),
            Inst::Bra { label, uni: false } => format!("bra {}", self.label(*label)),
            Inst::Bra { label, uni: true } => format!("bra.uni {}", self.label(*label)),
            Inst::Ret => "ret".to_string(),
            Inst::Exit => "exit".to_string(),
            Inst::Trap => "trap".to_string(),
            Inst::CpAsyncCommit => "cp.async.commit_group".to_string(),
            Inst::CpAsyncWait(groups) => format!("cp.async.wait_group {groups}"),
            Inst::CpAsyncWaitAll => "cp.async.wait_all".to_string(),
            Inst::Hopper(inst) => self.hopper(inst, params),
        }
    }

    fn integer(&self, inst: &Inst) -> String {
        match inst {
            Inst::Int { op, ty, dst, a, b } => {
                let b_ty = if matches!(op, IntOp::Shl | IntOp::Shr) { Ty::U32 } else { *ty };
                let (dst, a, b) = (self.reg(*dst), self.op(*a, *ty), self.op(*b, b_ty));
                format!("{}.{ty} {dst}, {a}, {b}", op.name())
            }
            Inst::IntUn { op, ty, dst, a } => {
                format!("{}.{ty} {}, {}", op.name(), self.reg(*dst), self.op(*a, *ty))
            }
            Inst::MulWide { ty, dst, a, b } => {
                format!("mul.wide.{ty} {}, {}", self.reg(*dst), self.ops(&[*a, *b], *ty))
            }
            Inst::MadLo { ty, dst, a, b, c } => {
                format!("mad.lo.{ty} {}, {}", self.reg(*dst), self.ops(&[*a, *b, *c], *ty))
            }
            Inst::MadWide { ty, dst, a, b, c } => {
                let wide = if ty.kind() == TyKind::Signed { Ty::S64 } else { Ty::U64 };
                let (ab, c) = (self.ops(&[*a, *b], *ty), self.op(*c, wide));
                format!("mad.wide.{ty} {}, {ab}, {c}", self.reg(*dst))
            }
            Inst::Lop3 { dst, a, b, c, lut } => {
                format!("lop3.b32 {}, {}, 0x{lut:02x}", self.reg(*dst), self.ops(&[*a, *b, *c], Ty::B32))
            }
            Inst::Bfe { ty, dst, a, pos, len } => {
                let (a, field) = (self.op(*a, *ty), self.ops(&[*pos, *len], Ty::U32));
                format!("bfe.{ty} {}, {a}, {field}", self.reg(*dst))
            }
            Inst::Bfi { ty, dst, a, b, pos, len } => {
                let (ab, field) = (self.ops(&[*a, *b], *ty), self.ops(&[*pos, *len], Ty::U32));
                format!("bfi.{ty} {}, {ab}, {field}", self.reg(*dst))
            }
            Inst::Shf { left, dst, a, b, c } => {
                let (ab, c) = (self.ops(&[*a, *b], Ty::B32), self.op(*c, Ty::U32));
                format!("shf.{}.wrap.b32 {}, {ab}, {c}", if *left { "l" } else { "r" }, self.reg(*dst))
            }
            Inst::Prmt { dst, a, b, selector } => {
                format!("prmt.b32 {}, {}", self.reg(*dst), self.ops(&[*a, *b, *selector], Ty::B32))
            }
            _ => unreachable!("inst() sends integer instructions only"),
        }
    }

    fn memory(&self, inst: &Inst, params: &[Param]) -> String {
        match inst {
            Inst::Ld { space, ty, sem, cache, dsts, addr } => {
                let (cache, vec) = (dotted(cache.map(LdCache::name)), vector(dsts.len()));
                let dst = if dsts.len() == 1 { self.reg(dsts[0]) } else { self.list(dsts) };
                let addr = self.addr(*addr, params);
                format!("ld{}.{}{cache}{vec}.{ty} {dst}, {addr}", ordering(*sem), space.name())
            }
            Inst::St { space, ty, sem, cache, addr, srcs } => {
                let (cache, vec) = (dotted(cache.map(StCache::name)), vector(srcs.len()));
                let values = self.ops(srcs, *ty);
                let values = if srcs.len() == 1 { values } else { format!("{{{values}}}") };
                let addr = self.addr(*addr, params);
                format!("st{}.{}{cache}{vec}.{ty} {addr}, {values}", ordering(*sem), space.name())
            }
            Inst::Atom { op, ty, space, sem, dst, addr, cmp, src } => {
                let name = format!("atom{}.{}.{}", ordering(*sem), space.name(), atom_op(*op, *ty));
                let compare = cmp.map_or(String::new(), |cmp| format!("{}, ", self.op(cmp, *ty)));
                let (addr, src) = (self.addr(*addr, params), self.op(*src, *ty));
                format!("{name}.{ty} {}, {addr}, {compare}{src}", self.reg(*dst))
            }
            Inst::Red { op, ty, space, sem, addr, src } => {
                let name = format!("red{}.{}.{}", ordering(*sem), space.name(), atom_op(*op, *ty));
                format!("{name}.{ty} {}, {}", self.addr(*addr, params), self.op(*src, *ty))
            }
            Inst::CpAsync { cache, bytes, dst, src, src_size } => {
                let (dst, src) = (self.addr(*dst, params), self.addr(*src, params));
                let size = src_size.map_or(String::new(), |size| format!(", {}", self.op(size, Ty::U32)));
                format!("cp.async.{}.shared.global {dst}, {src}, {bytes}{size}", cache.name())
            }
            _ => unreachable!("inst() sends memory instructions only"),
        }
    }

    fn warp(&self, inst: &Inst, params: &[Param]) -> String {
        match inst {
            Inst::Shfl { mode, dst, pred, src, lane, clamp, mask } => {
                let pred = pred.map_or(String::new(), |pred| format!("|{}", self.reg(pred)));
                let (dst, src) = (self.reg(*dst), self.reg(*src));
                let (lane, mask) = (self.ops(&[*lane, *clamp], Ty::U32), self.op(*mask, Ty::B32));
                format!("shfl.sync.{}.b32 {dst}{pred}, {src}, {lane}, {mask}", mode.name())
            }
            Inst::Vote { mode, dst, src, negated, mask } => {
                let ty = if *mode == VoteMode::Ballot { "b32" } else { "pred" };
                let not = if *negated { "!" } else { "" };
                let (dst, src, mask) = (self.reg(*dst), self.reg(*src), self.op(*mask, Ty::B32));
                format!("vote.sync.{}.{ty} {dst}, {not}{src}, {mask}", mode.name())
            }
            Inst::Redux { op, ty, dst, src, mask } => {
                let mask = self.op(*mask, Ty::B32);
                format!("redux.sync.{}.{ty} {}, {}, {mask}", op.name(), self.reg(*dst), self.reg(*src))
            }
            Inst::Mma { shape, ty, d, a, b, c } => {
                let (d, a, b, c) = (self.list(d), self.list(a), self.list(b), self.list(c));
                let shape = shape.name();
                format!("mma.sync.aligned.{shape}.row.col.f32.{ty}.{ty}.f32 {d}, {a}, {b}, {c}")
            }
            Inst::Ldmatrix { trans, dsts, addr } => {
                let name = format!("ldmatrix.sync.aligned.m8n8.x{}{}", dsts.len(), transposed(*trans));
                format!("{name}.shared.b16 {}, {}", self.list(dsts), self.addr(*addr, params))
            }
            Inst::Stmatrix { trans, addr, srcs } => {
                let name = format!("stmatrix.sync.aligned.m8n8.x{}{}", srcs.len(), transposed(*trans));
                format!("{name}.shared.b16 {}, {}", self.addr(*addr, params), self.list(srcs))
            }
            _ => unreachable!("inst() sends warp instructions only"),
        }
    }
}

/// An integer literal: hexadecimal for bits, signed or unsigned decimal for integers, cut to the width of `ty`.
fn literal(value: i64, ty: Ty) -> String {
    let value = wrap(ty, value);
    match ty.kind() {
        TyKind::Signed => value.to_string(),
        TyKind::Unsigned | TyKind::Pred => (value as u64).to_string(),
        TyKind::Bits | TyKind::Float | TyKind::SmallFloat if (0..10).contains(&value) => value.to_string(),
        TyKind::Bits | TyKind::Float | TyKind::SmallFloat => format!("{value:#x}"),
    }
}

/// `.ftz` comes before `.NaN`, after all else.
fn with_ftz(name: &str, ftz: bool) -> String {
    match name.strip_suffix(".NaN") {
        _ if !ftz => name.to_string(),
        Some(stem) => format!("{stem}.ftz.NaN"),
        None => format!("{name}.ftz"),
    }
}

fn dotted(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| format!(".{name}"))
}

fn vector(count: usize) -> String {
    if count == 1 { String::new() } else { format!(".v{count}") }
}

fn transposed(trans: bool) -> &'static str {
    if trans { ".trans" } else { "" }
}

fn ordering(sem: MemSem) -> String {
    sem.scope().map_or(String::new(), |scope| format!(".{}.{}", sem.name(), scope.name()))
}

/// Sums of 16-bit floats keep subnormals only when the text says so.
fn atom_op(op: AtomOp, ty: Ty) -> String {
    let noftz = op == AtomOp::Add && ty.kind() == TyKind::SmallFloat;
    format!("{}{}", op.name(), if noftz { ".noftz" } else { "" })
}
