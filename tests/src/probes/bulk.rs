//! Bulk copies of bytes in a line: both ways, of several lengths, in groups, after writes by threads.

use tile_codegen::ptx::{Addr, Hopper, Operand, Space, Ty};

use super::Probe;
use super::builder::Builder;
use super::shared::DATA;

const THREADS: u32 = 32;
/// Lengths in bytes, and where they begin: a distance apart that no length reaches.
const LENGTHS: [i64; 8] = [16, 32, 48, 112, 128, 272, 1024, 4096];

pub(super) fn probes() -> Vec<Probe> {
    vec![loads(), stores(), read_groups(), after_threads()]
}

/// Bytes that tell where they come from; none is zero.
fn source(count: usize) -> Vec<u8> {
    (0..count).map(|i| if i % 2 == 0 { (i / 2 % 251) as u8 + 1 } else { (i / 502 % 251) as u8 + 1 }).collect()
}

/// Where each copy begins in its source and its destination.
fn places() -> Vec<(i64, i64, i64)> {
    let mut at = 0;
    let place = |(i, &bytes): (usize, &i64)| {
        let from = at;
        at += bytes + 16 * (i as i64 % 3);
        (bytes, 16 * i as i64 + from, from)
    };
    LENGTHS.iter().enumerate().map(place).collect()
}

fn start(name: &str) -> Builder {
    let mut p = Builder::new(format!("bulk/{name}"), THREADS, &[]);
    p.aligned_shared(DATA + 8192);
    p
}

fn loads() -> Probe {
    let mut p = start("loads");
    p.fill(DATA, &[0xee; 6144], THREADS);
    p.publish();
    let from = p.bytes(&source(8192));
    let first = p.first();
    p.mbarrier(first, 0, 1);
    p.expect(first, 0, LENGTHS.iter().sum());
    for (i, (bytes, src, dst)) in places().into_iter().enumerate() {
        let length = p.f.mov_imm(Ty::B32, bytes);
        let bytes = if i % 2 == 0 { Operand::Imm(bytes) } else { length.into() };
        let (dst, src) = (Addr::shared(DATA + dst), Addr::reg(from, src));
        p.f.emit_if(first, Hopper::BulkLoad { dst, src, bytes, mbar: Addr::shared(0) }.into());
    }
    p.f.mbarrier_wait(Addr::shared(0), 0u32);
    p.show_shared("shared", DATA, 6144, THREADS);
    p.finish()
}

fn stores() -> Probe {
    let mut p = start("stores");
    p.fill(DATA, &source(8192), THREADS);
    p.publish();
    let to = p.area("global", 6144);
    let to = p.output_at(to);
    let first = p.first();
    for (i, (bytes, src, dst)) in places().into_iter().enumerate() {
        let (dst, src, bytes) = (Addr::reg(to, dst), Addr::shared(DATA + src), Operand::Imm(bytes));
        p.f.emit_if(first, Hopper::BulkStore { dst, src, bytes }.into());
        if i % 3 == 0 {
            p.f.emit_if(first, Hopper::BulkCommit.into());
        }
    }
    p.f.emit_if(first, Hopper::BulkCommit.into());
    p.f.emit_if(first, Hopper::BulkWait { pending: 0, read: false }.into());
    p.finish()
}

/// What was stored is overwritten once `wait_group.read` says that it has been read.
fn read_groups() -> Probe {
    let mut p = start("wait_group.read");
    p.fill(DATA, &source(2048), THREADS);
    p.publish();
    let to = p.area("global", 2048);
    let to = p.output_at(to);
    let first = p.first();
    let store = |p: &mut Builder, at: i64| {
        let (dst, src) = (Addr::reg(to, at), Addr::shared(DATA + at));
        p.f.emit_if(first, Hopper::BulkStore { dst, src, bytes: Operand::Imm(1024) }.into());
        p.f.emit_if(first, Hopper::BulkCommit.into());
    };
    store(&mut p, 0);
    store(&mut p, 1024);
    p.f.emit_if(first, Hopper::BulkWait { pending: 1, read: true }.into());
    p.f.bar_sync();
    p.fill(DATA, &[0xee; 1024], THREADS);
    p.f.emit_if(first, Hopper::BulkWait { pending: 0, read: true }.into());
    p.f.bar_sync();
    p.fill(DATA + 1024, &[0xdd; 1024], THREADS);
    p.f.emit_if(first, Hopper::BulkWait { pending: 0, read: false }.into());
    p.f.bar_sync();
    p.show_shared("shared afterwards", DATA, 2048, THREADS);
    p.finish()
}

/// Threads write to global memory; past a fence of each kind, a copy brings it to shared memory.
fn after_threads() -> Probe {
    let mut p = start("after writes of threads");
    let first = p.first();
    p.mbarrier(first, 0, 1);
    for (i, space) in [None, Some(Space::Global)].into_iter().enumerate() {
        let area = p.area(&format!("written by threads, fence {i}"), 128);
        let area = p.output_at(area);
        let index = p.index;
        let own = p.element(area, index, 4);
        let value = p.f.mad_lo_s32(index, 0x0101_0101u32, 0x1234_5678u32 + i as u32);
        p.f.st(Space::Global, Ty::B32, Addr::reg(own, 0), &[value]);
        p.f.hopper(Hopper::FenceProxyAsync { space });
        p.f.bar_sync();
        p.expect(first, 0, 128);
        let (dst, src) = (Addr::shared(DATA + 128 * i as i64), Addr::reg(area, 0));
        let load = Hopper::BulkLoad { dst, src, bytes: Operand::Imm(128), mbar: Addr::shared(0) };
        p.f.emit_if(first, load.into());
        p.f.mbarrier_wait(Addr::shared(0), i as u32);
        p.show_shared(&format!("copied, fence {i}"), DATA + 128 * i as i64, 128, THREADS);
    }
    p.finish()
}
