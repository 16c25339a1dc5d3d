//! Kernels for Hopper: products of warpgroups on tiles that bulk copies bring, and bulk stores.

use half::bf16;
use tile_codegen::ptx::{
    Addr, AddrBase, Cmp, FuncBuilder, Hopper, IntOp, Operand, ParamKind, Reg, RegClass, Regs, Shared, Sm,
    Space, SpecialReg, Ty, Wgmma, WgmmaA,
};
use tile_codegen::simt::{TensorMap, TensorSwizzle};

use super::Subject;
use super::plain::{at, builder, shared_at};
use super::subject::Given;

/// Bytes of a tile of A, 64 rows of 64 elements, and of B, 16 rows.
pub(super) const A_BYTES: i64 = 8192;
pub(super) const B_BYTES: i64 = 2048;
/// Where tiles begin.
const TILES: i64 = 1024;
/// The fields of a descriptor: leading offset 16 bytes, stride 1024, swizzle of 128 bytes.
const DESCRIPTOR: u64 = 1 << 16 | 64 << 32 | 1 << 62;
const ROUNDS: i64 = 5;

fn a_value(row: u64, k: u64) -> i64 {
    (row as i64 * 7 + k as i64 * 3) % 11 - 5
}

fn b_value(column: u64, k: u64) -> i64 {
    (k as i64 * 5 + column as i64 * 2) % 13 - 6
}

/// Rows of `depth` elements with a map of boxes of 64.
fn tensor(rows: u64, depth: u64, value: fn(u64, u64) -> i64) -> Given {
    let all = (0..rows).flat_map(|row| (0..depth).map(move |k| (row, k)));
    let bytes = all.flat_map(|(row, k)| bf16::from_f32(value(row, k) as f32).to_le_bytes()).collect();
    let map = TensorMap::dense(0, 2, &[depth, rows], &[64, rows as u32], TensorSwizzle::B128);
    Given { map: Some(map), ..Given::input(bytes) }
}

/// A·Bᵀ as the bytes of f32, row by row, plus `more`.
pub(super) fn products(depth: u64, more: f32) -> Vec<u8> {
    let sum = |i, j| (0..depth).map(|k| a_value(i, k) * b_value(j, k)).sum::<i64>() as f32 + more;
    (0..64).flat_map(|i| (0..16).map(move |j| (i, j))).flat_map(|(i, j)| sum(i, j).to_le_bytes()).collect()
}

/// A builder with two tensor maps and the output's pointer.
fn with_maps(name: &str, threads: u32) -> (FuncBuilder, [Reg; 2], Reg) {
    let mut f = FuncBuilder::new(name, threads);
    let bytes = ParamKind::Bytes { size: 128, align: 64 };
    let maps = [f.param("a", bytes), f.param("b", bytes)].map(|map| f.param_generic_addr(map));
    let out = f.param("out", ParamKind::Scalar(Ty::U64));
    let out = f.ld_param(Ty::U64, out);
    f.kernel_mut().shared = Shared::Dynamic { align: 1024 };
    (f, maps, out)
}

/// The descriptor of step `j`, 32 bytes of depth, of the tile at `base`.
fn descriptor(f: &mut FuncBuilder, base: i64, j: i64) -> Reg {
    let start = f.shared_addr();
    let start = f.int(IntOp::Add, Ty::U32, start, base + 32 * j);
    let start = f.shr_u32(start, 4);
    let start = f.cvt(Ty::U64, Ty::U32, start);
    let desc = f.int(IntOp::Or, Ty::B64, start, DESCRIPTOR as i64);
    f.materialize(Ty::B64, desc)
}

fn product(d: &[Reg], a: WgmmaA, b: Reg, scale_d: impl Into<Operand>) -> Wgmma {
    Wgmma {
        n: 16,
        ty: Ty::BF16,
        d: d.to_vec(),
        a,
        b,
        scale_d: scale_d.into(),
        neg_a: false,
        neg_b: false,
        trans_a: false,
        trans_b: false,
    }
}

/// The four products of a pair of tiles; the first one adds to D where `adds` says so.
fn multiply(f: &mut FuncBuilder, d: &[Reg], tiles: i64, adds: Operand) {
    f.hopper(Hopper::WgmmaFence);
    for j in 0..4 {
        let left = WgmmaA::Desc(descriptor(f, tiles, j));
        let right = descriptor(f, tiles + A_BYTES, j);
        let scale = if j == 0 { adds } else { Operand::Imm(1) };
        f.wgmma(product(d, left, right, scale));
    }
    f.hopper(Hopper::WgmmaCommit);
}

/// Stores the accumulators of a warpgroup to 64 rows of 16 f32.
fn store_accumulators(f: &mut FuncBuilder, out: Reg, d: &[Reg]) {
    let tid = f.special(SpecialReg::TidX);
    let (warp, lane) = (f.shr_u32(tid, 5), f.and_b32(tid, 31));
    let (group, place) = (f.shr_u32(lane, 2), f.and_b32(lane, 3));
    let row = f.mad_lo(Ty::U32, warp, 16, group);
    let first = f.shl_b32(place, 1);
    let index = f.mad_lo(Ty::U32, row, 16, first);
    let to = at(f, out, index, 4);
    let AddrBase::Reg(base) = to.base else { unreachable!("the base is a register") };
    for (i, &reg) in d.iter().enumerate() {
        let offset = (i as i64 / 2 % 2 * 8) * 16 + i as i64 / 4 * 8 + i as i64 % 2;
        f.st(Space::Global, Ty::F32, Addr::reg(base, 4 * offset), &[reg.into()]);
    }
}

fn coords(first: i64) -> [Operand; 2] {
    [Operand::Imm(first), Operand::Imm(0)]
}

/// One tile of A and one of B, loaded in bulk, rewritten by all threads, and multiplied. Thread 0 does what one does.
pub(super) fn tile() -> Subject {
    let (mut f, maps, out) = with_maps("tile", 128);
    let (mbar, tid) = (Addr::shared(0), f.special(SpecialReg::TidX));
    let first = f.setp(Cmp::Eq, Ty::U32, tid, 0);
    let never = f.setp(Cmp::Ge, Ty::U32, tid, 1000);
    f.emit_if(first, Hopper::MbarrierInit { addr: mbar, count: Operand::Imm(1) }.into());
    f.emit_if(first, Hopper::FenceMbarrierInit.into());
    f.bar_sync();
    let bytes = Operand::Imm(A_BYTES + B_BYTES);
    f.emit_if(first, Hopper::MbarrierArriveExpectTx { addr: mbar, bytes }.into());
    for (map, dst) in [(maps[0], TILES), (maps[1], TILES + A_BYTES)] {
        let coords = coords(0).into_iter().collect();
        f.emit_if(first, Hopper::TensorLoad { dst: Addr::shared(dst), map, coords, mbar }.into());
    }
    f.bar_sync();
    f.mbarrier_wait(mbar, 0);
    let mine = Addr::reg(shared_at(&mut f, tid, 4), TILES + A_BYTES);
    let word = f.ld(Space::Shared, Ty::B32, mine);
    f.st(Space::Shared, Ty::B32, mine, &[word.into()]);
    f.fence_proxy_async_shared();
    f.bar_sync();
    let d = f.regs::<8>(RegClass::F32);
    multiply(&mut f, &d, TILES, never.into());
    f.hopper(Hopper::WgmmaWait(0));
    store_accumulators(&mut f, out, &d);
    let tensors = vec![tensor(64, 64, a_value), tensor(16, 64, b_value), Given::output(4096)];
    let shared = (TILES + A_BYTES + B_BYTES) as u32;
    Subject { shared, ..Subject::new(f.finish(), Sm::SM_90A, tensors) }
}

fn full(stage: i64) -> Addr {
    Addr::shared(8 * stage)
}

fn empty(stage: i64) -> Addr {
    Addr::shared(16 + 8 * stage)
}

fn stage_at(stage: i64) -> i64 {
    TILES + stage * (A_BYTES + B_BYTES)
}

/// A ring of two stages over five rounds: one lane of warpgroup 1 loads, warpgroup 0 multiplies, each with its share of
/// the registers.
pub(super) fn ring() -> Subject {
    let (mut f, maps, out) = with_maps("ring", 256);
    f.kernel_mut().max_regs = Some(168);
    let tid = f.special(SpecialReg::TidX);
    let first = f.setp(Cmp::Eq, Ty::U32, tid, 0);
    for stage in 0..2 {
        f.emit_if(first, Hopper::MbarrierInit { addr: full(stage), count: Operand::Imm(1) }.into());
        f.emit_if(first, Hopper::MbarrierInit { addr: empty(stage), count: Operand::Imm(128) }.into());
    }
    f.emit_if(first, Hopper::FenceMbarrierInit.into());
    f.bar_sync();
    let (consumer, end) = (f.label(), f.label());
    let multiplies = f.setp(Cmp::Lt, Ty::U32, tid, 128);
    f.bra_if(multiplies, consumer, true);
    f.hopper(Hopper::SetMaxNReg { increase: false, count: 40 });
    let idles = f.setp(Cmp::Ge, Ty::U32, tid, 160);
    f.bra_if(idles, end, true);
    let one = f.elect();
    f.bra_unless(one, end, false);
    for round in 0..ROUNDS {
        let (stage, turn) = (round % 2, round / 2);
        f.mbarrier_wait(empty(stage), (turn + 1) % 2);
        f.mbarrier_arrive_expect_tx(full(stage), A_BYTES + B_BYTES);
        f.tensor_load(Addr::shared(stage_at(stage)), maps[0], &coords(64 * round), full(stage));
        f.tensor_load(Addr::shared(stage_at(stage) + A_BYTES), maps[1], &coords(64 * round), full(stage));
    }
    f.bra(end, false);
    f.place(consumer);
    f.hopper(Hopper::SetMaxNReg { increase: true, count: 232 });
    let d = f.regs::<8>(RegClass::F32);
    for round in 0..ROUNDS {
        let (stage, turn) = (round % 2, round / 2);
        f.mbarrier_wait(full(stage), turn % 2);
        multiply(&mut f, &d, stage_at(stage), Operand::Imm(i64::from(round > 0)));
        // One group stays in flight; the stage before is free.
        f.hopper(Hopper::WgmmaWait(1));
        if round > 0 {
            f.mbarrier_arrive(empty((round - 1) % 2));
        }
    }
    f.hopper(Hopper::WgmmaWait(0));
    store_accumulators(&mut f, out, &d);
    f.place(end);
    let depth = 64 * ROUNDS as u64;
    let tensors = vec![tensor(64, depth, a_value), tensor(16, depth, b_value), Given::output(4096)];
    Subject { shared: stage_at(2) as u32, ..Subject::new(f.finish(), Sm::SM_90A, tensors) }
}

/// As [`tile`], with A of depth 16 from registers, with the places that the manual lists for `mma.sync`, and 100 added.
pub(super) fn registers() -> Subject {
    let (mut f, maps, out) = with_maps("registers", 128);
    let tid = f.special(SpecialReg::TidX);
    let first = f.setp(Cmp::Eq, Ty::U32, tid, 0);
    let mbar = Addr::shared(0);
    f.emit_if(first, Hopper::MbarrierInit { addr: mbar, count: Operand::Imm(1) }.into());
    f.emit_if(first, Hopper::FenceMbarrierInit.into());
    f.bar_sync();
    let bytes = Operand::Imm(A_BYTES + B_BYTES);
    f.emit_if(first, Hopper::MbarrierArriveExpectTx { addr: mbar, bytes }.into());
    for (map, dst) in [(maps[0], TILES), (maps[1], TILES + A_BYTES)] {
        let coords = coords(0).into_iter().collect();
        f.emit_if(first, Hopper::TensorLoad { dst: Addr::shared(dst), map, coords, mbar }.into());
    }
    f.mbarrier_wait(mbar, 0);
    let (warp, lane) = (f.shr_u32(tid, 5), f.and_b32(tid, 31));
    let (group, place) = (f.shr_u32(lane, 2), f.and_b32(lane, 3));
    // Row g of the warp's 16 begins at 128 (16 w + g) bytes; its 16-byte pieces are permuted by g.
    let row = f.mad_lo(Ty::U32, warp, 16, group);
    let piece = f.shl_b32(group, 4);
    let place = f.shl_b32(place, 2);
    let start = shared_at(&mut f, row, 128);
    let regs: Regs = [(0, 0), (0, 8), (16, 0), (16, 8)]
        .map(|(column, rows)| {
            let swizzled = f.xor_b32(piece, column);
            let offset = f.int(IntOp::Add, Ty::U32, swizzled, place);
            let address = f.int(IntOp::Add, Ty::U32, start, offset);
            let address = f.materialize(Ty::U32, address);
            f.ld(Space::Shared, Ty::B32, Addr::reg(address, TILES + 128 * rows))
        })
        .into_iter()
        .collect();
    let d = f.regs::<8>(RegClass::F32);
    d.iter().for_each(|&d| f.mov_to(Ty::F32, d, Operand::f32(100.0)));
    f.hopper(Hopper::WgmmaFence);
    let right = descriptor(&mut f, TILES + A_BYTES, 0);
    f.wgmma(product(&d, WgmmaA::Regs(regs), right, 1));
    f.hopper(Hopper::WgmmaCommit);
    f.hopper(Hopper::WgmmaWait(0));
    store_accumulators(&mut f, out, &d);
    let tensors = vec![tensor(64, 64, a_value), tensor(16, 64, b_value), Given::output(4096)];
    let shared = (TILES + A_BYTES + B_BYTES) as u32;
    Subject { shared, ..Subject::new(f.finish(), Sm::SM_90A, tensors) }
}

/// 64 threads fill a line, one stores it in bulk, and all fill it again.
pub(super) fn line() -> Subject {
    let (mut f, p) = builder("line", 64, 1);
    f.kernel_mut().shared = Shared::Static { bytes: 256, align: 128 };
    let tid = f.special(SpecialReg::TidX);
    let mine = Addr::reg(shared_at(&mut f, tid, 4), 0);
    f.st(Space::Shared, Ty::B32, mine, &[tid.into()]);
    f.fence_proxy_async_shared();
    f.bar_sync();
    let first = f.setp(Cmp::Eq, Ty::U32, tid, 0);
    let copy = Hopper::BulkStore { dst: Addr::reg(p[0], 0), src: Addr::shared(0), bytes: Operand::Imm(256) };
    f.emit_if(first, copy.into());
    f.hopper(Hopper::BulkCommit);
    f.hopper(Hopper::BulkWait { pending: 0, read: true });
    f.bar_sync();
    f.st(Space::Shared, Ty::B32, mine, &[Operand::Imm(-1)]);
    Subject::new(f.finish(), Sm::SM_90A, vec![Given::output(256)])
}
