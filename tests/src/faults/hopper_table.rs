//! Faults in the forms of Hopper.

use tile_codegen::ptx::{Addr, Cmp, Hopper, Inst, IntOp, Operand, RegClass, SpecialReg, Ty, WgmmaA};
use tile_codegen::simt::{ReportKind as K, TensorSwizzle};

use super::edit::{find, find_hopper, fresh, hopper, insert, remove, remove_hopper};
use super::hopper::{A_BYTES, B_BYTES, line, registers, ring, tile};
use super::{At, Fault, Shown, Subject};

fn is_wgmma(inst: &Hopper) -> bool {
    matches!(inst, Hopper::Wgmma(_))
}

fn is_wait(inst: &Hopper) -> bool {
    matches!(inst, Hopper::MbarrierWait { .. })
}

pub(super) fn is_load(inst: &Hopper) -> bool {
    matches!(inst, Hopper::TensorLoad { .. })
}

pub(super) fn is_expect(inst: &Hopper) -> bool {
    matches!(inst, Hopper::MbarrierArriveExpectTx { .. })
}

fn is_arrival(inst: &Hopper) -> bool {
    matches!(inst, Hopper::MbarrierArrive { .. })
}

fn is_set_registers(inst: &Hopper) -> bool {
    matches!(inst, Hopper::SetMaxNReg { .. })
}

pub(super) fn is_proxy_fence(inst: &Hopper) -> bool {
    matches!(inst, Hopper::FenceProxyAsync { .. })
}

/// Removes the label, the wait and the branch back to the label.
pub(super) fn remove_mbarrier_wait(s: &mut Subject, nth: usize) {
    let at = find_hopper(&s.kernel, nth, is_wait);
    s.kernel.lines.drain(at - 1..=at + 1);
}

fn expect(s: &mut Subject, count: i64) {
    if let Hopper::MbarrierArriveExpectTx { bytes, .. } = hopper(&mut s.kernel, 0, is_expect) {
        *bytes = Operand::Imm(count);
    }
}

/// Waits for the other parity.
fn other_parity(s: &mut Subject, nth: usize) {
    if let Hopper::MbarrierWait { parity, .. } = hopper(&mut s.kernel, nth, is_wait) {
        *parity = Operand::Imm(1 - parity.imm().expect("parities are literals"));
    }
}

/// Changes bits of the descriptor of A in the first product.
fn descriptor(s: &mut Subject, change: u64) {
    let is = |inst: &Inst| matches!(inst, Inst::Int { op: IntOp::Or, ty: Ty::B64, .. });
    let at = find(&s.kernel, 0, is);
    if let Inst::Int { b, .. } = &mut s.kernel.lines[at].inst {
        *b = Operand::Imm(b.imm().expect("a literal") ^ change as i64);
    }
}

/// The first product adds to what nobody has written.
fn adds_at_first(s: &mut Subject) {
    // The predicate that says so is `tid >= 1000`.
    let at = find(&s.kernel, 0, |inst| matches!(inst, Inst::Setp { cmp: Cmp::Ge, .. }));
    if let Inst::Setp { cmp, .. } = &mut s.kernel.lines[at].inst {
        *cmp = Cmp::Lt;
    }
}

fn arrives_twice(s: &mut Subject) {
    let at = find_hopper(&s.kernel, 0, is_expect);
    let guard = s.kernel.lines[at].guard;
    insert(&mut s.kernel, at + 1, guard, Hopper::MbarrierArrive { addr: Addr::shared(0), count: None });
}

fn one_coordinate_more(s: &mut Subject) {
    if let Hopper::TensorLoad { coords, .. } = hopper(&mut s.kernel, 1, is_load) {
        coords.push(Operand::Imm(0));
    }
}

fn misplaced_tile(s: &mut Subject) {
    if let Hopper::TensorLoad { dst, .. } = hopper(&mut s.kernel, 1, is_load) {
        dst.offset += 64;
    }
    s.shared += 64;
}

fn plain_map(s: &mut Subject) {
    for map in s.tensors.iter_mut().filter_map(|given| given.map.as_mut()) {
        map.swizzle = TensorSwizzle::None;
    }
}

/// Warp 3 ends before the products.
fn warp_leaves(s: &mut Subject) {
    let at = find_hopper(&s.kernel, 0, |inst| matches!(inst, Hopper::WgmmaFence));
    let (tid, dst) = (fresh(&s.kernel, RegClass::B32), fresh(&s.kernel, RegClass::Pred));
    insert(&mut s.kernel, at, Some((dst, false)), Inst::Exit);
    let (cmp, ty) = (Cmp::Ge, Ty::U32);
    insert(&mut s.kernel, at, None, Inst::Setp { cmp, ty, dst, a: tid.into(), b: Operand::Imm(96) });
    insert(&mut s.kernel, at, None, Inst::Mov { ty, dst: tid, src: SpecialReg::TidX.into() });
}

fn mixed_accumulators(s: &mut Subject) {
    if let Hopper::Wgmma(form) = hopper(&mut s.kernel, 3, is_wgmma) {
        form.d.reverse();
    }
}

/// A register of A is written between the product and the wait.
fn spoilt_operand(s: &mut Subject) {
    let Hopper::Wgmma(form) = hopper(&mut s.kernel, 0, is_wgmma) else { unreachable!("it was found") };
    let WgmmaA::Regs(regs) = &form.a else { unreachable!("A is in registers") };
    let dst = regs[2];
    let at = find_hopper(&s.kernel, 0, |inst| matches!(inst, Hopper::WgmmaWait(_)));
    insert(&mut s.kernel, at, None, Inst::Mov { ty: Ty::B32, dst, src: Operand::Imm(0) });
}

fn swapped_rows(s: &mut Subject) {
    if let Hopper::Wgmma(form) = hopper(&mut s.kernel, 0, is_wgmma)
        && let WgmmaA::Regs(regs) = &mut form.a
    {
        regs.swap(0, 1);
    }
}

fn waits_for_fewer_products(s: &mut Subject, nth: usize) {
    if let Hopper::WgmmaWait(pending) =
        hopper(&mut s.kernel, nth, |inst| matches!(inst, Hopper::WgmmaWait(_)))
    {
        *pending += 1;
    }
}

fn one_arrival_more(s: &mut Subject) {
    let count = |inst: &Hopper| matches!(inst, Hopper::MbarrierInit { count: Operand::Imm(128), .. });
    if let Hopper::MbarrierInit { count, .. } = hopper(&mut s.kernel, 0, count) {
        *count = Operand::Imm(129);
    }
}

fn too_few_registers(s: &mut Subject) {
    if let Hopper::SetMaxNReg { count, .. } = hopper(&mut s.kernel, 1, is_set_registers) {
        *count = 160;
    }
}

fn misplaced_line(s: &mut Subject) {
    if let Hopper::BulkStore { dst, .. } = hopper(&mut s.kernel, 0, |i| matches!(i, Hopper::BulkStore { .. }))
    {
        dst.offset += 8;
    }
}

/// Nobody waits for the store, and nobody writes to its source again.
fn last_store(s: &mut Subject) {
    no_wait_at_all(s);
    remove(&mut s.kernel, 1, |inst| matches!(inst, Inst::St { .. }));
}

fn no_wait_at_all(s: &mut Subject) {
    remove_hopper(&mut s.kernel, 0, |inst| matches!(inst, Hopper::BulkWait { .. }));
}

pub(super) fn table() -> Vec<Fault> {
    [tiles(), rings(), registers_and_lines()].concat()
}

fn tiles() -> Vec<Fault> {
    let (load, wgmma, expects) = ("cp.async.bulk.tensor", "wgmma.mma_async", "mbarrier.arrive.expect_tx");
    let init =
        |s: &mut Subject| remove_hopper(&mut s.kernel, 0, |i| matches!(i, Hopper::MbarrierInit { .. }));
    let known = |s: &mut Subject| remove_hopper(&mut s.kernel, 0, |i| matches!(i, Hopper::FenceMbarrierInit));
    let fence = |s: &mut Subject| remove_hopper(&mut s.kernel, 0, |i| matches!(i, Hopper::WgmmaFence));
    let commit = |s: &mut Subject| remove_hopper(&mut s.kernel, 0, |i| matches!(i, Hopper::WgmmaCommit));
    let wait = |s: &mut Subject| remove_hopper(&mut s.kernel, 0, |i| matches!(i, Hopper::WgmmaWait(_)));
    vec![
        Fault::new(
            "an mbarrier not initialised",
            tile,
            init,
            K::MbarrierMisuse,
            At(expects, 0),
            "no mbarrier was initialised",
        ),
        Fault::new(
            "the fence after an mbarrier's init removed",
            tile,
            known,
            K::MissingFence,
            At(load, 0),
            "use fence.mbarrier_init",
        ),
        Fault::new(
            "fewer bytes expected than copied",
            tile,
            |s| expect(s, A_BYTES),
            K::TransactionMismatch,
            At(load, 1),
            "arrive in phase 1 of the mbarrier, but it was issued in phase 0",
        )
        .or(At(expects, 0)),
        Fault::new(
            "more bytes expected than copied",
            tile,
            |s| expect(s, A_BYTES + B_BYTES + 16),
            K::TransactionMismatch,
            At(expects, 0),
            "more bytes are expected than copied",
        ),
        Fault::new(
            "an arrival too many",
            tile,
            arrives_twice,
            K::MbarrierMisuse,
            At("mbarrier.arrive.release", 0),
            "0 of 1 arrivals pending",
        ),
        Fault::new(
            "an mbarrier wait removed",
            tile,
            |s| remove_mbarrier_wait(s, 0),
            K::MissingWait,
            At("ld.shared.b32", 0),
            "may still be in flight",
        )
        .and(At(load, 1)),
        Fault {
            shown: Shown::Either(K::MissingWait, K::Deadlock),
            ..Fault::new(
                "a wait for the wrong parity",
                tile,
                |s| other_parity(s, 0),
                K::MissingWait,
                At("ld.shared.b32", 0),
                "may still be in flight",
            )
            .and(At(load, 1))
        },
        Fault::new(
            "a coordinate too many",
            tile,
            one_coordinate_more,
            K::TensorMap,
            At("cp.async.bulk.tensor.3d", 0),
            "3 coordinates for a tensor map with 2 dimensions",
        ),
        Fault::new(
            "a tile that is not aligned",
            tile,
            misplaced_tile,
            K::Misaligned,
            At(load, 1),
            "no multiple of 128",
        ),
        Fault::new(
            "a proxy fence removed",
            tile,
            |s| remove_hopper(&mut s.kernel, 0, is_proxy_fence),
            K::MissingFence,
            At(wgmma, 0),
            "no fence.proxy.async",
        )
        .and(At("st.shared.b32", 0)),
        Fault::new(
            "the barrier after a proxy fence removed",
            tile,
            |s| remove(&mut s.kernel, 2, |i| matches!(i, Inst::BarSync { .. })),
            K::Race,
            At(wgmma, 0),
            "the write by block 0",
        )
        .and(At("st.shared.b32", 0)),
        Fault::new("wgmma.fence removed", tile, fence, K::MissingFence, At(wgmma, 0), "no wgmma.fence"),
        Fault::new(
            "accumulators added to before they are written",
            tile,
            adds_at_first,
            K::UninitialisedRegister,
            At(wgmma, 0),
            "accumulators that were not written",
        ),
        Fault::new(
            "a descriptor with twice the stride",
            tile,
            |s| descriptor(s, (64 ^ 128) << 32),
            K::OutOfBounds,
            At(wgmma, 0),
            "of shared memory",
        ),
        Fault::new(
            "a descriptor with a base offset",
            tile,
            |s| descriptor(s, 1 << 49),
            K::WarpgroupMisuse,
            At(wgmma, 0),
            "base offset 1",
        ),
        Fault::value("a descriptor with another swizzle than its tile", tile, |s| {
            descriptor(s, (1 ^ 2) << 62)
        }),
        Fault::value("a tensor map without the swizzle that the products read with", tile, plain_map),
        Fault::new(
            "a warp of a warpgroup that leaves before the products",
            tile,
            warp_leaves,
            K::WarpgroupMisuse,
            At(wgmma, 0),
            "has not done the products",
        ),
        Fault::new(
            "accumulators in flight used in another order",
            tile,
            mixed_accumulators,
            K::RegisterInFlight,
            At(wgmma, 3),
            "wait first",
        ),
        Fault::new(
            "wgmma.commit_group removed",
            tile,
            commit,
            K::RegisterInFlight,
            At("st.global.f32", 0),
            "reads an accumulator",
        ),
        Fault::new(
            "wgmma.wait_group removed",
            tile,
            wait,
            K::RegisterInFlight,
            At("st.global.f32", 0),
            "reads an accumulator",
        ),
    ]
}

fn rings() -> Vec<Fault> {
    let (load, waits) = ("cp.async.bulk.tensor", "mbarrier.try_wait");
    vec![
        Fault::new(
            "the wait for an empty stage removed",
            ring,
            |s| remove_mbarrier_wait(s, 2),
            K::MissingWait,
            At(load, 4),
            "may still be in flight",
        )
        .and(At(load, 0)),
        Fault::new(
            "a stage given back while products read it",
            ring,
            |s| waits_for_fewer_products(s, 1),
            K::MissingWait,
            At(load, 4),
            "may still read",
        )
        .and(At("wgmma.mma_async", 0)),
        Fault::new(
            "an mbarrier that expects an arrival too many",
            ring,
            one_arrival_more,
            K::Deadlock,
            At(waits, 7),
            "waits for parity 0 of the mbarrier at byte 16: phase 0, 1 of 129 arrivals pending",
        ),
        Fault::new(
            "an arrival removed",
            ring,
            |s| remove_hopper(&mut s.kernel, 0, is_arrival),
            K::Deadlock,
            At(waits, 7),
            "waits for parity 0 of the mbarrier at byte 16: phase 0, 128 of 128 arrivals pending",
        ),
        Fault::new(
            "a producer that starts with the wrong parity",
            ring,
            |s| other_parity(s, 0),
            K::Deadlock,
            At(waits, 5),
            "waits for parity 0 of the mbarrier at byte 0",
        ),
        Fault::new(
            "registers not given back before others take them",
            ring,
            |s| remove_hopper(&mut s.kernel, 0, is_set_registers),
            K::Deadlock,
            At("setmaxnreg.inc", 0),
            "registers, 0 are free",
        ),
        Fault::new(
            "setmaxnreg.inc to fewer registers than there are",
            ring,
            too_few_registers,
            K::WarpgroupMisuse,
            At("setmaxnreg.inc", 0),
            "160 registers where each thread has 168",
        ),
    ]
}

fn registers_and_lines() -> Vec<Fault> {
    let store = "cp.async.bulk.global";
    let commit = |s: &mut Subject| remove_hopper(&mut s.kernel, 0, |i| matches!(i, Hopper::BulkCommit));
    vec![
        Fault::new(
            "a register overwritten that a product in flight reads",
            registers,
            spoilt_operand,
            K::RegisterInFlight,
            At("mov.b32", 0),
            "writes a register of A",
        ),
        Fault::value("rows of a fragment swapped", registers, swapped_rows),
        Fault::new(
            "the proxy fence before a bulk store removed",
            line,
            |s| remove_hopper(&mut s.kernel, 0, is_proxy_fence),
            K::MissingFence,
            At(store, 0),
            "no fence.proxy.async",
        )
        .and(At("st.shared.b32", 0)),
        Fault::new(
            "a bulk store not committed",
            line,
            commit,
            K::MissingWait,
            At("st.shared.b32", 1),
            "may still read",
        )
        .and(At(store, 0)),
        Fault::new(
            "the wait for a bulk store removed",
            line,
            no_wait_at_all,
            K::MissingWait,
            At("st.shared.b32", 1),
            "may still read",
        )
        .and(At(store, 0)),
        Fault::new(
            "a bulk store in flight at the end",
            line,
            last_store,
            K::MissingWait,
            At(store, 0),
            "the block ends before",
        ),
        Fault::new(
            "a bulk store to an address 8 bytes off",
            line,
            misplaced_line,
            K::Misaligned,
            At(store, 0),
            "no multiple of 16",
        ),
    ]
}
