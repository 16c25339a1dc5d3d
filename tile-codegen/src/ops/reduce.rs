//! `reduce`: sum, max or min over axes, which stay as size 1. Floats accumulate in f32.

use super::reshape::Reshape;
use super::{Attr, AttrReader, Effects, TileOp};
use crate::diag::{Code, OpError};
use crate::dsl::{Axes, Number, Tile, shape};
use crate::ir::{Dim, Elem, TileType, Type};

/// How elements combine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceKind {
    /// Sum; 16-bit floats accumulate in f32 and round once, integers wrap, `bool` is refused.
    Sum,
    /// Maximum; NaN wins when `propagate_nan`, else it is ignored.
    Max,
    /// Minimum; likewise.
    Min,
}

impl ReduceKind {
    /// The name in IR text.
    pub fn name(self) -> &'static str {
        match self {
            ReduceKind::Sum => "sum",
            ReduceKind::Max => "max",
            ReduceKind::Min => "min",
        }
    }
}

/// Tile -> tile with `axes` of size 1.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reduce {
    /// How elements combine.
    pub kind: ReduceKind,
    /// The axes that are reduced, ascending.
    pub axes: Vec<usize>,
    /// Whether NaN wins a max or min (for a sum it always does).
    pub propagate_nan: bool,
}

impl TileOp for Reduce {
    fn name(&self) -> &'static str {
        "reduce"
    }
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![
            ("kind", Attr::Word(self.kind.name())),
            ("axes", Attr::list(&self.axes)),
            ("propagate_nan", Attr::Bool(self.propagate_nan)),
        ]
    }
    fn parse(name: &str, attrs: &mut AttrReader) -> Option<Result<Self, OpError>> {
        (name == "reduce").then(|| {
            let kind = attrs.word("kind")?;
            let kind =
                [ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min].into_iter().find(|k| k.name() == kind);
            let kind =
                kind.ok_or_else(|| OpError::new(Code::Parse, "`kind` must be `sum`, `max` or `min`"))?;
            Ok(Self { kind, axes: attrs.indices("axes")?, propagate_nan: attrs.flag("propagate_nan")? })
        })
    }
    fn result_count(&self) -> usize {
        1
    }
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>, OpError> {
        let [x] = super::rule::operands::<1>(self.kind.name(), operands)?;
        let x = super::rule::tile(self.kind.name(), x)?;
        if x.elem == Elem::Bool {
            return Err(OpError::new(
                Code::ElementType,
                format!("`{}` over a `bool` tile", self.kind.name()),
            )
            .help("convert it first: `.cast::<i32>()`"));
        }
        Ok(vec![Type::Tile(rule(x, &self.axes)?)])
    }
    fn effects(&self) -> Effects {
        Effects::Pure
    }
}

/// The shape rule: reduced axes become 1.
pub fn rule<D: Dim>(x: &TileType<D>, axes: &[usize]) -> Result<TileType<D>, OpError> {
    super::rule::axes(axes, x.rank())?;
    let size = |(axis, d): (usize, &D)| if axes.contains(&axis) { D::from_usize(1) } else { d.clone() };
    Ok(x.with_shape(x.shape.iter().enumerate().map(size).collect()))
}

// ---- in kernels

macro_rules! reductions {
    ($($(#[doc = $doc:literal])+ $f:ident $keep:ident $kind:ident $nan:literal;)*) => {
        $(
            $(#[doc = $doc])+
            /// `axes` is one axis, a tuple of axes or `ALL`; they are dropped from the shape.
            #[track_caller]
            pub fn $f<T: Number>(x: Tile<T>, axes: impl Axes) -> Tile<T> {
                reduced(x, axes, false, |axes| Reduce { kind: ReduceKind::$kind, axes, propagate_nan: $nan })
            }

            $(#[doc = $doc])+
            /// `axes` is one axis, a tuple of axes or `ALL`; they stay in the shape with size 1.
            #[track_caller]
            pub fn $keep<T: Number>(x: Tile<T>, axes: impl Axes) -> Tile<T> {
                reduced(x, axes, true, |axes| Reduce { kind: ReduceKind::$kind, axes, propagate_nan: $nan })
            }
        )*

        impl<T: Number> Tile<T> {
            $(
                $(#[doc = $doc])+
                /// `axes` is one axis, a tuple of axes or `ALL`; they are dropped from the shape.
                #[track_caller]
                pub fn $f(self, axes: impl Axes) -> Self {
                    $f(self, axes)
                }

                $(#[doc = $doc])+
                /// `axes` is one axis, a tuple of axes or `ALL`; they stay in the shape with size 1.
                #[track_caller]
                pub fn $keep(self, axes: impl Axes) -> Self {
                    $keep(self, axes)
                }
            )*
        }
    };
}
reductions! {
    /// The sum over axes. 16-bit floats accumulate in f32 and round once; integers wrap.
    sum sum_keepdims Sum false;
    /// The maximum over axes; NaN elements are ignored.
    max max_keepdims Max false;
    /// The minimum over axes; NaN elements are ignored.
    min min_keepdims Min false;
    /// The maximum over axes; NaN wins.
    max_nan max_nan_keepdims Max true;
    /// The minimum over axes; NaN wins.
    min_nan min_nan_keepdims Min true;
}

#[track_caller]
fn reduced<T: Number>(
    x: Tile<T>,
    axes: impl Axes,
    keep: bool,
    op: impl FnOnce(Vec<usize>) -> Reduce,
) -> Tile<T> {
    Tile::new(shape::with_shape(x.raw(), |from, at| {
        let mut axes = match axes.numbers() {
            Some(numbers) => shape::axes(&numbers, from.len())?,
            None => (0..from.len()).collect(),
        };
        super::rule::axes(&axes, from.len())?;
        axes.sort_unstable();
        let left: Vec<usize> = (0..from.len()).filter(|i| !axes.contains(i)).map(|i| from[i]).collect();
        let result = at.op(op(axes), &[x.raw()]);
        Ok(if keep { result } else { at.op(Reshape { shape: left }, &[result]) })
    }))
}

// ---- on the CPU

#[cfg(feature = "cpu")]
impl super::eval::Eval for Reduce {
    fn eval(
        &self,
        _: super::eval::EvalCx,
        operands: &mut super::eval::Operands<'_>,
    ) -> Option<crate::cpu::TileValue> {
        Some(crate::cpu::reduce::reduce(&operands.tile(), self.kind, &self.axes, self.propagate_nan))
    }
}

// ---- in PTX
