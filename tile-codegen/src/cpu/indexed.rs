//! Elements of tensors named by index tiles, on the CPU: reads and writes in runs of neighbours in storage.

use super::memory::{Slice, SliceMut, TensorArg, TensorMemory};
use super::strided::Dims;
use super::value::TileValue;
use crate::ir::Elem;
use crate::ops::Literal;
use crate::ops::eval::Operands;

/// The elements that an operation names.
pub(crate) struct Elements<'a> {
    tensor: &'a TensorArg<'a>,
    shape: Dims,
    /// For each in row-major order, its storage element; `None` if it is outside the tensor or masked.
    places: Vec<Option<i64>>,
}

impl<'a> Elements<'a> {
    /// Takes a tensor, an index tile for each of its axes, and a mask if there is one.
    pub(crate) fn new(operands: &mut Operands<'a>) -> Self {
        let tensor = operands.tensor();
        let index: Vec<TileValue> = tensor.shape.iter().map(|_| operands.tile()).collect();
        let mask = operands.next_tile();
        let shape: Dims = index[0].shape().into();
        let mut places = match mask {
            None => vec![Some(tensor.offset); index[0].numel()],
            Some(mask) => {
                let mask = mask.to_vec::<bool>().expect("the type rules ask for a bool mask");
                mask.into_iter().map(|on| on.then_some(tensor.offset)).collect()
            }
        };
        for (axis, index) in index.iter().enumerate() {
            let (extent, stride) = (tensor.shape[axis], tensor.strides[axis]);
            let stride = if extent == 1 { 0 } else { stride };
            for (place, at) in places.iter_mut().zip(numbers(index)) {
                // Inside the tensor, so it fits 64 bits.
                *place = place.filter(|_| (0..extent).contains(&at)).map(|place| place + at * stride);
            }
        }
        Self { tensor, shape, places }
    }

    /// The storage element of each element in row-major order; `None` if it is outside the tensor or masked.
    pub(crate) fn each(&self) -> impl Iterator<Item = Option<i64>> + '_ {
        self.places.iter().copied()
    }

    /// The storage.
    pub(crate) fn memory(&self) -> &dyn TensorMemory {
        self.tensor.memory
    }

    /// Calls `f` with the first element of every run, its storage element and the length of the run.
    fn runs(&self, mut f: impl FnMut(usize, i64, usize)) {
        let mut at = 0;
        while at < self.places.len() {
            let Some(start) = self.places[at] else {
                at += 1;
                continue;
            };
            let next = self.places[at..].iter().zip(start..);
            let count = next.take_while(|&(&place, right)| place == Some(right)).count();
            f(at, start, count);
            at += count;
        }
    }

    /// Reads the elements; the others are `pad`.
    pub(crate) fn gather(&self, pad: Literal) -> TileValue {
        let (memory, elem) = (self.tensor.memory, self.tensor.memory.elem());
        let pad = TileValue::literal(elem, pad);
        macro_rules! gather_as {
            ($variant:ident, $ty:ty) => {{
                let mut out = vec![pad.expect::<$ty>().0[0]; self.places.len()];
                self.runs(|at, start, count| {
                    memory.read(start, 1, SliceMut::$variant(&mut out[at..at + count]))
                });
                TileValue::new(elem, &self.shape, out)
            }};
        }
        match elem {
            Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 => gather_as!(Float, f32),
            Elem::I32 => gather_as!(I32, i32),
            Elem::I64 => gather_as!(I64, i64),
            Elem::U32 => gather_as!(U32, u32),
            Elem::Bool => gather_as!(Bool, bool),
        }
    }

    /// Writes a tile to the elements.
    pub(crate) fn scatter(&self, value: &TileValue) {
        let memory = self.tensor.memory;
        macro_rules! scatter_as {
            ($variant:ident, $ty:ty) => {{
                let values = value.to_vec::<$ty>().expect("the type rules fix the element type");
                self.runs(|at, start, count| {
                    memory.write(start, 1, Slice::$variant(&values[at..at + count]))
                });
            }};
        }
        match value.elem() {
            Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 => scatter_as!(Float, f32),
            Elem::I32 => scatter_as!(I32, i32),
            Elem::I64 => scatter_as!(I64, i64),
            Elem::U32 => scatter_as!(U32, u32),
            Elem::Bool => scatter_as!(Bool, bool),
        }
    }
}

/// The numbers of an index tile in row-major order.
fn numbers(index: &TileValue) -> Vec<i64> {
    macro_rules! numbers_as {
        ($ty:ty) => {{
            let numbers = index.to_vec::<$ty>().expect("the type rules fix the element type");
            numbers.into_iter().map(i64::from).collect()
        }};
    }
    match index.elem() {
        Elem::I32 => numbers_as!(i32),
        Elem::U32 => numbers_as!(u32),
        Elem::I64 | Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::Bool => {
            index.to_vec::<i64>().expect("the type rules ask for integer indices")
        }
    }
}
