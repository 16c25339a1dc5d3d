//! CPU meaning of operations: the trait that each operation implements in its own file, and the dispatch over all.

use smallvec::SmallVec;

use super::*;
use crate::cpu::{TensorArg, TileValue};

/// An operand as the executor hands it over. A tile that dies at the operation comes without another reference to its
/// elements, so that these can be overwritten.
#[derive(Clone)]
pub enum Operand<'a> {
    /// A tile.
    Tile(TileValue),
    /// A tensor argument.
    Tensor(&'a TensorArg<'a>),
}

/// The operands of one operation, taken one by one in the order of the operation's contract.
pub struct Operands<'a> {
    list: smallvec::IntoIter<[Operand<'a>; 4]>,
}

impl<'a> Operands<'a> {
    /// Operands in order.
    pub fn new(list: SmallVec<[Operand<'a>; 4]>) -> Self {
        Self { list: list.into_iter() }
    }

    /// The next operand, which the type rules make a tile.
    pub(crate) fn tile(&mut self) -> TileValue {
        match self.list.next() {
            Some(Operand::Tile(tile)) => tile,
            Some(Operand::Tensor(_)) | None => unreachable!("the type rules ask for a tile here"),
        }
    }

    /// The next operand, a tile, if there is one more.
    pub(crate) fn next_tile(&mut self) -> Option<TileValue> {
        (self.list.len() > 0).then(|| self.tile())
    }

    /// The next operand, which the type rules make a tensor.
    pub(crate) fn tensor(&mut self) -> &'a TensorArg<'a> {
        match self.list.next() {
            Some(Operand::Tensor(tensor)) => tensor,
            Some(Operand::Tile(_)) | None => unreachable!("the type rules ask for a tensor here"),
        }
    }

    /// The remaining operands, which the type rules make integer scalars.
    pub(crate) fn indices(&mut self) -> SmallVec<[i64; 4]> {
        let mut indices = SmallVec::new();
        while self.list.len() > 0 {
            indices.push(self.tile().as_int().expect("the type rules ask for integer scalars"));
        }
        indices
    }
}

/// What an operation sees of the block that runs it.
#[derive(Clone, Copy, Debug)]
pub struct EvalCx {
    /// The index of the block.
    pub block: [u32; 3],
    /// The number of blocks along each axis.
    pub grid: [u32; 3],
}

/// The meaning of an operation on the CPU.
pub trait Eval {
    /// Computes the result, if the operation has one. Operands have passed the operation's type rule.
    fn eval(&self, cx: EvalCx, operands: &mut Operands<'_>) -> Option<TileValue>;
}

macro_rules! dispatch {
    ($($variant:ident $module:ident :: $op:ident,)*) => {
        impl Eval for OpKind {
            fn eval(&self, cx: EvalCx, operands: &mut Operands<'_>) -> Option<TileValue> {
                match self { $(OpKind::$variant(op) => op.eval(cx, operands),)* }
            }
        }
    };
}
crate::for_each_op!(dispatch);
