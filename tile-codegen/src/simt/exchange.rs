//! Exchanges between the lanes of a warp: shuffles, votes and reductions.

use super::counts::lanes;
use super::report::ReportKind;
use super::step::Step;
use crate::ptx::{IntOp, Operand, ReduxOp, Reg, ShflMode, Ty, VoteMode, int_bin};

/// The lane that `lane` reads from, and whether it is inside the segment (PTX ISA 9.7.9.6).
fn source(mode: ShflMode, lane: i64, by: i64, clamp: i64) -> (i64, bool) {
    let (limit, segment, by) = (clamp & 31, clamp >> 8 & 31, by & 31);
    let last = (lane & segment) | (limit & !segment & 31);
    let from = match mode {
        ShflMode::Up => lane - by,
        ShflMode::Down => lane + by,
        ShflMode::Bfly => lane ^ by,
        ShflMode::Idx => (lane & segment) | (by & !segment & 31),
    };
    let inside = if mode == ShflMode::Up { from >= last } else { from <= last };
    (if inside { from } else { lane }, inside)
}

impl Step<'_, '_> {
    pub(super) fn shfl(
        &mut self,
        mode: ShflMode,
        (dst, pred): (Reg, Option<Reg>),
        src: Reg,
        [by, clamp]: [Operand; 2],
        mask: Operand,
    ) {
        let Some(members) = self.gather(mask) else { return };
        let (by, clamp) = (self.operand(by, Ty::U32), self.operand(clamp, Ty::U32));
        let values = *self.warp.regs.plane(src);
        let (mut out, mut inside) = (values, 0);
        for lane in lanes(members) {
            let (from, is_inside) = source(mode, lane as i64, by[lane] as i64, clamp[lane] as i64);
            inside |= u32::from(is_inside) << lane;
            if members >> from & 1 == 0 {
                self.report(ReportKind::AbsentLane, Some(lane), || {
                    format!("reads from lane {from}, which does not take part")
                });
            }
            out[lane] = values[from as usize];
        }
        self.set(dst, &out);
        if let Some(pred) = pred {
            self.warp.regs.set_pred(pred, self.mask, inside);
        }
    }

    pub(super) fn vote(&mut self, mode: VoteMode, dst: Reg, src: Reg, negated: bool, mask: Operand) {
        let Some(members) = self.gather(mask) else { return };
        let bits = self.warp.regs.pred(src);
        let bits = if negated { !bits } else { bits } & members;
        let answer = match mode {
            VoteMode::All => bits == members,
            VoteMode::Any => bits != 0,
            VoteMode::Uni => bits == 0 || bits == members,
            VoteMode::Ballot => return self.set(dst, &[u64::from(bits); 32]),
        };
        self.warp.regs.set_pred(dst, self.mask, if answer { u32::MAX } else { 0 });
    }

    pub(super) fn redux(&mut self, op: ReduxOp, ty: Ty, dst: Reg, src: Reg, mask: Operand) {
        let Some(members) = self.gather(mask) else { return };
        let op = match op {
            ReduxOp::Add => IntOp::Add,
            ReduxOp::Min => IntOp::Min,
            ReduxOp::Max => IntOp::Max,
            ReduxOp::And => IntOp::And,
            ReduxOp::Or => IntOp::Or,
            ReduxOp::Xor => IntOp::Xor,
        };
        let values = *self.warp.regs.plane(src);
        let all = lanes(members).map(|lane| values[lane] as i64);
        let total = all.reduce(|a, b| int_bin(op, ty, a, b).expect("no division"));
        self.set(dst, &[total.unwrap_or(0) as u64; 32]);
    }
}
