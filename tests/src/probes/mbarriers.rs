//! mbarriers: which phase is complete after which arrivals and bytes.

use tile_codegen::ptx::{Addr, AddrBase, Cmp, Hopper, Inst, IntOp, Operand, Reg, RegClass, Space, Ty};

use super::Probe;
use super::builder::{Builder, THREADS};
use super::shared::DATA;
use super::values::random;

const BAR: Addr = Addr { base: AddrBase::Shared, offset: 0 };

pub(super) fn probes() -> Vec<Probe> {
    vec![arrivals(), transactions(), reuse(), many(), waits(), copies(), ring()]
}

/// Forms of both parities, after what thread 0 did and before what it does next.
fn test(p: &mut Builder, after: &str) {
    p.f.bar_sync();
    for parity in [0u32, 1] {
        let dst = p.f.reg(RegClass::Pred);
        let parity_reg = p.f.mov_imm(Ty::B32, i64::from(parity));
        let operand = if parity == 0 { Operand::from(parity) } else { parity_reg.into() };
        p.f.hopper(Hopper::MbarrierWait { blocking: false, dst, addr: BAR, parity: operand });
        p.out(format!("{after}: parity {parity}"), dst);
    }
    p.f.bar_sync();
}

fn start(name: &str, count: u32) -> (Builder, Reg) {
    let mut p = Builder::new(format!("mbarrier/{name}"), THREADS, &[]);
    p.aligned_shared(2 * DATA);
    let first = p.first();
    p.mbarrier(first, 0, count);
    (p, first)
}

fn arrive(p: &mut Builder, first: Reg, count: Option<Operand>) {
    p.f.emit_if(first, Hopper::MbarrierArrive { addr: BAR, count }.into());
}

/// A phase of three arrivals, in several ways.
fn arrivals() -> Probe {
    let (mut p, first) = start("arrivals", 3);
    test(&mut p, "init for 3");
    arrive(&mut p, first, None);
    test(&mut p, "1 arrival");
    arrive(&mut p, first, Some(Operand::Imm(1)));
    test(&mut p, "2 arrivals");
    arrive(&mut p, first, None);
    test(&mut p, "3 arrivals");
    let two = p.f.mov_imm(Ty::B32, 2);
    arrive(&mut p, first, Some(two.into()));
    test(&mut p, "2 of the next");
    p.expect(first, 0, 0);
    test(&mut p, "3 of the next, expecting 0 bytes");
    arrive(&mut p, first, Some(Operand::Imm(3)));
    test(&mut p, "3 at once");
    p.finish()
}

fn copy(p: &mut Builder, first: Reg, src: Reg, at: i64, bytes: i64) {
    let (dst, src, bytes) = (Addr::shared(DATA + at), Addr::reg(src, at), Operand::Imm(bytes));
    p.f.emit_if(first, Hopper::BulkLoad { dst, src, bytes, mbar: BAR }.into());
}

/// Phases end when both arrivals and bytes are there.
fn transactions() -> Probe {
    let (mut p, first) = start("transactions", 2);
    p.fill(DATA, &[0xee; 1024], THREADS);
    p.publish();
    let source = p.bytes(&[7; 256]);
    let expect = Hopper::MbarrierExpectTx { addr: BAR, bytes: Operand::Imm(64) };
    p.f.emit_if(first, expect.into());
    test(&mut p, "64 bytes expected");
    arrive(&mut p, first, Some(Operand::Imm(2)));
    test(&mut p, "2 arrivals");
    copy(&mut p, first, source, 0, 48);
    test(&mut p, "48 bytes");
    copy(&mut p, first, source, 48, 16);
    p.f.mbarrier_wait(BAR, 0u32);
    test(&mut p, "64 bytes");
    arrive(&mut p, first, None);
    p.expect(first, 0, 32);
    copy(&mut p, first, source, 64, 16);
    test(&mut p, "half of 32 bytes");
    copy(&mut p, first, source, 80, 16);
    p.f.mbarrier_wait(BAR, 1u32);
    test(&mut p, "32 bytes");
    p.show_shared("copied", DATA, 256, THREADS);
    p.finish()
}

/// `inval`, and another `init` at the same place.
fn reuse() -> Probe {
    let (mut p, first) = start("inval", 1);
    arrive(&mut p, first, None);
    test(&mut p, "phase 0 is complete");
    p.f.emit_if(first, Hopper::MbarrierInval { addr: BAR }.into());
    p.f.bar_sync();
    let two = p.f.mov_imm(Ty::B32, 2);
    p.f.emit_if(first, Hopper::MbarrierInit { addr: BAR, count: two.into() }.into());
    p.f.bar_sync();
    test(&mut p, "init again");
    arrive(&mut p, first, None);
    test(&mut p, "1 of 2");
    arrive(&mut p, first, None);
    test(&mut p, "2 of 2");
    p.finish()
}

/// All threads arrive, then some, then each as often as its number says.
fn many() -> Probe {
    let (mut p, _) = start("many threads", THREADS);
    p.f.mbarrier_arrive(BAR);
    test(&mut p, "all arrived");
    let index = p.index;
    let most = p.f.setp(Cmp::Lt, Ty::U32, index, THREADS - 1);
    p.f.emit_if(most, Hopper::MbarrierArrive { addr: BAR, count: None }.into());
    test(&mut p, "all but one");
    p.f.emit_unless(most, Hopper::MbarrierArrive { addr: BAR, count: None }.into());
    test(&mut p, "the last");
    // 1 + .. + 10 = 55 arrivals of 64.
    let few = p.f.setp(Cmp::Lt, Ty::U32, index, 10u32);
    let count = p.f.add_s32(index, 1u32);
    p.f.emit_if(few, Hopper::MbarrierArrive { addr: BAR, count: Some(count) }.into());
    test(&mut p, "55 of 64");
    let nine = p.f.setp(Cmp::Eq, Ty::U32, index, 40u32);
    p.f.emit_if(nine, Hopper::MbarrierArrive { addr: BAR, count: Some(Operand::Imm(9)) }.into());
    test(&mut p, "64 of 64");
    p.finish()
}

/// `try_wait` on phases that are complete, with parities that differ between lanes for `test_wait`.
fn waits() -> Probe {
    let (mut p, first) = start("waits", 1);
    arrive(&mut p, first, None);
    p.f.bar_sync();
    let dst = p.f.reg(RegClass::Pred);
    p.f.hopper(Hopper::MbarrierWait { blocking: true, dst, addr: BAR, parity: Operand::Imm(0) });
    p.out("try_wait of a complete phase", dst);
    let index = p.index;
    let parity = p.low(index, 2);
    let dst = p.f.reg(RegClass::Pred);
    p.f.hopper(Hopper::MbarrierWait { blocking: false, dst, addr: BAR, parity: parity.into() });
    p.out("test_wait of both parities by lane", dst);
    p.finish()
}

/// `cp.async` of every thread counts on the mbarrier; another thread's bytes are read.
fn copies() -> Probe {
    let (mut p, _) = start("cp.async arrives", THREADS);
    let source: Vec<u8> =
        random(Ty::U32, 256, 91).into_iter().flat_map(|x| (x as u32).to_le_bytes()).collect();
    let source = p.bytes(&source);
    let index = p.index;
    let from = p.element(source, index, 16);
    let base = p.f.shared_addr();
    let mine = p.f.mad_lo_s32(index, 16u32, base).reg().expect("not a literal");
    p.f.cp_async_16(Addr::reg(mine, DATA), Addr::reg(from, 0), None);
    p.f.hopper(Hopper::CpAsyncMbarrierArrive { addr: BAR });
    p.f.mbarrier_wait(BAR, 0u32);
    let other = p.f.xor_b32(index, 33u32);
    let theirs = p.f.mad_lo_s32(other, 16u32, base).reg().expect("not a literal");
    for i in 0..4 {
        let word = p.f.ld(Space::Shared, Ty::B32, Addr::reg(theirs, DATA + 4 * i));
        p.out(format!("word {i} of another thread"), word);
    }
    test(&mut p, "after the copies");
    p.finish()
}

/// One warp hands values to the other through a place and two mbarriers, six times.
fn ring() -> Probe {
    let (mut p, first) = start("ring", 32);
    let empty = Addr::shared(8);
    p.mbarrier(first, 8, 32);
    let (index, base) = (p.index, p.f.shared_addr());
    let lane = p.low(index, 32);
    let mine = p.f.mad_lo_s32(lane, 4u32, base).reg().expect("not a literal");
    let place = Addr::reg(mine, DATA);
    let sum = p.f.mov_imm(Ty::B32, 0);
    let (consumer, end) = (p.f.label(), p.f.label());
    let second = p.f.setp(Cmp::Ge, Ty::U32, index, 32u32);
    p.f.bra_if(second, consumer, false);
    for i in 0..6u32 {
        p.f.mbarrier_wait(empty, (i + 1) % 2);
        let value = p.f.add_s32(lane, 100 * i);
        p.f.st(Space::Shared, Ty::B32, place, &[value]);
        p.f.mbarrier_arrive(BAR);
    }
    p.f.bra(end, false);
    p.f.place(consumer);
    for i in 0..6u32 {
        p.f.mbarrier_wait(BAR, i % 2);
        let value = p.f.ld(Space::Shared, Ty::B32, place);
        let times = p.f.mad_lo_s32(sum, 3u32, value);
        p.f.emit(Inst::Int { op: IntOp::Add, ty: Ty::U32, dst: sum, a: times, b: Operand::Imm(0) });
        p.f.mbarrier_arrive(empty);
    }
    p.f.place(end);
    p.out("what went through", sum);
    p.finish()
}
