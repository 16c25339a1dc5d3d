//! `mma`: the matrix product `acc + a @ b`, on tensor cores where the element type has them; f32 is exact f32 (FMA).

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::{MmaOperand, Tile, session};
use crate::ir::{Dim, Elem, TileType, Type, dim};

/// (a, b, acc) -> tile of the accumulator's type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Mma;

impl TileOp for Mma {
    fn name(&self) -> &'static str {
        "mma"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        Vec::new()
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "mma").then(|| {
            let _ = attrs;
            Ok(Self)
        })
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [a, b, acc] = super::rule::operands::<3>("mma", operands)?;
        let (a, b, acc) = (operand("a", a)?, operand("b", b)?, super::rule::tile("mma", acc)?.clone());
        check_types(a.elem, b.elem, acc.elem)?;
        rule(&a, &b, &acc)?;
        Ok(vec![Type::Tile(acc)])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

/// An operand is a tile, or a shared tile once layouts are assigned.
fn operand(name: &str, ty: &Type) -> Result<TileType, OpError> {
    match ty {
        Type::Tile(tile) => Ok(tile.clone()),
        Type::Shared(shared) => Ok(TileType::new(shared.elem, shared.layout.shape.to_vec())),
        Type::Tensor(_) | Type::Error => {
            Err(OpError::new(Code::MmaType, format!("operand `{name}` of `mma` must be a tile"))
                .help("load a tile of the tensor first: `load(t, (i, j), (m, k))`"))
        }
    }
}

fn check_types(a: Elem, b: Elem, acc: Elem) -> Result<(), OpError> {
    if a != b {
        return Err(OpError::new(
            Code::MmaType,
            format!("`mma` multiplies one element type, found `{a}` and `{b}`"),
        )
        .help(format!("convert one side, for example `.cast::<{a}>()`")));
    }
    if !a.is_float() {
        return Err(OpError::new(Code::MmaType, format!("`mma` of `{a}` is not supported"))
            .help("operands are f16, bf16, tf32 or f32"));
    }
    if acc != Elem::F32 {
        return Err(OpError::new(
            Code::MmaType,
            format!("`mma` accumulates `{a}` products in `f32`, found a `{acc}` accumulator"),
        )
        .help("start from `zeros::<f32>(..)` and cast the result"));
    }
    Ok(())
}

/// The shape rule: `[.., m, k] @ [.., k, n] + [.., m, n]`, of rank 2, or 3 with equal batch dimensions.
pub fn rule<D: Dim>(a: &TileType<D>, b: &TileType<D>, acc: &TileType<D>) -> Result<(), OpError> {
    let shapes = || format!("{} @ {} + {}", dim::show(&a.shape), dim::show(&b.shape), dim::show(&acc.shape));
    let rank = acc.rank();
    if !(2..=3).contains(&rank) || a.rank() != rank || b.rank() != rank {
        return Err(OpError::new(
            Code::MmaShape,
            format!("`mma` takes tiles of rank 2, or all of rank 3, found {}", shapes()),
        )
        .help("`reshape` the operands to (m, k), (k, n) and (m, n)"));
    }
    let fault = |what: &str, x: &D, y: &D| {
        OpError::new(Code::MmaShape, format!("{what} differ in `mma`: {x} and {y} in {}", shapes()))
            .help("shapes are (m, k) @ (k, n) + (m, n); `transpose` an operand that is the other way round")
    };
    let (m, n) = (rank - 2, rank - 1);
    if a.shape[n].differs(&b.shape[m]) {
        return Err(fault("the inner dimensions", &a.shape[n], &b.shape[m]));
    }
    if a.shape[m].differs(&acc.shape[m]) {
        return Err(fault("the rows of a and of the accumulator", &a.shape[m], &acc.shape[m]));
    }
    if b.shape[n].differs(&acc.shape[n]) {
        return Err(fault("the columns of b and of the accumulator", &b.shape[n], &acc.shape[n]));
    }
    if rank == 3 && (a.shape[0].differs(&acc.shape[0]) || b.shape[0].differs(&acc.shape[0])) {
        return Err(fault("the batch dimensions", &a.shape[0], &b.shape[0]));
    }
    Ok(())
}

// ---- in kernels

/// The matrix product `acc + a @ b`: shapes `(m, k)`, `(k, n)`, `(m, n)`, or all with a leading batch dimension.
/// Operands have one type of f32, f16, bf16 and tf32; the accumulator is f32.
#[track_caller]
pub fn mma<T: MmaOperand>(a: Tile<T>, b: Tile<T>, acc: Tile<f32>) -> Tile<f32> {
    Tile::new(session::op(Mma, &[a.raw(), b.raw(), acc.raw()]))
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Mma {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let (a, b, acc) = (operands.tile(), operands.tile(), operands.tile());
        Some(crate::cpu::product::mma(a, b, acc))
    }
}

// ---- in PTX
