//! Runs a launch on the CPU: blocks in parallel, each on one thread.

use half::{bf16, f16};
use rayon::prelude::*;
use smallvec::SmallVec;
use tile_codegen::cpu::{self, ExecError, Program, TileValue};
use tile_codegen::ir::Elem;

use crate::args::{ArgList, ArgValue};
use crate::cpu_memory::CpuMemory;
use crate::error::{KernelError, Result};

/// Pieces of the grid for each thread, so that uneven blocks still fill all threads.
const PIECES: u64 = 8;

/// Runs all blocks of the kernel called `name`. The result does not depend on the number of threads.
///
/// # Errors
/// [`Error::Kernel`](crate::Error::Kernel) for a loop whose step is not positive, of the first block that meets one.
pub(crate) fn run(name: &str, program: &Program, args: &ArgList<'_>, grid: [u32; 3]) -> Result<()> {
    let memories: SmallVec<[CpuMemory<'_>; 8]> =
        args.tensors().map(|(_, arg)| CpuMemory::new(arg.host(), arg.tensor.elem())).collect();
    let mut memory = memories.iter();
    let values: SmallVec<[cpu::Arg<'_>; 8]> = args
        .runtime()
        .map(|arg| match &arg.value {
            ArgValue::Tensor(arg) => {
                let view = arg.tensor.view();
                cpu::Arg::Tensor(cpu::TensorArg {
                    memory: memory.next().expect("one for each tensor"),
                    offset: view.offset() as i64,
                    shape: view.shape().iter().map(|&extent| extent as i64).collect(),
                    strides: view.strides().to_vec(),
                })
            }
            ArgValue::Scalar { elem, bits } => cpu::Arg::Scalar(scalar(*elem, *bits)),
            ArgValue::Const(_) | ArgValue::Presence(_) => unreachable!("no runtime arguments"),
        })
        .collect();
    run_blocks(program, &values, grid).map_err(|error| KernelError::plain(name, "run on the CPU", &error))
}

fn run_blocks(program: &Program, args: &[cpu::Arg<'_>], grid: [u32; 3]) -> Result<(), ExecError> {
    let total: u64 = grid.iter().map(|&n| u64::from(n)).product();
    let threads = rayon::current_num_threads() as u64;
    if total == 1 || threads == 1 {
        return cpu::run_grid(program, grid, args);
    }
    let piece = total.div_ceil(threads * PIECES);
    let first_error = (0..total.div_ceil(piece))
        .into_par_iter()
        .map(|i| cpu::run_blocks(program, grid, args, i * piece..((i + 1) * piece).min(total)))
        .find_map_first(Result::err);
    first_error.map_or(Ok(()), Err)
}

/// The scalar of these bits; 16-bit floats are held as f32.
fn scalar(elem: Elem, bits: u64) -> TileValue {
    match elem {
        Elem::F32 | Elem::TF32 => TileValue::scalar(elem, f32::from_bits(bits as u32)),
        Elem::F16 => TileValue::scalar(elem, f16::from_bits(bits as u16).to_f32()),
        Elem::BF16 => TileValue::scalar(elem, bf16::from_bits(bits as u16).to_f32()),
        Elem::I32 => TileValue::scalar(elem, bits as i32),
        Elem::U32 => TileValue::scalar(elem, bits as u32),
        Elem::I64 => TileValue::scalar(elem, bits as i64),
        Elem::Bool => TileValue::scalar(elem, bits != 0),
    }
}
