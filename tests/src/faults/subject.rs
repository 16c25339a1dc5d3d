//! A kernel with all that a launch of it needs, so that faults can be put into either.

use std::sync::Arc;

use tile_codegen::compile::Compiled;
use tile_codegen::dsl::Staged;
use tile_codegen::ir::LocId;
use tile_codegen::ptx::{Kernel, Module, Sm};
use tile_codegen::simt::{Access, Arg, Memory, Outcome, Program, Run, TensorMap};

/// Instructions that a run may take: a hundred times what the kernels need.
const BUDGET: u64 = 1 << 18;

/// One tensor, which is one parameter.
#[derive(Clone, Debug)]
pub struct Given {
    /// The bytes at the start.
    pub bytes: Vec<u8>,
    /// Extents, for compiled kernels.
    pub shape: Vec<u64>,
    /// What the kernel may do with it.
    pub access: Access,
    /// Whether the bytes count as written.
    pub written: bool,
    /// Passed in place of the address, with the address in it.
    pub map: Option<TensorMap>,
}

impl Given {
    /// An input.
    pub(super) fn input(bytes: Vec<u8>) -> Given {
        Given { bytes, shape: Vec::new(), access: Access::Read, written: true, map: None }
    }

    /// Memory that nobody has written.
    pub(super) fn output(bytes: usize) -> Given {
        Given { written: false, access: Access::Write, ..Given::input(vec![0; bytes]) }
    }

    pub(super) fn shaped(self, shape: &[u64]) -> Given {
        Given { shape: shape.to_vec(), ..self }
    }
}

/// Where a compiled kernel comes from.
#[derive(Clone)]
pub struct Origin {
    /// As the compiler left it.
    pub compiled: Arc<Compiled>,
    /// What it was compiled from.
    pub staged: Staged,
}

/// A kernel and its launch. The output is the last tensor that may be written.
#[derive(Clone)]
pub struct Subject {
    /// The kernel.
    pub kernel: Kernel,
    /// What it is for.
    pub target: Sm,
    /// Blocks along each axis.
    pub grid: [u32; 3],
    /// Bytes of dynamic shared memory; that of compiled kernels is known.
    pub shared: u32,
    /// The tensors, one for each parameter.
    pub tensors: Vec<Given>,
    /// None for kernels written as PTX.
    pub origin: Option<Origin>,
}

impl Subject {
    /// A kernel written as PTX, of one block, without dynamic shared memory.
    pub(super) fn new(kernel: Kernel, target: Sm, tensors: Vec<Given>) -> Subject {
        Subject { kernel, target, grid: [1; 3], shared: 0, tensors, origin: None }
    }

    /// The module that holds the kernel.
    pub fn module(&self) -> Module {
        Module { target: self.target, kernels: vec![self.kernel.clone()] }
    }

    /// What a schedule reports, and the output.
    ///
    /// # Errors
    /// If the kernel is malformed, or the launch does not fit it.
    pub fn run(&self, seed: u64) -> Result<(Outcome, Vec<u8>), String> {
        let program = Program::new(&self.module(), &self.kernel.name).map_err(|error| error.to_string())?;
        let mut memory = Memory::new();
        let mut output = 0;
        let mut args = Vec::new();
        let mut params = Vec::new();
        for given in &self.tensors {
            let written = vec![given.written; given.bytes.len()];
            let address = memory.add_partly("tensor", &given.bytes, given.access, &written);
            if given.access == Access::Write {
                output = address;
            }
            args.push(Arg::row_major(address, &given.shape));
            params.push(match &given.map {
                Some(map) => {
                    TensorMap { address, ..map.clone() }.encode().map_err(|error| error.to_string())?
                }
                None => address.to_le_bytes().to_vec(),
            });
        }
        let run = match &self.origin {
            Some(origin) => {
                Run::of(&program, &origin.compiled, &args, self.grid).map_err(|e| e.to_string())?
            }
            None => Run { shared_bytes: self.shared, ..Run::new(&program, self.grid, params) },
        };
        let outcome =
            Run { seed, budget: BUDGET, ..run }.execute(&memory).map_err(|error| error.to_string())?;
        Ok((outcome, memory.bytes(output).expect("there is an output")))
    }

    /// The line of the tile kernel behind a location.
    pub(super) fn source_line(&self, loc: u32) -> Option<&str> {
        let staged = &self.origin.as_ref()?.staged;
        let loc = staged.kernel.locs.get(LocId(loc))?;
        let source = staged.sources.iter().find(|source| source.contains(loc))?;
        source.text.lines().nth((loc.line - source.first_line) as usize)
    }
}
