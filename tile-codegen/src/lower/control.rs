//! Control flow: carried values live in fixed registers, updated where control joins.

use super::{LowerCx, class, move_ty};
use crate::ir::{OpId, ValueId};
use crate::ptx::{Cmp, Label, Operand, Reg, Ty};

/// Where terminators go, innermost last.
#[derive(Default)]
pub(crate) struct Jumps {
    loops: Vec<LoopJump>,
    scopes: Vec<Join>,
    /// Where the `yield` of each region around goes: the end of an `if`, or the next iteration.
    yields: Vec<Join>,
}

/// A label and the registers that values arrive in.
#[derive(Clone)]
struct Join {
    label: Label,
    regs: Vec<Vec<Reg>>,
}

#[derive(Clone)]
struct LoopJump {
    next: Label,
    exit: Label,
    regs: Vec<Vec<Reg>>,
}

impl LowerCx<'_> {
    /// Fresh registers for values of these types.
    fn joined(&mut self, values: &[ValueId]) -> Vec<Vec<Reg>> {
        let mut all = Vec::new();
        for &value in values {
            let (count, elem) = (self.layout(value).num_regs(), self.elem(value));
            all.push((0..count).map(|_| self.f.reg(class(elem))).collect());
        }
        all
    }

    fn bind_regs(&mut self, values: &[ValueId], regs: &[Vec<Reg>]) {
        for (&value, regs) in values.iter().zip(regs) {
            self.bind(value, regs.iter().map(|&r| r.into()).collect());
        }
    }

    /// Moves values into registers, all at once: a source that is also a destination is saved first.
    fn assign(&mut self, sources: &[ValueId], dests: &[Vec<Reg>]) {
        let mut moves: Vec<(Reg, Operand, crate::ir::Elem)> = Vec::new();
        for (&source, regs) in sources.iter().zip(dests) {
            let elem = self.elem(source);
            let operands = self.values(source);
            moves.extend(
                regs.iter()
                    .zip(operands)
                    .filter(|(r, o)| Operand::Reg(**r) != *o)
                    .map(|(r, o)| (*r, o, elem)),
            );
        }
        let written: std::collections::BTreeSet<Reg> = moves.iter().map(|m| m.0).collect();
        for (_, source, elem) in &mut moves {
            if let Operand::Reg(reg) = *source
                && written.contains(&reg)
            {
                let saved = self.f.reg(reg.class);
                self.f.mov_to(move_ty(*elem), saved, reg);
                *source = saved.into();
            }
        }
        for (dest, source, elem) in moves {
            let source =
                if elem == crate::ir::Elem::Bool { self.in_reg(elem, source).into() } else { source };
            self.f.mov_to(move_ty(elem), dest, source);
        }
    }

    pub(crate) fn lower_for(&mut self, id: OpId) {
        let op = self.kernel.ops[id].clone();
        let region = op.regions[0];
        let args = self.kernel.regions[region].args.clone();
        let elem = self.elem(args[0]);
        let ty = super::int_ty(elem);
        let (low, high, step) =
            (self.scalar(op.operands[0]), self.scalar(op.operands[1]), self.scalar(op.operands[2]));
        let index = self.f.reg(class(elem));
        let regs = self.joined(&args[1..]);
        self.assign(&op.operands[3..], &regs);
        self.f.mov_to(move_ty(elem), index, low);
        let (head, next, exit) = (self.f.label(), self.f.label(), self.f.label());
        let empty = self.f.setp(Cmp::Ge, ty, index, high);
        self.f.bra_if(empty, exit, true);
        self.f.place(head);
        self.bind(args[0], vec![index.into()]);
        self.bind_regs(&args[1..], &regs);
        self.loop_body(region, LoopJump { next, exit, regs: regs.clone() });
        self.f.place(next);
        // Compare what is left with the step, so that the index never overflows.
        let left = self.f.int(crate::ptx::IntOp::Sub, ty, high, index);
        let unsigned = if elem == crate::ir::Elem::I64 { Ty::U64 } else { Ty::U32 };
        let done = self.f.setp(Cmp::Le, unsigned, left, step);
        self.f.bra_if(done, exit, true);
        let stepped = self.f.int(crate::ptx::IntOp::Add, ty, index, step);
        self.f.mov_to(move_ty(elem), index, stepped);
        self.f.bra(head, true);
        self.f.place(exit);
        self.bind_regs(&op.results, &regs);
    }

    fn loop_body(&mut self, region: crate::ir::RegionId, jump: LoopJump) {
        self.jumps.yields.push(Join { label: jump.next, regs: jump.regs.clone() });
        self.jumps.loops.push(jump);
        self.region(region);
        self.jumps.loops.pop();
        self.jumps.yields.pop();
    }

    pub(crate) fn lower_loop(&mut self, id: OpId) {
        let op = self.kernel.ops[id].clone();
        let region = op.regions[0];
        let args = self.kernel.regions[region].args.clone();
        let regs = self.joined(&args);
        self.assign(&op.operands, &regs);
        let (head, exit) = (self.f.label(), self.f.label());
        self.f.place(head);
        self.bind_regs(&args, &regs);
        self.loop_body(region, LoopJump { next: head, exit, regs: regs.clone() });
        self.f.place(exit);
        self.bind_regs(&op.results, &regs);
    }

    pub(crate) fn lower_if(&mut self, id: OpId) {
        let op = self.kernel.ops[id].clone();
        let cond = self.scalar(op.operands[0]);
        let cond = self.in_reg(crate::ir::Elem::Bool, cond);
        let regs = self.joined(&op.results);
        let (other, end) = (self.f.label(), self.f.label());
        self.f.bra_unless(cond, other, true);
        self.jumps.yields.push(Join { label: end, regs: regs.clone() });
        self.region(op.regions[0]);
        self.f.place(other);
        self.region(op.regions[1]);
        self.jumps.yields.pop();
        self.f.place(end);
        self.bind_regs(&op.results, &regs);
    }

    pub(crate) fn lower_scope(&mut self, id: OpId) {
        let op = self.kernel.ops[id].clone();
        let regs = self.joined(&op.results);
        let label = self.f.label();
        self.jumps.scopes.push(Join { label, regs: regs.clone() });
        self.region(op.regions[0]);
        self.jumps.scopes.pop();
        self.f.place(label);
        self.bind_regs(&op.results, &regs);
    }

    /// `yield`: to the end of an arm, or round the loop.
    pub(crate) fn lower_yield(&mut self, id: OpId) {
        let operands = self.kernel.ops[id].operands.clone();
        let join = self.jumps.yields.last().cloned().expect("the verifier keeps yield inside if and loops");
        self.assign(&operands, &join.regs);
        self.f.bra(join.label, true);
    }

    pub(crate) fn lower_continue(&mut self, id: OpId) {
        let operands = self.kernel.ops[id].operands.clone();
        let jump = self.jumps.loops.last().cloned().expect("the verifier keeps continue inside loops");
        self.assign(&operands, &jump.regs);
        self.f.bra(jump.next, true);
    }

    pub(crate) fn lower_break(&mut self, id: OpId) {
        let operands = self.kernel.ops[id].operands.clone();
        let jump = self.jumps.loops.last().cloned().expect("the verifier keeps break inside loops");
        self.assign(&operands, &jump.regs);
        self.f.bra(jump.exit, true);
    }

    pub(crate) fn lower_exit(&mut self, id: OpId) {
        let operands = self.kernel.ops[id].operands.clone();
        let join = self.jumps.scopes.last().cloned().expect("the verifier keeps exit inside scopes");
        self.assign(&operands, &join.regs);
        self.f.bra(join.label, true);
    }
}
