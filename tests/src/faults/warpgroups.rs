//! Faults in what the compiler makes of products for `sm_90a`: roles, rings of stages, products of warpgroups, bulk stores.

use tile_codegen::ptx::{Hopper, Inst, IntOp, Operand, RegClass, Ty};
use tile_codegen::simt::ReportKind as K;
use tile_runtime::prelude::*;

use super::compiled::{SMALL, bf16s, output, subject};
use super::edit::{find, find_hopper, fresh, hopper, insert, remove, remove_hopper};
use super::hopper_table::{is_expect, is_load, is_proxy_fence, remove_mbarrier_wait};
use super::{At, Fault, Shown, Subject};

/// Products of two tiles of rows of x with y, one after the other, so that rings and staging tiles are used again.
#[tile_kernel]
fn two_products(x: Tensor<bf16, 2>, y: Tensor<bf16, 2>, out: TensorMut<f32, 2>) {
    for i in 0..2 {
        let mut acc = zeros::<f32>((64, 64));
        for k in 0..cdiv(x.dim(1), 64) {
            acc = mma(load(x, (i, k), (64, 64)), load(y, (k, bid(0)), (64, 64)), acc);
        }
        store(out, (i, bid(0)), acc);
    }
}

fn two() -> Subject {
    let (x, y) =
        (DeviceTensor::meta(&[128, 384]).expect(SMALL), DeviceTensor::meta(&[384, 64]).expect(SMALL));
    let launch_out = &mut DeviceTensor::meta(&[128, 64]).expect(SMALL);
    let launch = two_products(&x, &y, launch_out);
    let tensors = vec![bf16s(&[128, 384]), bf16s(&[384, 64]), output(4, &[128, 64])];
    subject(&launch, &Target::SM_90A, tensors, [1, 1, 1]).expect(SMALL)
}

/// The upper half of a descriptor of swizzled rows of 128 bytes: 8 rows are 1024 bytes, in units of 16.
const UPPER: i64 = 0x4000_0040;

/// Groups of 8 rows are 512 bytes apart.
fn half_the_stride(s: &mut Subject) {
    let at = find(&s.kernel, 0, |inst| matches!(inst, Inst::Mov { src: Operand::Imm(UPPER), .. }));
    if let Inst::Mov { src, .. } = &mut s.kernel.lines[at].inst {
        *src = Operand::Imm(UPPER ^ 0x60);
    }
}

fn bytes_more(s: &mut Subject, more: i64) {
    if let Hopper::MbarrierArriveExpectTx { bytes, .. } = hopper(&mut s.kernel, 0, is_expect) {
        *bytes = Operand::Imm(bytes.imm().expect("a literal") + more);
    }
}

/// The box of the first loads begins at the next row.
fn next_row(s: &mut Subject) {
    let at = find_hopper(&s.kernel, 0, is_load);
    let dst = fresh(&s.kernel, RegClass::B32);
    let Inst::Hopper(Hopper::TensorLoad { coords, .. }) = &mut s.kernel.lines[at].inst else {
        unreachable!("it was found")
    };
    let a = std::mem::replace(&mut coords[1], dst.into());
    insert(&mut s.kernel, at, None, Inst::Int { op: IntOp::Add, ty: Ty::S32, dst, a, b: Operand::Imm(1) });
}

/// The offsets of the mbarriers of the first tile loaded: the one that it fills, and the one waited for before.
fn first_channel(s: &mut Subject) -> [i64; 2] {
    let at = find_hopper(&s.kernel, 0, is_load);
    let before = s.kernel.lines[..at].iter().rev().find_map(|line| match &line.inst {
        Inst::Hopper(Hopper::MbarrierWait { addr, .. }) => Some(addr.offset),
        _ => None,
    });
    let Hopper::TensorLoad { mbar, .. } = hopper(&mut s.kernel, 0, is_load) else {
        unreachable!("it was found")
    };
    [mbar.offset, before.expect("a wait for the empty stage")]
}

fn no_wait_for_the_first_tile(s: &mut Subject) {
    let [full, _] = first_channel(s);
    let waits = |inst: &Hopper| matches!(inst, Hopper::MbarrierWait { addr, .. } if addr.offset == full);
    let at = find_hopper(&s.kernel, 0, waits);
    s.kernel.lines.drain(at - 1..=at + 1);
}

fn first_tile_never_given_back(s: &mut Subject) {
    let [_, empty] = first_channel(s);
    remove_hopper(
        &mut s.kernel,
        0,
        |inst| matches!(inst, Hopper::MbarrierArrive { addr, .. } if addr.offset == empty),
    );
}

fn is_products_wait(inst: &Hopper) -> bool {
    matches!(inst, Hopper::WgmmaWait(_))
}

/// Both stages are given back while the products before may still read them.
fn early_release(s: &mut Subject) {
    for nth in 0..2 {
        if let Hopper::WgmmaWait(pending) = hopper(&mut s.kernel, nth, is_products_wait) {
            *pending += 1;
        }
    }
}

/// Removes the waits after the loop: one for the accumulators, one for the staging tile.
fn no_wait_for_products(s: &mut Subject) {
    for _ in 0..2 {
        remove_hopper(&mut s.kernel, 2, is_products_wait);
    }
}

fn is_barrier(inst: &Inst) -> bool {
    matches!(inst, Inst::BarSync { .. })
}

fn is_bulk_wait(inst: &Hopper) -> bool {
    matches!(inst, Hopper::BulkWait { .. })
}

pub(super) fn table() -> Vec<Fault> {
    let product = "acc = mma(load(x, (i, k), (64, 64)), load(y, (k, bid(0)), (64, 64)), acc);";
    let result = "store(out, (i, bid(0)), acc);";
    let (load, store) = ("cp.async.bulk.tensor.2d.shared", "cp.async.bulk.tensor.2d.global");
    let (staging, wgmma) = ("st.shared.v2.f32", "wgmma.mma_async");
    vec![
        Fault::new(
            "a consumer's wait for a full stage removed",
            two,
            no_wait_for_the_first_tile,
            K::MissingWait,
            At(wgmma, 0),
            "may still be in flight",
        )
        .and(At(load, 0))
        .from(product),
        Fault::new(
            "the producer's wait for an empty stage removed",
            two,
            |s| remove_mbarrier_wait(s, 2),
            K::MissingWait,
            At(load, 0),
            "may still be in flight",
        )
        .and(At(load, 0))
        .from(product),
        Fault::new(
            "a stage given back while products read it",
            two,
            early_release,
            K::MissingWait,
            At(load, 0),
            "may still read",
        )
        .and(At(wgmma, 0))
        .from(product),
        Fault::new(
            "a stage never given back",
            two,
            first_tile_never_given_back,
            K::Deadlock,
            At("mbarrier.try_wait", 0),
            "4 of 4 arrivals pending",
        )
        .from(product),
        Fault::new(
            "16 bytes more expected than a box has",
            two,
            |s| bytes_more(s, 16),
            K::TransactionMismatch,
            At("mbarrier.arrive.expect_tx", 0),
            "more bytes are expected than copied",
        )
        .from(product),
        Fault::new(
            "16 bytes fewer expected than a box has",
            two,
            |s| bytes_more(s, -16),
            K::TransactionMismatch,
            At("mbarrier.arrive.expect_tx", 0),
            "more bytes are copied than expected",
        )
        .or(At(load, 0))
        .from(product),
        Fault::value("a box one row off", two, next_row),
        Fault::value("a descriptor with half the stride", two, half_the_stride),
        Fault::new(
            "wgmma.wait_group before the accumulators are stored removed",
            two,
            no_wait_for_products,
            K::RegisterInFlight,
            At(staging, 0),
            "reads an accumulator",
        ),
        Fault::new(
            "the proxy fence before a bulk store removed",
            two,
            |s| remove_hopper(&mut s.kernel, 0, is_proxy_fence),
            K::MissingFence,
            At(store, 0),
            "no fence.proxy.async",
        )
        .and(At(staging, 0))
        .from(result),
        Fault {
            shown: Shown::Either(K::UninitialisedMemory, K::Race),
            ..Fault::new(
                "the barrier before a bulk store removed",
                two,
                |s| remove(&mut s.kernel, 2, is_barrier),
                K::UninitialisedMemory,
                At(store, 0),
                "nobody has written",
            )
            .from(result)
        },
        Fault::new(
            "the wait before a staging tile is filled again removed",
            two,
            |s| remove_hopper(&mut s.kernel, 0, is_bulk_wait),
            K::MissingWait,
            At(staging, 0),
            "may still read",
        )
        .and(At(store, 0))
        .from(result),
    ]
}
