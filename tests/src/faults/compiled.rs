//! Faults in what the compiler makes of the kernels that have PTX snapshots.

use half::bf16;
use tile_codegen::ptx::{Addr, AddrBase, Cmp, Inst, Kernel, Operand, Reg, Space};
use tile_codegen::simt::ReportKind as K;
use tile_runtime::prelude::*;

use super::edit::{definition, find, only_threads_below, remove};
use super::subject::{Given, Origin};
use super::{At, Fault, Subject};
use crate::small;

/// The kernel compiled for a target, with what a launch of it needs.
pub(super) fn subject(
    launch: &Launch<'_>,
    target: &Target,
    tensors: Vec<Given>,
    grid: [u32; 3],
) -> Result<Subject> {
    let (compiled, staged) = (launch.compile(target)?, launch.stage()?);
    let kernel = compiled.module.kernels[0].clone();
    let target = compiled.module.target;
    Ok(Subject { kernel, target, grid, shared: 0, tensors, origin: Some(Origin { compiled, staged }) })
}

/// Small whole numbers, no two neighbours of which are equal.
fn numbers(count: u64) -> impl Iterator<Item = f32> {
    (0..count).map(|i| ((i * 7 + i / 13) % 23) as f32 - 11.0)
}

fn f32s(shape: &[u64]) -> Given {
    Given::input(numbers(shape.iter().product()).flat_map(f32::to_le_bytes).collect()).shaped(shape)
}

pub(super) fn bf16s(shape: &[u64]) -> Given {
    let values = numbers(shape.iter().product()).map(bf16::from_f32);
    Given::input(values.flat_map(bf16::to_le_bytes).collect()).shaped(shape)
}

pub(super) fn output(size: u64, shape: &[u64]) -> Given {
    Given::output((size * shape.iter().product::<u64>()) as usize).shaped(shape)
}

pub(super) const SMALL: &str = "a small kernel compiles";

/// The last block has 928 of its 1024 elements.
fn add() -> Subject {
    let x = DeviceTensor::meta(&[4000]).expect(SMALL);
    let launch_out = &mut DeviceTensor::meta(&[4000]).expect(SMALL);
    let launch = small::add(&x, &x, launch_out);
    let tensors = vec![f32s(&[4000]), f32s(&[4000]), output(4, &[4000])];
    subject(&launch, &Target::SM_80, tensors, [4, 1, 1]).expect(SMALL)
}

fn running_sum() -> Subject {
    let x = DeviceTensor::meta(&[8, 512]).expect(SMALL);
    let launch_out = &mut DeviceTensor::meta(&[8, 512]).expect(SMALL);
    let launch = small::running_sum(&x, launch_out);
    subject(&launch, &Target::SM_80, vec![f32s(&[8, 512]), output(4, &[8, 512])], [2, 1, 1]).expect(SMALL)
}

/// The product in four steps, of which the last has 32 of 64 terms; through rings of three stages.
fn product() -> Subject {
    product_of(Config::default())
}

/// The same through registers, one step ahead.
fn product_ahead() -> Subject {
    product_of(Config { stages: Some(1), ..Config::default() })
}

fn product_of(config: Config) -> Subject {
    let (x, y) = (DeviceTensor::meta(&[64, 224]).expect(SMALL), DeviceTensor::meta(&[224, 64]).expect(SMALL));
    let launch_out = &mut DeviceTensor::meta(&[64, 64]).expect(SMALL);
    let launch = small::product(&x, &y, launch_out).config(config);
    let tensors = vec![bf16s(&[64, 224]), bf16s(&[224, 64]), output(4, &[64, 64])];
    subject(&launch, &Target::SM_80, tensors, [1, 1, 1]).expect(SMALL)
}

fn transpose() -> Subject {
    let x = DeviceTensor::meta(&[64, 128]).expect(SMALL);
    let launch_out = &mut DeviceTensor::meta(&[128, 64]).expect(SMALL);
    let launch = small::transpose_tiles(&x, launch_out);
    subject(&launch, &Target::SM_80, vec![bf16s(&[64, 128]), output(2, &[128, 64])], [2, 1, 1]).expect(SMALL)
}

fn is_barrier(inst: &Inst) -> bool {
    matches!(inst, Inst::BarSync { .. })
}

fn stores(space: Space) -> impl Fn(&Inst) -> bool {
    move |inst| matches!(inst, Inst::St { space: s, .. } if *s == space)
}

fn loads(space: Space) -> impl Fn(&Inst) -> bool {
    move |inst| matches!(inst, Inst::Ld { space: s, .. } if *s == space)
}

fn stored_to(kernel: &mut Kernel, at: usize) -> &mut Addr {
    match &mut kernel.lines[at].inst {
        Inst::St { addr, .. } => addr,
        other => unreachable!("a store was found, not {other:?}"),
    }
}

/// The two parts of the sum that a register is.
fn sum(kernel: &mut Kernel, before: usize, reg: Reg) -> (usize, &mut Operand, &mut Operand) {
    let at = definition(kernel, before, reg);
    match &mut kernel.lines[at].inst {
        Inst::Int { a, b, .. } => (at, a, b),
        other => unreachable!("addresses are sums, not {other:?}"),
    }
}

/// Where the block's part of the output begins: the line, the pointer and the offset, in `add`.
fn block_start(kernel: &mut Kernel) -> (usize, &mut Operand, &mut Operand) {
    let at = find(kernel, 0, stores(Space::Global));
    let AddrBase::Reg(base) = stored_to(kernel, at).base else { unreachable!("the base is a register") };
    let (at, start, _) = sum(kernel, at, base);
    let start = start.reg().expect("a register");
    sum(kernel, at, start)
}

/// `remaining > first` becomes `remaining >= first` in the mask of the last load of `x`.
fn one_more(s: &mut Subject) {
    let kernel = &mut s.kernel;
    let load = find(kernel, 3, loads(Space::Global));
    let (mask, _) = kernel.lines[load].guard.expect("loads are masked");
    let at = definition(kernel, load, mask);
    match &mut kernel.lines[at].inst {
        Inst::Setp { cmp, .. } => *cmp = Cmp::Ge,
        other => unreachable!("masks are comparisons, not {other:?}"),
    }
}

/// The blocks all write where the first one does.
fn same_place(s: &mut Subject) {
    *block_start(&mut s.kernel).2 = Operand::Imm(0);
}

/// The result goes to the memory of the second input.
fn wrong_tensor(s: &mut Subject) {
    let kernel = &mut s.kernel;
    let load = find(kernel, 4, loads(Space::Global));
    let Inst::Ld { addr: Addr { base: AddrBase::Reg(base), .. }, .. } = kernel.lines[load].inst else {
        unreachable!("the base is a register")
    };
    let (at, start, _) = sum(kernel, load, base);
    let start = start.reg().expect("a register");
    let pointer = *sum(kernel, at, start).1;
    *block_start(kernel).1 = pointer;
}

fn is_copy_wait(inst: &Inst) -> bool {
    matches!(inst, Inst::CpAsyncWait(_))
}

/// The loop waits for one group less.
fn waits_for_less(s: &mut Subject) {
    let at = find(&s.kernel, 0, is_copy_wait);
    if let Inst::CpAsyncWait(pending) = &mut s.kernel.lines[at].inst {
        *pending += 1;
    }
}

/// The last copies before the loop leave out their zeros: 16 bytes are read where the tensor has ended.
fn copies_beyond(s: &mut Subject) {
    let copy = |inst: &Inst| matches!(inst, Inst::CpAsync { .. });
    let count = s.kernel.lines.iter().filter(|line| copy(&line.inst)).count();
    let at = find(&s.kernel, count - 1, copy);
    if let Inst::CpAsync { src_size, .. } = &mut s.kernel.lines[at].inst {
        *src_size = None;
    }
}

/// Rows g and g + 8 of the left fragment are exchanged.
fn swapped_rows(s: &mut Subject) {
    let at = find(&s.kernel, 0, |inst| matches!(inst, Inst::Mma { .. }));
    if let Inst::Mma { a, .. } = &mut s.kernel.lines[at].inst {
        a.swap(0, 1);
    }
}

/// Warp 3 does not set its first accumulator to zero.
fn unset_accumulator(s: &mut Subject) {
    let mma = find(&s.kernel, 0, |inst| matches!(inst, Inst::Mma { .. }));
    let Inst::Mma { c, .. } = &s.kernel.lines[mma].inst else { unreachable!("it was found") };
    let at = definition(&s.kernel, mma, c[0]);
    only_threads_below(&mut s.kernel, at, 96);
}

/// What the first matrix load reads lies 16 bytes on: another row of the swizzle.
fn wrong_matrix(s: &mut Subject) {
    let at = find(&s.kernel, 0, |inst| matches!(inst, Inst::Ldmatrix { .. }));
    if let Inst::Ldmatrix { addr, .. } = &mut s.kernel.lines[at].inst {
        addr.offset += 128;
    }
}

pub(super) fn table() -> Vec<Fault> {
    let product_line = "acc = mma(load(x, (bid(1), k), (64, 64)), load(y, (k, bid(0)), (64, 64)), acc);";
    let transpose_line = "store(out, (bid(0), bid(1)), load(x, (bid(1), bid(0)), (64, 64)).transpose());";
    let add_line = "store(out, (bid(0),), load(x, (bid(0),), (1024,)) + load(y, (bid(0),), (1024,)));";
    let sum_line = "store(out, (bid(0), 0), load(x, (bid(0), 0), (4, 512)).cumsum(1));";
    vec![
        Fault::new(
            "a barrier before the products removed",
            product_ahead,
            |s| remove(&mut s.kernel, 1, is_barrier),
            K::Race,
            At("ldmatrix", 0),
            "the write by block 0, thread",
        )
        .and(At("st.shared.v4.b32", 0))
        .from(product_line),
        Fault::new(
            "a buffer written again too early: the barrier after the products removed",
            product_ahead,
            |s| remove(&mut s.kernel, 0, is_barrier),
            K::Race,
            At("st.shared.v4.b32", 0),
            "the read by block 0",
        )
        .and(At("ldmatrix", 0))
        .from(product_line),
        Fault::new(
            "the wait for a ring's copies removed",
            product,
            |s| remove(&mut s.kernel, 0, is_copy_wait),
            K::MissingWait,
            At("ldmatrix", 0),
            "may still be in flight",
        )
        .and(At("cp.async.cg", 0))
        .from(product_line),
        Fault::new(
            "a wait for a ring's copies that leaves one group too many",
            product,
            waits_for_less,
            K::MissingWait,
            At("ldmatrix", 0),
            "may still be in flight",
        )
        .and(At("cp.async.cg", 0))
        .from(product_line),
        Fault::new(
            "the barrier of a ring removed",
            product,
            |s| remove(&mut s.kernel, 0, is_barrier),
            K::Race,
            At("ldmatrix", 0),
            "the write by block 0, thread",
        )
        .and(At("cp.async.cg", 0))
        .from(product_line),
        Fault::new(
            "a copy that reads beyond the end of a tensor",
            product,
            copies_beyond,
            K::OutOfBounds,
            At("cp.async.cg", 23),
            "of it",
        )
        .from(product_line),
        Fault::value("rows of a fragment swapped", product, swapped_rows),
        Fault::value("a matrix read from the next row", product, wrong_matrix),
        Fault::new(
            "an accumulator not set to zero in one warp",
            product,
            unset_accumulator,
            K::UninitialisedRegister,
            At("mma.sync", 0),
            "32 lanes",
        )
        .from(product_line),
        Fault::new(
            "a mask that lets one element too many in",
            add,
            one_more,
            K::OutOfBounds,
            At("ld.global", 3),
            "this is byte 16000 of it",
        )
        .from(add_line),
        Fault::new(
            "blocks that all write the first block's part",
            add,
            same_place,
            K::Race,
            At("st.global", 0),
            "the write by block 0",
        )
        .and(At("st.global", 0))
        .from(add_line),
        Fault::new(
            "a result stored to an input",
            add,
            wrong_tensor,
            K::ReadOnly,
            At("st.global", 0),
            "was given to be read",
        )
        .from(add_line),
        Fault::new(
            "a barrier that half of each warp meets",
            running_sum,
            |s| {
                let at = find(&s.kernel, 0, is_barrier);
                only_threads_below(&mut s.kernel, at, 16);
            },
            K::Divergence,
            At("bar.sync", 0),
            "16 lanes",
        )
        .from(sum_line),
        Fault::new(
            "a barrier before the sums of the other warps are read removed",
            running_sum,
            |s| remove(&mut s.kernel, 2, is_barrier),
            K::Race,
            At("ld.shared", 16),
            "the write by block 0, thread",
        )
        .and(At("st.shared", 4))
        .from(sum_line),
        Fault::new(
            "an address 2 bytes off",
            transpose,
            |s| {
                let at = find(&s.kernel, 0, stores(Space::Global));
                stored_to(&mut s.kernel, at).offset += 2;
            },
            K::Misaligned,
            At("st.global.v4", 0),
            "no multiple of 16",
        )
        .from(transpose_line),
        Fault::new(
            "shared memory that one warp does not fill",
            transpose,
            |s| {
                let at = find(&s.kernel, 0, stores(Space::Shared));
                only_threads_below(&mut s.kernel, at, 96);
            },
            K::UninitialisedMemory,
            At("ld.shared.v4", 0),
            "nobody has written",
        )
        .from(transpose_line),
    ]
}
