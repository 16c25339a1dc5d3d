//! Elections, register budgets and dependent grids.

use tile_codegen::ptx::{Cmp, Hopper, Inst, Operand, RegClass, Ty};

use super::Probe;
use super::builder::Builder;
use super::values::random;

pub(super) fn probes() -> Vec<Probe> {
    vec![elections(), budgets()]
}

/// One lane of the whole warp; one of some lanes, which alone execute it.
fn elections() -> Probe {
    let mut p = Builder::new("warpgroup/elect.sync", 64, &[]);
    let lane = {
        let index = p.index;
        p.low(index, 32)
    };
    for (i, mask) in
        [0xffff_ffffu32, 0xffff_fffe, 0x8000_0000, 0x00ff_0f00, 0x5555_5550].into_iter().enumerate()
    {
        let bit = p.f.shr_u32(Operand::Imm(i64::from(mask)), lane);
        let bit = p.f.and_b32(bit, 1u32);
        let member = p.f.setp(Cmp::Ne, Ty::U32, bit, 0u32);
        let (dst, value) = (p.f.mov_imm(Ty::B32, 99), p.f.mov_imm(Ty::B32, 7));
        let skip = p.f.label();
        p.f.bra_unless(member, skip, false);
        let (pred, mask) = (p.f.reg(RegClass::Pred), p.f.mov_imm(Ty::B32, i64::from(mask)));
        p.f.hopper(Hopper::Elect { dst: Some(dst), pred, mask: mask.into() });
        p.f.emit_if(pred, Inst::Mov { ty: Ty::B32, dst: value, src: Operand::Imm(1) });
        p.f.emit_unless(pred, Inst::Mov { ty: Ty::B32, dst: value, src: Operand::Imm(0) });
        p.f.place(skip);
        p.out(format!("mask {i}: the lane's number"), dst);
        p.out(format!("mask {i}: whether elected"), value);
    }
    let one = p.f.elect();
    p.out("without a number", one);
    p.finish()
}

/// Values stay what they are while registers move from one warpgroup to the other, and past waits for grids.
fn budgets() -> Probe {
    let mut p =
        Builder::new("warpgroup/setmaxnreg and griddepcontrol", 256, &[(Ty::U32, random(Ty::U32, 256, 95))]);
    p.f.kernel_mut().min_ctas = Some(1);
    p.f.hopper(Hopper::GridDepWait);
    let (index, value) = (p.index, p.x[0]);
    let second = p.f.setp(Cmp::Ge, Ty::U32, index, 128u32);
    let result = p.f.mov(Ty::B32, value);
    let (takes, join) = (p.f.label(), p.f.label());
    p.f.bra_if(second, takes, true);
    p.f.hopper(Hopper::SetMaxNReg { increase: false, count: 40 });
    let changed = p.f.xor_b32(value, 0x55u32);
    p.f.mov_to(Ty::B32, result, changed);
    p.f.bra(join, true);
    p.f.place(takes);
    p.f.hopper(Hopper::SetMaxNReg { increase: false, count: 200 });
    p.f.hopper(Hopper::SetMaxNReg { increase: true, count: 240 });
    let changed = p.f.xor_b32(value, 0xaau32);
    p.f.mov_to(Ty::B32, result, changed);
    p.f.place(join);
    p.f.hopper(Hopper::GridDepLaunch);
    p.out("changed by each warpgroup", result);
    p.finish()
}
