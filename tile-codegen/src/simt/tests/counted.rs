//! Counts, and runs over parts of a grid.

use super::{Case, at, builder};
use crate::ptx::*;
use crate::simt::{Access, Class, Memory, Program, ReportKind, Run};

/// Lane i loads word `stride * i` of shared memory and of global memory.
fn strided(stride: i64) -> Case {
    let (mut f, p) = builder(32, 1);
    f.kernel_mut().shared = Shared::Static { bytes: 4096, align: 128 };
    let tid = f.special(SpecialReg::TidX);
    let base = f.shared_addr();
    let mine = f.mad_lo(Ty::U32, tid, Operand::Imm(4 * stride), base);
    let mine = f.materialize(Ty::U32, mine);
    f.st(Space::Shared, Ty::B32, mine, &[tid.into()]);
    let own = f.ld(Space::Shared, Ty::B32, mine);
    let from = at(&mut f, p[0], tid, 4 * stride);
    let value = f.ld(Space::Global, Ty::B32, from);
    let sum = f.int(IntOp::Add, Ty::U32, value, own);
    let to = at(&mut f, p[1], tid, 4);
    f.st(Space::Global, Ty::B32, to, &[sum]);
    Case { inputs: vec![super::bytes_of(0..1024)], ..Case::new(f.finish(), 128) }
}

#[test]
fn bank_conflicts_and_sectors() {
    // (stride in words, passes over 32 banks, sectors of 8 words)
    for (stride, passes, sectors) in [(1, 1, 4), (2, 2, 8), (3, 1, 12), (8, 8, 32), (32, 32, 32)] {
        let case = strided(stride);
        let (outcome, out) = case.run(0, 1 << 20);
        assert!(outcome.is_clean());
        assert_eq!(super::words(&out)[5], 5 + 5 * stride as u32);
        let counts = outcome.counts;
        assert_eq!((counts.shared_loads.parts, counts.shared_loads.ideal), (passes, 1), "stride {stride}");
        assert_eq!((counts.global_loads.parts, counts.global_loads.ideal), (sectors, 4), "stride {stride}");
        assert_eq!((counts.global_loads.requests, counts.global_loads.bytes), (1, 128));
        assert_eq!((counts.global_stores.parts, counts.shared_stores.parts), (4, passes));
        // Two parameters, two loads, two stores.
        assert_eq!(counts.of(Class::Memory), 6);
    }
}

#[test]
fn the_table_names_what_happened() {
    let (outcome, _) = strided(2).run(0, 1 << 20);
    let table = outcome.counts.to_string();
    let row = table.lines().find(|line| line.starts_with("shared loads")).expect("the row is there");
    let numbers: Vec<u64> = row.split_whitespace().skip(2).map(|n| n.parse().expect("a number")).collect();
    assert_eq!(numbers, [1, 128, 2, 1]);
    assert!(!table.contains("tensor core products"), "{table}");
}

/// Two runs over halves of the grid, joined. Block b writes part `b & mask` of the output.
fn halves(mask: i64) -> (Vec<u32>, Vec<ReportKind>) {
    let (mut f, p) = builder(32, 0);
    let (tid, block) = (f.special(SpecialReg::TidX), f.special(SpecialReg::CtaIdX));
    let part = f.and_b32(block, Operand::Imm(mask));
    let index = f.mad_lo(Ty::U32, part, 32, tid);
    let address = at(&mut f, p[0], index, 4);
    f.st(Space::Global, Ty::B32, address, &[block.into()]);
    let module = Module { target: Sm::SM_80, kernels: vec![f.finish()] };
    let program = Program::new(&module, "k").unwrap_or_else(|e| panic!("{e}"));
    let mut memory = Memory::new();
    let out = memory.add("out", &[0; 512], Access::Write);
    let run = Run::new(&program, [4, 1, 1], vec![out.to_le_bytes().to_vec()]);
    let [first, second] = [0..2, 2..4].map(|blocks| Run { blocks: Some(blocks), ..run.clone() });
    let (mut outcome, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| first.execute(&memory));
        (first.join().expect("no panic").expect("valid"), second.execute(&memory).expect("valid"))
    });
    outcome.join(&program, &memory, second);
    let kinds = outcome.reports.iter().map(|report| report.kind).collect();
    (super::words(&memory.bytes(out).expect("the region is there")), kinds)
}

#[test]
fn parts_of_a_grid_join() {
    let (out, kinds) = halves(3);
    assert_eq!((out[0], out[33], out[95], out[127], kinds), (0, 1, 2, 3, vec![]));
    // Blocks 0 and 2 share a part, and 1 and 3: each half alone has no fault.
    assert_eq!(halves(1).1, [ReportKind::Race]);
}

#[test]
fn launches_that_do_not_fit() {
    let (f, _) = builder(32, 0);
    let module = Module { target: Sm::SM_80, kernels: vec![f.finish()] };
    assert!(Program::new(&module, "other").expect_err("no such kernel").to_string().contains("`other`"));
    let program = Program::new(&module, "k").unwrap_or_else(|e| panic!("{e}"));
    let memory = Memory::new();
    let error = |run: Run<'_>| run.execute(&memory).expect_err("refused").to_string();
    assert_eq!(error(Run::new(&program, [1, 1, 1], vec![])), "0 parameters, expected 1");
    let short = Run::new(&program, [1, 1, 1], vec![vec![0; 4]]);
    assert_eq!(error(short), "parameter 0 has 4 bytes, expected 8");
    let outside = Run { blocks: Some(1..3), ..Run::new(&program, [2, 1, 1], vec![vec![0; 8]]) };
    assert_eq!(error(outside), "blocks 1..3 of a grid of 2");
}
