//! `arange`: the numbers 0, 1, ... along one axis.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::{Dim, Int, Tile, session, shape};
use crate::ir::{Elem, Type};

/// A ramp `0..len`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Arange {
    /// How many.
    pub len: usize,
    /// Element type: an integer.
    pub elem: Elem,
}

impl TileOp for Arange {
    fn name(&self) -> &'static str {
        "arange"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("len", Attr::Int(self.len as i64)), ("elem", Attr::Elem(self.elem))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "arange").then(|| Ok(Self { len: attrs.index("len")?, elem: attrs.elem("elem")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        super::rule::no_operands("arange", operands)?;
        super::rule::tile_shape(&[self.len])?;
        if !self.elem.is_int() {
            return Err(OpError::new(
                Code::ElementType,
                format!("`arange` counts in an integer type, found `{}`", self.elem),
            )
            .help("write `arange::<i32>(n)` and cast the result"));
        }
        Ok(vec![Type::tile(self.elem, [self.len])])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

// ---- in kernels

/// The numbers `0, 1, .. n - 1`: `arange::<i32>(64)` has shape `(64,)`.
#[track_caller]
pub fn arange<T: Int>(n: impl Dim) -> Tile<T> {
    let raw = match shape::dims((n,)) {
        Ok(dims) => session::op(Arange { len: dims[0], elem: T::ELEM }, &[]),
        Err(error) => session::fault(error),
    };
    Tile::new(raw)
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Arange {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        use crate::cpu::TileValue;
        let _ = operands;
        let (shape, len) = ([self.len], self.len as i64);
        Some(match self.elem {
            Elem::I32 => TileValue::new(self.elem, &shape, (0..len).map(|i| i as i32).collect()),
            Elem::I64 => TileValue::new(self.elem, &shape, (0..len).collect::<Vec<i64>>()),
            Elem::U32 => TileValue::new(self.elem, &shape, (0..len).map(|i| i as u32).collect()),
            Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::Bool => {
                unreachable!("the type rule asks for an integer type")
            }
        })
    }
}

// ---- in PTX

super::place::place_nothing!(Arange);

impl super::lower::Lower for Arange {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let layout = cx.layout(cx.kernel.ops[id].results[0]).clone();
        let thread = crate::layout::ThreadOffset { lane: *layout.lane(), warp: layout.warp().to_vec() };
        let part = cx.linear(&thread);
        let mut out = Vec::new();
        for reg in 0..layout.num_regs() {
            let value = cx.f.add_s32(part, layout.flat(reg, 0, 0));
            out.push(cx.f.cvt(crate::lower::int_ty(self.elem), crate::ptx::Ty::U32, value));
        }
        cx.bind_result(id, out);
    }
}
