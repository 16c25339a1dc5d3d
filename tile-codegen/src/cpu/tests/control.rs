//! Control flow: loops, branches, early exits; suspension; errors.

use crate::cpu::{Arg, BlockRun, ExecError, Program, Progress, TileValue, VecMemory, block_of, run_grid};
use crate::ir::{Builder, Elem, LocId, ParamKind, RegionId, TensorFacts, TensorType, Type, ValueId};
use crate::ops::bid::Bid;
use crate::ops::binary::{Binary, BinaryOp};
use crate::ops::compare::{Compare, CompareOp};
use crate::ops::constant::Constant;
use crate::ops::control::{Break, Continue, Exit, For, If, Loop, Scope, Yield};
use crate::ops::reshape::Reshape;
use crate::ops::store::Store;
use crate::ops::{Literal, OpKind};

/// A kernel under construction that stores i32 scalars to the tensor `out`, at the index of the block.
struct Lab {
    b: Builder,
    out: ValueId,
}

impl Lab {
    fn new() -> Self {
        let mut b = Builder::new("lab");
        let ty = Type::Tensor(TensorType { elem: Elem::I32, rank: 1, mutable: true });
        let out = b.kernel.add_param("out", ty, ParamKind::Tensor(TensorFacts::contiguous(1, 4)));
        Self { b, out }
    }
    fn scalar(&mut self, name: &str, elem: Elem) -> ValueId {
        self.b.kernel.add_param(name, Type::scalar(elem), ParamKind::Scalar)
    }
    fn emit(&mut self, op: impl Into<OpKind>, operands: &[ValueId]) -> Vec<ValueId> {
        self.b.emit(op.into(), operands.to_vec(), LocId::default())
    }
    fn int(&mut self, elem: Elem, value: i64) -> ValueId {
        self.b.emit_in_entry(Constant { value: Literal::Int(value), elem }.into(), vec![], LocId::default())
            [0]
    }
    fn i32(&mut self, value: i64) -> ValueId {
        self.int(Elem::I32, value)
    }
    fn binary(&mut self, op: BinaryOp, a: ValueId, b: ValueId) -> ValueId {
        self.emit(Binary { op }, &[a, b])[0]
    }
    fn compare(&mut self, op: CompareOp, a: ValueId, b: ValueId) -> ValueId {
        self.emit(Compare { op }, &[a, b])[0]
    }
    fn with(
        &mut self,
        op: impl Into<OpKind>,
        operands: &[ValueId],
        regions: &[RegionId],
        results: usize,
    ) -> Vec<ValueId> {
        let types = vec![Type::scalar(Elem::I32); results];
        self.b.emit_with_regions(op.into(), operands.to_vec(), regions.to_vec(), types, LocId::default())
    }
    /// A region that holds a terminator alone.
    fn end(&mut self, op: impl Into<OpKind>, operands: &[ValueId]) -> RegionId {
        self.b.open(&[]);
        self.emit(op, operands);
        self.b.close()
    }
    fn store(&mut self, value: ValueId) {
        let bid = self.emit(Bid { axis: 0 }, &[])[0];
        let tile = self.emit(Reshape { shape: vec![1] }, &[value])[0];
        self.emit(Store::default(), &[tile, self.out, bid]);
    }
    fn program(&self) -> Program {
        assert!(self.b.diagnostics.is_empty());
        Program::new(&self.b.kernel).unwrap()
    }
    /// What the blocks stored.
    fn run(&self, blocks: u32, scalars: &[TileValue]) -> Vec<i64> {
        let memory = VecMemory::ints(Elem::I32, &vec![-99; blocks as usize]);
        let mut args = vec![Arg::Tensor(memory.tensor(&[i64::from(blocks)]))];
        args.extend(scalars.iter().cloned().map(Arg::Scalar));
        run_grid(&self.program(), [blocks, 1, 1], &args).unwrap();
        memory.to_ints()
    }
}

fn i32_scalar(value: i32) -> TileValue {
    TileValue::scalar(Elem::I32, value)
}

/// `for i in 0..10 { if i == 3 { continue } if i == n { break } s += i }`
fn break_and_continue() -> Lab {
    let mut lab = Lab::new();
    let n = lab.scalar("n", Elem::I32);
    let [zero, one, three, ten] = [0, 1, 3, 10].map(|x| lab.i32(x));
    let (body, args) = lab.b.open(&[Type::scalar(Elem::I32), Type::scalar(Elem::I32)]);
    let (i, s) = (args[0], args[1]);
    for (limit, op) in [(three, OpKind::from(Continue)), (n, OpKind::from(Break))] {
        let hit = lab.compare(CompareOp::Eq, i, limit);
        let (leave, go_on) = (lab.end(op, &[s]), lab.end(Yield, &[]));
        lab.with(If, &[hit], &[leave, go_on], 0);
    }
    let sum = lab.binary(BinaryOp::Add, s, i);
    lab.emit(Yield, &[sum]);
    lab.b.close();
    let s = lab.with(For, &[zero, ten, one, zero], &[body], 1)[0];
    lab.store(s);
    lab
}

#[test]
fn break_and_continue_in_a_counted_loop() {
    for (n, right) in [(0, 0), (2, 1), (5, 7), (99, 42)] {
        assert_eq!(break_and_continue().run(1, &[i32_scalar(n)]), [right], "n = {n}");
    }
}

#[test]
fn a_scalar_changed_under_an_if_in_a_loop() {
    let mut lab = Lab::new();
    let stop = lab.scalar("stop", Elem::I32);
    let [zero, one] = [0, 1].map(|x| lab.i32(x));
    let bid = lab.emit(Bid { axis: 0 }, &[])[0];
    let (body, args) = lab.b.open(&[Type::scalar(Elem::I32), Type::scalar(Elem::I32)]);
    let (i, c) = (args[0], args[1]);
    let larger = lab.compare(CompareOp::Gt, c, i);
    let (then, _) = lab.b.open(&[]);
    let next = lab.binary(BinaryOp::Add, i, one);
    let less = lab.binary(BinaryOp::Sub, c, next);
    lab.emit(Yield, &[less]);
    lab.b.close();
    let otherwise = lab.end(Yield, &[c]);
    let c = lab.with(If, &[larger], &[then, otherwise], 1)[0];
    lab.emit(Yield, &[c]);
    lab.b.close();
    let c = lab.with(For, &[zero, stop, one, bid], &[body], 1)[0];
    lab.store(c);
    assert_eq!(lab.run(4, &[i32_scalar(1)]), [0, 0, 1, 2]);
    assert_eq!(lab.run(4, &[i32_scalar(0)]), [0, 1, 2, 3]);
}

/// Counts the iterations of `for _ in low..high step step`.
fn count(elem: Elem) -> Lab {
    let mut lab = Lab::new();
    let bounds = ["low", "high", "step"].map(|name| lab.scalar(name, elem));
    let [zero, one] = [0, 1].map(|x| lab.i32(x));
    let (body, args) = lab.b.open(&[Type::scalar(elem), Type::scalar(Elem::I32)]);
    let more = lab.binary(BinaryOp::Add, args[1], one);
    lab.emit(Yield, &[more]);
    lab.b.close();
    let operands = [bounds[0], bounds[1], bounds[2], zero];
    let total = lab.with(For, &operands, &[body], 1)[0];
    lab.store(total);
    lab
}

#[test]
fn loops_with_steps_run_as_often_as_in_rust() {
    let lab = count(Elem::I32);
    for (low, high, step) in [
        (0, 0, 2),
        (0, 1, 2),
        (0, 2, 2),
        (0, 5, 2),
        (7, 3, 1),
        (7, 8, 5),
        (-5, 5, 3),
        (i32::MAX - 3, i32::MAX, 2),
    ] {
        let right = (low..high).step_by(step as usize).count() as i64;
        let bounds = [low, high, step].map(i32_scalar);
        assert_eq!(lab.run(1, &bounds), [right], "{low}..{high} step {step}");
    }
    let top = [u32::MAX - 5, u32::MAX, 4].map(|x| TileValue::scalar(Elem::U32, x));
    assert_eq!(count(Elem::U32).run(1, &top), [2]);
    let far = [i64::MAX - 10, i64::MAX, i64::MAX].map(|x| TileValue::scalar(Elem::I64, x));
    assert_eq!(count(Elem::I64).run(1, &far), [1]);
}

#[test]
fn a_step_that_is_not_positive_is_an_error() {
    let (lab, memory) = (count(Elem::I32), VecMemory::ints(Elem::I32, &[0]));
    for step in [0, -1] {
        let scalars = [0, 5, step].map(|x| Arg::Scalar(i32_scalar(x)));
        let args: Vec<_> = [Arg::Tensor(memory.tensor(&[1]))].into_iter().chain(scalars).collect();
        let found = run_grid(&lab.program(), [1, 1, 1], &args);
        assert_eq!(found, Err(ExecError::LoopStep { found: i64::from(step) }));
    }
}

/// `loop { if c >= 100 { break } c *= 2; }`, from the block index plus one.
#[test]
fn an_endless_loop_ends_by_break() {
    let mut lab = Lab::new();
    let [one, two, hundred] = [1, 2, 100].map(|x| lab.i32(x));
    let bid = lab.emit(Bid { axis: 0 }, &[])[0];
    let start = lab.binary(BinaryOp::Add, bid, one);
    let (body, args) = lab.b.open(&[Type::scalar(Elem::I32)]);
    let large = lab.compare(CompareOp::Ge, args[0], hundred);
    let (leave, go_on) = (lab.end(Break, &[args[0]]), lab.end(Yield, &[]));
    lab.with(If, &[large], &[leave, go_on], 0);
    let twice = lab.binary(BinaryOp::Mul, args[0], two);
    lab.emit(Yield, &[twice]);
    lab.b.close();
    let c = lab.with(Loop, &[start], &[body], 1)[0];
    lab.store(c);
    assert_eq!(lab.run(3, &[]), [128, 128, 192]);
}

/// Carried values that exchange places every iteration.
#[test]
fn carried_values_move_all_at_once() {
    let mut lab = Lab::new();
    let n = lab.scalar("n", Elem::I32);
    let [zero, one, ten] = [0, 1, 10].map(|x| lab.i32(x));
    let (body, args) = lab.b.open(&vec![Type::scalar(Elem::I32); 3]);
    lab.emit(Yield, &[args[2], args[1]]);
    lab.b.close();
    let pair = lab.with(For, &[zero, n, one, one, ten], &[body], 2);
    let shown = lab.binary(BinaryOp::Sub, pair[0], pair[1]);
    lab.store(shown);
    assert_eq!(lab.run(1, &[i32_scalar(4)]), [-9]);
    assert_eq!(lab.run(1, &[i32_scalar(5)]), [9]);
}

/// `scope { for i in 0.. { if i * i > n { exit i } } exit -1 }`
#[test]
fn exit_leaves_loops_inside_the_scope() {
    let mut lab = Lab::new();
    let n = lab.scalar("n", Elem::I32);
    let [zero, one, limit, none] = [0, 1, 10, -1].map(|x| lab.i32(x));
    let (scope, _) = lab.b.open(&[]);
    let (body, args) = lab.b.open(&[Type::scalar(Elem::I32)]);
    let square = lab.binary(BinaryOp::Mul, args[0], args[0]);
    let larger = lab.compare(CompareOp::Gt, square, n);
    let (leave, go_on) = (lab.end(Exit, &[args[0]]), lab.end(Yield, &[]));
    lab.with(If, &[larger], &[leave, go_on], 0);
    lab.emit(Yield, &[]);
    lab.b.close();
    lab.with(For, &[zero, limit, one], &[body], 0);
    lab.emit(Exit, &[none]);
    lab.b.close();
    let found = lab.with(Scope, &[], &[scope], 1)[0];
    lab.store(found);
    for (n, right) in [(0, 1), (30, 6), (80, 9), (81, -1)] {
        assert_eq!(lab.run(1, &[i32_scalar(n)]), [right]);
    }
}

#[test]
fn a_block_stops_at_its_budget_and_goes_on_later() {
    let (lab, memory) = (break_and_continue(), VecMemory::ints(Elem::I32, &[-99]));
    let (program, args) = (lab.program(), [Arg::Tensor(memory.tensor(&[1])), Arg::Scalar(i32_scalar(99))]);
    let mut run = BlockRun::new(&program, &args, [1, 1, 1], 0).unwrap();
    assert_eq!(run.run(Some(0)), Ok(Progress::Budget));
    let mut pieces = 0;
    while run.run(Some(3)).unwrap() == Progress::Budget {
        assert_eq!(memory.to_ints(), [-99]);
        pieces += 1;
        assert!(pieces < 1000, "the block ends");
    }
    assert!(pieces > 10);
    assert_eq!(memory.to_ints(), [42]);
    assert_eq!(run.run(Some(5)), Ok(Progress::Done));
}

#[test]
fn arguments_are_checked() {
    let (program, memory) = (break_and_continue().program(), VecMemory::ints(Elem::I64, &[0]));
    let right = VecMemory::ints(Elem::I32, &[0]);
    assert!(matches!(program.check(&[]), Err(ExecError::ArgumentCount { expected: 2, found: 0, .. })));
    let n = Arg::Scalar(i32_scalar(1));
    for wrong in [memory.tensor(&[1]), right.tensor(&[1, 1])].map(Arg::Tensor) {
        let error = program.check(&[wrong, n.clone()]).unwrap_err().to_string();
        assert!(
            error.contains("argument `out` of kernel `lab` must be a tensor of `i32` of rank 1"),
            "{error}"
        );
    }
    let float = Arg::Scalar(TileValue::scalar(Elem::F32, 1.0f32));
    let error = program.check(&[Arg::Tensor(right.tensor(&[1])), float]).unwrap_err().to_string();
    assert!(error.ends_with("must be a scalar `i32`, found a scalar `f32`"), "{error}");
}

#[test]
fn blocks_are_numbered_with_axis_0_fastest() {
    assert_eq!(block_of([2, 3, 4], 0), Ok([0, 0, 0]));
    assert_eq!(block_of([2, 3, 4], 1), Ok([1, 0, 0]));
    assert_eq!(block_of([2, 3, 4], 11), Ok([1, 2, 1]));
    assert_eq!(block_of([2, 3, 4], 24), Err(ExecError::BlockIndex { block: 24, count: 24 }));
    assert!(block_of([0, 3, 4], 0).is_err());
}
