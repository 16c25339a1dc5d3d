//! Runs a launch on the PTX executor: on copies of the tensors, once for each seed, all of which must agree.

use half::bf16;
use rayon::prelude::*;
use tile_codegen::compile::Compiled;
use tile_codegen::dsl::Staged;
use tile_codegen::ir::Elem;
use tile_codegen::simt::{Access, Arg, Counts, Memory, Outcome, Program, Run};

use crate::args::{ArgList, ArgValue, TensorArg};
use crate::cpu_buffer::CpuBuffer;
use crate::device::Device;
use crate::error::{Error, KernelError, Result};
use crate::executor::{Executor, ExecutorError};

/// Parts that a grid is split into: a fixed number, so that reports do not depend on the machine.
const PARTS: u64 = 32;

/// A launch whose arguments and grid have been checked.
pub(crate) struct LaunchPtx<'a, 'b> {
    pub(crate) name: &'static str,
    pub(crate) device: &'a Device,
    pub(crate) executor: &'a Executor,
    pub(crate) staged: &'a Staged,
    pub(crate) compiled: &'a Compiled,
    /// Of the same kernel.
    pub(crate) program: &'a Program,
    pub(crate) args: &'a ArgList<'b>,
    pub(crate) grid: [u32; 3],
}

/// What the first seed gave.
struct First {
    seed: u64,
    bytes: Vec<Vec<u8>>,
    /// For each buffer which bytes were written, where that is not all.
    written: Vec<Option<Vec<bool>>>,
    counts: Counts,
}

impl LaunchPtx<'_, '_> {
    /// Runs all blocks with every seed, and then writes to the tensors.
    ///
    /// # Errors
    /// [`Error::Executor`] with every report of the first seed that has any, or if seeds differ.
    pub(crate) fn run(&self) -> Result<()> {
        let buffers = Buffer::all(self.args)?;
        let mut first: Option<First> = None;
        for &seed in &self.executor.options.seeds {
            let (memory, bases) = place(&buffers);
            let outcome = self.execute(&memory, self.values(&buffers, &bases), seed)?;
            if !outcome.is_clean() {
                let device = self.device.to_string();
                let error = ExecutorError::of(self.name, device, seed, self.staged, outcome.reports);
                return Err(Error::Executor(Box::new(error)));
            }
            let bytes: Vec<Vec<u8>> =
                bases.iter().map(|&base| memory.bytes(base).expect("a region of this memory")).collect();
            match &first {
                None => {
                    let written = bases.iter().map(|&base| memory.written(base)).collect();
                    first = Some(First { seed, bytes, written, counts: outcome.counts });
                }
                Some(first) => self.same(&buffers, first, seed, &bytes)?,
            }
        }
        let First { bytes, written, counts, .. } = first.expect("there is at least one seed");
        self.executor.add(&counts);
        for ((buffer, bytes), written) in buffers.iter().zip(&bytes).zip(&written) {
            if buffer.mutable {
                buffer.write_back(bytes)?;
                written.iter().for_each(|written| buffer.host.set_written(written));
            }
        }
        Ok(())
    }

    /// Runs all blocks: in parts in parallel, unless blocks may depend on each other.
    fn execute(&self, memory: &Memory, args: Vec<Arg>, seed: u64) -> Result<Outcome> {
        let program = self.program;
        let launch =
            Run::of(program, self.compiled, &args, self.grid).map_err(|error| self.refused(&error))?;
        let launch = Run { seed, budget: self.executor.options.budget, ..launch };
        let total: u64 = self.grid.iter().map(|&n| u64::from(n)).product();
        let part = if program.communicates() { total } else { total.div_ceil(PARTS) };
        let outcomes: Result<Vec<Outcome>> = (0..total.div_ceil(part))
            .into_par_iter()
            .map(|i| Run { blocks: Some(i * part..((i + 1) * part).min(total)), ..launch.clone() })
            .map(|run| run.execute(memory).map_err(|error| self.refused(&error)))
            .collect();
        Ok(joined(program, memory, outcomes?))
    }

    /// The arguments, with tensors where the executor's memory has them.
    fn values(&self, buffers: &[Buffer<'_>], bases: &[u64]) -> Vec<Arg> {
        let address = |arg: &TensorArg<'_>| {
            let at = buffers.iter().position(|buffer| buffer.holds(arg)).expect("every buffer is there");
            bases[at] + (arg.tensor.view().offset() * arg.tensor.elem().bytes()) as u64
        };
        let values = self.args.runtime().map(|arg| match &arg.value {
            ArgValue::Tensor(arg) => Arg::Tensor {
                address: address(arg),
                shape: arg.tensor.shape().iter().map(|&extent| extent as u64).collect(),
                strides: arg.tensor.strides().to_vec(),
            },
            ArgValue::Scalar { bits, .. } => Arg::Scalar(*bits),
            ArgValue::Const(_) | ArgValue::Presence(_) => unreachable!("no runtime arguments"),
        });
        values.collect()
    }

    /// Checks that a seed gave what the first one did.
    fn same(&self, buffers: &[Buffer<'_>], first: &First, seed: u64, bytes: &[Vec<u8>]) -> Result<()> {
        for ((buffer, before), now) in buffers.iter().zip(&first.bytes).zip(bytes) {
            if before == now {
                continue;
            }
            let size = buffer.elem.bytes();
            let pairs = || before.chunks(size).zip(now.chunks(size));
            let count = pairs().filter(|(a, b)| a != b).count();
            let at = pairs().position(|(a, b)| a != b).expect("the bytes differ");
            let (a, b) = pairs().nth(at).expect("a position");
            let text = format!(
                "error: seed {} gives other results: {count} elements of the memory of `{}` differ; the first is element \
                 {at}, {} and now {}",
                first.seed,
                buffer.name,
                show(buffer.elem, a),
                show(buffer.elem, b),
            );
            return Err(Error::Executor(Box::new(ExecutorError {
                kernel: self.name.to_owned(),
                device: self.device.to_string(),
                seed,
                reports: Vec::new(),
                text,
            })));
        }
        Ok(())
    }

    fn refused(&self, error: &dyn std::fmt::Display) -> Error {
        KernelError::plain(self.name, "run on the PTX executor", error)
    }
}

/// Joins the outcomes of parts in pairs, which looks at each access about as often as a tree is deep.
fn joined(program: &Program, memory: &Memory, mut outcomes: Vec<Outcome>) -> Outcome {
    while outcomes.len() > 1 {
        let mut rest = outcomes.into_iter();
        let mut halved = Vec::new();
        while let Some(mut outcome) = rest.next() {
            if let Some(next) = rest.next() {
                outcome.join(program, memory, next);
            }
            halved.push(outcome);
        }
        outcomes = halved;
    }
    outcomes.pop().expect("a grid has at least one part")
}

/// The executor's memory with a copy of every buffer, and their addresses there.
fn place(buffers: &[Buffer<'_>]) -> (Memory, Vec<u64>) {
    let mut memory = Memory::new();
    let bases = buffers.iter().map(|buffer| {
        let access = if buffer.mutable { Access::Write } else { Access::Read };
        match buffer.host.written() {
            None => memory.add(buffer.name, &buffer.bytes, access),
            Some(written) => memory.add_partly(buffer.name, &buffer.bytes, access, &written),
        }
    });
    let bases = bases.collect();
    (memory, bases)
}

/// Memory that tensors of the launch lie in.
struct Buffer<'a> {
    /// The parameter whose tensor came first.
    name: &'static str,
    host: &'a CpuBuffer,
    elem: Elem,
    mutable: bool,
    bytes: Vec<u8>,
}

impl<'a> Buffer<'a> {
    /// The buffers of all tensors, each once.
    fn all(args: &'a ArgList<'_>) -> Result<Vec<Buffer<'a>>> {
        let mut buffers: Vec<Buffer<'a>> = Vec::new();
        for (name, arg) in args.tensors() {
            match buffers.iter_mut().find(|buffer| buffer.holds(&arg)) {
                Some(buffer) => buffer.mutable |= arg.mutable,
                None => {
                    let (host, elem, mutable) = (arg.host(), arg.tensor.elem(), arg.mutable);
                    buffers.push(Buffer { name, host, elem, mutable, bytes: bytes_of(host, elem)? });
                }
            }
        }
        Ok(buffers)
    }

    fn holds(&self, arg: &TensorArg<'_>) -> bool {
        std::ptr::eq(self.host, arg.host())
    }

    fn write_back(&self, bytes: &[u8]) -> Result<()> {
        let host = self.host;
        match self.elem.bytes() {
            1 => host.store_run(0, 1, &bytes.iter().map(|&byte| byte != 0).collect::<Vec<_>>()),
            2 => host.store_run(0, 1, &elements(bytes, bf16::from_le_bytes)),
            4 => host.store_run(0, 1, &elements(bytes, u32::from_le_bytes)),
            _ => host.store_run(0, 1, &elements(bytes, i64::from_le_bytes)),
        }
    }
}

/// The bytes of a buffer, little-endian. Accesses have the size of its elements, as all accesses to a buffer must.
fn bytes_of(host: &CpuBuffer, elem: Elem) -> Result<Vec<u8>> {
    let count = host.bytes() / elem.bytes();
    Ok(match elem.bytes() {
        1 => loaded(host, vec![false; count])?.into_iter().map(u8::from).collect(),
        2 => loaded(host, vec![bf16::ZERO; count])?.into_iter().flat_map(bf16::to_le_bytes).collect(),
        4 => loaded(host, vec![0u32; count])?.into_iter().flat_map(u32::to_le_bytes).collect(),
        _ => loaded(host, vec![0i64; count])?.into_iter().flat_map(i64::to_le_bytes).collect(),
    })
}

fn loaded<T: crate::Element>(host: &CpuBuffer, mut all: Vec<T>) -> Result<Vec<T>> {
    host.load_run(0, 1, &mut all)?;
    Ok(all)
}

fn elements<T, const N: usize>(bytes: &[u8], of: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.chunks_exact(N).map(|chunk| of(chunk.try_into().expect("of this size"))).collect()
}

/// An element in words.
fn show(elem: Elem, bytes: &[u8]) -> String {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(word);
    match elem {
        Elem::F32 | Elem::TF32 => f32::from_bits(bits as u32).to_string(),
        Elem::F16 => half::f16::from_bits(bits as u16).to_string(),
        Elem::BF16 => bf16::from_bits(bits as u16).to_string(),
        Elem::I32 => (bits as u32).cast_signed().to_string(),
        Elem::U32 => bits.to_string(),
        Elem::I64 => bits.cast_signed().to_string(),
        Elem::Bool => (bits != 0).to_string(),
    }
}
