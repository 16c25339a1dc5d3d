//! `reshape`: the same elements in row-major order under another shape.

use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::{Axis, Element, Scalar, Shape, Tile, shape};
use crate::ir::{Dim, TileType, Type, dim};

/// Tile -> tile with as many elements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reshape {
    /// The new shape.
    pub shape: Vec<usize>,
}

impl TileOp for Reshape {
    fn name(&self) -> &'static str {
        "reshape"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("shape", Attr::list(&self.shape))]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "reshape").then(|| Ok(Self { shape: attrs.indices("shape")? }))
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [x] = super::rule::operands::<1>("reshape", operands)?;
        let x = super::rule::tile("reshape", x)?;
        Ok(vec![Type::Tile(rule(x, &self.shape)?)])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

/// The shape rule: element counts agree.
pub fn rule<D: Dim>(x: &TileType<D>, shape: &[D]) -> Result<TileType<D>, OpError> {
    super::rule::tile_shape(shape)?;
    let (from, to) = (dim::count(&x.shape), dim::count(shape));
    if from.differs(&to) {
        return Err(OpError::new(
            Code::Reshape,
            format!(
                "cannot reshape {} ({from} elements) to {} ({to} elements)",
                dim::show(&x.shape),
                dim::show(shape)
            ),
        )
        .help(format!("the dimensions of the new shape must multiply to {from}")));
    }
    Ok(x.with_shape(shape.to_vec()))
}

// ---- in kernels

/// The same elements, in row-major order, under another shape; one dimension may be -1.
#[track_caller]
pub fn reshape<T: Element>(x: Tile<T>, shape: impl Shape) -> Tile<T> {
    Tile::new(shape::with_shape(x.raw(), |from, at| {
        let shape = shape::dims_of(shape, from.iter().product())?;
        Ok(at.op(Reshape { shape }, &[x.raw()]))
    }))
}

/// A new axis of size 1 before axis `axis`; -1 is after the last.
#[track_caller]
pub fn expand_dims<T: Element>(x: Tile<T>, axis: impl Axis) -> Tile<T> {
    Tile::new(shape::with_shape(x.raw(), |from, at| {
        let axis = shape::resolve(axis.number(), from.len() + 1)?;
        let mut shape = from.to_vec();
        shape.insert(axis, 1);
        Ok(at.op(Reshape { shape }, &[x.raw()]))
    }))
}

impl<T: Element> Tile<T> {
    /// See [`reshape`].
    #[track_caller]
    pub fn reshape(self, shape: impl Shape) -> Self {
        reshape(self, shape)
    }

    /// See [`expand_dims`].
    #[track_caller]
    pub fn expand_dims(self, axis: impl Axis) -> Self {
        expand_dims(self, axis)
    }

    /// The element of a tile that has only one.
    #[track_caller]
    pub fn item(self) -> Scalar<T> {
        Scalar::new(shape::with_shape(self.raw(), |from, at| match from.iter().product() {
            1usize => Ok(at.op(Reshape { shape: Vec::new() }, &[self.raw()])),
            n => Err(OpError::new(
                Code::Reshape,
                format!("`item` of a tile of shape {}, which has {n} elements", dim::show(from)),
            )
            .help("reduce it first, for example `sum(t, ALL)`, or take one element with `extract`")),
        }))
    }
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Reshape {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        Some(operands.tile().reshape(&self.shape))
    }
}

// ---- in PTX

use super::place::{Natural, Place, PlaceCx, Want};
use crate::layout::Layout;

impl Place for Reshape {
    fn natural(&self, _: &PlaceCx<'_>, operands: &[Option<Natural>]) -> Option<Natural> {
        let x = operands[0].as_ref()?;
        let layout = x.layout.reshape(&self.shape).expect("the shape rule keeps the number of elements");
        Some(Natural { layout, weight: x.weight, soft: x.soft })
    }
    fn wants(&self, cx: &PlaceCx<'_>, _: &[Option<Natural>], result: Option<&Layout>) -> Vec<Want> {
        // A scalar result comes from a tile of one element, which every thread has.
        let scalar = || Layout::scalar(cx.num_warps).expect("warps are a power of two");
        let result = result.cloned().unwrap_or_else(scalar);
        let back = cx.tile(0).and_then(|x| result.reshape(&x.shape).ok());
        back.map_or_else(|| cx.any(), |layout| cx.all(&layout))
    }
}

impl super::lower::Lower for Reshape {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let x = cx.kernel.ops[id].operands[0];
        let values = cx.values(x);
        cx.bind_result(id, values);
    }
}
