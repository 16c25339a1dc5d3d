//! Tiles out of and into tensors, in runs along the axis that lies densest in memory.

use smallvec::SmallVec;

use super::memory::{Slice, SliceMut, TensorArg};
use super::round;
use super::strided::{Dims, row_major};
use super::value::TileValue;
use crate::ir::Elem;
use crate::ops::Literal;
use crate::ops::window::Steps;

type Offsets = SmallVec<[i64; 4]>;

/// Where a tile begins in a tensor.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    /// One number for each axis.
    pub index: &'a [i64],
    /// What they count.
    pub steps: Steps,
}

/// The part of a tile that lies inside a tensor.
struct Window {
    /// For each axis, the first tile element inside and how many are.
    inside: SmallVec<[(usize, usize); 4]>,
    /// The storage element of the first one.
    start: i64,
    /// Storage strides; 0 for axes along which the tensor has one element.
    strides: Offsets,
    /// The axis along which runs go.
    run: usize,
}

impl Window {
    /// `None` if all of the tile lies outside.
    fn new(tensor: &TensorArg<'_>, at: At<'_>, shape: &[usize]) -> Option<Window> {
        let mut window =
            Window { inside: SmallVec::new(), start: tensor.offset, strides: Offsets::new(), run: 0 };
        for (axis, &size) in shape.iter().enumerate() {
            let stride = at.steps.stride(size) as i128;
            let (extent, size) = (i128::from(tensor.shape[axis]), size as i128);
            let first = i128::from(at.index[axis]) * stride;
            let low = (-first).clamp(0, size);
            let high = (extent - first).clamp(0, size);
            if low >= high {
                return None;
            }
            let stride = if extent == 1 { 0 } else { tensor.strides[axis] };
            // Inside the tensor, so it fits 64 bits.
            window.start += (first + low) as i64 * stride;
            window.inside.push((low as usize, (high - low) as usize));
            window.strides.push(stride);
        }
        let axes = || (0..shape.len()).rev().filter(|&axis| shape[axis] > 1);
        window.run = axes().find(|&axis| window.strides[axis] == 1).or_else(|| axes().next()).unwrap_or(0);
        Some(window)
    }

    /// Whether all of the tile lies inside.
    fn is_whole(&self, shape: &[usize]) -> bool {
        self.inside.iter().zip(shape).all(|(&(_, count), &size)| count == size)
    }

    /// Calls `f` with the tile offset and the storage offset of every run.
    fn runs(&self, tile_strides: &[usize], mut f: impl FnMut(usize, i64)) {
        let first = self.inside.iter().zip(tile_strides).map(|(&(low, _), &stride)| low * stride).sum();
        let (mut tile, mut storage): (usize, i64) = (first, self.start);
        let mut counts: Dims = self.inside.iter().map(|_| 0).collect();
        loop {
            f(tile, storage);
            let mut axis = counts.len();
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                if axis == self.run {
                    continue;
                }
                counts[axis] += 1;
                tile += tile_strides[axis];
                storage += self.strides[axis];
                if counts[axis] < self.inside[axis].1 {
                    break;
                }
                tile -= tile_strides[axis] * counts[axis];
                storage -= self.strides[axis] * counts[axis] as i64;
                counts[axis] = 0;
            }
        }
    }

    /// The number of elements of a run and their distance in storage.
    fn run_shape(&self) -> (usize, i64) {
        match (self.inside.get(self.run), self.strides.get(self.run)) {
            (Some(&(_, count)), Some(&stride)) => (count, stride),
            _ => (1, 0),
        }
    }
}

/// A tile of `shape`; elements outside the tensor are `pad`.
pub(crate) fn load(tensor: &TensorArg<'_>, at: At<'_>, shape: &[usize], pad: Literal) -> TileValue {
    let elem = tensor.memory.elem();
    let numel = shape.iter().product();
    macro_rules! load_as {
        ($variant:ident, $pad:expr) => {{
            let mut out = vec![$pad; numel];
            let strides = fill(tensor, at, shape, |at, start, stride, count| {
                tensor.memory.read(start, stride, SliceMut::$variant(&mut out[at..at + count]));
            });
            TileValue::strided(elem, shape.into(), strides, out)
        }};
    }
    let int = match pad {
        Literal::Int(i) => i,
        Literal::Bool(b) => i64::from(b),
        Literal::Float(_) => pad.as_f64() as i64,
    };
    match elem {
        Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 => {
            load_as!(Float, round::from_f64(elem, pad.as_f64()))
        }
        Elem::I32 => load_as!(I32, int as i32),
        Elem::I64 => load_as!(I64, int),
        Elem::U32 => load_as!(U32, int as u32),
        Elem::Bool => load_as!(Bool, int != 0),
    }
}

/// Reads the runs of a tile into a buffer in which the axis of the runs is innermost; the strides of that buffer.
fn fill(
    tensor: &TensorArg<'_>,
    at: At<'_>,
    shape: &[usize],
    mut read: impl FnMut(usize, i64, i64, usize),
) -> Dims {
    let Some(window) = Window::new(tensor, at, shape) else { return row_major(shape) };
    let mut strides = Dims::from_elem(1, shape.len());
    let mut next = shape.get(window.run).copied().unwrap_or(1);
    for axis in (0..shape.len()).rev().filter(|&axis| axis != window.run) {
        strides[axis] = next;
        next *= shape[axis];
    }
    let (count, stride) = window.run_shape();
    if window.is_whole(shape) && window.merges(shape, &strides) {
        read(0, window.start, 1, next);
        return strides;
    }
    window.runs(&strides, |at, start| read(at, start, stride, count));
    strides
}

impl Window {
    /// Whether the tile's elements lie in storage exactly as in a buffer with these strides.
    fn merges(&self, shape: &[usize], strides: &[usize]) -> bool {
        (0..shape.len()).all(|axis| shape[axis] == 1 || self.strides[axis] == strides[axis] as i64)
    }
}

/// Writes a tile; elements outside the tensor are dropped.
pub(crate) fn store(tile: &TileValue, tensor: &TensorArg<'_>, at: At<'_>) {
    let Some(window) = Window::new(tensor, at, tile.shape()) else { return };
    let (count, stride) = window.run_shape();
    macro_rules! store_as {
        ($variant:ident, $ty:ty) => {{
            let (data, strides) = tile.expect::<$ty>();
            let step = strides.get(window.run).copied().unwrap_or(1);
            if window.is_whole(tile.shape()) && tile.is_dense() && window.merges(tile.shape(), strides) {
                return tensor.memory.write(window.start, 1, Slice::$variant(&data[..tile.numel()]));
            }
            let mut buffer = Vec::new();
            window.runs(strides, |at, start| {
                let run = match step {
                    _ if count == 1 => &data[at..at + 1],
                    1 => &data[at..at + count],
                    0 => {
                        buffer.clear();
                        buffer.resize(count, data[at]);
                        &buffer
                    }
                    _ => {
                        buffer.clear();
                        buffer.extend(data[at..].iter().step_by(step).take(count));
                        &buffer
                    }
                };
                tensor.memory.write(start, stride, Slice::$variant(run));
            });
        }};
    }
    match tile.elem() {
        Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 => store_as!(Float, f32),
        Elem::I32 => store_as!(I32, i32),
        Elem::I64 => store_as!(I64, i64),
        Elem::U32 => store_as!(U32, u32),
        Elem::Bool => store_as!(Bool, bool),
    }
}
