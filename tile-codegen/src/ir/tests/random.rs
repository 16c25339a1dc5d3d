//! Random kernels that obey every rule: a list of numbers drives a builder.

use crate::ir::{Builder, Elem, Kernel, Loc, LocId, ParamKind, TensorFacts, TensorType, Type, ValueId};
use crate::ops::binary::{Binary, BinaryOp};
use crate::ops::compare::{Compare, CompareOp};
use crate::ops::reduce::{Reduce, ReduceKind};
use crate::ops::unary::{Unary, UnaryOp};
use crate::ops::*;

/// Takes numbers from a list; 0 once it is used up.
pub(crate) struct Choices<'a>(std::slice::Iter<'a, u32>);

impl Choices<'_> {
    fn below(&mut self, n: usize) -> usize {
        self.0.next().map_or(0, |&x| x as usize % n)
    }
    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
    fn done(&self) -> bool {
        self.0.len() == 0
    }
}

/// A verified kernel that the numbers choose. Its tensors are `%x` (read) and `%y` (written), both f32 of rank 2, and
/// `%m` (i32 of rank 1, written and read); its scalar is `%n: i32`.
pub(crate) fn random_kernel(choices: &[u32]) -> Kernel {
    let mut g = Generator { b: Builder::new("random"), c: Choices(choices.iter()), tiles: Vec::new() };
    let mut tensor = |name: &str, elem: Elem, rank: usize, mutable: bool| {
        let facts = ParamKind::Tensor(TensorFacts::contiguous(rank, elem.bytes()));
        g.b.kernel.add_param(name, Type::Tensor(TensorType { elem, rank, mutable }), facts)
    };
    let x = tensor("x", Elem::F32, 2, false);
    let y = tensor("y", Elem::F32, 2, true);
    let m = tensor("m", Elem::I32, 1, true);
    let n = g.b.kernel.add_param("n", Type::scalar(Elem::I32), ParamKind::Scalar);
    let bid = g.one(bid::Bid { axis: 0 }, vec![]);
    g.tiles.extend([n, bid]);
    while !g.c.done() {
        g.step(x, y, m, 0);
    }
    for tile in g.tiles.clone() {
        g.store(tile, y, m);
    }
    assert_eq!(g.b.diagnostics.to_string(), "");
    g.b.kernel
}

struct Generator<'a> {
    b: Builder,
    c: Choices<'a>,
    /// The values that are visible.
    tiles: Vec<ValueId>,
}

impl Generator<'_> {
    fn loc(&mut self) -> LocId {
        let line = self.c.below(5) as u32;
        if line == 0 {
            return LocId::default();
        }
        let loc = Loc { file: "src/a b.rs".into(), line, column: 3, end_line: line, end_column: 9 };
        self.b.kernel.locs.intern(loc)
    }

    fn one(&mut self, kind: impl Into<OpKind>, operands: Vec<ValueId>) -> ValueId {
        let loc = self.loc();
        self.b.emit(kind.into(), operands, loc)[0]
    }

    fn constant(&mut self) -> ValueId {
        let float =
            self.c.pick(&[0.0, -0.0, 1.0, 0.1, 1e-40, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
        let (value, elem) = match self.c.below(4) {
            0 => (Literal::float(float), self.c.pick(&[Elem::F32, Elem::F16, Elem::BF16])),
            1 => (Literal::Int(self.c.pick(&[0, 1, -1, 7, i64::from(i32::MIN)])), Elem::I32),
            2 => (Literal::Int(self.c.pick(&[0, 1, -1, i64::MIN, i64::MAX])), Elem::I64),
            _ => (Literal::Bool(self.c.below(2) == 1), Elem::Bool),
        };
        self.b.emit_in_entry(constant::Constant { value, elem }.into(), vec![], LocId::default())[0]
    }

    fn int(&mut self, value: i64) -> ValueId {
        let constant = constant::Constant { value: Literal::Int(value), elem: Elem::I32 };
        self.b.emit_in_entry(constant.into(), vec![], LocId::default())[0]
    }

    fn scalar(&mut self, elem: Elem) -> ValueId {
        let of_type: Vec<_> =
            self.tiles.iter().copied().filter(|&v| *self.b.kernel.ty(v) == Type::scalar(elem)).collect();
        self.c.pick(&of_type)
    }

    fn load(&mut self, tensor: ValueId, rank: usize) -> ValueId {
        let shape: Vec<_> = (0..rank).map(|_| self.c.pick(&[1, 4, 8])).collect();
        let index = (0..rank).map(|_| self.scalar(Elem::I32)).collect::<Vec<_>>();
        let pad = if rank == 2 { Literal::float(self.c.pick(&[0.0, -1.5])) } else { Literal::Int(-1) };
        let hints = load::Hints {
            latency: self.c.pick(&[None, Some(1), Some(10)]),
            allow_tma: self.c.pick(&[None, Some(true), Some(false)]),
        };
        let steps = self.c.pick(&[window::Steps::Tiles, window::Steps::Elements]);
        self.one(load::Load { shape, pad, hints, steps }, [vec![tensor], index].concat())
    }

    fn store(&mut self, tile: ValueId, y: ValueId, m: ValueId) {
        let ty = self.b.kernel.tile(tile).clone();
        let zero = self.int(0);
        let (tensor, rank, elem) = if ty.elem.is_float() { (y, 2, Elem::F32) } else { (m, 1, Elem::I32) };
        let mut shape = vec![1; rank - 1];
        shape.push(ty.numel());
        let tile = self.one(cast::Cast { elem }, vec![tile]);
        let tile = self.one(reshape::Reshape { shape }, vec![tile]);
        let (loc, steps) = (self.loc(), self.c.pick(&[window::Steps::Tiles, window::Steps::Elements]));
        self.b.emit(store::Store { steps }.into(), [vec![tile, tensor], vec![zero; rank]].concat(), loc);
    }

    fn step(&mut self, x: ValueId, y: ValueId, m: ValueId, depth: usize) {
        let tile = self.c.pick(&self.tiles.clone());
        let ty = self.b.kernel.tile(tile).clone();
        let value = match self.c.below(if depth < 3 { 16 } else { 12 }) {
            0 => self.constant(),
            1 => self.load(x, 2),
            2 => self.load(m, 1),
            3 => return self.store(tile, y, m),
            4 => {
                let elem = self.cast_target();
                self.one(cast::Cast { elem }, vec![tile])
            }
            5 => self.unary(tile, &ty),
            6 => self.binary(tile, &ty),
            7 => {
                let axes: Vec<_> = (0..ty.rank()).rev().collect();
                self.one(permute::Permute { axes }, vec![tile])
            }
            8 => {
                let shape = [vec![1], ty.shape.clone()].concat();
                self.one(reshape::Reshape { shape }, vec![tile])
            }
            9 if ty.rank() < 4 => {
                let shape = [vec![self.c.pick(&[1, 2])], ty.shape.clone()].concat();
                self.one(broadcast_to::BroadcastTo { shape }, vec![tile])
            }
            10 if ty.rank() > 0 && ty.elem != Elem::Bool => self.along(tile, &ty),
            11 => {
                let index = ty.shape.iter().map(|&d| usize::from(d > 1)).collect();
                let shape = ty.shape.iter().map(|&d| d.div_ceil(2)).collect();
                self.one(extract::Extract { index, shape }, vec![tile])
            }
            12 => return self.for_loop(tile, &ty, [x, y, m], depth),
            13 => return self.branch(tile, &ty, [x, y, m], depth),
            14 => return self.endless(tile, &ty, [x, y, m], depth),
            _ => self.int(2),
        };
        self.tiles.push(value);
    }

    fn cast_target(&mut self) -> Elem {
        self.c.pick(&[Elem::F32, Elem::F16, Elem::BF16, Elem::I32, Elem::I64, Elem::U32, Elem::Bool])
    }

    fn unary(&mut self, tile: ValueId, ty: &crate::ir::TileType) -> ValueId {
        let op = match ty.elem.class() {
            crate::ir::Class::Float => self.c.pick(&[UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Floor]),
            crate::ir::Class::Int => self.c.pick(&[UnaryOp::Neg, UnaryOp::Not]),
            crate::ir::Class::Bool => UnaryOp::Not,
        };
        self.one(Unary { op }, vec![tile])
    }

    fn binary(&mut self, tile: ValueId, ty: &crate::ir::TileType) -> ValueId {
        let alike: Vec<_> = self.tiles.iter().copied().filter(|&v| self.b.kernel.tile(v) == ty).collect();
        let other = self.c.pick(&alike);
        if self.c.below(3) == 0 {
            let op = self.c.pick(&[CompareOp::Eq, CompareOp::Ne]);
            return self.one(Compare { op }, vec![tile, other]);
        }
        let op = match ty.elem.class() {
            crate::ir::Class::Float => self.c.pick(&[BinaryOp::Add, BinaryOp::Mul, BinaryOp::MaximumNan]),
            crate::ir::Class::Int => {
                self.c.pick(&[BinaryOp::Add, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Shr])
            }
            crate::ir::Class::Bool => self.c.pick(&[BinaryOp::And, BinaryOp::Xor]),
        };
        self.one(Binary { op }, vec![tile, other])
    }

    fn along(&mut self, tile: ValueId, ty: &crate::ir::TileType) -> ValueId {
        let axis = self.c.below(ty.rank());
        if self.c.below(2) == 0 {
            let reverse = self.c.below(2) == 1;
            return self.one(cumsum::Cumsum { axis, reverse }, vec![tile]);
        }
        let kind = self.c.pick(&[ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min]);
        self.one(Reduce { kind, axes: vec![axis], propagate_nan: true }, vec![tile])
    }

    /// A region in which a few steps are made; afterwards only the outer values are visible.
    fn body(&mut self, args: &[Type], tensors: [ValueId; 3], depth: usize) -> Vec<ValueId> {
        let (_, args) = self.b.open(args);
        self.tiles.extend(&args);
        for _ in 0..self.c.below(4) {
            self.step(tensors[0], tensors[1], tensors[2], depth + 1);
        }
        args
    }

    /// The latest value of a type.
    fn latest(&self, ty: &crate::ir::TileType) -> ValueId {
        *self
            .tiles
            .iter()
            .rev()
            .find(|&&v| self.b.kernel.tile(v) == ty)
            .expect("a value of the type is visible")
    }

    fn end(&mut self, kind: impl Into<OpKind>, operands: Vec<ValueId>) -> crate::ir::RegionId {
        let loc = self.loc();
        self.b.emit(kind.into(), operands, loc);
        self.b.close()
    }

    fn for_loop(&mut self, init: ValueId, ty: &crate::ir::TileType, tensors: [ValueId; 3], depth: usize) {
        let (low, step) = (self.int(0), self.int(1));
        let trips = self.c.below(4) as i64;
        let high = self.int(trips);
        let visible = self.tiles.len();
        self.body(&[Type::scalar(Elem::I32), Type::Tile(ty.clone())], tensors, depth);
        let next = self.latest(ty);
        let region = self.end(control::Yield, vec![next]);
        self.tiles.truncate(visible);
        let loc = self.loc();
        let operands = vec![low, high, step, init];
        let results = self.b.emit_with_regions(
            control::For.into(),
            operands,
            vec![region],
            vec![Type::Tile(ty.clone())],
            loc,
        );
        self.tiles.extend(results);
    }

    fn branch(&mut self, init: ValueId, ty: &crate::ir::TileType, tensors: [ValueId; 3], depth: usize) {
        let (a, b) = (self.scalar(Elem::I32), self.scalar(Elem::I32));
        let condition = match self.c.below(2) {
            0 => self.one(Compare { op: CompareOp::Lt }, vec![a, b]),
            _ => self.one(Compare { op: CompareOp::Ge }, vec![a, a]),
        };
        let mut regions = Vec::new();
        for _ in 0..2 {
            let visible = self.tiles.len();
            self.body(&[], tensors, depth);
            let value = if self.c.below(2) == 0 { init } else { self.latest(ty) };
            regions.push(self.end(control::Yield, vec![value]));
            self.tiles.truncate(visible);
        }
        let loc = self.loc();
        let types = vec![Type::Tile(ty.clone())];
        let results = self.b.emit_with_regions(control::If.into(), vec![condition], regions, types, loc);
        self.tiles.extend(results);
    }

    /// A `scope` around a `loop` that is left by `exit` in its first iteration.
    fn endless(&mut self, init: ValueId, ty: &crate::ir::TileType, tensors: [ValueId; 3], depth: usize) {
        let types = vec![Type::Tile(ty.clone())];
        let visible = self.tiles.len();
        self.b.open(&[]);
        self.body(&types, tensors, depth);
        let value = self.latest(ty);
        let inner = if self.c.below(2) == 0 {
            self.end(control::Break, vec![value])
        } else {
            self.end(control::Exit, vec![value])
        };
        self.tiles.truncate(visible);
        let loc = self.loc();
        let left =
            self.b.emit_with_regions(control::Loop.into(), vec![init], vec![inner], types.clone(), loc);
        let outer = self.end(control::Exit, left);
        let results = self.b.emit_with_regions(control::Scope.into(), vec![], vec![outer], types, loc);
        self.tiles.extend(results);
    }
}
