//! A kernel prepared for the CPU: a flat list of instructions over numbered slots, in which control flow is jumps, so
//! that a block's state is one position and its slots.

use smallvec::SmallVec;

use super::error::{ExecError, show};
use super::exec::Arg;
use super::liveness;
use super::value::TileValue;
use crate::ir::{Elem, Kernel, Op, RegionId, Type, ValueId};
use crate::ops::eval::{Eval, EvalCx, Operand, Operands};
use crate::ops::{Effects, OpKind, TileOp};

/// A read of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) slot: u32,
    /// Whether the value is not needed afterwards, so that it is moved out.
    pub(crate) last: bool,
}

pub(crate) type Uses = SmallVec<[Use; 4]>;

/// One instruction.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Evaluates an operation.
    Eval { op: OpKind, operands: Uses, result: Option<u32> },
    /// Copies values, all at once, and continues at `target`.
    Jump { from: Uses, to: SmallVec<[u32; 4]>, target: u32 },
    /// Continues at `otherwise` unless the condition holds.
    Branch { condition: Use, otherwise: u32 },
    /// Sets counter `counter` to the bounds `low`, `high`, `step`.
    ForInit { counter: u32, bounds: [Use; 3] },
    /// Puts the next index into a slot, or continues at `exit` if there is none.
    ForNext { counter: u32, index: u32, elem: Elem, exit: u32 },
    /// The block is done.
    Halt,
}

/// An instruction with what is known of slots around it.
#[derive(Clone, Debug)]
pub(crate) struct Instr {
    pub(crate) step: Step,
    /// Slots to clear before it: values that only the path not taken would have used.
    pub(crate) drops: SmallVec<[u32; 2]>,
}

/// A kernel prepared for running on the CPU; its many blocks share it.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) name: String,
    pub(crate) code: Vec<Instr>,
    pub(crate) slots: usize,
    pub(crate) counters: usize,
    /// Values that are the same in every block, evaluated once.
    pub(crate) constants: Vec<(u32, TileValue)>,
    /// For each parameter its name, slot and type; the slot is `None` if nothing reads it.
    pub(crate) params: Vec<(String, Option<u32>, Type)>,
}

impl Program {
    /// Prepares a kernel of either stage that the verifier has accepted.
    ///
    /// # Errors
    /// If a value was refused while the kernel was built.
    pub fn new(kernel: &Kernel) -> Result<Program, ExecError> {
        let mut compiler = Compiler::new(kernel);
        compiler.region(kernel.body)?;
        compiler.emit(Step::Halt);
        Ok(compiler.finish())
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks arguments against the parameters.
    ///
    /// # Errors
    /// If their number, element types or ranks differ.
    pub fn check(&self, args: &[Arg<'_>]) -> Result<(), ExecError> {
        if args.len() != self.params.len() {
            return Err(ExecError::ArgumentCount {
                kernel: self.name.clone(),
                expected: self.params.len(),
                found: args.len(),
            });
        }
        for ((name, _, ty), arg) in self.params.iter().zip(args) {
            let fits = match (ty, arg) {
                (Type::Tensor(ty), Arg::Tensor(arg)) => {
                    ty.elem == arg.memory.elem() && ty.rank == arg.shape.len() && ty.rank == arg.strides.len()
                }
                (Type::Tile(ty), Arg::Scalar(arg)) => *ty == arg.ty(),
                (Type::Tensor(_) | Type::Tile(_) | Type::Shared(_) | Type::Error, _) => false,
            };
            if !fits {
                return Err(ExecError::Argument {
                    kernel: self.name.clone(),
                    param: name.clone(),
                    expected: show(ty),
                    found: arg.show(),
                });
            }
        }
        Ok(())
    }
}

/// Where a terminator goes.
#[derive(Clone)]
enum Target {
    /// A loop: `yield` and `continue` to its head, `break` to its end.
    Loop { head: u32, carried: Vec<ValueId>, results: Vec<ValueId>, end: usize },
    /// An arm of an `if`.
    Arm { results: Vec<ValueId>, end: usize },
    /// A scope.
    Scope { results: Vec<ValueId>, end: usize },
}

struct Compiler<'k> {
    kernel: &'k Kernel,
    code: Vec<Instr>,
    targets: Vec<Target>,
    /// Positions of labels; jumps hold label numbers until `finish`.
    labels: Vec<u32>,
    counters: usize,
    folded: Vec<Option<TileValue>>,
}

impl<'k> Compiler<'k> {
    fn new(kernel: &'k Kernel) -> Self {
        let folded = vec![None; kernel.values.len()];
        Self { kernel, code: Vec::new(), targets: Vec::new(), labels: Vec::new(), counters: 0, folded }
    }

    fn emit(&mut self, step: Step) {
        self.code.push(Instr { step, drops: SmallVec::new() });
    }

    fn label(&mut self) -> usize {
        self.labels.push(u32::MAX);
        self.labels.len() - 1
    }

    fn place(&mut self, label: usize) {
        self.labels[label] = self.code.len() as u32;
    }

    fn jump(&mut self, from: &[ValueId], to: &[ValueId], label: usize) {
        let from = uses(from);
        let to = to.iter().map(|v| v.index() as u32).collect();
        self.emit(Step::Jump { from, to, target: label as u32 });
    }

    fn region(&mut self, region: RegionId) -> Result<(), ExecError> {
        let kernel = self.kernel;
        for &id in &kernel.regions[region].ops {
            let op = &kernel.ops[id];
            let refused = op.operands.iter().chain(&op.results).any(|&v| *kernel.ty(v) == Type::Error);
            if refused {
                let fault = crate::diag::OpError::new(
                    crate::diag::Code::Structure,
                    format!("`{}` was refused when the kernel was built", op.kind.name()),
                );
                return Err(ExecError::invalid(&kernel.name, &fault));
            }
            self.op(op)?;
        }
        Ok(())
    }

    fn op(&mut self, op: &Op) -> Result<(), ExecError> {
        match &op.kind {
            OpKind::For(_) => self.for_loop(op),
            OpKind::Loop(_) => self.endless_loop(op),
            OpKind::If(_) => self.conditional(op),
            OpKind::Scope(_) => self.scope(op),
            OpKind::Yield(_) => {
                let target = self.targets.last().cloned();
                self.leave(op, target, false);
                Ok(())
            }
            OpKind::Break(_) | OpKind::Continue(_) => {
                let innermost = self.targets.iter().rev().find(|t| matches!(t, Target::Loop { .. })).cloned();
                self.leave(op, innermost, matches!(op.kind, OpKind::Break(_)));
                Ok(())
            }
            OpKind::Exit(_) => {
                let innermost =
                    self.targets.iter().rev().find(|t| matches!(t, Target::Scope { .. })).cloned();
                self.leave(op, innermost, false);
                Ok(())
            }
            OpKind::Roles(_)
            | OpKind::Send(_)
            | OpKind::SendTile(_)
            | OpKind::Receive(_)
            | OpKind::Release(_)
            | OpKind::MmaWait(_)
            | OpKind::CopyAsync(_)
            | OpKind::CopyCommit(_)
            | OpKind::CopyWait(_)
            | OpKind::Copied(_)
            | OpKind::ViewShared(_) => {
                let message = format!(
                    "`{}` is of a kernel with roles or asynchronous copies, which a GPU runs",
                    op.kind.name()
                );
                let fault = crate::diag::OpError::new(crate::diag::Code::Structure, message);
                Err(ExecError::invalid(&self.kernel.name, &fault))
            }
            // Blocks run one after the other on one thread: there is nobody to wait for.
            OpKind::Barrier(_) => Ok(()),
            kind => {
                debug_assert!(kind.effects() != Effects::Control, "every control operation has its own arm");
                self.straight(op, kind);
                Ok(())
            }
        }
    }

    /// Moves a terminator's operands to where its target wants them, and goes there.
    fn leave(&mut self, op: &Op, target: Option<Target>, breaks: bool) {
        match target {
            Some(Target::Loop { head, carried, .. }) if !breaks => {
                let to = carried.iter().map(|v| v.index() as u32).collect();
                let target = self.label();
                self.labels[target] = head;
                self.emit(Step::Jump { from: uses(&op.operands), to, target: target as u32 });
            }
            Some(
                Target::Loop { results, end, .. }
                | Target::Arm { results, end }
                | Target::Scope { results, end },
            ) => {
                self.jump(&op.operands, &results, end);
            }
            None => self.emit(Step::Halt),
        }
    }

    fn body(&mut self, region: RegionId, target: Target) -> Result<(), ExecError> {
        self.targets.push(target);
        let done = self.region(region);
        self.targets.pop();
        done
    }

    fn for_loop(&mut self, op: &Op) -> Result<(), ExecError> {
        let region = op.regions[0];
        let (index, carried) = self.kernel.regions[region]
            .args
            .split_first()
            .expect("the verifier checks that a `for` has an index");
        let counter = self.counters as u32;
        self.counters += 1;
        let bounds = uses(&op.operands[..3]);
        self.emit(Step::ForInit { counter, bounds: [bounds[0], bounds[1], bounds[2]] });
        let (exit, end) = (self.label(), self.label());
        let start = self.label();
        self.jump(&op.operands[3..], carried, start);
        self.place(start);
        let head = self.code.len() as u32;
        self.emit(Step::ForNext {
            counter,
            index: index.index() as u32,
            elem: self.kernel.tile(*index).elem,
            exit: exit as u32,
        });
        self.body(
            region,
            Target::Loop { head, carried: carried.to_vec(), results: op.results.clone(), end },
        )?;
        self.place(exit);
        self.jump(carried, &op.results, end);
        self.place(end);
        Ok(())
    }

    fn endless_loop(&mut self, op: &Op) -> Result<(), ExecError> {
        let region = op.regions[0];
        let carried = self.kernel.regions[region].args.clone();
        let (start, end) = (self.label(), self.label());
        self.jump(&op.operands, &carried, start);
        self.place(start);
        let head = self.code.len() as u32;
        self.body(region, Target::Loop { head, carried, results: op.results.clone(), end })?;
        self.place(end);
        Ok(())
    }

    fn conditional(&mut self, op: &Op) -> Result<(), ExecError> {
        let (otherwise, end) = (self.label(), self.label());
        self.emit(Step::Branch { condition: uses(&op.operands)[0], otherwise: otherwise as u32 });
        self.body(op.regions[0], Target::Arm { results: op.results.clone(), end })?;
        self.place(otherwise);
        self.body(op.regions[1], Target::Arm { results: op.results.clone(), end })?;
        self.place(end);
        Ok(())
    }

    fn scope(&mut self, op: &Op) -> Result<(), ExecError> {
        let end = self.label();
        self.body(op.regions[0], Target::Scope { results: op.results.clone(), end })?;
        self.place(end);
        Ok(())
    }

    /// An operation without control flow. If its value is the same in every block, it is evaluated now.
    fn straight(&mut self, op: &Op, kind: &OpKind) {
        let varies = matches!(kind, OpKind::Bid(_) | OpKind::NumBlocks(_) | OpKind::Extent(_));
        let operands: Option<SmallVec<[Operand<'_>; 4]>> =
            op.operands.iter().map(|v| self.folded[v.index()].clone().map(Operand::Tile)).collect();
        if let (Some(operands), [result], false) = (operands, &op.results[..], varies)
            && kind.effects() == Effects::Pure
        {
            let cx = EvalCx { block: [0; 3], grid: [1; 3] };
            self.folded[result.index()] = kind.eval(cx, &mut Operands::new(operands));
            return;
        }
        let result = op.results.first().map(|v| v.index() as u32);
        self.emit(Step::Eval { op: kind.clone(), operands: uses(&op.operands), result });
    }

    fn finish(mut self) -> Program {
        for instr in &mut self.code {
            match &mut instr.step {
                Step::Jump { target: label, .. }
                | Step::Branch { otherwise: label, .. }
                | Step::ForNext { exit: label, .. } => *label = self.labels[*label as usize],
                Step::Eval { .. } | Step::ForInit { .. } | Step::Halt => {}
            }
        }
        let slots = self.kernel.values.len();
        let needed = liveness::mark(&mut self.code, slots);
        let constants = self.folded.into_iter().enumerate();
        let constants = constants.filter(|&(slot, _)| needed.contains(slot));
        let constants = constants.filter_map(|(slot, value)| Some((slot as u32, value?))).collect();
        let param = |p: &crate::ir::Param| {
            let slot = needed.contains(p.value.index()).then_some(p.value.index() as u32);
            (p.name.clone(), slot, self.kernel.ty(p.value).clone())
        };
        Program {
            name: self.kernel.name.clone(),
            code: self.code,
            slots,
            counters: self.counters,
            constants,
            params: self.kernel.params.iter().map(param).collect(),
        }
    }
}

fn uses(values: &[ValueId]) -> Uses {
    values.iter().map(|v| Use { slot: v.index() as u32, last: false }).collect()
}
