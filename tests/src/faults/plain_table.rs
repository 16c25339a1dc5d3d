//! Faults in PTX for `sm_80` that was written by hand.

use tile_codegen::ptx::{Inst, Operand, Space};
use tile_codegen::simt::ReportKind as K;

use super::edit::{find, only_threads_below, remove};
use super::plain::{flag, hand_over, neighbours, pipeline, scratch};
use super::{At, Fault, Subject};

fn is_barrier(inst: &Inst) -> bool {
    matches!(inst, Inst::BarSync { .. })
}

fn is_wait(inst: &Inst) -> bool {
    matches!(inst, Inst::CpAsyncWait(_))
}

fn is_fence(inst: &Inst) -> bool {
    matches!(inst, Inst::Fence { .. })
}

fn waits_for_more(s: &mut Subject) {
    let at = find(&s.kernel, 0, is_wait);
    s.kernel.lines[at].inst = Inst::CpAsyncWait(2);
}

fn counts(s: &mut Subject, counted: impl Fn(&mut Inst)) {
    for line in &mut s.kernel.lines {
        counted(&mut line.inst);
    }
}

fn shuffles(s: &mut Subject) {
    counts(s, |inst| {
        if let Inst::Shfl { lane, .. } = inst {
            *lane = Operand::Imm(16);
        }
    });
}

/// Both sides of barrier 1 wait for a third warp.
fn expects_three_warps(s: &mut Subject) {
    counts(s, |inst| match inst {
        Inst::BarSync { threads, .. } => *threads = Some(96),
        Inst::BarArrive { threads, .. } => *threads = 96,
        _ => {}
    });
}

fn arrives_for_three_warps(s: &mut Subject) {
    counts(s, |inst| {
        if let Inst::BarArrive { threads, .. } = inst {
            *threads = 96;
        }
    });
}

fn does_not_store_all(s: &mut Subject) {
    let at = find(&s.kernel, 0, |inst| matches!(inst, Inst::St { space: Space::Global, .. }));
    only_threads_below(&mut s.kernel, at, 16);
}

pub(super) fn table() -> Vec<Fault> {
    let copy = "cp.async.cg.shared.global";
    vec![
        Fault::new(
            "a cp.async wait removed",
            pipeline,
            |s| remove(&mut s.kernel, 0, is_wait),
            K::MissingWait,
            At("ld.shared.b32", 0),
            "may still be in flight",
        )
        .and(At(copy, 0)),
        Fault::new(
            "a cp.async wait that leaves one group too many",
            pipeline,
            waits_for_more,
            K::MissingWait,
            At("ld.shared.b32", 0),
            "may still be in flight",
        )
        .and(At(copy, 0)),
        Fault::new(
            "the barrier after a cp.async wait removed",
            pipeline,
            |s| remove(&mut s.kernel, 0, is_barrier),
            K::Race,
            At(copy, 0),
            "the read by block 0, thread",
        )
        .and(At("ld.shared.b32", 0)),
        Fault::new(
            "a stage reused before its readers are done",
            pipeline,
            |s| remove(&mut s.kernel, 1, is_barrier),
            K::Race,
            At(copy, 2),
            "the read by block 0",
        )
        .and(At("ld.shared.b32", 0)),
        Fault::new(
            "a barrier that waits for too many threads",
            hand_over,
            expects_three_warps,
            K::Deadlock,
            At("bar.sync 1, 96", 0),
            "waits at barrier 1, where 64 of 96 threads have arrived",
        ),
        Fault::new(
            "an arrival at a barrier removed",
            hand_over,
            |s| remove(&mut s.kernel, 0, |inst| matches!(inst, Inst::BarArrive { .. })),
            K::Deadlock,
            At("bar.sync 1, 64", 0),
            "waits at barrier 1, where 32 of 64 threads have arrived",
        ),
        Fault::new(
            "threads that disagree about a barrier's count",
            hand_over,
            arrives_for_three_warps,
            K::BarrierMisuse,
            At("bar.arrive 1, 96", 0),
            "others expect 64",
        )
        .or(At("bar.sync 1, 64", 0)),
        Fault::new(
            "a shuffle from a lane that has left",
            neighbours,
            shuffles,
            K::AbsentLane,
            At("shfl.sync.bfly", 0),
            "does not take part",
        ),
        Fault::new(
            "the fence before a flag between blocks removed",
            flag,
            |s| remove(&mut s.kernel, 0, is_fence),
            K::Race,
            At("ld.global.b32", 0),
            "the write by block 1, thread 0",
        )
        .and(At("st.global.b32", 0)),
        Fault::new(
            "the fence after a flag between blocks removed",
            flag,
            |s| remove(&mut s.kernel, 1, is_fence),
            K::Race,
            At("ld.global.b32", 0),
            "the write by block 1, thread 0",
        )
        .and(At("st.global.b32", 0)),
        Fault::new(
            "global memory that half of the threads do not write",
            scratch,
            does_not_store_all,
            K::UninitialisedMemory,
            At("ld.global.b32", 0),
            "bytes of global memory that nobody has written",
        ),
    ]
}
