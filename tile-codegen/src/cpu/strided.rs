//! Walking strided views: merging axes, visiting rows, making rows dense.

use smallvec::SmallVec;

/// Sizes or strides of the axes of a tile, outermost first.
pub(crate) type Dims = SmallVec<[usize; 4]>;

/// Elements that elementwise loops handle at a time, so that gathered operands stay in the first-level cache.
pub(crate) const CHUNK: usize = 1024;

/// Row-major strides of a shape.
pub(crate) fn row_major(shape: &[usize]) -> Dims {
    let mut strides: Dims = shape.iter().map(|_| 1).collect();
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// Whether strides are row-major; those of size-1 axes do not count.
pub(crate) fn is_row_major(shape: &[usize], strides: &[usize]) -> bool {
    let mut expected = 1;
    for (&size, &stride) in shape.iter().zip(strides).rev() {
        if size != 1 && stride != expected {
            return false;
        }
        expected *= size;
    }
    true
}

/// A shape with several sets of strides over it, in which size-1 axes are gone and axes that can be walked as one
/// are merged. There is always at least one axis.
pub(crate) struct Walk<const N: usize> {
    pub(crate) shape: Dims,
    pub(crate) strides: [Dims; N],
}

impl<const N: usize> Walk<N> {
    pub(crate) fn new(shape: &[usize], strides: [&[usize]; N]) -> Self {
        let mut walk = Walk { shape: Dims::new(), strides: std::array::from_fn(|_| Dims::new()) };
        for (axis, &size) in shape.iter().enumerate().filter(|&(_, &size)| size != 1) {
            let merges = walk.shape.last().is_some()
                && (0..N).all(|n| walk.strides[n].last() == Some(&(strides[n][axis] * size)));
            if merges {
                *walk.shape.last_mut().expect("there is an axis to merge with") *= size;
            } else {
                walk.shape.push(size);
            }
            for (merged, strides) in walk.strides.iter_mut().zip(strides) {
                if merges {
                    merged.pop();
                }
                merged.push(strides[axis]);
            }
        }
        if walk.shape.is_empty() {
            walk.shape.push(1);
            walk.strides.iter_mut().for_each(|s| s.push(1));
        }
        walk
    }

    /// The length of a row: the size of the innermost axis.
    pub(crate) fn row_len(&self) -> usize {
        self.shape[self.shape.len() - 1]
    }

    /// The stride within a row.
    pub(crate) fn row_stride(&self, n: usize) -> usize {
        self.strides[n][self.shape.len() - 1]
    }

    /// Calls `f` with the offsets of each row, in row-major order.
    pub(crate) fn rows(&self, mut f: impl FnMut([usize; N])) {
        let outer = self.shape.len() - 1;
        let mut index: Dims = self.shape[..outer].iter().map(|_| 0).collect();
        let mut at = [0; N];
        loop {
            f(at);
            let mut axis = outer;
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                index[axis] += 1;
                for (at, strides) in at.iter_mut().zip(&self.strides) {
                    *at += strides[axis];
                }
                if index[axis] < self.shape[axis] {
                    break;
                }
                for (at, strides) in at.iter_mut().zip(&self.strides) {
                    *at -= strides[axis] * self.shape[axis];
                }
                index[axis] = 0;
            }
        }
    }
}

/// Gives pieces of strided rows as slices; pieces that do not lie densely are copied to a small buffer.
pub(crate) struct RowReader<'a, T> {
    data: &'a [T],
    stride: usize,
    buffer: Vec<T>,
    repeated: Option<usize>,
}

impl<'a, T: Copy> RowReader<'a, T> {
    pub(crate) fn new(data: &'a [T], stride: usize) -> Self {
        Self { data, stride, buffer: Vec::new(), repeated: None }
    }

    /// `len` elements (at most [`CHUNK`]) of the row at `row`, from element `start` on.
    pub(crate) fn piece(&mut self, row: usize, start: usize, len: usize) -> &[T] {
        match self.stride {
            1 => &self.data[row + start..row + start + len],
            0 => {
                if self.repeated != Some(row) || self.buffer.len() < len {
                    self.buffer.clear();
                    self.buffer.resize(len, self.data[row]);
                    self.repeated = Some(row);
                }
                &self.buffer[..len]
            }
            stride => {
                self.buffer.clear();
                let from = &self.data[row + start * stride..];
                self.buffer.extend(from.iter().step_by(stride).take(len));
                &self.buffer
            }
        }
    }
}

/// Applies `f` to pieces of a dense row-major `out` and the matching elements of a strided operand.
pub(crate) fn zip<T, U: Copy>(
    out: &mut [T],
    shape: &[usize],
    (data, strides): (&[U], &[usize]),
    f: &mut dyn FnMut(&mut [T], &[U]),
) {
    let dense = row_major(shape);
    let walk = Walk::new(shape, [&dense, strides]);
    let mut reader = RowReader::new(data, walk.row_stride(1));
    let len = walk.row_len();
    walk.rows(|[to, from]| {
        for (piece, out) in out[to..to + len].chunks_mut(CHUNK).enumerate() {
            f(out, reader.piece(from, piece * CHUNK, out.len()));
        }
    });
}

/// What [`zip2`] applies to matching pieces.
type Ternary<'a, T, U, V> = &'a mut dyn FnMut(&mut [T], &[U], &[V]);

/// Applies `f` to pieces of a dense row-major `out` and the matching elements of two strided operands.
pub(crate) fn zip2<T, U: Copy, V: Copy>(
    out: &mut [T],
    shape: &[usize],
    (a, a_strides): (&[U], &[usize]),
    (b, b_strides): (&[V], &[usize]),
    f: Ternary<'_, T, U, V>,
) {
    let dense = row_major(shape);
    let walk = Walk::new(shape, [&dense, a_strides, b_strides]);
    let mut a = RowReader::new(a, walk.row_stride(1));
    let mut b = RowReader::new(b, walk.row_stride(2));
    let len = walk.row_len();
    walk.rows(|[to, from_a, from_b]| {
        for (piece, out) in out[to..to + len].chunks_mut(CHUNK).enumerate() {
            let (start, len) = (piece * CHUNK, out.len());
            f(out, a.piece(from_a, start, len), b.piece(from_b, start, len));
        }
    });
}

/// The elements of a strided view in row-major order.
pub(crate) fn gather<T: Copy>(data: &[T], shape: &[usize], strides: &[usize]) -> Vec<T> {
    let walk = Walk::new(shape, [strides]);
    let mut out = Vec::with_capacity(shape.iter().product());
    let (len, stride) = (walk.row_len(), walk.row_stride(0));
    if let ([rows, columns], [1, column]) = (&walk.shape[..], &walk.strides[0][..])
        && *column > 1
    {
        return transpose(data, *rows, *columns, *column);
    }
    walk.rows(|[at]| match stride {
        0 => out.resize(out.len() + len, data[at]),
        1 => out.extend_from_slice(&data[at..at + len]),
        _ => out.extend(data[at..].iter().step_by(stride).take(len)),
    });
    out
}

/// Gathers `rows` x `columns` elements at `row + column * stride`, in square blocks that stay in the cache.
fn transpose<T: Copy>(data: &[T], rows: usize, columns: usize, stride: usize) -> Vec<T> {
    const BLOCK: usize = 16;
    let mut out = vec![data[0]; rows * columns];
    for row0 in (0..rows).step_by(BLOCK) {
        let row1 = (row0 + BLOCK).min(rows);
        for column0 in (0..columns).step_by(BLOCK) {
            let column1 = (column0 + BLOCK).min(columns);
            for row in row0..row1 {
                let from = data[row + column0 * stride..].iter().step_by(stride);
                let to = &mut out[row * columns + column0..row * columns + column1];
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
        }
    }
    out
}
