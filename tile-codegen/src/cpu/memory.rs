//! Tensor memory as the executor sees it. Implementations make racing accesses yield an unspecified value, never
//! undefined behaviour.

use crate::ir::Elem;

/// Elements to be filled by a read. 16-bit floats are widened to f32.
#[derive(Debug)]
pub enum SliceMut<'a> {
    /// F32, F16 and BF16 tensors.
    Float(&'a mut [f32]),
    /// I32 tensors.
    I32(&'a mut [i32]),
    /// I64 tensors.
    I64(&'a mut [i64]),
    /// U32 tensors.
    U32(&'a mut [u32]),
    /// Bool tensors; any nonzero byte is true.
    Bool(&'a mut [bool]),
}

/// Elements to be written. Floats are values of the tensor's element type already, so that narrowing is exact.
#[derive(Clone, Copy, Debug)]
pub enum Slice<'a> {
    /// F32, F16 and BF16 tensors.
    Float(&'a [f32]),
    /// I32 tensors.
    I32(&'a [i32]),
    /// I64 tensors.
    I64(&'a [i64]),
    /// U32 tensors.
    U32(&'a [u32]),
    /// Bool tensors, stored as bytes 0 and 1.
    Bool(&'a [bool]),
}

/// The storage behind one tensor argument.
pub trait TensorMemory: Send + Sync {
    /// The element type.
    fn elem(&self) -> Elem;
    /// Reads elements `start, start + stride, ...` (element units from the storage's beginning), one for each place of
    /// `out`. The executor only names elements inside the tensor.
    fn read(&self, start: i64, stride: i64, out: SliceMut<'_>);
    /// Replaces one element by what `change` makes of its bits, in one atomic step that is an acquire and a release; the old
    /// bits. Elements have 4 or 8 bytes; `change` may be called several times.
    fn update(&self, at: i64, change: &dyn Fn(u64) -> u64) -> u64;
    /// Writes elements `start, start + stride, ...`.
    fn write(&self, start: i64, stride: i64, data: Slice<'_>);
}

/// A tensor argument of one launch.
#[derive(Clone)]
pub struct TensorArg<'a> {
    /// Its storage.
    pub memory: &'a dyn TensorMemory,
    /// The storage element of index (0, 0, ..).
    pub offset: i64,
    /// Extents in elements.
    pub shape: Vec<i64>,
    /// Strides in elements; that of a size-1 axis is never used.
    pub strides: Vec<i64>,
}
