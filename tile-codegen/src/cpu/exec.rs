//! Runs blocks: a position in the instructions, slots with values, loop counters. Nothing lives on the machine stack,
//! so that a block can stop after any instruction and go on later.

use std::ops::Range;

use smallvec::SmallVec;

use super::error::ExecError;
use super::memory::TensorArg;
use super::program::{Instr, Program, Step, Use};
use super::value::TileValue;
use crate::ir::Elem;
use crate::ops::eval::{Eval, EvalCx, Operand, Operands};

/// An argument of a launch.
#[derive(Clone)]
pub enum Arg<'a> {
    /// A tensor.
    Tensor(TensorArg<'a>),
    /// A scalar: a tile of rank 0.
    Scalar(TileValue),
}

impl Arg<'_> {
    /// What the argument is, as messages show it.
    pub(crate) fn show(&self) -> String {
        match self {
            Arg::Tensor(t) => format!("a tensor of `{}` of rank {}", t.memory.elem(), t.shape.len()),
            Arg::Scalar(x) if x.shape().is_empty() => format!("a scalar `{}`", x.elem()),
            Arg::Scalar(x) => format!("a tile {}", x.ty()),
        }
    }
}

/// How far a block came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It has ended.
    Done,
    /// It has used up the budget of instructions; run it again to go on.
    Budget,
}

/// The state of a `for`: wide enough that no index type overflows.
#[derive(Clone, Copy, Default, Debug)]
struct Counter {
    next: i128,
    high: i128,
    step: i128,
}

/// The execution of one block.
pub struct BlockRun<'a> {
    program: &'a Program,
    args: &'a [Arg<'a>],
    cx: EvalCx,
    position: usize,
    slots: Vec<Option<Operand<'a>>>,
    counters: Vec<Counter>,
}

impl<'a> BlockRun<'a> {
    /// Prepares a block.
    ///
    /// # Errors
    /// If the arguments do not fit the parameters, or the block lies outside the grid.
    pub fn new(
        program: &'a Program,
        args: &'a [Arg<'a>],
        grid: [u32; 3],
        block: u64,
    ) -> Result<Self, ExecError> {
        program.check(args)?;
        let mut run = Self {
            program,
            args,
            cx: EvalCx { block: [0; 3], grid },
            position: 0,
            slots: Vec::new(),
            counters: vec![Counter::default(); program.counters],
        };
        run.restart(block)?;
        Ok(run)
    }

    /// Turns to the beginning of another block of the same launch.
    ///
    /// # Errors
    /// If the block lies outside the grid.
    pub fn restart(&mut self, block: u64) -> Result<(), ExecError> {
        self.cx.block = block_of(self.cx.grid, block)?;
        self.position = 0;
        self.slots.clear();
        self.slots.resize(self.program.slots, None);
        for (slot, value) in &self.program.constants {
            self.slots[*slot as usize] = Some(Operand::Tile(value.clone()));
        }
        for ((_, slot, _), arg) in self.program.params.iter().zip(self.args) {
            if let Some(slot) = slot {
                self.slots[*slot as usize] = Some(match arg {
                    Arg::Tensor(tensor) => Operand::Tensor(tensor),
                    Arg::Scalar(value) => Operand::Tile(value.clone()),
                });
            }
        }
        Ok(())
    }

    /// Runs at most `budget` instructions, or without limit.
    ///
    /// # Errors
    /// If a loop's step is not positive.
    pub fn run(&mut self, budget: Option<u64>) -> Result<Progress, ExecError> {
        let mut left = budget.unwrap_or(u64::MAX);
        while left > 0 {
            if self.step()? == Progress::Done {
                return Ok(Progress::Done);
            }
            left -= u64::from(budget.is_some());
        }
        Ok(Progress::Budget)
    }

    /// Runs one instruction.
    ///
    /// # Errors
    /// If a loop's step is not positive.
    pub fn step(&mut self) -> Result<Progress, ExecError> {
        let program: &'a Program = self.program;
        let Instr { step, drops } = &program.code[self.position];
        drops.iter().for_each(|&slot| self.slots[slot as usize] = None);
        self.position += 1;
        match step {
            Step::Eval { op, operands, result } => {
                let operands = operands.iter().map(|&read| self.read(read)).collect();
                let value = op.eval(self.cx, &mut Operands::new(operands));
                if let (Some(slot), Some(value)) = (result, value) {
                    self.slots[*slot as usize] = Some(Operand::Tile(value));
                }
            }
            Step::Jump { from, to, target } => {
                let values: SmallVec<[Operand<'a>; 4]> = from.iter().map(|&read| self.read(read)).collect();
                to.iter().zip(values).for_each(|(&to, value)| self.slots[to as usize] = Some(value));
                self.position = *target as usize;
            }
            Step::Branch { condition, otherwise } => {
                let holds = self.tile(*condition).as_bool().expect("the verifier checks conditions");
                if !holds {
                    self.position = *otherwise as usize;
                }
            }
            Step::ForInit { counter, bounds } => {
                let [low, high, step] = bounds.map(|read| {
                    self.tile(read).as_int().expect("the verifier checks that bounds are integers")
                });
                if step <= 0 {
                    return Err(ExecError::LoopStep { found: step });
                }
                self.counters[*counter as usize] =
                    Counter { next: low.into(), high: high.into(), step: step.into() };
            }
            Step::ForNext { counter, index, elem, exit } => {
                let counter = &mut self.counters[*counter as usize];
                if counter.next < counter.high {
                    self.slots[*index as usize] =
                        Some(Operand::Tile(index_value(*elem, counter.next as i64)));
                    counter.next += counter.step;
                } else {
                    self.position = *exit as usize;
                }
            }
            Step::Halt => {
                self.position -= 1;
                return Ok(Progress::Done);
            }
        }
        Ok(Progress::Budget)
    }

    fn read(&mut self, read: Use) -> Operand<'a> {
        let slot = &mut self.slots[read.slot as usize];
        let value = if read.last { slot.take() } else { slot.clone() };
        value.expect("the verifier checks that every use follows its definition")
    }

    fn tile(&mut self, read: Use) -> TileValue {
        match self.read(read) {
            Operand::Tile(tile) => tile,
            Operand::Tensor(_) => unreachable!("the verifier asks for a scalar here"),
        }
    }
}

fn index_value(elem: Elem, index: i64) -> TileValue {
    match elem {
        Elem::I32 => TileValue::scalar(elem, index as i32),
        Elem::U32 => TileValue::scalar(elem, index as u32),
        Elem::I64 => TileValue::scalar(elem, index),
        Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::Bool => {
            unreachable!("the verifier checks that a loop index is an integer")
        }
    }
}

/// The three-dimensional index of a block; axis 0 runs fastest.
///
/// # Errors
/// If the block lies outside the grid.
pub fn block_of(grid: [u32; 3], block: u64) -> Result<[u32; 3], ExecError> {
    let [x, y, z] = grid.map(u64::from);
    let count = x.saturating_mul(y).saturating_mul(z);
    if block >= count {
        return Err(ExecError::BlockIndex { block, count });
    }
    Ok([(block % x) as u32, (block / x % y) as u32, (block / (x * y)) as u32])
}

impl Program {
    /// Runs one block to its end; blocks may run on several threads at once.
    ///
    /// # Errors
    /// If the arguments do not fit, the block lies outside the grid, or a loop's step is not positive.
    pub fn run_block(&self, args: &[Arg<'_>], grid: [u32; 3], block: u64) -> Result<(), ExecError> {
        run_blocks(self, grid, args, block..block.saturating_add(1))
    }
}

/// Runs a range of blocks, one after the other.
///
/// # Errors
/// If the arguments do not fit, a block lies outside the grid, or a loop's step is not positive.
pub fn run_blocks(
    program: &Program,
    grid: [u32; 3],
    args: &[Arg<'_>],
    blocks: Range<u64>,
) -> Result<(), ExecError> {
    program.check(args)?;
    if blocks.is_empty() {
        return Ok(());
    }
    let mut run = BlockRun::new(program, args, grid, blocks.start)?;
    run.run(None)?;
    for block in blocks.start + 1..blocks.end {
        run.restart(block)?;
        run.run(None)?;
    }
    Ok(())
}

/// Runs all blocks of a grid, one after the other; none if an axis is 0.
///
/// # Errors
/// If the arguments do not fit or a loop's step is not positive.
pub fn run_grid(program: &Program, grid: [u32; 3], args: &[Arg<'_>]) -> Result<(), ExecError> {
    let [x, y, z] = grid.map(u64::from);
    run_blocks(program, grid, args, 0..x.saturating_mul(y).saturating_mul(z))
}
