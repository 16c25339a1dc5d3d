//! Replacements of one operation by an equal value or a simpler operation, at stage `Tile`.

use super::Rewriter;
use super::fold::{self, Const};
use crate::ir::{Elem, Op, OpId, ValueId};
use crate::ops::binary::{Binary, BinaryOp};
use crate::ops::broadcast_to::BroadcastTo;
use crate::ops::cast::Cast;
use crate::ops::extract::Extract;
use crate::ops::load::Load;
use crate::ops::permute::Permute;
use crate::ops::reshape::Reshape;
use crate::ops::window::Steps;
use crate::ops::{Literal, OpKind, constant};

impl Rewriter<'_> {
    /// The value that replaces an operation's result, if there is a better one.
    pub(super) fn simplify(&mut self, id: OpId) -> Option<ValueId> {
        let op = self.kernel.ops[id].clone();
        if let Some(value) = self.computed(&op) {
            return Some(self.splat_of(value, &op));
        }
        match &op.kind {
            OpKind::Binary(Binary { op: kind }) => self.neutral(*kind, &op),
            OpKind::Where(_) => self.selected(&op),
            OpKind::Cast(Cast { elem }) => {
                let x = op.operands[0];
                (self.kernel.tile(x).elem == *elem).then_some(x)
            }
            OpKind::Reshape(_) | OpKind::Permute(_) | OpKind::BroadcastTo(_) | OpKind::Extract(_) => {
                self.moved(&op)
            }
            _ => None,
        }
    }

    /// The scalar that all elements of a tile are, if it is a constant.
    pub(super) fn splat(&self, value: ValueId) -> Option<Const> {
        let op = self.definition(value)?;
        match &op.kind {
            OpKind::Constant(constant) => Const::of(constant),
            OpKind::BroadcastTo(_) | OpKind::Reshape(_) => self.splat(op.operands[0]),
            _ => None,
        }
    }

    /// What an elementwise operation gives on constants.
    fn computed(&self, op: &Op) -> Option<Const> {
        let operand = |n: usize| self.splat(op.operands[n]);
        match &op.kind {
            OpKind::Unary(unary) => fold::unary(unary.op, operand(0)?),
            OpKind::Binary(binary) => fold::binary(binary.op, operand(0)?, operand(1)?),
            OpKind::Compare(compare) => fold::compare(compare.op, operand(0)?, operand(1)?),
            OpKind::Cast(cast) => fold::cast(operand(0)?, cast.elem),
            _ => None,
        }
    }

    /// A constant in the shape of an operation's result.
    fn splat_of(&mut self, value: Const, op: &Op) -> ValueId {
        let shape = self.kernel.tile(op.results[0]).shape.clone();
        let scalar = self.emit(value.op(), vec![], op.loc);
        if shape.is_empty() { scalar } else { self.emit(BroadcastTo { shape }, vec![scalar], op.loc) }
    }

    /// Arithmetic with a constant that changes nothing, or leaves nothing.
    fn neutral(&self, op: BinaryOp, whole: &Op) -> Option<ValueId> {
        let [a, b] = whole.operands[..] else { return None };
        let (left, right) = (self.splat(a), self.splat(b));
        let is = |side: Option<Const>, value: f64| side.is_some_and(|c| c.is(value));
        let int = self.kernel.tile(a).elem.is_int();
        match op {
            // For floats, -0.0 is neutral in sums: 0.0 turns -0.0 into 0.0.
            BinaryOp::Add if is(right, if int { 0.0 } else { -0.0 }) => Some(a),
            BinaryOp::Add if is(left, if int { 0.0 } else { -0.0 }) => Some(b),
            BinaryOp::Sub if is(right, 0.0) => Some(a),
            BinaryOp::Mul | BinaryOp::Div if is(right, 1.0) => Some(a),
            BinaryOp::Mul if is(left, 1.0) => Some(b),
            BinaryOp::Mul | BinaryOp::And if int && is(right, 0.0) => Some(b),
            BinaryOp::Mul | BinaryOp::And if int && is(left, 0.0) => Some(a),
            BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr if int && is(right, 0.0) => Some(a),
            BinaryOp::Or | BinaryOp::Xor if int && is(left, 0.0) => Some(b),
            BinaryOp::And | BinaryOp::Or => self.logical(op, [a, b], [left, right]),
            _ => None,
        }
    }

    /// `and` and `or` with a known truth value.
    fn logical(
        &self,
        op: BinaryOp,
        [a, b]: [ValueId; 2],
        [left, right]: [Option<Const>; 2],
    ) -> Option<ValueId> {
        let neutral = op == BinaryOp::And;
        match (left, right) {
            (_, Some(Const::Bool(known))) => Some(if known == neutral { a } else { b }),
            (Some(Const::Bool(known)), _) => Some(if known == neutral { b } else { a }),
            _ => None,
        }
    }

    /// A selection that is decided, or between equals.
    fn selected(&self, op: &Op) -> Option<ValueId> {
        let [condition, a, b] = op.operands[..] else { return None };
        match self.splat(condition) {
            Some(Const::Bool(known)) => Some(if known { a } else { b }),
            _ => (a == b).then_some(a),
        }
    }

    /// An operation that only moves elements.
    fn moved(&mut self, op: &Op) -> Option<ValueId> {
        let x = op.operands[0];
        let still = match &op.kind {
            OpKind::Permute(Permute { axes }) => axes.iter().enumerate().all(|(i, &axis)| i == axis),
            _ => self.kernel.ty(x) == self.kernel.ty(op.results[0]),
        };
        if still {
            return Some(x);
        }
        if let OpKind::Reshape(Reshape { shape }) = &op.kind
            && self.kernel.tile(x).rank() == 0
        {
            return Some(self.emit(BroadcastTo { shape: shape.clone() }, vec![x], op.loc));
        }
        let before = self.definition(x)?.clone();
        if let OpKind::BroadcastTo(_) = before.kind
            && self.kernel.tile(before.operands[0]).rank() == 0
        {
            // Every element is the same scalar; only the shape matters.
            let shape = self.kernel.tile(op.results[0]).shape.clone();
            let scalar = before.operands[0];
            return Some(if shape.is_empty() {
                scalar
            } else {
                self.emit(BroadcastTo { shape }, vec![scalar], op.loc)
            });
        }
        let merged: OpKind = match (&before.kind, &op.kind) {
            (OpKind::Reshape(_), OpKind::Reshape(outer)) => outer.clone().into(),
            (OpKind::BroadcastTo(_), OpKind::BroadcastTo(outer)) => outer.clone().into(),
            (OpKind::Permute(inner), OpKind::Permute(outer)) => {
                Permute { axes: outer.axes.iter().map(|&axis| inner.axes[axis]).collect() }.into()
            }
            (OpKind::Extract(inner), OpKind::Extract(outer)) => nested(inner, outer).into(),
            (OpKind::Load(load), OpKind::Extract(part)) => {
                return self.smaller_load(&before, load, part, x, op);
            }
            _ => return None,
        };
        Some(self.emit(merged, vec![before.operands[0]], op.loc))
    }

    /// A part of a loaded tile, loaded on its own. Only from tensors that the kernel does not write, and only where the
    /// whole tile is loaded, so that no loop repeats the load.
    fn smaller_load(
        &mut self,
        whole: &Op,
        load: &Load,
        part: &Extract,
        value: ValueId,
        op: &Op,
    ) -> Option<ValueId> {
        let tensor = whole.operands[0];
        let here = self.open.last().map(|(region, _)| *region);
        let there = self.definitions.get(&value).map(|&(_, region)| region);
        if self.kernel.ty(tensor).as_tensor()?.mutable || here != there {
            return None;
        }
        let mut operands = vec![tensor];
        for (axis, &index) in whole.operands[1..].iter().enumerate() {
            let (size, at) = (part.shape[axis], part.index[axis]);
            let (ratio, offset) = match load.steps {
                Steps::Tiles => (load.shape[axis] / size, at),
                Steps::Elements => (1, at * size),
            };
            operands.push(self.scaled(index, ratio as i64, offset as i64, op));
        }
        Some(self.emit(Load { shape: part.shape.clone(), ..load.clone() }, operands, op.loc))
    }

    /// `index * ratio + offset`. A tile that lies outside the tensor may have any index, so that an i32 could wrap back
    /// into it: the product is taken in i64, unless the index is a constant whose product fits.
    fn scaled(&mut self, index: ValueId, ratio: i64, offset: i64, op: &Op) -> ValueId {
        if ratio == 1 && offset == 0 {
            return index;
        }
        let constant = |value: i64, elem: Elem| constant::Constant { value: Literal::Int(value), elem };
        if let Some(Const::Int(known, _)) = self.splat(index)
            && let Some(product) = known.checked_mul(ratio).and_then(|p| p.checked_add(offset))
        {
            let elem = if i32::try_from(product).is_ok() { Elem::I32 } else { Elem::I64 };
            return self.emit(constant(product, elem), vec![], op.loc);
        }
        let wide = match self.kernel.tile(index).elem {
            Elem::I64 => index,
            _ => self.emit(Cast { elem: Elem::I64 }, vec![index], op.loc),
        };
        let ratio = self.emit(constant(ratio, Elem::I64), vec![], op.loc);
        let product = self.emit(Binary { op: BinaryOp::Mul }, vec![wide, ratio], op.loc);
        if offset == 0 {
            return product;
        }
        let offset = self.emit(constant(offset, Elem::I64), vec![], op.loc);
        self.emit(Binary { op: BinaryOp::Add }, vec![product, offset], op.loc)
    }
}

/// A part of a part.
fn nested(inner: &Extract, outer: &Extract) -> Extract {
    let index = (0..outer.shape.len())
        .map(|axis| inner.index[axis] * (inner.shape[axis] / outer.shape[axis]) + outer.index[axis]);
    Extract { index: index.collect(), shape: outer.shape.clone() }
}
