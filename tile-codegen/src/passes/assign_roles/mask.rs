//! Padding other than zero: bulk tensor copies fill what is outside the tensor with zeros, so that the receiver selects
//! between the tile and the padding, by the place of each element.

use crate::explain::Choice;
use crate::ir::{Elem, Kernel, LocId, OpId, RegionId, ValueId};
use crate::ops::arange::Arange;
use crate::ops::binary::{Binary, BinaryOp};
use crate::ops::broadcast_to::BroadcastTo;
use crate::ops::cast::Cast;
use crate::ops::compare::{Compare, CompareOp};
use crate::ops::constant::Constant;
use crate::ops::extent::Extent;
use crate::ops::load::Load;
use crate::ops::reshape::Reshape;
use crate::ops::where_::Where;
use crate::ops::{Literal, OpKind, TileOp};

/// Whether a load's padding is what bulk tensor copies fill in.
pub(crate) fn is_zero(pad: Literal) -> bool {
    match pad {
        // -0.0 is not.
        Literal::Float(bits) => bits == 0,
        Literal::Int(i) => i == 0,
        Literal::Bool(b) => !b,
    }
}

/// Gives a load the padding zero, and its users a tile with the padding that it had. The load keeps its number.
pub(super) fn mask(kernel: &mut Kernel, load: OpId) {
    let op = kernel.ops[load].clone();
    let OpKind::Load(Load { shape, pad, hints, steps }) = op.kind.clone() else { return };
    if is_zero(pad) {
        return;
    }
    kernel.note(&op, Choice::Masked);
    let zero = match pad {
        Literal::Float(_) => Literal::float(0.0),
        Literal::Int(_) => Literal::Int(0),
        Literal::Bool(_) => Literal::Bool(false),
    };
    kernel.ops[load].kind = Load { shape: shape.clone(), pad: zero, hints, steps }.into();
    let (tile, elem) = (op.results[0], kernel.tile(op.results[0]).elem);
    let mut emit = Emit { kernel, loc: op.loc, constants: Vec::new(), ops: Vec::new() };
    let inside = emit.inside(&op.operands, &shape);
    let pad = emit.constant(pad, elem);
    let pad = emit.broadcast(pad, &shape);
    let masked = emit.op(Where, &[inside, tile, pad]);
    let Emit { constants, ops, .. } = emit;
    let select = *ops.last().expect("the select is among them");
    replace_uses(kernel, tile, masked, select);
    let region = region_of(kernel, load);
    let at = kernel.regions[region].ops.iter().position(|&id| id == load).map_or(0, |at| at + 1);
    kernel.regions[region].ops.splice(at..at, ops);
    let entry = kernel.body;
    kernel.regions[entry].ops.splice(0..0, constants);
}

/// The region that holds an operation.
fn region_of(kernel: &Kernel, op: OpId) -> RegionId {
    let holds = |&region: &RegionId| kernel.regions[region].ops.contains(&op);
    kernel.regions.ids().find(holds).expect("an attached operation is in a region")
}

fn replace_uses(kernel: &mut Kernel, old: ValueId, new: ValueId, except: OpId) {
    let ids: Vec<OpId> = kernel.ops.ids().filter(|&id| id != except).collect();
    for id in ids {
        for operand in &mut kernel.ops[id].operands {
            if *operand == old {
                *operand = new;
            }
        }
    }
}

/// New operations of one place, and constants, which live in the entry region.
struct Emit<'k> {
    kernel: &'k mut Kernel,
    loc: LocId,
    constants: Vec<OpId>,
    ops: Vec<OpId>,
}

impl Emit<'_> {
    fn op(&mut self, kind: impl Into<OpKind>, operands: &[ValueId]) -> ValueId {
        let kind: OpKind = kind.into();
        let types: Vec<_> = operands.iter().map(|&v| self.kernel.ty(v).clone()).collect();
        let results = kind.infer(&types).expect("the mask of a load is well typed");
        let id = self.kernel.new_op(kind, operands.to_vec(), results, self.loc);
        self.ops.push(id);
        self.kernel.ops[id].results[0]
    }

    fn constant(&mut self, value: Literal, elem: Elem) -> ValueId {
        let result = self.op(Constant { value, elem }, &[]);
        self.constants.extend(self.ops.pop());
        result
    }

    fn int(&mut self, value: i64, elem: Elem) -> ValueId {
        self.constant(Literal::Int(value), elem)
    }

    fn binary(&mut self, op: BinaryOp, a: ValueId, b: ValueId) -> ValueId {
        self.op(Binary { op }, &[a, b])
    }

    fn broadcast(&mut self, value: ValueId, shape: &[usize]) -> ValueId {
        match self.kernel.tile(value).shape == shape {
            true => value,
            false => self.op(BroadcastTo { shape: shape.to_vec() }, &[value]),
        }
    }

    /// Which elements of a tile of `shape` are inside the tensor: a tensor and one index for each axis.
    fn inside(&mut self, operands: &[ValueId], shape: &[usize]) -> ValueId {
        let mut all = None;
        for (axis, &size) in shape.iter().enumerate() {
            let count = self.count(operands[0], axis, operands[1 + axis], size);
            let count = self.broadcast(count, &[size]);
            let ramp = self.op(Arange { len: size, elem: Elem::I32 }, &[]);
            let inside = self.op(Compare { op: CompareOp::Lt }, &[ramp, count]);
            let mut along = vec![1; shape.len()];
            along[axis] = size;
            let inside = self.op(Reshape { shape: along }, &[inside]);
            let inside = self.broadcast(inside, shape);
            all = Some(match all {
                None => inside,
                Some(before) => self.binary(BinaryOp::And, before, inside),
            });
        }
        all.expect("a tensor has an axis")
    }

    /// How many elements of tile `index` along an axis are inside: the first ones, since tiles start at multiples of their
    /// size. In 64 bits, and tiles so far out that their start would not fit are as good as one a little nearer.
    fn count(&mut self, tensor: ValueId, axis: usize, index: ValueId, size: usize) -> ValueId {
        let wide = match self.kernel.tile(index).elem {
            Elem::I64 => index,
            _ => self.op(Cast { elem: Elem::I64 }, &[index]),
        };
        let zero = self.int(0, Elem::I64);
        let last = self.int(i64::from(i32::MAX), Elem::I64);
        let size = self.int(size as i64, Elem::I64);
        let nearer = self.binary(BinaryOp::Minimum, wide, last);
        let start = self.binary(BinaryOp::Mul, nearer, size);
        let extent = self.op(Extent { axis }, &[tensor]);
        let extent = self.op(Cast { elem: Elem::I64 }, &[extent]);
        let left = self.binary(BinaryOp::Sub, extent, start);
        let left = self.binary(BinaryOp::Maximum, left, zero);
        let left = self.binary(BinaryOp::Minimum, left, size);
        let before = self.op(Compare { op: CompareOp::Lt }, &[wide, zero]);
        let count = self.op(Where, &[before, zero, left]);
        self.op(Cast { elem: Elem::I32 }, &[count])
    }
}
