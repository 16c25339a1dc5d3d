//! Tiles as values: reference-counted elements seen through strides.

use std::sync::Arc;

use super::round;
use super::strided::{self, Dims};
use crate::ir::{Elem, TileType};
use crate::ops::Literal;

/// The elements behind a tile. Clones share them.
#[derive(Clone, Debug)]
pub enum TileData {
    /// F32, F16, BF16 and TF32: f32 values that are already rounded to the type.
    Float(Arc<Vec<f32>>),
    /// I32.
    I32(Arc<Vec<i32>>),
    /// I64.
    I64(Arc<Vec<i64>>),
    /// U32.
    U32(Arc<Vec<u32>>),
    /// Bool.
    Bool(Arc<Vec<bool>>),
}

impl TileData {
    /// The number of elements held, which broadcast views use more than once.
    pub fn len(&self) -> usize {
        match self {
            TileData::Float(x) => x.len(),
            TileData::I32(x) => x.len(),
            TileData::I64(x) => x.len(),
            TileData::U32(x) => x.len(),
            TileData::Bool(x) => x.len(),
        }
    }
    /// Whether no elements are held; tiles never have none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A Rust type that holds elements.
pub trait Element: Copy + Default + PartialEq + PartialOrd + Send + Sync + 'static {
    /// Wraps elements.
    fn wrap(data: Arc<Vec<Self>>) -> TileData;
    /// The elements, if they have this type.
    fn of(data: &TileData) -> Option<&Arc<Vec<Self>>>;
    /// The elements, if they have this type, without another reference to them.
    fn take(data: TileData) -> Option<Arc<Vec<Self>>>;
}

macro_rules! element {
    ($($ty:ty, $variant:ident;)*) => {$(
        impl Element for $ty {
            fn wrap(data: Arc<Vec<Self>>) -> TileData {
                TileData::$variant(data)
            }
            fn of(data: &TileData) -> Option<&Arc<Vec<Self>>> {
                if let TileData::$variant(x) = data { Some(x) } else { None }
            }
            fn take(data: TileData) -> Option<Arc<Vec<Self>>> {
                if let TileData::$variant(x) = data { Some(x) } else { None }
            }
        }
    )*};
}
element! { f32, Float; i32, I32; i64, I64; u32, U32; bool, Bool; }

/// Runs `$body` with `$T` standing for the Rust type of the tile's elements.
macro_rules! for_element {
    ($tile:expr, $T:ident => $body:expr) => {
        match $tile.data() {
            $crate::cpu::TileData::Float(_) => {
                type $T = f32;
                $body
            }
            $crate::cpu::TileData::I32(_) => {
                type $T = i32;
                $body
            }
            $crate::cpu::TileData::I64(_) => {
                type $T = i64;
                $body
            }
            $crate::cpu::TileData::U32(_) => {
                type $T = u32;
                $body
            }
            $crate::cpu::TileData::Bool(_) => {
                type $T = bool;
                $body
            }
        }
    };
}
pub(crate) use for_element;

/// A tile: element type, shape, and elements seen through strides, so that reordering, repeating and cutting out are
/// free.
#[derive(Clone, Debug)]
pub struct TileValue {
    elem: Elem,
    shape: Dims,
    strides: Dims,
    offset: usize,
    data: TileData,
}

impl TileValue {
    /// A tile of elements in row-major order. Floats must be values of `elem` already.
    ///
    /// # Panics
    /// If the number of elements or their Rust type does not fit.
    pub fn new<T: Element>(elem: Elem, shape: &[usize], elements: Vec<T>) -> Self {
        assert_eq!(elements.len(), shape.iter().product::<usize>(), "as many elements as the shape has");
        let strides = strided::row_major(shape);
        Self::strided(elem, shape.into(), strides, elements)
    }

    /// A tile seen through strides.
    pub(crate) fn strided<T: Element>(elem: Elem, shape: Dims, strides: Dims, elements: Vec<T>) -> Self {
        Self::from_arc(elem, shape, strides, Arc::new(elements))
    }

    pub(crate) fn from_arc<T: Element>(elem: Elem, shape: Dims, strides: Dims, data: Arc<Vec<T>>) -> Self {
        let data = T::wrap(data);
        let fits = match &data {
            TileData::Float(_) => elem.is_float(),
            TileData::I32(_) => elem == Elem::I32,
            TileData::I64(_) => elem == Elem::I64,
            TileData::U32(_) => elem == Elem::U32,
            TileData::Bool(_) => elem == Elem::Bool,
        };
        assert!(fits, "elements of the Rust type of `{elem}`");
        Self { elem, shape, strides, offset: 0, data }
    }

    /// A scalar.
    ///
    /// # Panics
    /// If the Rust type does not fit `elem`.
    pub fn scalar<T: Element>(elem: Elem, value: T) -> Self {
        Self::new(elem, &[], vec![value])
    }

    /// A scalar literal, rounded once to `elem`; the literal has passed [`Literal::check`].
    pub fn literal(elem: Elem, value: Literal) -> Self {
        let int = match value {
            Literal::Int(i) => i,
            Literal::Bool(b) => i64::from(b),
            Literal::Float(_) => value.as_f64() as i64,
        };
        match elem {
            Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 => {
                Self::scalar(elem, round::from_f64(elem, value.as_f64()))
            }
            Elem::I32 => Self::scalar(elem, int as i32),
            Elem::I64 => Self::scalar(elem, int),
            Elem::U32 => Self::scalar(elem, int as u32),
            Elem::Bool => Self::scalar(elem, int != 0),
        }
    }

    /// Element type and shape.
    pub fn ty(&self) -> TileType {
        TileType::new(self.elem, self.shape.to_vec())
    }
    /// Element type.
    pub fn elem(&self) -> Elem {
        self.elem
    }
    /// Sizes of the axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }
    /// For each axis, how far apart its neighbours are among the held elements.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }
    /// The held elements, of which the strides select.
    pub fn data(&self) -> &TileData {
        &self.data
    }
    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    /// The elements in row-major order, or `None` if they are not held as `T`.
    pub fn to_vec<T: Element>(&self) -> Option<Vec<T>> {
        let (data, strides) = self.view::<T>()?;
        Some(strided::gather(data, &self.shape, strides))
    }

    /// An integer scalar, widened; `None` for other tiles.
    pub fn as_int(&self) -> Option<i64> {
        match &self.data {
            TileData::I32(x) if self.shape.is_empty() => Some(i64::from(x[self.offset])),
            TileData::I64(x) if self.shape.is_empty() => Some(x[self.offset]),
            TileData::U32(x) if self.shape.is_empty() => Some(i64::from(x[self.offset])),
            _ => None,
        }
    }

    /// A truth scalar; `None` for other tiles.
    pub fn as_bool(&self) -> Option<bool> {
        match &self.data {
            TileData::Bool(x) if self.shape.is_empty() => Some(x[self.offset]),
            _ => None,
        }
    }

    /// The held elements from the first element of the tile on, and the strides.
    pub(crate) fn view<T: Element>(&self) -> Option<(&[T], &[usize])> {
        Some((&T::of(&self.data)?[self.offset..], &self.strides))
    }

    /// The held elements of a tile whose element type has been checked.
    pub(crate) fn expect<T: Element>(&self) -> (&[T], &[usize]) {
        self.view().expect("the type rules fix the element type")
    }

    /// Whether the held elements are exactly the tile's, in row-major order.
    pub(crate) fn is_dense(&self) -> bool {
        self.data.len() == self.numel() && strided::is_row_major(&self.shape, &self.strides)
    }

    /// Whether an operation may overwrite the elements: they are the tile's, dense, and nobody else sees them.
    pub(crate) fn is_reusable(&mut self) -> bool {
        self.is_dense()
            && match &mut self.data {
                TileData::Float(x) => Arc::get_mut(x).is_some(),
                TileData::I32(x) => Arc::get_mut(x).is_some(),
                TileData::I64(x) => Arc::get_mut(x).is_some(),
                TileData::U32(x) => Arc::get_mut(x).is_some(),
                TileData::Bool(x) => Arc::get_mut(x).is_some(),
            }
    }

    /// The elements in row-major order, in a buffer that nobody else sees; no copy if this tile is reusable.
    pub(crate) fn into_dense<T: Element>(self) -> Arc<Vec<T>> {
        if !self.is_dense() {
            return Arc::new(self.to_vec().expect("the type rules fix the element type"));
        }
        let mut data = T::take(self.data).expect("the type rules fix the element type");
        Arc::make_mut(&mut data);
        data
    }

    /// The same held elements with `f` applied to them in a buffer that nobody else sees, through the same strides.
    /// Elements that the tile repeats are handled once.
    pub(crate) fn map_in_place<T: Element>(mut self, elem: Elem, f: impl FnOnce(&mut [T])) -> Self {
        if self.data.len() > self.numel() {
            let data = self.to_vec::<T>().expect("the type rules fix the element type");
            self = Self::new(self.elem, &self.shape, data);
        }
        let mut data = T::take(self.data).expect("the type rules fix the element type");
        let values: &mut Vec<T> = Arc::make_mut(&mut data);
        f(values);
        Self { elem, data: T::wrap(data), ..self }
    }

    /// New elements made from the held ones by `f`, seen through the same strides.
    pub(crate) fn map<T: Element, U: Element>(self, elem: Elem, f: impl Fn(T) -> U) -> Self {
        if self.data.len() > self.numel() {
            let data = self.to_vec::<T>().expect("the type rules fix the element type");
            return Self::new(self.elem, &self.shape, data).map(elem, f);
        }
        let data = T::of(&self.data).expect("the type rules fix the element type");
        let data = U::wrap(Arc::new(data.iter().map(|&x| f(x)).collect()));
        Self { elem, data, ..self }
    }

    /// The same elements under another float type, of which all are values.
    pub(crate) fn with_elem(self, elem: Elem) -> Self {
        Self { elem, ..self }
    }

    /// The same elements in row-major order under another shape; a view where the strides allow it.
    pub(crate) fn reshape(self, shape: &[usize]) -> Self {
        if strided::is_row_major(&self.shape, &self.strides) {
            return self.with_view(shape.into(), strided::row_major(shape), 0);
        }
        let large = |shape: &[usize]| -> Dims { shape.iter().copied().filter(|&size| size != 1).collect() };
        if large(&self.shape) == large(shape) {
            let pairs = self.shape.iter().zip(&self.strides);
            let mut old = pairs.filter(|&(&size, _)| size != 1).map(|(_, &stride)| stride);
            let strides =
                shape.iter().map(|&size| if size == 1 { 0 } else { old.next().unwrap_or(0) }).collect();
            return self.with_view(shape.into(), strides, 0);
        }
        let elem = self.elem;
        for_element!(self, T => {
            Self::from_arc(elem, shape.into(), strided::row_major(shape), self.into_dense::<T>())
        })
    }

    /// A view of the same held elements.
    pub(crate) fn with_view(self, shape: Dims, strides: Dims, skip: usize) -> Self {
        Self { shape, strides, offset: self.offset + skip, ..self }
    }

    /// Whether two tiles see equally many held elements in the same way, so that these correspond one to one.
    pub(crate) fn same_view(&self, other: &Self) -> bool {
        self.data.len() == other.data.len()
            && self.data.len() <= self.numel()
            && self.offset == other.offset
            && self.shape == other.shape
            && self.strides == other.strides
    }

    /// Splits into the view and the held elements.
    pub(crate) fn into_parts(self) -> (View, TileData) {
        (View { shape: self.shape, strides: self.strides, offset: self.offset }, self.data)
    }

    /// Joins a view with elements.
    pub(crate) fn from_parts(elem: Elem, view: View, data: TileData) -> Self {
        Self { elem, shape: view.shape, strides: view.strides, offset: view.offset, data }
    }
}

/// How a tile sees its elements.
pub(crate) struct View {
    pub(crate) shape: Dims,
    strides: Dims,
    offset: usize,
}
