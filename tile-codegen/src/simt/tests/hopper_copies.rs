//! Bulk copies and mbarriers: boxes with swizzles and edges, lines, stores, arrivals of `cp.async`, register budgets.

use super::hopper::Launch;
use super::{Case, at, builder, bytes_of, put};
use crate::ptx::*;
use crate::simt::{ReportKind, TensorMap, TensorMapError, TensorSwizzle};

/// Thread 0 initialises an mbarrier at byte 0 for one arrival; then all threads meet.
pub(super) fn init(f: &mut FuncBuilder) -> Reg {
    let tid = f.special(SpecialReg::TidX);
    let first = f.setp(Cmp::Eq, Ty::U32, tid, 0);
    f.emit_if(first, Hopper::MbarrierInit { addr: Addr::shared(0), count: Operand::Imm(1) }.into());
    f.emit_if(first, Hopper::FenceMbarrierInit.into());
    f.bar_sync();
    first
}

fn expect(f: &mut FuncBuilder, first: Reg, bytes: i64) {
    let expect = Hopper::MbarrierArriveExpectTx { addr: Addr::shared(0), bytes: Operand::Imm(bytes) };
    f.emit_if(first, expect.into());
}

/// A launch that loads a box at `coords` and copies its 4-byte words, in the order of shared memory, to the output.
fn load_box(map: TensorMap, tensor: Vec<u8>, coords: &[i64]) -> Vec<u8> {
    box_load(map, tensor, coords).clean()
}

fn box_load(map: TensorMap, tensor: Vec<u8>, coords: &[i64]) -> Launch {
    let bytes = map.box_bytes() as usize;
    let mut f = FuncBuilder::new("load", 32);
    let param = f.param("map", ParamKind::Bytes { size: 128, align: 64 });
    let param = f.param_generic_addr(param);
    let out = f.param("out", ParamKind::Scalar(Ty::U64));
    let out = f.ld_param(Ty::U64, out);
    f.kernel_mut().shared = Shared::Dynamic { align: 1024 };
    let first = init(&mut f);
    expect(&mut f, first, bytes as i64);
    f.emit_if(first, Hopper::PrefetchTensorMap { map: param }.into());
    let coords = coords.iter().map(|&coord| Operand::Imm(coord)).collect();
    let load = Hopper::TensorLoad { dst: Addr::shared(1024), map: param, coords, mbar: Addr::shared(0) };
    f.emit_if(first, load.into());
    f.mbarrier_wait(Addr::shared(0), 0);
    let tid = f.special(SpecialReg::TidX);
    let base = f.shared_addr();
    let mine = f.mad_lo(Ty::U32, tid, 4, base);
    let mine = f.materialize(Ty::U32, mine);
    let to = at(&mut f, out, tid, 4);
    let AddrBase::Reg(to) = to.base else { unreachable!("the base is a register") };
    for i in 0..bytes as i64 / 128 {
        let value = f.ld(Space::Shared, Ty::B32, Addr::reg(mine, 1024 + 128 * i));
        f.st(Space::Global, Ty::B32, Addr::reg(to, 128 * i), &[value.into()]);
    }
    let shared = 1024 + bytes as u32;
    let tensors = vec![(tensor, map)];
    let (inputs, out) = (Vec::new(), vec![0; bytes]);
    Launch { kernel: f.finish(), tensors, inputs, out, out_map: None, shared }
}

fn halves(count: u16) -> Vec<u8> {
    (0..count).flat_map(u16::to_le_bytes).collect()
}

fn half_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[test]
fn boxes_are_swizzled_as_the_manual_draws_them() {
    // 64 rows of 64 elements; element (row, column) is 64 row + column + 1, so that 0 is nobody's.
    let tensor: Vec<u8> = (1..=4096u16).flat_map(u16::to_le_bytes).collect();
    // Bytes of a row, rows after which the pattern moves on, pieces of 16 bytes that are permuted.
    let cases = [
        (TensorSwizzle::None, 32usize, 1, 1),
        (TensorSwizzle::B32, 32, 4, 2),
        (TensorSwizzle::B64, 64, 2, 4),
        (TensorSwizzle::B128, 128, 1, 8),
    ];
    for (swizzle, row_bytes, every, pieces) in cases {
        let width = row_bytes / 2;
        let map = TensorMap::dense(0, 2, &[64, 64], &[width as u32, 16], swizzle);
        let found = load_box(map, tensor.clone(), &[0, 8]);
        for row in 0..16 {
            for column in 0..width {
                let piece = (column / 8) ^ (row / every % pieces);
                let at = row * row_bytes + piece * 16 + column % 8 * 2;
                let right = (64 * (row + 8) + column + 1) as u16;
                assert_eq!(half_at(&found, at), right, "{swizzle:?} row {row} column {column}");
            }
        }
    }
}

#[test]
fn boxes_are_zero_outside_of_the_tensor() {
    // 21 columns in rows of 32 elements (64 bytes), 3 rows, 2 planes.
    let map = TensorMap {
        address: 0,
        element: 2,
        dims: vec![21, 3, 2],
        strides: vec![64, 192],
        box_dims: vec![16, 4, 2],
        swizzle: TensorSwizzle::None,
    };
    let found = load_box(map, halves(192), &[8, -1, 1]);
    for (plane, row, column) in (0..2).flat_map(|p| (0..4).flat_map(move |r| (0..16).map(move |c| (p, r, c))))
    {
        let (z, y, x) = (plane + 1, row as i64 - 1, column + 8);
        let inside = z < 2 && (0..3).contains(&y) && x < 21;
        let right = if inside { (96 * z + 32 * y as usize + x) as u16 } else { 0 };
        let at = ((plane * 4 + row) * 16 + column) * 2;
        assert_eq!(half_at(&found, at), right, "{plane} {row} {column}");
    }
}

#[test]
fn maps_keep_their_fields_and_limits() {
    let map = TensorMap::dense(4096, 4, &[64, 8, 2, 3, 5], &[8, 4, 1, 1, 2], TensorSwizzle::B32);
    assert_eq!(map.strides, [256, 2048, 4096, 12288]);
    let bytes = map.encode().expect("it is within the limits");
    assert_eq!((bytes.len(), TensorMap::decode(&bytes)), (128, Some(map.clone())));
    assert_eq!(TensorMap::decode(&[0; 128]), None);
    let fault = |change: fn(&mut TensorMap)| {
        let mut map = map.clone();
        change(&mut map);
        let TensorMapError::Field { field, .. } = map.encode().expect_err("a limit is broken");
        field
    };
    assert_eq!(fault(|map| map.address = 8), "the address");
    assert_eq!(fault(|map| map.strides[1] = 24), "a stride");
    assert_eq!(fault(|map| map.box_dims[1] = 257), "a side of the box");
    assert_eq!(fault(|map| map.box_dims[0] = 3), "the box's width");
    assert_eq!(fault(|map| map.swizzle = TensorSwizzle::B64), "the box's width");
    assert_eq!(fault(|map| map.dims.clear()), "the rank");
}

/// A line comes in, every thread adds 1 to its word, and a line goes out.
#[test]
fn lines_come_and_go() {
    let (mut f, p) = builder(64, 1);
    f.kernel_mut().shared = Shared::Static { bytes: 512, align: 128 };
    let first = init(&mut f);
    expect(&mut f, first, 256);
    let (dst, mbar, bytes) = (Addr::shared(128), Addr::shared(0), Operand::Imm(256));
    f.emit_if(first, Hopper::BulkLoad { dst, src: Addr::reg(p[0], 0), bytes, mbar }.into());
    f.mbarrier_wait(mbar, 0);
    let tid = f.special(SpecialReg::TidX);
    let base = f.shared_addr();
    let mine = f.mad_lo(Ty::U32, tid, 4, base);
    let mine = f.materialize(Ty::U32, mine);
    let value = f.ld(Space::Shared, Ty::B32, Addr::reg(mine, 128));
    let value = f.int(IntOp::Add, Ty::U32, value, 1);
    f.st(Space::Shared, Ty::B32, Addr::reg(mine, 128), &[value]);
    f.fence_proxy_async_shared();
    f.bar_sync();
    f.emit_if(first, Hopper::BulkStore { dst: Addr::reg(p[1], 0), src: dst, bytes }.into());
    f.emit_if(first, Hopper::BulkCommit.into());
    f.emit_if(first, Hopper::BulkWait { pending: 0, read: true }.into());
    let case = Case { inputs: vec![bytes_of(0..64)], ..Case::new(f.finish(), 256) };
    assert_eq!(case.clean_u32(), (1..65).collect::<Vec<u32>>());
}

/// A launch that stores a box of 4 by 8 words, 100 and on, to a tensor of words whose memory is 4 rows of 8 words, all 7.
fn store_box(dims: [u64; 2], coords: [i64; 2]) -> Launch {
    let mut f = FuncBuilder::new("store", 32);
    let map = f.param("map", ParamKind::Bytes { size: 128, align: 64 });
    let map = f.param_generic_addr(map);
    f.param("out", ParamKind::Scalar(Ty::U64));
    f.kernel_mut().shared = Shared::Static { bytes: 128, align: 128 };
    let tid = f.special(SpecialReg::TidX);
    let base = f.shared_addr();
    let mine = f.mad_lo(Ty::U32, tid, 4, base);
    let mine = f.materialize(Ty::U32, mine);
    let value = f.int(IntOp::Add, Ty::U32, tid, 100);
    f.st(Space::Shared, Ty::B32, mine, &[value]);
    f.hopper(Hopper::FenceProxyAsync { space: None });
    f.emit(Inst::BarWarpSync { mask: Operand::Imm(0xffff_ffff) });
    let one = f.elect();
    let coords = coords.into_iter().map(Operand::Imm).collect();
    f.emit_if(one, Hopper::TensorStore { map, coords, src: Addr::shared(0) }.into());
    f.hopper(Hopper::BulkCommit);
    f.hopper(Hopper::BulkWait { pending: 0, read: false });
    let (dims, box_dims) = (dims.to_vec(), vec![4, 8]);
    let out_map =
        TensorMap { address: 0, element: 4, dims, strides: vec![32], box_dims, swizzle: TensorSwizzle::None };
    let out = bytes_of(vec![7; 32]);
    Launch {
        kernel: f.finish(),
        tensors: Vec::new(),
        inputs: Vec::new(),
        out,
        out_map: Some(out_map),
        shared: 0,
    }
}

/// Memory in which row 1 of the tensor has row 0 of the box, from column 4 on.
fn stored_from_row_1() -> Vec<u32> {
    let word = |i: u32| if i >= 8 && i % 8 >= 4 { 100 + 4 * (i / 8 - 1) + (i % 8 - 4) } else { 7 };
    (0..32).map(word).collect()
}

/// A box goes out where the tensor is, and nowhere else.
#[test]
fn stores_leave_alone_what_lies_outside() {
    assert_eq!(super::words(&store_box([8, 4], [4, 1]).clean()), stored_from_row_1());
    // Column 8 is behind the last, and row 4 is.
    for coords in [[8, 0], [4, 4], [0, 1 << 30]] {
        assert_eq!(super::words(&store_box([8, 4], coords).clean()), [7; 32]);
    }
}

/// The reports of a launch, and what it leaves in memory, as words.
fn reports(launch: &Launch) -> (Vec<(ReportKind, String)>, Vec<u32>) {
    let (outcome, out) = launch.run(0);
    let report = |report: &crate::simt::Report| (report.kind, report.message.clone());
    (outcome.reports.iter().map(report).collect(), super::words(&out))
}

/// 16 bytes that begin in the tensor are written whole, as an H200 does, and what is no part of it is reported.
#[test]
fn stores_write_whole_pieces_of_16_bytes() {
    let (found, words) = reports(&store_box([5, 4], [4, 1]));
    assert_eq!(words, stored_from_row_1());
    let [(ReportKind::TensorMap, message)] = &found[..] else { panic!("{found:?}") };
    assert!(message.contains("writes 12 bytes behind the end of a row"), "{message}");
    // A box that ends within the tensor writes no more than that.
    let (found, words) = reports(&store_box([5, 4], [0, 3]));
    assert_eq!((found.len(), &words[24..]), (0, &[100, 101, 102, 103, 7, 7, 7, 7][..]));
}

#[test]
fn the_hardware_refuses_some_coordinates() {
    let cases = [
        ([5, 0], "the innermost coordinate is 5, expected a multiple of 4"),
        ([-1, 0], "the innermost coordinate is -1, expected a multiple of 4"),
        ([-4, 0], "a store at coordinate -4, expected none below 0"),
        ([4, -1], "a store at coordinate -1, expected none below 0"),
    ];
    for (coords, right) in cases {
        let (found, words) = reports(&store_box([8, 4], coords));
        assert_eq!(words, [7; 32], "nothing is written");
        let [(ReportKind::TensorMap, message)] = &found[..] else { panic!("{coords:?}: {found:?}") };
        assert!(message.contains(right), "{coords:?}: {message}");
    }
    let map = TensorMap::dense(0, 2, &[16, 4], &[16, 4], TensorSwizzle::None);
    let (found, _) = reports(&box_load(map, halves(64), &[4, 0]));
    let (kind, message) = &found[0];
    let right = "the innermost coordinate is 4, expected a multiple of 8";
    assert!(*kind == ReportKind::TensorMap && message.contains(right), "{found:?}");
}

/// Copies of `cp.async` count on an mbarrier.
#[test]
fn small_copies_arrive() {
    let (mut f, p) = builder(64, 1);
    f.kernel_mut().shared = Shared::Static { bytes: 1152, align: 128 };
    let tid = f.special(SpecialReg::TidX);
    let first = f.setp(Cmp::Eq, Ty::U32, tid, 0);
    let mbar = Addr::shared(0);
    f.emit_if(first, Hopper::MbarrierInit { addr: mbar, count: Operand::Imm(64) }.into());
    f.bar_sync();
    let base = f.shared_addr();
    let mine = f.mad_lo(Ty::U32, tid, 16, base);
    let mine = f.materialize(Ty::U32, mine);
    let from = at(&mut f, p[0], tid, 16);
    f.cp_async_16(Addr::reg(mine, 128), from, None);
    f.hopper(Hopper::CpAsyncMbarrierArrive { addr: mbar });
    f.mbarrier_wait(mbar, 0);
    let other = f.xor_b32(tid, 63);
    let theirs = f.mad_lo(Ty::U32, other, 16, base);
    let theirs = f.materialize(Ty::U32, theirs);
    let value = f.ld(Space::Shared, Ty::B32, Addr::reg(theirs, 128));
    put(&mut f, p[1], value);
    let case = Case { inputs: vec![bytes_of(0..256)], ..Case::new(f.finish(), 256) };
    assert_eq!(case.clean_u32(), (0..64).map(|i| 4 * (63 - i)).collect::<Vec<u32>>());
}

/// One warp gives `value` to another through mbarriers, 6 times over one place; `test_wait` polls.
#[test]
fn phases_take_turns() {
    let (mut f, p) = builder(64, 0);
    f.kernel_mut().shared = Shared::Static { bytes: 256, align: 128 };
    let tid = f.special(SpecialReg::TidX);
    let first = f.setp(Cmp::Eq, Ty::U32, tid, 0);
    let (full, empty) = (Addr::shared(0), Addr::shared(8));
    f.emit_if(first, Hopper::MbarrierInit { addr: full, count: Operand::Imm(32) }.into());
    f.emit_if(first, Hopper::MbarrierInit { addr: empty, count: Operand::Imm(32) }.into());
    f.bar_sync();
    let base = f.shared_addr();
    let lane = f.and_b32(tid, 31);
    let mine = f.mad_lo(Ty::U32, lane, 4, base);
    let mine = f.materialize(Ty::U32, mine);
    let place = Addr::reg(mine, 128);
    let consumer = f.label();
    let second = f.setp(Cmp::Ge, Ty::U32, tid, 32);
    f.bra_if(second, consumer, false);
    for i in 0..6 {
        f.mbarrier_wait(empty, (i + 1) % 2);
        let value = f.int(IntOp::Add, Ty::U32, lane, 100 * i);
        f.st(Space::Shared, Ty::B32, place, &[value]);
        f.hopper(Hopper::MbarrierArrive { addr: full, count: Some(Operand::Imm(1)) });
    }
    f.emit(Inst::Exit);
    f.place(consumer);
    let mut sum: Operand = Operand::Imm(0);
    for i in 0..6 {
        let (again, done) = (f.label(), f.reg(RegClass::Pred));
        f.place(again);
        f.hopper(Hopper::MbarrierWait {
            blocking: false,
            dst: done,
            addr: full,
            parity: Operand::Imm(i % 2),
        });
        f.bra_unless(done, again, false);
        let value = f.ld(Space::Shared, Ty::B32, place);
        sum = f.int(IntOp::Add, Ty::U32, sum, value);
        f.mbarrier_arrive(empty);
    }
    let to = at(&mut f, p[0], lane, 4);
    f.st(Space::Global, Ty::B32, to, &[sum]);
    let right: Vec<u32> = (0..32).map(|lane| 1500 + 6 * lane).collect();
    assert_eq!(Case::new(f.finish(), 128).clean_u32(), right);
}

#[test]
fn registers_move_between_warpgroups_and_one_lane_is_elected() {
    let (mut f, p) = builder(256, 0);
    f.kernel_mut().min_ctas = Some(1);
    let tid = f.special(SpecialReg::TidX);
    let second = f.setp(Cmp::Ge, Ty::U32, tid, 128);
    let (takes, join) = (f.label(), f.label());
    f.hopper(Hopper::GridDepWait);
    f.bra_if(second, takes, true);
    f.hopper(Hopper::SetMaxNReg { increase: false, count: 40 });
    f.bra(join, true);
    f.place(takes);
    f.hopper(Hopper::SetMaxNReg { increase: false, count: 200 });
    f.hopper(Hopper::SetMaxNReg { increase: true, count: 256 });
    f.place(join);
    f.hopper(Hopper::GridDepLaunch);
    let [lane, value] = f.regs(RegClass::B32);
    let pred = f.reg(RegClass::Pred);
    f.hopper(Hopper::Elect { dst: Some(lane), pred, mask: Operand::Imm(0xffff_ffff) });
    let chosen = f.selp(Ty::U32, 10, 20, pred);
    f.emit(Inst::Int { op: IntOp::Add, ty: Ty::U32, dst: value, a: chosen, b: lane.into() });
    put(&mut f, p[0], value);
    let right: Vec<u32> = (0..256).map(|i| if i % 32 == 0 { 10 } else { 20 }).collect();
    assert_eq!(Case::new(f.finish(), 1024).clean_u32(), right);
}
