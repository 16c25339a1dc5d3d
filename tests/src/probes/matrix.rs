//! `ldmatrix` and `stmatrix`: shared memory holds its own indices, so that each element's place is seen.

use tile_codegen::ptx::{Addr, Inst, Regs, Space, Ty};

use super::Probe;
use super::builder::Builder;
use super::values::Random;

/// 16-bit elements of shared memory: 32 rows of 8 and more.
const ELEMENTS: u32 = 512;

pub(super) fn probes() -> Vec<Probe> {
    let mut all = Vec::new();
    for count in [1, 2, 4] {
        for trans in [false, true] {
            all.push(load(count, trans));
            all.push(store(count, trans));
        }
    }
    all
}

fn title(what: &str, count: usize, trans: bool) -> String {
    format!("matrix/{what} x{count}{}", if trans { " trans" } else { "" })
}

/// Row addresses by lane: in order, spread, and at random (with rows that occur twice where loads alone use them).
fn rows(twice: bool) -> Vec<u64> {
    let mut draw = Random(61);
    let mut shuffled: Vec<u64> = (0..64).collect();
    for i in (1..64).rev() {
        shuffled.swap(i, draw.below(i as u64 + 1) as usize);
    }
    let third = (0..32).map(|lane| if twice { draw.below(64) } else { shuffled[lane + 32] });
    (0..32).chain(shuffled[..32].to_vec()).chain(third.collect::<Vec<_>>()).map(|row| 16 * row).collect()
}

/// Fills shared memory with 16-bit words: `from` plus the index.
fn fill(p: &mut Builder, from: u32) -> tile_codegen::ptx::Reg {
    p.shared(2 * ELEMENTS);
    let base = p.f.shared_addr();
    let lane = p.low(p.index, 32);
    let at = p.f.mad_lo_s32(lane, 4u32, base).reg().expect("not a literal");
    for i in 0..ELEMENTS / 64 {
        // The pair (2j, 2j + 1) with j = 32 i + lane.
        let pair = p.f.mad_lo_s32(lane, 0x2_0002u32, 64 * i * 0x1_0001 + 0x1_0000 + from * 0x1_0001);
        p.f.st(Space::Shared, Ty::B32, Addr::reg(at, i64::from(128 * i)), &[pair]);
    }
    p.f.bar_sync();
    base
}

fn load(count: usize, trans: bool) -> Probe {
    let mut p = Builder::new(title("ldmatrix", count, trans), 32, &[(Ty::U32, rows(true))]);
    let base = fill(&mut p, 0);
    let row = p.f.add_s32(p.x[0], base).reg().expect("not a literal");
    let regs = p.f.ldmatrix(count, trans, row);
    for (i, reg) in regs.into_iter().enumerate() {
        p.out(format!("register {i}"), reg);
    }
    p.finish()
}

fn store(count: usize, trans: bool) -> Probe {
    let mut p = Builder::new(title("stmatrix", count, trans), 32, &[(Ty::U32, rows(false))]);
    let base = fill(&mut p, 0x8000);
    let row = p.f.add_s32(p.x[0], base).reg().expect("not a literal");
    let lane = p.low(p.index, 32);
    // Elements numbered by register, lane and half.
    let mut srcs = Regs::new();
    for i in 0..count as u32 {
        let value = p.f.mad_lo_s32(lane, 0x2_0002u32, 64 * i * 0x1_0001 + 0x1_0000);
        srcs.push(p.f.materialize(Ty::B32, value));
    }
    p.f.emit(Inst::Stmatrix { trans, addr: Addr::reg(row, 0), srcs });
    p.f.bar_sync();
    let at = p.f.mad_lo_s32(lane, 4u32, base).reg().expect("not a literal");
    for i in 0..ELEMENTS / 64 {
        let word = p.f.ld(Space::Shared, Ty::B32, Addr::reg(at, i64::from(128 * i)));
        p.out(format!("shared words {}..", 32 * i), word);
    }
    p.finish()
}
