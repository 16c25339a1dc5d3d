//! `fma`: `a * b + c` of floats, element by element, rounded once.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::{Float, Tile, TileOrScalar, session};
use crate::ir::Type;

/// (tile, tile, tile) -> tile, all of one float type and one shape.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Fma;

impl TileOp for Fma {
    fn name(&self) -> &'static str {
        "fma"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        Vec::new()
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "fma").then(|| {
            let _ = attrs;
            Ok(Self)
        })
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [a, b, c] = super::rule::operands::<3>("fma", operands)?;
        let (a, b, c) =
            (super::rule::tile("fma", a)?, super::rule::tile("fma", b)?, super::rule::tile("fma", c)?);
        if !a.elem.is_float() {
            return Err(OpError::new(Code::ElementType, format!("`fma` of `{}`: it takes floats", a.elem))
                .help("write `a * b + c`"));
        }
        super::rule::same("fma", a, b)?;
        super::rule::same("fma", a, c)?;
        Ok(vec![Type::Tile(a.clone())])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

// ---- in kernels

/// `a * b + c`, element by element, rounded once; operators round twice. `b` and `c` are tiles or scalars, and all
/// broadcast.
#[track_caller]
pub fn fma<T: Float>(a: Tile<T>, b: impl TileOrScalar<Elem = T>, c: impl TileOrScalar<Elem = T>) -> Tile<T> {
    let at = std::panic::Location::caller();
    Tile::new(session::with(|s| {
        let operands = s.common([a.raw(), b.to_raw(), c.to_raw()], "fma", at);
        s.op(Fma, &operands, at)
    }))
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Fma {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let (a, b, c) = (operands.tile(), operands.tile(), operands.tile());
        Some(crate::cpu::elementwise::fma(a, &b, &c))
    }
}

// ---- in PTX

super::place::place_elementwise!(Fma);

impl super::lower::Lower for Fma {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let operands = cx.kernel.ops[id].operands.clone();
        let elem = cx.elem(operands[0]);
        let [a, b, c] = [0, 1, 2].map(|i| cx.values(operands[i]));
        let mut out: Vec<crate::ptx::Operand> = Vec::with_capacity(a.len());
        for ((a, b), c) in a.into_iter().zip(b).zip(c) {
            let [a, b, c] = [a, b, c].map(|x| cx.widen(elem, x));
            out.push(cx.f.fma_f32(a, b, c).into());
        }
        let out = cx.narrow_all(elem, &out);
        cx.bind_result(id, out);
    }
}
