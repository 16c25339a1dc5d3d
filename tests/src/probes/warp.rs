//! Exchanges between the lanes of a warp.

use tile_codegen::ptx::{Cmp, Inst, Operand, ReduxOp, RegClass, ShflMode, Ty, VoteMode};

use super::Probe;
use super::builder::Builder;
use super::values::{integers, random};

pub(super) fn probes() -> Vec<Probe> {
    vec![shuffles(), shuffles_of_lanes(), votes(), reductions(), masks()]
}

fn lanes() -> Vec<u64> {
    (0..32).map(|lane| 100 + lane).collect()
}

/// Every mode with literal distances and segments.
fn shuffles() -> Probe {
    let mut p = Builder::new("warp/shfl", 32, &[(Ty::B32, lanes())]);
    for &mode in ShflMode::ALL {
        for by in [0, 1, 2, 5, 16, 31, 33] {
            for segment in [0, 16, 24, 28, 30] {
                let last = if mode == ShflMode::Up { 0 } else { 31 };
                shuffle(&mut p, mode, Operand::Imm(by), segment << 8 | last);
            }
        }
        // A limit inside the warp.
        shuffle(&mut p, mode, Operand::Imm(3), 12);
    }
    p.finish()
}

fn shuffle(p: &mut Builder, mode: ShflMode, lane: Operand, clamp: i64) {
    let (dst, pred) = (p.f.reg(RegClass::B32), p.f.reg(RegClass::Pred));
    let (clamp_operand, mask) = (Operand::Imm(clamp), Operand::Imm(0xffff_ffff));
    p.f.emit(Inst::Shfl { mode, dst, pred: Some(pred), src: p.x[0], lane, clamp: clamp_operand, mask });
    // The predicate as bit 16.
    let bit = p.f.selp(Ty::B32, 1i32 << 16, 0u32, pred);
    let both = p.f.or_b32(dst, bit);
    let by = lane.imm().map_or("by lane".to_string(), |by| by.to_string());
    p.out(format!("shfl.sync.{} {by}, {clamp:#x}", mode.name()), both);
}

/// Every mode with a distance that differs by lane, and without the predicate.
fn shuffles_of_lanes() -> Probe {
    let mut p =
        Builder::new("warp/shfl by lane", 32, &[(Ty::B32, lanes()), (Ty::U32, random(Ty::U32, 32, 41))]);
    for &mode in ShflMode::ALL {
        let by = p.x[1].into();
        shuffle(&mut p, mode, by, if mode == ShflMode::Up { 0 } else { 31 });
        let value = p.f.shfl(mode, p.x[0], by);
        p.out(format!("shfl.sync.{} without predicate", mode.name()), value);
    }
    p.finish()
}

fn votes() -> Probe {
    // A warp each: all, none, one, alternating, random.
    let patterns = [u32::MAX, 0, 1 << 13, 0x5555_5555, 0x8f1b_2c3d];
    let bits =
        patterns.iter().flat_map(|bits| (0..32).map(move |lane| u64::from(bits >> lane & 1))).collect();
    let mut p = Builder::new("warp/vote", 32, &[(Ty::U32, bits)]);
    let src = p.f.setp(Cmp::Ne, Ty::U32, p.x[0], 0u32);
    for &mode in VoteMode::ALL {
        for negated in [false, true] {
            let class = if mode == VoteMode::Ballot { RegClass::B32 } else { RegClass::Pred };
            let dst = p.f.reg(class);
            p.f.emit(Inst::Vote { mode, dst, src, negated, mask: Operand::Imm(0xffff_ffff) });
            p.out(format!("vote.sync.{}{}", mode.name(), if negated { " not" } else { "" }), dst);
        }
    }
    p.finish()
}

fn redux(p: &mut Builder, op: ReduxOp, ty: Ty, mask: i64) -> tile_codegen::ptx::Reg {
    let dst = p.f.reg(RegClass::B32);
    p.f.emit(Inst::Redux { op, ty, dst, src: p.x[0], mask: Operand::Imm(mask) });
    dst
}

fn reductions() -> Probe {
    let mut values = random(Ty::U32, 64, 42);
    values.extend(integers(Ty::U32).into_iter().cycle().take(32));
    let mut p = Builder::new("warp/redux", 32, &[(Ty::U32, values)]);
    for &op in ReduxOp::ALL {
        let bits = matches!(op, ReduxOp::And | ReduxOp::Or | ReduxOp::Xor);
        for &ty in if bits { &[Ty::B32][..] } else { &[Ty::U32, Ty::S32] } {
            let value = redux(&mut p, op, ty, 0xffff_ffff);
            p.out(format!("redux.sync.{}.{ty}", op.name()), value);
        }
    }
    p.finish()
}

/// The lower half of a warp alone.
fn masks() -> Probe {
    let mut p = Builder::new("warp/half", 32, &[(Ty::U32, random(Ty::U32, 32, 43))]);
    let end = p.f.label();
    let lane = p.index;
    let upper = p.f.setp(Cmp::Ge, Ty::U32, lane, 16u32);
    let odd = p.low(lane, 2);
    let odd = p.f.setp(Cmp::Ne, Ty::U32, odd, 0u32);
    p.f.bra_if(upper, end, false);
    let sum = redux(&mut p, ReduxOp::Add, Ty::U32, 0xffff);
    p.out("redux.sync.add.u32, 16 lanes", sum);
    let dst = p.f.reg(RegClass::B32);
    p.f.emit(Inst::Vote {
        mode: VoteMode::Ballot,
        dst,
        src: odd,
        negated: false,
        mask: Operand::Imm(0xffff),
    });
    p.out("vote.sync.ballot, 16 lanes", dst);
    let dst = p.f.reg(RegClass::B32);
    let (lane, clamp, mask) = (Operand::Imm(1), Operand::Imm(15), Operand::Imm(0xffff));
    p.f.emit(Inst::Shfl { mode: ShflMode::Down, dst, pred: None, src: p.x[0], lane, clamp, mask });
    p.out("shfl.sync.down 1, 16 lanes", dst);
    p.f.emit(Inst::BarWarpSync { mask });
    p.f.place(end);
    p.finish()
}
