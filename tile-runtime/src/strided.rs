//! Shape, strides and offset of a view, as plain arithmetic without any memory.

use std::ops::Range;

use crate::error::{Error, Result};

/// Where the elements of a view lie in their storage: element `index` is at
/// `offset + sum(index[d] * strides[d])`, counted in elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strided {
    shape: Vec<usize>,
    strides: Vec<i64>,
    offset: usize,
}

impl Strided {
    /// The row-major layout of `shape`, from element 0.
    ///
    /// # Errors
    /// [`Error::Shape`] when the number of elements exceeds `i64::MAX`.
    pub fn contiguous(shape: &[usize]) -> Result<Self> {
        let mut strides = vec![0; shape.len()];
        let mut step: usize = 1;
        for (stride, &extent) in strides.iter_mut().zip(shape).rev() {
            *stride = step as i64;
            // An empty dimension keeps the strides of the others meaningful.
            step = step
                .checked_mul(extent.max(1))
                .filter(|&step| i64::try_from(step).is_ok())
                .ok_or_else(|| Error::shape("shape", shape, "a number of elements that fits 63 bits"))?;
        }
        Ok(Self { shape: shape.to_vec(), strides, offset: 0 })
    }

    /// A view with any strides (zero and negative ones too), checked to stay inside `len` elements.
    ///
    /// # Errors
    /// [`Error::Shape`] when ranks differ, [`Error::OutOfBounds`] when an element lies outside.
    pub fn with_strides(shape: &[usize], strides: &[i64], offset: usize, len: usize) -> Result<Self> {
        let this = Self::unbounded(shape, strides, offset)?;
        let (low, high) = this.touched();
        if !this.is_empty() && (low < 0 || high > len as i128) {
            let index = if low < 0 { low } else { high - 1 };
            return Err(Error::OutOfBounds {
                what: format!("a view of shape {shape:?}, strides {strides:?}, offset {offset}"),
                index,
                len,
            });
        }
        Ok(this)
    }

    /// A view with any strides over a storage that is as large as it needs to be.
    ///
    /// # Errors
    /// [`Error::Shape`] when ranks differ, or an element index does not fit 63 bits.
    pub(crate) fn unbounded(shape: &[usize], strides: &[i64], offset: usize) -> Result<Self> {
        if shape.len() != strides.len() {
            return Err(Error::shape("strides", strides, format!("one for each dimension of {shape:?}")));
        }
        // Reject counts that overflow, even if strides make the touched range small.
        Self::contiguous(shape)?;
        let this = Self { shape: shape.to_vec(), strides: strides.to_vec(), offset };
        let (low, high) = this.touched();
        let limit = i128::from(i64::MAX);
        if !this.is_empty() && (low < -limit || high > limit) {
            return Err(Error::shape("strides", strides, "element indices that fit 63 bits"));
        }
        Ok(this)
    }

    /// Extent of each dimension.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Stride of each dimension in elements; that of a dimension of extent 1 has no meaning.
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// Element of the storage at which the view starts.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements of the view.
    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the view has no element.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Whether the elements lie row-major without gaps; strides of dimensions of extent 1 do not matter.
    pub fn is_contiguous(&self) -> bool {
        let mut step = 1;
        for (&extent, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if extent != 1 && stride != step {
                return self.is_empty();
            }
            step *= extent as i64;
        }
        true
    }

    /// The half-open range of storage elements from the lowest to the highest one touched; empty views touch none.
    pub fn touched(&self) -> (i128, i128) {
        let start = self.offset as i128;
        if self.is_empty() {
            return (start, start);
        }
        let (mut low, mut high) = (start, start);
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            let reach = (extent - 1) as i128 * i128::from(stride);
            if reach < 0 { low += reach } else { high += reach }
        }
        (low, high + 1)
    }

    /// The part `range` of dimension `axis`.
    ///
    /// # Errors
    /// [`Error::Shape`] for an axis or a range outside the shape.
    pub fn slice(&self, axis: usize, range: Range<usize>) -> Result<Self> {
        let extent = self.extent("slice", axis)?;
        if range.start > range.end || range.end > extent {
            return Err(Error::shape(
                format!("slice of axis {axis}"),
                range,
                format!("a range within 0..{extent}"),
            ));
        }
        let mut new = self.clone();
        new.shape[axis] = range.len();
        if !new.is_empty() {
            new.offset = self.at(axis, range.start);
        }
        Ok(new)
    }

    /// Index `index` of dimension `axis`, which disappears.
    ///
    /// # Errors
    /// [`Error::Shape`] for an axis or an index outside the shape.
    pub fn select(&self, axis: usize, index: usize) -> Result<Self> {
        let extent = self.extent("select", axis)?;
        if index >= extent {
            return Err(Error::shape(
                format!("select on axis {axis}"),
                index,
                format!("an index below {extent}"),
            ));
        }
        let mut new = self.slice(axis, index..index + 1)?;
        new.shape.remove(axis);
        new.strides.remove(axis);
        Ok(new)
    }

    /// Dimension `d` of the result is dimension `axes[d]` of this view.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `axes` names every axis once.
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        let mut sorted = axes.to_vec();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..self.rank()) {
            return Err(Error::shape("permute", axes, format!("each axis of 0..{} once", self.rank())));
        }
        Ok(Self {
            shape: axes.iter().map(|&axis| self.shape[axis]).collect(),
            strides: axes.iter().map(|&axis| self.strides[axis]).collect(),
            offset: self.offset,
        })
    }

    /// Swaps two dimensions.
    ///
    /// # Errors
    /// [`Error::Shape`] for an axis outside the shape.
    pub fn transpose(&self, a: usize, b: usize) -> Result<Self> {
        self.extent("transpose", a)?;
        self.extent("transpose", b)?;
        let mut new = self.clone();
        new.shape.swap(a, b);
        new.strides.swap(a, b);
        Ok(new)
    }

    /// Another shape of the same elements in row-major order.
    ///
    /// # Errors
    /// [`Error::Shape`] when the number of elements differs or the view is not contiguous.
    pub fn reshape(&self, shape: &[usize]) -> Result<Self> {
        let new = Self { offset: self.offset, ..Self::contiguous(shape)? };
        if new.numel() != self.numel() {
            let expected = format!("a shape of {} elements, as {:?} has", self.numel(), self.shape);
            return Err(Error::shape("reshape", shape, expected));
        }
        if !self.is_contiguous() {
            let found = format!("shape {:?} with strides {:?}", self.shape, self.strides);
            return Err(Error::Shape {
                what: "reshape".into(),
                found,
                expected: "a contiguous tensor; call contiguous() first".into(),
            });
        }
        Ok(new)
    }

    /// Repeats dimensions of extent 1, and adds leading ones, with stride 0.
    ///
    /// # Errors
    /// [`Error::Shape`] when a dimension is neither 1 nor the one asked for.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Self> {
        let wrong =
            || Error::shape("broadcast_to", shape, format!("a shape that {:?} broadcasts to", self.shape));
        let added = shape.len().checked_sub(self.rank()).ok_or_else(wrong)?;
        let mut strides = vec![0; added];
        for (axis, &extent) in shape[added..].iter().enumerate() {
            match self.shape[axis] {
                own if own == extent => strides.push(self.strides[axis]),
                1 => strides.push(0),
                _ => return Err(wrong()),
            }
        }
        Self::unbounded(shape, &strides, self.offset)
    }

    /// Calls `visit(storage element, stride, run length)` for each innermost row, in row-major order.
    /// Rows are as long as the strides allow: a contiguous view is one row.
    pub fn for_each_run(&self, mut visit: impl FnMut(usize, i64, usize) -> Result<()>) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let (outer, run, stride) = self.split_run();
        let mut index = vec![0; outer.len()];
        let mut at = self.offset as i64;
        loop {
            visit(at as usize, stride, run)?;
            let mut axis = outer.len();
            loop {
                let Some(next) = axis.checked_sub(1) else { return Ok(()) };
                axis = next;
                let (extent, stride) = outer[axis];
                index[axis] += 1;
                at = at.wrapping_add(stride);
                if index[axis] < extent {
                    break;
                }
                // May pass the 63-bit range for a moment when the strides are near its end.
                at = at.wrapping_sub(stride.wrapping_mul(extent as i64));
                index[axis] = 0;
            }
        }
    }

    /// The outer dimensions, and the length and stride of the innermost run that swallows all the others.
    fn split_run(&self) -> (Vec<(usize, i64)>, usize, i64) {
        let mut dims: Vec<_> = self.shape.iter().copied().zip(self.strides.iter().copied()).collect();
        dims.retain(|&(extent, _)| extent != 1);
        let (mut run, stride) = dims.pop().unwrap_or((1, 1));
        while let Some(&(extent, outer)) = dims.last() {
            if i128::from(outer) != i128::from(stride) * run as i128 {
                break;
            }
            run *= extent;
            dims.pop();
        }
        (dims, run, stride)
    }

    /// Whether two indices may name the same element, as in a broadcast view. Views whose dimensions interleave
    /// in a way that this cannot decide count as repeating.
    pub fn repeats_elements(&self) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut dims: Vec<_> =
            self.shape.iter().zip(&self.strides).filter(|&(&extent, _)| extent > 1).collect();
        dims.sort_by_key(|(_, stride)| stride.unsigned_abs());
        let mut reach: u128 = 0;
        for (&extent, &stride) in dims {
            if u128::from(stride.unsigned_abs()) <= reach {
                return true;
            }
            reach += u128::from(stride.unsigned_abs()) * (extent - 1) as u128;
        }
        false
    }

    /// Whether this view and `other` may touch a common byte. Each comes with the address of its storage and the
    /// size of an element, in bytes. False is certain; true may be wrong only for views that interleave
    /// in other ways than disjoint columns of one pitch.
    pub fn overlaps(&self, base: u64, size: usize, other: &Self, other_base: u64, other_size: usize) -> bool {
        if self.is_empty() || other.is_empty() {
            return false;
        }
        let bytes = |view: &Self, base: u64, size: usize| {
            let (low, high) = view.touched();
            (i128::from(base) + low * size as i128, i128::from(base) + high * size as i128)
        };
        let (a, b) = (bytes(self, base, size), bytes(other, other_base, other_size));
        if a.1 <= b.0 || b.1 <= a.0 {
            return false;
        }
        let pitches = |view: &Self, size: usize| -> Vec<i128> {
            let long =
                view.shape.iter().zip(&view.strides).filter(|&(&extent, &stride)| extent > 1 && stride != 0);
            long.map(|(_, stride)| i128::from(stride.unsigned_abs()) * size as i128).collect()
        };
        let mut candidates = pitches(self, size);
        candidates.extend(pitches(other, other_size));
        !candidates.into_iter().any(|pitch| {
            let (start_a, len_a) = self.columns(base, size, pitch);
            let (start_b, len_b) = other.columns(other_base, other_size, pitch);
            (start_b - start_a).rem_euclid(pitch) >= len_a && (start_a - start_b).rem_euclid(pitch) >= len_b
        })
    }

    /// Start and length of the byte interval that covers every touched address modulo `pitch`.
    fn columns(&self, base: u64, size: usize, pitch: i128) -> (i128, i128) {
        let mut low = i128::from(base) + self.offset as i128 * size as i128;
        let mut len = size as i128;
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            let step = i128::from(stride) * size as i128;
            let reach = (extent - 1) as i128 * step;
            // Steps of whole pitches stay in the same column.
            if step % pitch != 0 {
                len += reach.abs();
                low += reach.min(0);
            }
        }
        (low, len)
    }

    fn extent(&self, what: &str, axis: usize) -> Result<usize> {
        let known = self.shape.get(axis).copied();
        known.ok_or_else(|| Error::shape(what, axis, format!("an axis below the rank {}", self.rank())))
    }

    /// Storage element of index `index` of `axis`, all other indices being 0.
    fn at(&self, axis: usize, index: usize) -> usize {
        (self.offset as i64 + index as i64 * self.strides[axis]) as usize
    }
}
