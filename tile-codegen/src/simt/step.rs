//! One instruction of one warp: which lanes execute it, and the one table of what every instruction means.

use super::clock::{Stamp, Who};
use super::counts::lanes;
use super::program::Program;
use super::regs::Lanes;
use super::report::{OtherAccess, Place, ReportKind};
use super::state::{BlockParts, Engine, Warp};
use crate::ptx::{Hopper, Inst, Operand, Reg, SpecialReg, Ty};

/// Multiprocessors that `%smid` counts.
const MULTIPROCESSORS: u64 = 132;

/// The execution of one instruction. Other modules add the meanings of their instructions.
pub(super) struct Step<'s, 'p> {
    pub(super) engine: &'s mut Engine<'p>,
    pub(super) block: &'s mut BlockParts,
    pub(super) warp: &'s mut Warp,
    pub(super) pc: usize,
    /// The lanes at this line.
    pub(super) here: u32,
    /// Those of them for which the guard holds.
    pub(super) mask: u32,
    /// Whether the lanes here may wait for no others, since those will not come.
    pub(super) forced: bool,
}

/// Who makes an access as a lane of a warp.
pub(super) fn who(warp: &Warp, block: u64, lane: u32, strong: bool, pc: usize) -> Who<'_> {
    let stamp = Stamp::new(warp.clock.own(warp.index), warp.index, lane, strong, pc);
    Who { clock: &warp.clock, block, stamp }
}

/// Executes the next instruction of a warp that is ready and has live lanes.
pub(super) fn step<'p>(engine: &mut Engine<'p>, block: &mut BlockParts, warp: &mut Warp) {
    let (pc, here, forced) = choose(warp);
    let program: &'p Program = engine.program;
    let line = &program.lines[pc];
    engine.steps += 1;
    engine.counts.instructions[line.class as usize] += u64::from(!matches!(line.inst, Inst::Label(_)));
    advance(warp, here, pc + 1);
    let mut step = Step { engine, block, warp, pc, here, mask: here, forced };
    if let Some((pred, negated)) = line.guard {
        step.check_defined(pred);
        let bits = step.warp.regs.pred_at(pred);
        step.mask &= if negated { !bits } else { bits };
    }
    if step.mask == 0 {
        return;
    }
    for &register in &line.uses {
        step.check_defined(register as usize);
    }
    if program.has_products && !matches!(line.inst, Inst::Hopper(Hopper::Wgmma(_))) {
        step.watch_registers(&line.uses, &line.defs);
    }
    step.execute(&line.inst, line.target);
    for &register in &line.defs {
        step.warp.regs.defined[register as usize] |= step.mask;
    }
}

/// The line to execute, the lanes there, and whether they can wait for no others: the lanes that are furthest behind
/// go first, so that lanes come together again where their paths join.
fn choose(warp: &mut Warp) -> (usize, u32, bool) {
    if let Some(pc) = warp.together {
        return (pc, warp.live, false);
    }
    let going = warp.live & !warp.gathering;
    let forced = going == 0;
    let candidates = if forced { warp.live } else { going };
    let pc = lanes(candidates).map(|lane| warp.pcs[lane]).min().expect("the warp has live lanes");
    let here = lanes(warp.live).filter(|&lane| warp.pcs[lane] == pc).fold(0, |mask, lane| mask | 1 << lane);
    if here == warp.live && warp.gathering == 0 {
        warp.together = Some(pc);
    }
    (pc, here, forced)
}

/// Lanes go to a line.
fn advance(warp: &mut Warp, moving: u32, to: usize) {
    if moving == warp.live && warp.together.is_some() {
        warp.together = Some(to);
        return;
    }
    if let Some(pc) = warp.together.take() {
        warp.pcs = [pc; 32];
    }
    lanes(moving).for_each(|lane| warp.pcs[lane] = to);
}

impl Step<'_, '_> {
    /// Reports a fault of this instruction.
    pub(super) fn report(&mut self, kind: ReportKind, lane: Option<usize>, message: impl FnOnce() -> String) {
        let place = self.place(lane);
        self.engine.reports.add(self.engine.program, kind, place, message);
    }

    /// Reports a fault of this instruction and another access.
    pub(super) fn report_with(
        &mut self,
        kind: ReportKind,
        lane: usize,
        about: impl FnOnce(&Program) -> (String, OtherAccess),
    ) {
        let (place, program) = (self.place(Some(lane)), self.engine.program);
        self.engine.reports.add_with(program, kind, place, || {
            let (message, other) = about(program);
            (message, Some(other))
        });
    }

    /// This instruction as the place of a report that comes later.
    pub(super) fn place(&self, lane: Option<usize>) -> Place {
        let lane = lane.map(|lane| lane as u32);
        Place { block: self.block.index, warp: self.warp.index as u32, lane, pc: self.pc }
    }

    fn check_defined(&mut self, register: usize) {
        let missing = self.mask & !self.warp.regs.defined[register];
        if missing != 0 {
            let lane = missing.trailing_zeros() as usize;
            let message = || format!("reads a register that {} lanes have not written", missing.count_ones());
            self.report(ReportKind::UninitialisedRegister, Some(lane), message);
            self.warp.regs.defined[register] |= missing;
        }
    }

    /// The lanes that execute the instruction.
    pub(super) fn lanes(&self) -> impl Iterator<Item = usize> + use<> {
        lanes(self.mask)
    }

    /// The first of them.
    pub(super) fn first_lane(&self) -> usize {
        self.mask.trailing_zeros() as usize
    }

    /// The value of an operand of type `ty` in every lane.
    pub(super) fn operand(&self, operand: Operand, ty: Ty) -> Lanes {
        match operand {
            Operand::Special(special) => self.special(special),
            other => self.warp.regs.operand(other, ty),
        }
    }

    /// Writes a register in the executing lanes.
    pub(super) fn set(&mut self, dst: Reg, values: &Lanes) {
        self.warp.regs.set(dst, self.mask, values);
    }

    fn special(&self, special: SpecialReg) -> Lanes {
        let first = self.warp.index as u64 * 32;
        let [x, y, z] = self.block.id;
        let grid = self.engine.run.grid;
        let all = match special {
            SpecialReg::TidX => return std::array::from_fn(|lane| first + lane as u64),
            SpecialReg::LaneId => return std::array::from_fn(|lane| lane as u64),
            SpecialReg::TidY | SpecialReg::TidZ | SpecialReg::ClusterCtaRank => 0,
            SpecialReg::NTidX => self.engine.program.threads(),
            SpecialReg::CtaIdX => x,
            SpecialReg::CtaIdY => y,
            SpecialReg::CtaIdZ => z,
            SpecialReg::NCtaIdX => grid[0],
            SpecialReg::NCtaIdY => grid[1],
            SpecialReg::NCtaIdZ => grid[2],
            SpecialReg::SmId => (self.block.index % MULTIPROCESSORS) as u32,
            SpecialReg::Clock64 | SpecialReg::GlobalTimer => return [self.engine.steps; 32],
        };
        [u64::from(all); 32]
    }

    /// Reports if some lanes of the warp do not execute an instruction that takes them all.
    pub(super) fn need_whole_warp(&mut self) {
        let absent = self.warp.live & !self.mask;
        if absent != 0 {
            let message = || format!("{} lanes of the warp do not execute it", absent.count_ones());
            self.report(ReportKind::Divergence, None, message);
        }
    }

    /// As [`Step::need_whole_warp`], where lanes that have exited count as well.
    pub(super) fn need_32_lanes(&mut self) {
        if self.mask != u32::MAX {
            let absent = self.mask.count_zeros();
            self.report(ReportKind::Divergence, None, || {
                format!("{absent} lanes of the warp do not execute it")
            });
        }
    }

    /// The lanes of a mask operand, once they all are here; until then the lanes here wait, and this is `None`.
    pub(super) fn gather(&mut self, mask: Operand) -> Option<u32> {
        let masks = self.operand(mask, Ty::B32);
        let members = masks[self.first_lane()] as u32;
        let stray = self.mask & !members;
        if stray != 0 || self.lanes().any(|lane| masks[lane] as u32 != members) {
            let message = || format!("lanes with the mask {members:#x} meet lanes that it does not name");
            self.report(ReportKind::Divergence, None, message);
        }
        let missing = members & self.warp.live & !self.mask;
        if missing != 0 && !self.forced && missing & self.here == 0 {
            self.wait_for_lanes();
            return None;
        }
        if missing != 0 {
            let message = || format!("{} lanes of its mask do not execute it", missing.count_ones());
            self.report(ReportKind::Divergence, None, message);
        }
        self.warp.gathering &= !self.here;
        Some(members & self.mask)
    }

    /// Puts the executing lanes back to this line, to wait there.
    fn wait_for_lanes(&mut self) {
        let waiting = self.put_back();
        self.warp.gathering |= waiting;
    }

    /// Puts the executing lanes back to this line and returns them.
    pub(super) fn put_back(&mut self) -> u32 {
        let class = self.engine.program.lines[self.pc].class;
        self.engine.counts.instructions[class as usize] -= 1;
        let waiting = std::mem::take(&mut self.mask);
        if let Some(pc) = self.warp.together.take() {
            self.warp.pcs = [pc; 32];
        }
        lanes(waiting).for_each(|lane| self.warp.pcs[lane] = self.pc);
        waiting
    }

    fn branch(&mut self, target: usize) {
        advance(self.warp, self.mask, target);
    }

    fn exit(&mut self) {
        self.warp.live &= !self.mask;
    }

    fn trap(&mut self) {
        self.report(ReportKind::Trap, None, || "the kernel ends itself".to_string());
        self.engine.stopped = true;
    }

    /// What every instruction does. There is no default: an instruction without a meaning does not compile.
    fn execute(&mut self, inst: &Inst, target: usize) {
        match inst {
            Inst::Mov { ty, dst, src } => self.mov(*ty, *dst, *src),
            Inst::SharedAddr { dst } => self.set(*dst, &[super::shared::SHARED_BASE; 32]),
            Inst::CvtaTo { space: _, dst, src } => self.mov(Ty::B64, *dst, (*src).into()),
            Inst::Pack { ty, dst, parts } => self.pack(*ty, *dst, parts),
            Inst::Unpack { ty, dsts, src } => self.unpack(*ty, dsts, *src),
            Inst::Int { op, ty, dst, a, b } => self.int(*op, *ty, *dst, *a, *b),
            Inst::IntUn { op, ty, dst, a } => self.int_un(*op, *ty, *dst, *a),
            Inst::MulWide { ty, dst, a, b } => self.mad(*ty, true, *dst, [*a, *b, Operand::Imm(0)]),
            Inst::MadLo { ty, dst, a, b, c } => self.mad(*ty, false, *dst, [*a, *b, *c]),
            Inst::MadWide { ty, dst, a, b, c } => self.mad(*ty, true, *dst, [*a, *b, *c]),
            Inst::Lop3 { dst, a, b, c, lut } => self.lop3(*dst, [*a, *b, *c], *lut),
            Inst::Bfe { ty, dst, a, pos, len } => self.bfe(*ty, *dst, *a, *pos, *len),
            Inst::Bfi { ty, dst, a, b, pos, len } => self.bfi(*ty, *dst, [*a, *b], *pos, *len),
            Inst::Shf { left, dst, a, b, c } => self.shf(*left, *dst, [*a, *b, *c]),
            Inst::Prmt { dst, a, b, selector } => self.prmt(*dst, [*a, *b, *selector]),
            Inst::Float { op, ty, ftz, dst, a, b } => self.float(*op, *ty, *ftz, *dst, *a, *b),
            Inst::FloatUn { op, ty, ftz, dst, a } => self.float_un(*op, *ty, *ftz, *dst, *a),
            Inst::Fma { ty, ftz, dst, a, b, c } => self.fma(*ty, *ftz, *dst, [*a, *b, *c]),
            Inst::Cvt { dst_ty, src_ty, round, ftz, sat, dst, src } => {
                self.cvt((*dst_ty, *src_ty), *round, (*ftz, *sat), *dst, *src)
            }
            Inst::CvtPack { ty, dst, hi, lo } => self.cvt_pack(*ty, *dst, *hi, *lo),
            Inst::Setp { cmp, ty, dst, a, b } => self.setp(*cmp, *ty, *dst, *a, *b),
            Inst::Selp { ty, dst, a, b, pred } => self.selp(*ty, *dst, [*a, *b], *pred),
            Inst::Pred { op, dst, a, b } => self.pred_op(*op, *dst, *a, *b),
            Inst::PredNot { dst, a } => {
                let bits = !self.warp.regs.pred(*a);
                self.warp.regs.set_pred(*dst, self.mask, bits);
            }
            Inst::Ld { space, ty, sem, cache: _, dsts, addr } => self.load(*space, *ty, *sem, dsts, *addr),
            Inst::St { space, ty, sem, cache: _, addr, srcs } => self.store(*space, *ty, *sem, *addr, srcs),
            Inst::Atom { op, ty, space, sem, dst, addr, cmp, src } => {
                self.atomic((*op, *ty), *space, *sem, Some(*dst), *addr, [*cmp, Some(*src)])
            }
            Inst::Red { op, ty, space, sem, addr, src } => {
                self.atomic((*op, *ty), *space, *sem, None, *addr, [None, Some(*src)])
            }
            Inst::Shfl { mode, dst, pred, src, lane, clamp, mask } => {
                self.shfl(*mode, (*dst, *pred), *src, [*lane, *clamp], *mask)
            }
            Inst::Vote { mode, dst, src, negated, mask } => self.vote(*mode, *dst, *src, *negated, *mask),
            Inst::Redux { op, ty, dst, src, mask } => self.redux(*op, *ty, *dst, *src, *mask),
            Inst::BarSync { id, threads } => self.barrier(*id, *threads, true),
            Inst::BarArrive { id, threads } => self.barrier(*id, Some(*threads), false),
            Inst::BarWarpSync { mask } => self.warp_sync(*mask),
            Inst::Membar { level: _ } => self.fence(),
            Inst::Fence { sem: _, scope: _ } => self.fence(),
            Inst::Label(_) => {}
            Inst::Bra { label: _, uni } => {
                if *uni {
                    self.need_uniform_branch();
                }
                self.branch(target);
            }
            Inst::Ret | Inst::Exit => self.exit(),
            Inst::Trap => self.trap(),
            Inst::Mma { shape, ty, d, a, b, c } => self.mma(*shape, *ty, d, (a, b), c),
            Inst::Ldmatrix { trans, dsts, addr } => self.ldmatrix(*trans, dsts, *addr),
            Inst::Stmatrix { trans, addr, srcs } => self.stmatrix(*trans, *addr, srcs),
            Inst::CpAsync { cache: _, bytes, dst, src, src_size } => {
                self.copy_async(*bytes, *dst, *src, *src_size)
            }
            Inst::CpAsyncCommit => self.copy_commit(),
            Inst::CpAsyncWait(pending) => self.copy_wait(*pending as usize),
            Inst::CpAsyncWaitAll => self.copy_wait_all(),
            Inst::Hopper(inst) => self.hopper(inst),
        }
    }

    /// `bra.uni` promises that all lanes go the same way.
    fn need_uniform_branch(&mut self) {
        if self.mask != self.here {
            let message = || "a uniform branch is taken by some lanes and not by others".to_string();
            self.report(ReportKind::Divergence, None, message);
        }
    }
}
