//! Control flow: carried values live in fixed registers, updated where control joins.

use super::{LowerCx, class, move_ty};
use crate::ir::{Elem, OpId, RegionId, ValueId};
use crate::ops::OpKind;
use crate::ptx::{Cmp, Label, Operand, Reg, RegClass, Ty};

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

/// Whether the elements of a value travel in pairs.
fn paired(elem: Elem, count: usize) -> bool {
    matches!(elem, Elem::F16 | Elem::BF16) && count.is_multiple_of(2)
}

impl LowerCx<'_> {
    /// Fresh registers for values of these types. Pairs of 16-bit elements share one of 32 bits.
    fn joined(&mut self, values: &[ValueId]) -> Vec<Vec<Reg>> {
        let mut all = Vec::new();
        for &value in values {
            let (count, elem) = (self.layout(value).num_regs(), self.elem(value));
            let (count, class) =
                if paired(elem, count) { (count / 2, RegClass::B32) } else { (count, class(elem)) };
            all.push((0..count).map(|_| self.f.reg(class)).collect());
        }
        all
    }

    fn bind_regs(&mut self, values: &[ValueId], regs: &[Vec<Reg>]) {
        for (&value, regs) in values.iter().zip(regs) {
            let (count, elem) = (self.layout(value).num_regs(), self.elem(value));
            let mut operands = Vec::with_capacity(count);
            for &reg in regs {
                if paired(elem, count) {
                    operands.extend(self.unpack2(reg).map(Operand::from));
                } else {
                    operands.push(reg.into());
                }
            }
            self.bind(value, operands);
        }
    }

    /// A value as it is kept in joined registers, with the type that moves it.
    fn joined_form(&mut self, value: ValueId) -> Vec<(Operand, Ty)> {
        let (elem, operands) = (self.elem(value), self.values(value));
        if paired(elem, operands.len()) {
            let regs: Vec<Reg> = operands.into_iter().map(|o| self.in_reg(elem, o)).collect();
            return regs.chunks(2).map(|two| (self.pack2(two[0], two[1]).into(), Ty::B32)).collect();
        }
        let one = |o: Operand| match elem {
            Elem::Bool => (self.in_reg(elem, o).into(), move_ty(elem)),
            Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::I32 | Elem::I64 | Elem::U32 => {
                (o, move_ty(elem))
            }
        };
        operands.into_iter().map(one).collect()
    }

    /// Moves values into registers, all at once: a source that is also a destination is saved first.
    fn assign(&mut self, sources: &[ValueId], dests: &[Vec<Reg>]) {
        let mut moves: Vec<(Reg, Operand, Ty)> = Vec::new();
        for (&source, regs) in sources.iter().zip(dests) {
            let forms = self.joined_form(source);
            let pairs = regs.iter().zip(forms).filter(|(r, (o, _))| Operand::Reg(**r) != *o);
            moves.extend(pairs.map(|(r, (o, ty))| (*r, o, ty)));
        }
        let written: std::collections::BTreeSet<Reg> = moves.iter().map(|m| m.0).collect();
        for (_, source, ty) in &mut moves {
            if let Operand::Reg(reg) = *source
                && written.contains(&reg)
            {
                let saved = self.f.reg(reg.class);
                self.f.mov_to(*ty, saved, reg);
                *source = saved.into();
            }
        }
        for (dest, source, ty) in moves {
            self.f.mov_to(ty, dest, source);
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
        let lazy = self.assign_initial(&args[1..], &op.operands[3..], &regs);
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
        let unsigned = if elem == Elem::I64 { Ty::U64 } else { Ty::U32 };
        let done = self.f.setp(Cmp::Le, unsigned, left, step);
        self.f.bra_if(done, exit, true);
        let stepped = self.f.int(crate::ptx::IntOp::Add, ty, index, step);
        self.f.mov_to(move_ty(elem), index, stepped);
        self.f.bra(head, true);
        self.f.place(exit);
        self.fill_empty(&lazy);
        self.bind_regs(&op.results, &regs);
    }

    /// Moves initial values into carried registers, but for accumulators that the first product will fill. Returns those,
    /// with their flags.
    fn assign_initial(
        &mut self,
        args: &[ValueId],
        inits: &[ValueId],
        regs: &[Vec<Reg>],
    ) -> Vec<(Reg, Vec<Reg>)> {
        let (mut sources, mut dests, mut lazy) = (Vec::new(), Vec::new(), Vec::new());
        for ((&arg, &init), regs) in args.iter().zip(inits).zip(regs) {
            if self.accumulators.lazy.contains(&arg) {
                let flag = super::channels::flag(&mut self.f);
                self.lazy.insert(arg, flag);
                lazy.push((flag, regs.clone()));
            } else {
                sources.push(init);
                dests.push(regs.clone());
            }
        }
        self.assign(&sources, &dests);
        lazy
    }

    /// After a loop that did not run, its accumulators are zeros.
    fn fill_empty(&mut self, lazy: &[(Reg, Vec<Reg>)]) {
        if lazy.is_empty() {
            return;
        }
        self.f.hopper(crate::ptx::Hopper::WgmmaWait(0));
        for (flag, regs) in lazy {
            let empty = self.f.setp(Cmp::Eq, Ty::S32, *flag, 0);
            for &dst in regs {
                let zero = crate::ptx::Inst::Mov { ty: Ty::F32, dst, src: Operand::f32(0.0) };
                self.f.emit_if(empty, zero);
            }
        }
    }

    fn loop_body(&mut self, region: RegionId, jump: LoopJump) {
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
        let cond = self.in_reg(Elem::Bool, cond);
        let regs = self.joined(&op.results);
        let (other, end) = (self.f.label(), self.f.label());
        self.f.bra_unless(cond, other, true);
        self.jumps.yields.push(Join { label: end, regs: regs.clone() });
        self.arm(op.regions[0]);
        self.f.place(other);
        self.arm(op.regions[1]);
        self.jumps.yields.pop();
        self.f.place(end);
        self.bind_regs(&op.results, &regs);
    }

    /// An arm of an `if`. Inside of a loop its invariants are worth more before the loop, and copies into a ring have the
    /// invariants of those in the loop that follows.
    fn arm(&mut self, region: RegionId) {
        let ops = &self.kernel.regions[region].ops;
        let copies = ops.iter().any(|&op| matches!(self.kernel.ops[op].kind, OpKind::CopyAsync(_)));
        match self.jumps.loops.is_empty() && !copies {
            true => self.with_own_prologue(|cx| cx.region(region)),
            false => self.region(region),
        }
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
