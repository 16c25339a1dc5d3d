//! Tests of the staged language: kernels written as users write them, their values on the CPU, and their errors.

mod control;
mod errors;
mod operations;

use super::{KernelSource, Params, StageError, TensorMut, stage};
use crate::cpu::{Arg, Program, TileValue, VecMemory, run_grid};
use crate::ir::{Elem, Kernel, TensorFacts, verify::verify};
use crate::ops::TileOp;

/// What the attribute's expansion finds the language in.
mod rt {
    pub(crate) use crate::dsl::private as __private;
}

static HERE: KernelSource = KernelSource { file: file!(), first_line: 1, text: "", ranges: &[] };

/// Stages a kernel that has no faults.
fn staged(body: impl FnOnce(&mut Params)) -> Kernel {
    let kernel = stage("kernel", &HERE, body).unwrap_or_else(|e| panic!("{e}")).kernel;
    verify(&kernel).unwrap_or_else(|e| panic!("{e}\n{}", crate::ir::print::print(&kernel)));
    kernel
}

/// Stages a kernel that has faults.
fn refused(body: impl FnOnce(&mut Params)) -> StageError {
    stage("kernel", &HERE, body).expect_err("the kernel has a fault")
}

/// `code: message` of every fault, and the user's text that it stands under.
fn faults(error: &StageError) -> Vec<(String, String)> {
    error
        .diagnostics
        .iter()
        .map(|d| {
            let loc = d.loc.as_ref().expect("a fault has a place");
            let source =
                error.sources.iter().find(|s| s.contains(loc)).expect("the place is in a known function");
            let line = source.text.lines().nth((loc.line - source.first_line) as usize).expect("a line");
            let from = loc.column as usize - 1;
            let to = if loc.end_line == loc.line { loc.end_column as usize - 1 } else { line.len() };
            (format!("{}: {}", d.code, d.message), line[from..to].to_string())
        })
        .collect()
}

/// The names of all operations in program order.
fn names(kernel: &Kernel) -> Vec<&'static str> {
    let mut names = Vec::new();
    kernel.walk(|_, op| names.push(op.kind.name()));
    names
}

fn facts(rank: usize) -> TensorFacts {
    TensorFacts::contiguous(rank, 4)
}

/// Runs a kernel whose only tensor is an output of i32, over a grid of `blocks`, with i32 scalars.
fn run_ints(kernel: &Kernel, blocks: u32, len: usize, scalars: &[i32]) -> Vec<i64> {
    let out = VecMemory::ints(Elem::I32, &vec![-1; len]);
    let mut args = vec![Arg::Tensor(out.tensor(&[len as i64]))];
    args.extend(scalars.iter().map(|&x| Arg::Scalar(TileValue::scalar(Elem::I32, x))));
    let program = Program::new(kernel).unwrap_or_else(|e| panic!("{e}"));
    run_grid(&program, [blocks, 1, 1], &args).unwrap_or_else(|e| panic!("{e}"));
    out.to_ints()
}

/// As [`run_ints`], of f32 and without scalars.
fn run_floats(kernel: &Kernel, blocks: u32, len: usize) -> Vec<f32> {
    let out = VecMemory::floats(Elem::F32, &vec![-1.0; len]);
    let program = Program::new(kernel).unwrap_or_else(|e| panic!("{e}"));
    run_grid(&program, [blocks, 1, 1], &[Arg::Tensor(out.tensor(&[len as i64]))])
        .unwrap_or_else(|e| panic!("{e}"));
    out.to_floats()
}

fn out<T: super::Storable>(p: &mut Params) -> TensorMut<T, 1> {
    p.tensor_mut("out", facts(1))
}

/// What `bid` panics with where no kernel is staged.
fn quiet_bid() -> String {
    let panic = super::panics::quietly(|| std::panic::catch_unwind(|| super::prelude::bid(0).raw()));
    super::panics::describe(panic.expect_err("no kernel is staged")).message
}
