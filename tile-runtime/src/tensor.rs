//! Tensors with a Rust element type: how they are made, viewed, copied and filled.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use crate::buffer::{Access, Storage};
use crate::cpu_buffer::CpuBuffer;
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::stream::Stream;
use crate::strided::Strided;
use crate::tensor_any::AnyTensor;

/// A tensor on a device: shared memory with an offset, a shape, and strides counted in elements.
///
/// It is a handle: clones and views share the memory, and writing through one is seen through all. Copies from and
/// to the host, fills and allocations go to the device's default stream, after all earlier work on the tensor on any
/// stream. Reads of a tensor that a kernel writes at the same time on the CPU give unspecified values.
pub struct DeviceTensor<T> {
    any: AnyTensor,
    elem: PhantomData<fn() -> T>,
}

impl<T> Clone for DeviceTensor<T> {
    fn clone(&self) -> Self {
        Self { any: self.any.clone(), elem: PhantomData }
    }
}

impl<T: Element> std::fmt::Debug for DeviceTensor<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (elem, device) = (T::TYPE, self.device());
        write!(f, "DeviceTensor<{elem}>({:?}, strides {:?}, {device})", self.shape(), self.strides())
    }
}

/// Making tensors.
impl<T: Element> DeviceTensor<T> {
    /// A tensor of `shape` with the values of `values` in row-major order.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one value an element; out of memory.
    pub fn from_slice(device: &Device, shape: &[usize], values: &[T]) -> Result<Self> {
        let view = Strided::contiguous(shape)?;
        if view.numel() != values.len() {
            return Err(Error::shape(
                "from_slice",
                values.len(),
                format!("{} values for shape {shape:?}", view.numel()),
            ));
        }
        if device.is_meta() {
            return Self::zeros(device, shape);
        }
        let storage = Storage::from_host(device, CpuBuffer::from_slice(values)?)?;
        Ok(Self::wrap(AnyTensor::new(storage, T::TYPE, view)?))
    }

    /// A tensor of zeros (`false` for bool).
    ///
    /// # Errors
    /// Out of memory; [`Error::Shape`] for sizes beyond 63 bits.
    pub fn zeros(device: &Device, shape: &[usize]) -> Result<Self> {
        AnyTensor::zeros(device, T::TYPE, shape).map(Self::wrap)
    }

    /// A tensor for the results of a kernel: its elements have no particular value until something writes them. A PTX executor
    /// reports kernels that read elements which nothing has written.
    ///
    /// # Errors
    /// As [`DeviceTensor::zeros`].
    pub fn uninit(device: &Device, shape: &[usize]) -> Result<Self> {
        AnyTensor::uninit(device, T::TYPE, shape).map(Self::wrap)
    }

    /// A tensor of copies of `value`.
    ///
    /// # Errors
    /// As [`DeviceTensor::zeros`].
    pub fn full(device: &Device, shape: &[usize], value: T) -> Result<Self> {
        let tensor = Self::zeros(device, shape)?;
        if !device.is_meta() && value.to_word().into() != 0 {
            tensor.fill(value)?;
        }
        Ok(tensor)
    }

    /// A tensor of the meta device: a shape without elements, to inspect what is generated for it.
    ///
    /// # Errors
    /// [`Error::Shape`] for sizes beyond 63 bits.
    pub fn meta(shape: &[usize]) -> Result<Self> {
        Self::zeros(&Device::meta(), shape)
    }

    /// A tensor of the meta device with the given strides in elements (0 or more).
    ///
    /// # Errors
    /// [`Error::Shape`].
    pub fn meta_strided(shape: &[usize], strides: &[i64]) -> Result<Self> {
        AnyTensor::meta_strided(T::TYPE, shape, strides).map(Self::wrap)
    }

    /// A tensor of a run-time element type as one of `T`.
    ///
    /// # Errors
    /// [`Error::ElementType`] when it holds another type.
    pub fn from_any(any: AnyTensor) -> Result<Self> {
        if any.elem() == T::TYPE {
            return Ok(Self::wrap(any));
        }
        Err(Error::ElementType {
            what: "a tensor".to_owned(),
            found: any.elem().to_string(),
            expected: T::TYPE.to_string(),
        })
    }

    pub(crate) fn wrap(any: AnyTensor) -> Self {
        Self { any, elem: PhantomData }
    }
}

/// Looking at tensors.
impl<T> DeviceTensor<T> {
    /// The tensor with its element type as a value.
    pub fn as_any(&self) -> &AnyTensor {
        &self.any
    }

    /// The memory, shared with other views; `Arc::ptr_eq` tells whether two tensors share it.
    pub fn storage(&self) -> &Arc<Storage> {
        self.any.storage()
    }

    /// Extent of each dimension.
    pub fn shape(&self) -> &[usize] {
        self.any.shape()
    }

    /// Stride of each dimension in elements; that of a dimension of extent 1 has no meaning.
    pub fn strides(&self) -> &[i64] {
        self.any.strides()
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.any.view().rank()
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.any.view().numel()
    }

    /// Element of the storage at which the view starts.
    pub fn offset_elements(&self) -> usize {
        self.any.view().offset()
    }

    /// The device that holds the elements.
    pub fn device(&self) -> &Device {
        self.any.device()
    }

    /// Whether the elements lie row-major without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.any.view().is_contiguous()
    }

    /// Whether this tensor and `other` may touch a common byte. False is certain; disjoint columns of one row pitch,
    /// as the parts of a fused projection are, count as disjoint.
    pub fn overlaps<U>(&self, other: &DeviceTensor<U>) -> bool {
        self.any.overlaps(&other.any)
    }

    /// Whether two indices may name one element, as after [`DeviceTensor::broadcast_to`].
    pub fn repeats_elements(&self) -> bool {
        self.any.view().repeats_elements()
    }

    fn viewed(&self, view: Result<Strided>) -> Result<Self> {
        Ok(Self { any: self.any.with_view(view?), elem: PhantomData })
    }

    /// The part `range` of dimension `axis`, as a view.
    ///
    /// # Errors
    /// [`Error::Shape`] for an axis or a range outside the shape.
    pub fn slice(&self, axis: usize, range: Range<usize>) -> Result<Self> {
        self.viewed(self.any.view().slice(axis, range))
    }

    /// Index `index` of dimension `axis`, which disappears, as a view.
    ///
    /// # Errors
    /// [`Error::Shape`] for an axis or an index outside the shape.
    pub fn select(&self, axis: usize, index: usize) -> Result<Self> {
        self.viewed(self.any.view().select(axis, index))
    }

    /// A view with two dimensions swapped.
    ///
    /// # Errors
    /// [`Error::Shape`] for an axis outside the shape.
    pub fn transpose(&self, a: usize, b: usize) -> Result<Self> {
        self.viewed(self.any.view().transpose(a, b))
    }

    /// A view whose dimension `d` is dimension `axes[d]` of this tensor.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `axes` names every axis once.
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        self.viewed(self.any.view().permute(axes))
    }

    /// A view with another shape of as many elements; needs a contiguous tensor.
    ///
    /// # Errors
    /// [`Error::Shape`].
    pub fn reshape(&self, shape: &[usize]) -> Result<Self> {
        self.viewed(self.any.view().reshape(shape))
    }

    /// A view that repeats dimensions of extent 1, and adds leading ones, with stride 0.
    ///
    /// # Errors
    /// [`Error::Shape`] when a dimension is neither 1 nor the one asked for.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Self> {
        self.viewed(self.any.view().broadcast_to(shape))
    }

    /// A view of this tensor's whole storage with any shape, strides (zero and negative too) and offset, all in
    /// elements.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when an element lies outside the storage.
    pub fn with_strides(&self, shape: &[usize], strides: &[i64], offset: usize) -> Result<Self> {
        let len = self.storage().bytes() / self.any.elem().bytes();
        self.viewed(Strided::with_strides(shape, strides, offset, len))
    }
}

/// Copies and fills.
impl<T: Element> DeviceTensor<T> {
    /// All elements in row-major order, after all work queued on the tensor so far.
    ///
    /// # Errors
    /// [`Error::NoData`] on the meta device; a fault of the queued work.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.any.read()
    }

    /// Writes all elements, given in row-major order. On a GPU, a view with gaps is read, changed and written back.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one value an element; [`Error::ReadOnly`]; [`Error::NoData`].
    pub fn copy_from_slice(&self, values: &[T]) -> Result<()> {
        self.any.write(values)
    }

    /// Writes `value` to every element, on the default stream.
    ///
    /// # Errors
    /// As [`DeviceTensor::copy_from_slice`].
    pub fn fill(&self, value: T) -> Result<()> {
        self.fill_on(&self.device().default_stream(), value)
    }

    /// Writes `value` to every element, on `stream`.
    ///
    /// On a GPU this is queued (and captured by a graph) for contiguous tensors of elements of up to 4 bytes, and of
    /// i64 values whose halves are equal, such as 0 and -1; others are copied from the host at once.
    ///
    /// # Errors
    /// As [`DeviceTensor::copy_from_slice`]; [`Error::DeviceMismatch`] for a stream of another device.
    pub fn fill_on(&self, stream: &Stream, value: T) -> Result<()> {
        self.storage().check_access("fill", Access::Write)?;
        if self.device().is_meta() {
            return Err(Error::NoData { what: "fill".to_owned() });
        }
        let word: u64 = value.to_word().into();
        let size = T::TYPE.bytes();
        let uniform = size <= 4 || (word >> 32) == (word & 0xffff_ffff);
        if self.device().is_cuda() && self.is_contiguous() && uniform {
            let start = self.any.touched_bytes().start;
            return self.storage().fill_words(stream, start, self.numel(), (size, word));
        }
        if stream.device() != self.device() {
            return Err(Error::DeviceMismatch {
                what: "fill_on".to_owned(),
                found: stream.device().to_string(),
                expected: self.device().to_string(),
            });
        }
        self.any.write(&vec![value; self.numel()])
    }

    /// This tensor if it is contiguous (sharing memory), else a contiguous copy. The copy goes through the host.
    ///
    /// # Errors
    /// As [`DeviceTensor::to_vec`]; out of memory.
    pub fn contiguous(&self) -> Result<Self> {
        if self.is_contiguous() { Ok(self.clone()) } else { self.copy_to(self.device()) }
    }

    /// This tensor if it is on `device` (sharing memory), else a contiguous copy there.
    ///
    /// # Errors
    /// As [`DeviceTensor::to_vec`]; out of memory.
    pub fn to_device(&self, device: &Device) -> Result<Self> {
        if self.device() == device { Ok(self.clone()) } else { self.copy_to(device) }
    }

    fn copy_to(&self, device: &Device) -> Result<Self> {
        if device.is_meta() {
            return Self::meta(self.shape());
        }
        Self::from_slice(device, self.shape(), &self.to_vec()?)
    }
}
