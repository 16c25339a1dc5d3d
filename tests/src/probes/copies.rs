//! `cp.async`: every size and cache operator, with and without bytes that become zero, and groups.

use tile_codegen::ptx::{Addr, CpCache, Inst, Operand, Space, Ty};

use super::Probe;
use super::builder::Builder;

pub(super) fn probes() -> Vec<Probe> {
    let mut all = Vec::new();
    for (cache, bytes) in [(CpCache::Ca, 4), (CpCache::Ca, 8), (CpCache::Ca, 16), (CpCache::Cg, 16)] {
        all.push(whole(cache, bytes));
        all.push(partial(cache, bytes));
    }
    all.push(groups());
    all
}

/// Bytes to copy from: none of them zero.
fn source(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i % 251) as u8 + 1).collect()
}

/// The thread's 16 bytes of shared memory, filled with ones, and its 16 bytes of source.
fn places(p: &mut Builder) -> (Addr, Addr) {
    p.shared(16 * 32 * 2);
    let from = p.bytes(&source(16 * 32 * 8));
    let base = p.f.shared_addr();
    let lane = p.low(p.index, 32);
    let to = p.f.mad_lo_s32(lane, 16u32, base).reg().expect("not a literal");
    let ones = [Operand::Imm(0xffff_ffff); 4];
    p.f.st(Space::Shared, Ty::B32, Addr::reg(to, 0), &ones);
    p.f.st(Space::Shared, Ty::B32, Addr::reg(to, 512), &ones);
    let index = p.index;
    let from = p.element(from, index, 16);
    (Addr::reg(to, 0), Addr::reg(from, 0))
}

fn show(p: &mut Builder, what: &str, at: Addr) {
    let words = [0, 4, 8, 12].map(|i| p.f.ld(Space::Shared, Ty::B32, Addr { offset: at.offset + i, ..at }));
    for (i, word) in words.into_iter().enumerate() {
        p.out(format!("{what}, word {i}"), word);
    }
}

fn title(cache: CpCache, bytes: u32, what: &str) -> String {
    format!("copies/{} {bytes} {what}", cache.name())
}

fn whole(cache: CpCache, bytes: u32) -> Probe {
    let mut p = Builder::new(title(cache, bytes, "whole"), 32, &[(Ty::U32, vec![0; 32])]);
    let (dst, src) = places(&mut p);
    p.f.emit(Inst::CpAsync { cache, bytes, dst, src, src_size: None });
    p.f.emit(Inst::CpAsyncWaitAll);
    show(&mut p, "copied", dst);
    p.finish()
}

/// Every number of bytes from none to all.
fn partial(cache: CpCache, bytes: u32) -> Probe {
    let sizes = (0..32).map(|lane| lane % (u64::from(bytes) + 1)).collect();
    let mut p = Builder::new(title(cache, bytes, "partial"), 32, &[(Ty::U32, sizes)]);
    let (dst, src) = places(&mut p);
    let src_size = Some(p.x[0].into());
    p.f.emit(Inst::CpAsync { cache, bytes, dst, src, src_size });
    p.f.emit(Inst::CpAsyncCommit);
    p.f.emit(Inst::CpAsyncWait(0));
    show(&mut p, "copied", dst);
    p.finish()
}

/// Two groups; the first is looked at while the second may be in flight.
fn groups() -> Probe {
    let mut p = Builder::new("copies/groups", 32, &[(Ty::U32, vec![0; 32])]);
    let (dst, src) = places(&mut p);
    let second = Addr { offset: dst.offset + 512, ..dst };
    p.f.cp_async_16(dst, src, None);
    p.f.emit(Inst::CpAsyncCommit);
    p.f.cp_async_16(second, Addr { offset: src.offset + 512, ..src }, None);
    p.f.emit(Inst::CpAsyncCommit);
    p.f.emit(Inst::CpAsyncWait(1));
    show(&mut p, "first", dst);
    p.f.emit(Inst::CpAsyncWait(0));
    show(&mut p, "second", second);
    p.finish()
}
