//! `load`: a tile out of a tensor. Indices count tiles, or elements; those outside the tensor are the padding value and
//! are not read.

use super::reshape::Reshape;
use super::window::{Start, Steps};
use super::{Attr, AttrReader, Effects, Literal, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::session::Raw;
use crate::dsl::{AnyTensor, IndexOfRank, Operand, Scalar, ShapeOfRank, Storable, Tile, session, shape};
use crate::ir::{Class, Type};

/// (tensor, i32 or i64 scalars: one index for each axis) -> tile.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Load {
    /// The shape of the tile, one dimension for each axis of the tensor.
    pub shape: Vec<usize>,
    /// What elements outside the tensor read as.
    pub pad: Literal,
    /// How it should be done.
    pub hints: Hints,
    /// What the index counts.
    pub steps: Steps,
}

/// How a load should be done. Hints never change what a kernel computes.
///
/// ```
/// use tile_codegen::dsl::prelude::Hints;
///
/// let hints = Hints::new().latency(4).allow_tma(false);
/// assert_eq!(hints.latency, Some(4));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Hints {
    /// How many iterations' tiles may be on their way at once, 1 to 10: the stages of the load's channel or ring in a loop;
    /// the rings of a loop have as many as the one with the fewest. 1 keeps the load from a ring, and from being issued
    /// ahead. `None` leaves it to the compiler.
    pub latency: Option<usize>,
    /// `Some(false)`: no bulk tensor copies for this load.
    pub allow_tma: Option<bool>,
}

impl Hints {
    /// No hints.
    pub const fn new() -> Self {
        Self { latency: None, allow_tma: None }
    }
    /// Sets [`Hints::latency`].
    pub const fn latency(self, latency: usize) -> Self {
        Self { latency: Some(latency), ..self }
    }
    /// Sets [`Hints::allow_tma`].
    pub const fn allow_tma(self, allow: bool) -> Self {
        Self { allow_tma: Some(allow), ..self }
    }
}

/// The largest latency.
const LATENCY: usize = 10;

impl TileOp for Load {
    fn name(&self) -> &'static str {
        "load"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        let mut attrs = vec![("shape", Attr::list(&self.shape)), ("pad", Attr::Literal(self.pad))];
        attrs.extend(self.hints.latency.map(|latency| ("latency", Attr::Int(latency as i64))));
        attrs.extend(self.hints.allow_tma.map(|allow| ("allow_tma", Attr::Bool(allow))));
        attrs.extend(self.steps.attr());
        attrs
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "load").then(|| {
            let (shape, pad) = (attrs.indices("shape")?, attrs.literal("pad")?);
            let latency = attrs.has("latency").then(|| attrs.index("latency")).transpose()?;
            let allow_tma = attrs.has("allow_tma").then(|| attrs.flag("allow_tma")).transpose()?;
            Ok(Self { shape, pad, hints: Hints { latency, allow_tma }, steps: Steps::parse(attrs)? })
        })
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let (tensor, index) = super::rule::tensor_and_index("load", operands)?;
        super::rule::tile_index("load", tensor, &self.shape, index)?;
        self.pad.check(tensor.elem)?;
        if let Some(latency) = self.hints.latency
            && !(1..=LATENCY).contains(&latency)
        {
            let message = format!("a load with a latency of {latency}: it is 1 to {LATENCY} iterations");
            return Err(
                OpError::new(Code::Hint, message).help("leave the hint out for the compiler's choice")
            );
        }
        Ok(vec![Type::tile(tensor.elem, self.shape.clone())])
    }
    fn effects(&self) -> Effects {
        Effects::ReadsGlobal
    }
}

// ---- in kernels

/// The tile of shape `shape` at an index that counts tiles: `load(x, (bid(0), 0), (64, 32))` begins at element
/// `(64 * bid(0), 0)`. Elements outside the tensor are zero (`false`). [`load_at`] counts elements.
#[track_caller]
pub fn load<T: Storable, const RANK: usize>(
    tensor: impl AnyTensor<T, RANK>,
    index: impl IndexOfRank<RANK>,
    shape: impl ShapeOfRank<RANK>,
) -> Tile<T> {
    load_hinted(tensor, index, shape, Hints::new())
}

/// As [`load`], with hints how it should be done: `load_hinted(x, (i, k), (64, 64), Hints::new().latency(4))`.
#[track_caller]
pub fn load_hinted<T: Storable, const RANK: usize>(
    tensor: impl AnyTensor<T, RANK>,
    index: impl IndexOfRank<RANK>,
    shape: impl ShapeOfRank<RANK>,
    hints: Hints,
) -> Tile<T> {
    let how = How { shape: shape::dims(shape), pad: Ok(zero::<T>()), hints, steps: Steps::Tiles };
    Tile::new(load_raw(tensor.to_raw(), &index.index_raws(), how))
}

/// As [`load`]; elements outside the tensor are `pad`, such as `f32::NEG_INFINITY`.
#[track_caller]
pub fn load_with<T: Storable, const RANK: usize>(
    tensor: impl AnyTensor<T, RANK>,
    index: impl IndexOfRank<RANK>,
    shape: impl ShapeOfRank<RANK>,
    pad: impl Operand<Tile<T>>,
) -> Tile<T> {
    load_with_hinted(tensor, index, shape, pad, Hints::new())
}

/// As [`load_with`], with hints how it should be done.
#[track_caller]
pub fn load_with_hinted<T: Storable, const RANK: usize>(
    tensor: impl AnyTensor<T, RANK>,
    index: impl IndexOfRank<RANK>,
    shape: impl ShapeOfRank<RANK>,
    pad: impl Operand<Tile<T>>,
    hints: Hints,
) -> Tile<T> {
    let how = How { shape: shape::dims(shape), pad: pad.literal(), hints, steps: Steps::Tiles };
    Tile::new(load_raw(tensor.to_raw(), &index.index_raws(), how))
}

/// The tile of shape `shape` that begins at an element: `load_at(x, (b, t0 - 3, ch), (1, 64, 32))`. The tile may begin and
/// end anywhere, also before the tensor; elements outside the tensor are zero (`false`).
///
/// Accesses are as wide as what is known of the innermost index allows: `64 * bid(0) + 8` is a multiple of 8, and a
/// scalar argument may be odd.
#[track_caller]
pub fn load_at<T: Storable, const RANK: usize>(
    tensor: impl AnyTensor<T, RANK>,
    index: impl IndexOfRank<RANK>,
    shape: impl ShapeOfRank<RANK>,
) -> Tile<T> {
    let pad = Ok(zero::<T>());
    let how = How { shape: shape::dims(shape), pad, hints: Hints::new(), steps: Steps::Elements };
    Tile::new(load_raw(tensor.to_raw(), &index.index_raws(), how))
}

/// As [`load_at`]; elements outside the tensor are `pad`.
#[track_caller]
pub fn load_at_with<T: Storable, const RANK: usize>(
    tensor: impl AnyTensor<T, RANK>,
    index: impl IndexOfRank<RANK>,
    shape: impl ShapeOfRank<RANK>,
    pad: impl Operand<Tile<T>>,
) -> Tile<T> {
    let pad = pad.literal();
    let how = How { shape: shape::dims(shape), pad, hints: Hints::new(), steps: Steps::Elements };
    Tile::new(load_raw(tensor.to_raw(), &index.index_raws(), how))
}

/// One element of a tensor; zero (`false`) outside it.
#[track_caller]
pub fn load_scalar<T: Storable, const RANK: usize>(
    tensor: impl AnyTensor<T, RANK>,
    index: impl IndexOfRank<RANK>,
) -> Scalar<T> {
    let tile = load(tensor, index, [1usize; RANK]);
    Scalar::new(session::op(Reshape { shape: Vec::new() }, &[tile.raw()]))
}

/// The attributes of a load, as far as they are right.
struct How {
    shape: Result<Vec<usize>, OpError>,
    pad: Result<Literal, OpError>,
    hints: Hints,
    steps: Steps,
}

#[track_caller]
fn load_raw(tensor: Raw, index: &[Raw], how: How) -> Raw {
    let How { shape, pad, hints, steps } = how;
    match (shape, pad) {
        (Ok(shape), Ok(pad)) => session::op(Load { shape, pad, hints, steps }, &[&[tensor], index].concat()),
        (Err(error), _) | (_, Err(error)) => session::fault(error),
    }
}

/// Zero, or `false`.
pub(super) fn zero<T: Storable>() -> Literal {
    match T::ELEM.class() {
        Class::Float => Literal::float(0.0),
        Class::Int => Literal::Int(0),
        Class::Bool => Literal::Bool(false),
    }
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Load {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        let tensor = operands.tensor();
        let at = crate::cpu::transfer::At { index: &operands.indices(), steps: self.steps };
        Some(crate::cpu::transfer::load(tensor, at, &self.shape, self.pad))
    }
}

// ---- in PTX

use super::place::{Natural, Place, PlaceCx, Want};
use crate::layout::Layout;

/// Tiles up to this many elements are loaded in whatever layout each user wants: a second load of so little costs less
/// than an exchange between threads.
const RELOAD: usize = 512;

impl Place for Load {
    fn natural(&self, cx: &PlaceCx<'_>, _: &[Option<Natural>]) -> Option<Natural> {
        let tensor = cx.op.operands[0];
        let mutable = cx.kernel.ty(tensor).as_tensor().is_some_and(|t| t.mutable);
        if cx.result().numel() <= RELOAD && !mutable {
            return None;
        }
        let start = Start { tensor, index: &cx.op.operands[1..], steps: self.steps };
        Some(Natural {
            layout: crate::lower::global::coalesced(cx.kernel, start, cx.result(), cx.num_warps),
            weight: 1,
            soft: false,
        })
    }
    fn wants(&self, cx: &PlaceCx<'_>, _: &[Option<Natural>], _: Option<&Layout>) -> Vec<Want> {
        vec![Want::Any; cx.op.operands.len()]
    }
}

impl super::lower::Lower for Load {
    fn scratch(&self, _: &crate::ir::Kernel, _: &crate::ir::Op) -> u32 {
        0
    }
    fn lower(&self, cx: &mut crate::lower::LowerCx<'_>, id: crate::ir::OpId) {
        let op = &cx.kernel.ops[id];
        let (tensor, result) = (op.operands[0], op.results[0]);
        let layout = cx.layout(result).clone();
        let start = Start { tensor, index: &op.operands[1..], steps: self.steps };
        let window = cx.window(start, &layout);
        let ty = cx.kernel.ty(tensor).as_tensor().expect("load reads a tensor").clone();
        let pad = super::constant::literal_operand(self.pad, ty.elem);
        let values = cx.load_window(&window, !ty.mutable, pad);
        cx.bind(result, values);
    }
}
