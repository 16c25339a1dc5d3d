//! Tests of the executor: small kernels built by hand with values worked out independently, faults put into them one at a
//! time, and compiled kernels beside their execution on the CPU.

mod arithmetic;
mod compiled;
mod counted;
mod faults;
mod flags;
mod hopper;
mod hopper_copies;
mod matrices;
mod numbers;
mod roles;
mod warpgroups;

use super::{Access, Memory, Outcome, Program, ReportKind, Run};
use crate::ptx::{
    Addr, FuncBuilder, Kernel, Module, Operand, ParamKind, Reg, RegClass, Sm, Space, SpecialReg, Ty,
};

/// Schedules that every test tries.
const SEEDS: std::ops::Range<u64> = 0..8;

/// A kernel with its inputs and the length of its output, which is its last parameter.
struct Case {
    kernel: Kernel,
    blocks: u32,
    shared: u32,
    inputs: Vec<Vec<u8>>,
    out: usize,
}

impl Case {
    fn new(kernel: Kernel, out: usize) -> Case {
        Case { kernel, blocks: 1, shared: 0, inputs: Vec::new(), out }
    }

    fn run(&self, seed: u64, budget: u64) -> (Outcome, Vec<u8>) {
        let module = Module { target: Sm::SM_90A, kernels: vec![self.kernel.clone()] };
        let program = Program::new(&module, &self.kernel.name).unwrap_or_else(|e| panic!("{e}"));
        let mut memory = Memory::new();
        let add = |input: &Vec<u8>| memory.add("input", input, Access::Read).to_le_bytes().to_vec();
        let mut params: Vec<Vec<u8>> = self.inputs.iter().map(add).collect();
        let out = memory.add("out", &vec![0; self.out], Access::Write);
        params.push(out.to_le_bytes().to_vec());
        let run = Run {
            seed,
            budget,
            shared_bytes: self.shared,
            ..Run::new(&program, [self.blocks, 1, 1], params)
        };
        let outcome = run.execute(&memory).unwrap_or_else(|e| panic!("{e}"));
        (outcome, memory.bytes(out).expect("the region is there"))
    }

    /// The output, which is the same without a report for every seed.
    fn clean(&self) -> Vec<u8> {
        let (first, right) = self.run(0, 1 << 20);
        assert!(first.is_clean(), "{}", show(&first));
        for seed in SEEDS.skip(1) {
            let (outcome, out) = self.run(seed, 1 << 20);
            assert!(outcome.is_clean(), "seed {seed}: {}", show(&outcome));
            assert_eq!(out, right, "seed {seed}");
        }
        right
    }

    fn clean_u32(&self) -> Vec<u32> {
        words(&self.clean())
    }

    /// Every seed reports this kind; returns the first such report of the plain schedule.
    fn reports(&self, kind: ReportKind) -> super::Report {
        let mut first = None;
        for seed in SEEDS {
            let (outcome, _) = self.run(seed, 1 << 14);
            let found = outcome.reports.iter().find(|report| report.kind == kind);
            let found =
                found.unwrap_or_else(|| panic!("seed {seed}: no {}: {}", kind.name(), show(&outcome)));
            first.get_or_insert_with(|| found.clone());
        }
        first.expect("there is a seed")
    }
}

fn show(outcome: &Outcome) -> String {
    outcome.reports.iter().map(|report| format!("{report}\n")).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect()
}

fn bytes_of(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// A builder with `inputs` pointer parameters and one for the output, all loaded.
fn builder(threads: u32, inputs: usize) -> (FuncBuilder, Vec<Reg>) {
    let mut f = FuncBuilder::new("k", threads);
    let names = (0..=inputs).map(|i| format!("a{i}"));
    let params: Vec<u32> = names.map(|name| f.param(name, ParamKind::Scalar(Ty::U64))).collect();
    let pointers = params.iter().map(|&param| f.ld_param(Ty::U64, param)).collect();
    (f, pointers)
}

/// `base` plus `index` times `scale`.
fn at(f: &mut FuncBuilder, base: Reg, index: impl Into<Operand>, scale: i64) -> Addr {
    let wide = f.mul_wide_u32(index, Operand::Imm(scale));
    let address = f.add_s64(base, wide);
    let address = f.materialize(Ty::U64, address);
    Addr::reg(address, 0)
}

/// Stores a 32-bit value at the thread's place of the output.
fn put(f: &mut FuncBuilder, out: Reg, value: impl Into<Operand>) {
    let tid = f.special(SpecialReg::TidX);
    let address = at(f, out, tid, 4);
    f.st(Space::Global, Ty::B32, address, &[value.into()]);
}

/// A kernel of one warp whose lane i computes `body(input i)` from 32-bit inputs.
fn map(input: &[u32], body: impl FnOnce(&mut FuncBuilder, Reg) -> Operand) -> Vec<u32> {
    let (mut f, p) = builder(32, 1);
    let tid = f.special(SpecialReg::TidX);
    let address = at(&mut f, p[0], tid, 4);
    let x = f.ld(Space::Global, Ty::B32, address);
    let value = body(&mut f, x);
    put(&mut f, p[1], value);
    let mut input = input.to_vec();
    input.resize(32, 0);
    let case = Case { inputs: vec![bytes_of(input)], ..Case::new(f.finish(), 128) };
    case.clean_u32()
}

/// The bits of a 32-bit register as f32.
fn as_float(f: &mut FuncBuilder, x: Reg) -> Reg {
    let float = f.reg(RegClass::F32);
    f.mov_to(Ty::B32, float, x);
    float
}
