//! Compiled kernels on the executor, the CPU and in f64: three answers that agree, on every schedule.

use half::{bf16, f16};

use super::{SEEDS, show};
use crate::compile::{Compiled, compile};
use crate::config::Config;
use crate::cpu::{self, TensorArg, VecMemory};
use crate::dsl::prelude::*;
use crate::dsl::{KernelSource, Params, stage};
use crate::ir::{Elem, Kernel, TensorFacts, verify::verify};
use crate::simt::{Access, Arg, Memory, Program, Run};
use crate::target::Target;

static HERE: KernelSource = KernelSource { file: file!(), first_line: 1, text: "", ranges: &[] };

pub(super) fn staged(body: impl FnOnce(&mut Params)) -> Kernel {
    let kernel = stage("kernel", &HERE, body).unwrap_or_else(|e| panic!("{e}")).kernel;
    verify(&kernel).unwrap_or_else(|e| panic!("{e}"));
    kernel
}

fn compiled(kernel: &Kernel, num_warps: Option<usize>) -> Compiled {
    compile(kernel, &Target::SM_80, &Config { num_warps, ..Config::default() })
        .unwrap_or_else(|e| panic!("{e}"))
}

/// Numbers that look random, in -1..1; the same on every call.
pub(super) fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

pub(super) struct Tensor {
    pub(super) elem: Elem,
    pub(super) shape: Vec<i64>,
    pub(super) values: Vec<f32>,
}

impl Tensor {
    pub(super) fn noise(elem: Elem, shape: &[i64], seed: u64) -> Tensor {
        let values = noise(shape.iter().product::<i64>() as usize, seed);
        let values = values.into_iter().map(|x| cpu::round::value(elem, x)).collect();
        Tensor { elem, shape: shape.to_vec(), values }
    }

    fn bytes(&self) -> Vec<u8> {
        let all = self.values.iter();
        match self.elem {
            Elem::BF16 => all.flat_map(|&x| bf16::from_f32(x).to_le_bytes()).collect(),
            Elem::F16 => all.flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect(),
            _ => all.flat_map(|&x| x.to_le_bytes()).collect(),
        }
    }
}

fn facts(rank: usize, bytes: usize) -> TensorFacts {
    TensorFacts::contiguous(rank, bytes)
}

/// The f32 output of shape `out` on the CPU target.
pub(super) fn on_cpu(kernel: &Kernel, inputs: &[Tensor], out: &[i64], grid: [u32; 3]) -> Vec<f32> {
    let memories: Vec<VecMemory> = inputs.iter().map(|t| VecMemory::floats(t.elem, &t.values)).collect();
    let result = VecMemory::floats(Elem::F32, &vec![0.0; out.iter().product::<i64>() as usize]);
    let tensors = memories.iter().zip(inputs).map(|(memory, t)| memory.tensor(&t.shape));
    let tensors: Vec<TensorArg<'_>> = tensors.chain([result.tensor(out)]).collect();
    let args: Vec<cpu::Arg<'_>> = tensors.into_iter().map(cpu::Arg::Tensor).collect();
    let program = cpu::Program::new(kernel).unwrap_or_else(|e| panic!("{e}"));
    cpu::run_grid(&program, grid, &args).unwrap_or_else(|e| panic!("{e}"));
    result.to_floats()
}

/// The f32 output on the executor, the same without a report for every seed.
pub(super) fn on_ptx(compiled: &Compiled, inputs: &[Tensor], out: &[i64], grid: [u32; 3]) -> Vec<f32> {
    let program = Program::of(compiled).unwrap_or_else(|e| panic!("{e}"));
    let extents = |shape: &[i64]| shape.iter().map(|&n| n as u64).collect::<Vec<_>>();
    let mut right: Option<Vec<f32>> = None;
    for seed in SEEDS {
        let mut memory = Memory::new();
        let mut args: Vec<Arg> = Vec::new();
        for tensor in inputs {
            let address = memory.add("input", &tensor.bytes(), Access::Read);
            args.push(Arg::row_major(address, &extents(&tensor.shape)));
        }
        let result = memory.add_uninit("out", 4 * out.iter().product::<i64>() as usize);
        args.push(Arg::row_major(result, &extents(out)));
        let run = Run::of(&program, compiled, &args, grid).unwrap_or_else(|e| panic!("{e}"));
        let outcome = Run { seed, ..run }.execute(&memory).unwrap_or_else(|e| panic!("{e}"));
        assert!(outcome.is_clean(), "seed {seed}: {}\n{}", show(&outcome), compiled.ptx);
        let bytes = memory.bytes(result).expect("the region is there");
        let values: Vec<f32> = super::words(&bytes).into_iter().map(f32::from_bits).collect();
        let first = right.get_or_insert_with(|| values.clone());
        let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(first), bits(&values), "seed {seed}");
    }
    right.expect("there is a seed")
}

/// Both agree with `right` within `tolerance`, absolute and relative.
fn agree(
    kernel: &Kernel,
    warps: Option<usize>,
    inputs: &[Tensor],
    out: &[i64],
    grid: u32,
    right: &[f64],
    tolerance: f64,
) {
    let grid = [grid, 1, 1];
    let compiled = compiled(kernel, warps);
    for values in [on_cpu(kernel, inputs, out, grid), on_ptx(&compiled, inputs, out, grid)] {
        assert_eq!(values.len(), right.len());
        for (at, (&found, &right)) in values.iter().zip(right).enumerate() {
            let error = (f64::from(found) - right).abs();
            assert!(error <= tolerance * (1.0 + right.abs()), "element {at}: {found} is not {right}");
        }
    }
}

#[test]
fn vector_add_with_a_tail() {
    let kernel = staged(|p| {
        let (x, y) = (p.tensor::<f32, 1>("x", facts(1, 4)), p.tensor::<f32, 1>("y", facts(1, 4)));
        let out = p.tensor_mut::<f32, 1>("out", facts(1, 4));
        store(out, (bid(0),), load(x, (bid(0),), (256,)) + load(y, (bid(0),), (256,)));
    });
    let inputs = [Tensor::noise(Elem::F32, &[1000], 1), Tensor::noise(Elem::F32, &[1000], 2)];
    let sum = |i: usize| f64::from(inputs[0].values[i] + inputs[1].values[i]);
    let right: Vec<f64> = (0..1000).map(sum).collect();
    agree(&kernel, None, &inputs, &[1000], 4, &right, 0.0);
}

#[test]
fn softmax_of_rows() {
    let kernel = staged(|p| {
        let x = p.tensor::<bf16, 2>("x", facts(2, 2));
        let out = p.tensor_mut::<f32, 2>("out", facts(2, 4));
        let x = load(x, (bid(0), 0), (4, 128)).cast::<f32>();
        let e = (x - x.max_keepdims(1)).exp();
        store(out, (bid(0), 0), e / e.sum_keepdims(1));
    });
    let input = Tensor::noise(Elem::BF16, &[8, 128], 3);
    let row = |r: usize| {
        let e: Vec<f64> = input.values[r * 128..][..128].iter().map(|&x| f64::from(x).exp()).collect();
        let sum: f64 = e.iter().sum();
        e.into_iter().map(move |e| e / sum)
    };
    let right: Vec<f64> = (0..8).flat_map(row).collect();
    agree(&kernel, None, &[input], &[8, 128], 2, &right, 1e-6);
}

#[test]
fn running_sums_across_warps() {
    let kernel = staged(|p| {
        let x = p.tensor::<f32, 2>("x", facts(2, 4));
        let out = p.tensor_mut::<f32, 2>("out", facts(2, 4));
        store(out, (0, 0), load(x, (0, 0), (2, 512)).cumsum(1));
    });
    let input = Tensor::noise(Elem::F32, &[2, 512], 4);
    let sums = |r: usize| {
        input.values[r * 512..][..512].iter().scan(0.0, |sum, &x| {
            *sum += f64::from(x);
            Some(*sum)
        })
    };
    let right: Vec<f64> = (0..2).flat_map(sums).collect();
    agree(&kernel, Some(4), &[input], &[2, 512], 1, &right, 1e-5);
}

/// `a` times `b`, transposed where the kernel says so, plus nothing.
fn product<T: MmaOperand + Storable>(elem: Elem, [m, k, n]: [usize; 3], warps: usize, transposed: bool) {
    let bytes = if elem == Elem::F32 { 4 } else { 2 };
    let kernel = staged(|p| {
        let (a, b) = (p.tensor::<T, 2>("a", facts(2, bytes)), p.tensor::<T, 2>("b", facts(2, bytes)));
        let out = p.tensor_mut::<f32, 2>("out", facts(2, 4));
        let (a, acc) = (load(a, (0, 0), (m, k)), zeros::<f32>((m, n)));
        let b = if transposed { load(b, (0, 0), (n, k)).transpose() } else { load(b, (0, 0), (k, n)) };
        store(out, (0, 0), mma(a, b, acc));
    });
    let (rows, columns) = if transposed { (n, k) } else { (k, n) };
    let inputs = [
        Tensor::noise(elem, &[m as i64, k as i64], 5),
        Tensor::noise(elem, &[rows as i64, columns as i64], 6),
    ];
    let [a, b] = [0, 1].map(|i| &inputs[i].values);
    let term = |i: usize, j: usize, p: usize| {
        f64::from(a[i * k + p]) * f64::from(if transposed { b[j * k + p] } else { b[p * n + j] })
    };
    let right: Vec<f64> = (0..m * n).map(|at| (0..k).map(|p| term(at / n, at % n, p)).sum()).collect();
    agree(&kernel, Some(warps), &inputs, &[m as i64, n as i64], 1, &right, 1e-5);
}

#[test]
fn products_of_16_bit_floats() {
    product::<bf16>(Elem::BF16, [16, 16, 8], 1, false);
    product::<bf16>(Elem::BF16, [64, 32, 64], 4, false);
    product::<f16>(Elem::F16, [32, 64, 16], 2, true);
    product::<f16>(Elem::F16, [64, 64, 128], 4, false);
}

#[test]
fn products_of_f32() {
    product::<f32>(Elem::F32, [32, 16, 32], 2, false);
    product::<f32>(Elem::F32, [16, 32, 64], 4, true);
}

#[test]
fn products_of_tf32() {
    let kernel = staged(|p| {
        let (a, b) = (p.tensor::<f32, 2>("a", facts(2, 4)), p.tensor::<f32, 2>("b", facts(2, 4)));
        let out = p.tensor_mut::<f32, 2>("out", facts(2, 4));
        let (a, b) = (load(a, (0, 0), (32, 32)).cast::<tf32>(), load(b, (0, 0), (32, 16)).cast::<tf32>());
        store(out, (0, 0), mma(a, b, zeros::<f32>((32, 16))));
    });
    let inputs = [Tensor::noise(Elem::F32, &[32, 32], 7), Tensor::noise(Elem::F32, &[32, 16], 8)];
    // 10 bits of mantissa, ties away from zero.
    let round = |x: f32| f64::from(f32::from_bits((x.to_bits() + 0x1000) & 0xffff_e000));
    let term = |i: usize, j: usize, p: usize| {
        round(inputs[0].values[i * 32 + p]) * round(inputs[1].values[p * 16 + j])
    };
    let right: Vec<f64> = (0..512).map(|at| (0..32).map(|p| term(at / 16, at % 16, p)).sum()).collect();
    agree(&kernel, Some(2), &inputs, &[32, 16], 1, &right, 1e-5);
}

#[test]
fn loops_with_carried_tiles() {
    let kernel = staged(|p| {
        let (a, b) = (p.tensor::<bf16, 2>("a", facts(2, 2)), p.tensor::<bf16, 2>("b", facts(2, 2)));
        let out = p.tensor_mut::<f32, 2>("out", facts(2, 4));
        let mut acc = zeros::<f32>((32, 32));
        for i in unroll(0..3) {
            acc = mma(load(a, (0, i), (32, 16)), load(b, (i, 0), (16, 32)), acc);
        }
        store(out, (0, 0), acc.exp2() * 0.5);
    });
    // 40 of 48 columns exist: the others count as zero.
    let inputs = [Tensor::noise(Elem::BF16, &[32, 40], 9), Tensor::noise(Elem::BF16, &[40, 32], 10)];
    let term = |i: usize, j: usize, p: usize| {
        f64::from(inputs[0].values[i * 40 + p]) * f64::from(inputs[1].values[p * 32 + j])
    };
    let sum = |at: usize| (0..40).map(|p| term(at / 32, at % 32, p)).sum::<f64>();
    let right: Vec<f64> = (0..1024).map(|at| sum(at).exp2() * 0.5).collect();
    agree(&kernel, Some(4), &inputs, &[32, 32], 1, &right, 1e-5);
}
