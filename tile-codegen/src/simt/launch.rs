//! Launches of compiled kernels: the parameters that the compiler's slots ask for, from tensors and scalars.

use super::program::{Program, ProgramError};
use super::run::Run;
use super::tensor_map::{TensorMap, TensorMapError};
use crate::compile::Compiled;
use crate::lower::Slot;
use crate::lower::channels::MapPlan;

/// An argument of a launch, one for each parameter of the tile kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// A tensor in global memory.
    Tensor {
        /// The address of element (0, 0, ..).
        address: u64,
        /// Extents in elements.
        shape: Vec<u64>,
        /// Strides in elements; that of an axis of extent 1 is never used.
        strides: Vec<i64>,
    },
    /// A scalar by its bits, the lowest first (`bool` as 0 or 1).
    Scalar(u64),
}

impl Arg {
    /// A row-major tensor.
    pub fn row_major(address: u64, shape: &[u64]) -> Arg {
        let mut strides = vec![1i64; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis] as i64;
        }
        Arg::Tensor { address, shape: shape.to_vec(), strides }
    }
}

/// Why arguments do not fit a compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The argument of this number is missing or of another kind or rank.
    #[error("argument {param} is {found}, expected {expected}")]
    Argument {
        /// Its number.
        param: usize,
        /// What it is.
        found: &'static str,
        /// What the kernel takes.
        expected: &'static str,
    },
    /// A tensor that bulk tensor copies cannot address.
    #[error(transparent)]
    Map(#[from] TensorMapError),
}

impl Program {
    /// Prepares a compiled kernel.
    ///
    /// # Errors
    /// As [`Program::new`].
    pub fn of(compiled: &Compiled) -> Result<Program, ProgramError> {
        Program::new(&compiled.module, &compiled.entry)
    }
}

impl<'a> Run<'a> {
    /// The launch of a compiled kernel, whose `program` was made of the same `compiled`, over a grid of the tile language:
    /// blocks become one axis, x fastest.
    ///
    /// # Errors
    /// If the arguments do not fit the kernel.
    pub fn of(
        program: &'a Program,
        compiled: &Compiled,
        args: &[Arg],
        grid: [u32; 3],
    ) -> Result<Run<'a>, LaunchError> {
        let sizes = program.param_sizes();
        let mut params = Vec::new();
        for (&slot, &size) in compiled.slots.iter().zip(&sizes) {
            params.push(match slot {
                Slot::Map { map } => map_of(&compiled.maps[map], args)?.encode()?,
                _ => word(slot, args, grid)?.to_le_bytes()[..size as usize].to_vec(),
            });
        }
        let blocks = grid.iter().product();
        Ok(Run { shared_bytes: compiled.shared_bytes, ..Run::new(program, [blocks, 1, 1], params) })
    }
}

fn word(slot: Slot, args: &[Arg], grid: [u32; 3]) -> Result<u64, LaunchError> {
    match slot {
        Slot::Pointer { param } => tensor(args, param).map(|(address, ..)| address),
        Slot::Extent { param, axis } => {
            let (_, shape, _) = tensor(args, param)?;
            shape.get(axis).copied().ok_or_else(|| rank(param))
        }
        Slot::Stride { param, axis } => {
            let (_, shape, strides) = tensor(args, param)?;
            let (extent, stride) = shape.get(axis).zip(strides.get(axis)).ok_or_else(|| rank(param))?;
            Ok(if *extent == 1 { 0 } else { stride.cast_unsigned() })
        }
        Slot::Scalar { param } => match args.get(param) {
            Some(Arg::Scalar(bits)) => Ok(*bits),
            Some(Arg::Tensor { .. }) => Err(wrong(param, "a tensor", "a scalar")),
            None => Err(wrong(param, "missing", "a scalar")),
        },
        Slot::Blocks { axis } => Ok(u64::from(grid[axis])),
        Slot::Map { .. } => unreachable!("a tensor map is no word"),
    }
}

/// The tensor map of an argument.
fn map_of(plan: &MapPlan, args: &[Arg]) -> Result<TensorMap, LaunchError> {
    let (address, shape, strides) = tensor(args, plan.param)?;
    if shape.len() != plan.axes.len() || strides.len() != shape.len() {
        return Err(rank(plan.param));
    }
    Ok(TensorMap::of(plan, address, shape, strides))
}

fn tensor(args: &[Arg], param: usize) -> Result<(u64, &[u64], &[i64]), LaunchError> {
    match args.get(param) {
        Some(Arg::Tensor { address, shape, strides }) => Ok((*address, shape, strides)),
        Some(Arg::Scalar(_)) => Err(wrong(param, "a scalar", "a tensor")),
        None => Err(wrong(param, "missing", "a tensor")),
    }
}

fn rank(param: usize) -> LaunchError {
    wrong(param, "a tensor of lower rank", "a tensor of the kernel's rank")
}

fn wrong(param: usize, found: &'static str, expected: &'static str) -> LaunchError {
    LaunchError::Argument { param, found, expected }
}
