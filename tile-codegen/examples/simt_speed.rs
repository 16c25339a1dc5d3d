//! How fast the executor runs: a tiled bf16 product like those of Mamba-2, with its counts.
//!
//! `cargo run --release -p tile-codegen --example simt_speed [BLOCKS]`

use std::time::Instant;

use tile_codegen::compile::compile;
use tile_codegen::config::Config;
use tile_codegen::dsl::prelude::*;
use tile_codegen::dsl::{KernelSource, stage};
use tile_codegen::ir::{TensorFacts, verify};
use tile_codegen::simt::{Access, Arg, Memory, Program, Run};
use tile_codegen::target::Target;

static HERE: KernelSource = KernelSource { file: file!(), first_line: 1, text: "", ranges: &[] };
/// Steps of 64 along the shared axis in each block.
const DEPTH: usize = 8;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let blocks: u32 = std::env::args().nth(1).map_or(Ok(64), |blocks| blocks.parse())?;
    let facts =
        |bytes| TensorFacts { align: 16, stride_align: vec![16; 2], ..TensorFacts::contiguous(2, bytes) };
    let kernel = stage("product", &HERE, |p| {
        let (a, b) = (p.tensor::<bf16, 2>("a", facts(2)), p.tensor::<bf16, 2>("b", facts(2)));
        let out = p.tensor_mut::<f32, 2>("out", facts(4));
        let mut acc = zeros::<f32>((64, 64));
        for i in unroll(0..DEPTH) {
            let (a, b) = (load(a, (bid(0), i), (64, 64)), load(b, (i, 0), (64, 64)));
            acc = mma(a, b, acc * 0.5);
        }
        store(out, (bid(0), 0), acc);
    })?
    .kernel;
    verify(&kernel)?;
    let compiled = compile(&kernel, &Target::SM_80, &Config::default())?;
    let program = Program::of(&compiled)?;
    let (rows, depth) = (64 * u64::from(blocks), 64 * DEPTH as u64);
    let mut memory = Memory::new();
    let a = memory.add("a", &vec![0x3d; 2 * (rows * depth) as usize], Access::Read);
    let b = memory.add("b", &vec![0x3d; 2 * (depth * 64) as usize], Access::Read);
    let out = memory.add_uninit("out", 4 * 64 * rows as usize);
    let args = [
        Arg::row_major(a, &[rows, depth]),
        Arg::row_major(b, &[depth, 64]),
        Arg::row_major(out, &[rows, 64]),
    ];
    let run = Run::of(&program, &compiled, &args, [blocks, 1, 1])?;
    let start = Instant::now();
    let outcome = run.execute(&memory)?;
    let seconds = start.elapsed().as_secs_f64();
    outcome.reports.iter().for_each(|report| println!("{report}"));
    println!("{}", outcome.counts);
    println!(
        "{seconds:.2} s: {:.2} million instructions of warps a second, {:.3} GFLOP of products a second",
        outcome.counts.total() as f64 / seconds / 1e6,
        outcome.counts.matrix_flops as f64 / seconds / 1e9
    );
    Ok(())
}
