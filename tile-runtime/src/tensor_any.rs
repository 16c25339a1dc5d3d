//! Tensors whose element type is a value: storage, element type, shape, strides and offset.

use std::ops::Range;
use std::sync::Arc;

use tile_codegen::ir::Elem;

use crate::buffer::{Access, Storage};
use crate::cpu_buffer::CpuBuffer;
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::strided::Strided;

/// A tensor, or a view of one, whose element type is known at run time. Clones share memory.
#[derive(Debug, Clone)]
pub struct AnyTensor {
    storage: Arc<Storage>,
    elem: Elem,
    view: Strided,
}

impl AnyTensor {
    /// A view of `storage`, which holds elements of type `elem`.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when `view` leaves the storage.
    pub(crate) fn new(storage: Arc<Storage>, elem: Elem, view: Strided) -> Result<Self> {
        let len = storage.bytes() / elem.bytes();
        let view = Strided::with_strides(view.shape(), view.strides(), view.offset(), len)?;
        Ok(Self { storage, elem, view })
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// Out of memory; [`Error::Shape`] for shapes beyond 63 bits.
    pub fn zeros(device: &Device, elem: Elem, shape: &[usize]) -> Result<Self> {
        let view = Strided::contiguous(shape)?;
        let storage = Storage::zeroed(device, byte_size(shape, view.numel(), elem)?)?;
        Ok(Self { storage, elem, view })
    }

    /// A tensor whose elements have no particular value, to be written before they are read; see [`Storage::uninit`].
    ///
    /// # Errors
    /// As [`AnyTensor::zeros`].
    pub fn uninit(device: &Device, elem: Elem, shape: &[usize]) -> Result<Self> {
        let view = Strided::contiguous(shape)?;
        let storage = Storage::uninit(device, byte_size(shape, view.numel(), elem)?)?;
        Ok(Self { storage, elem, view })
    }

    /// A tensor of the meta device with the given strides (not negative).
    ///
    /// # Errors
    /// [`Error::Shape`].
    pub fn meta_strided(elem: Elem, shape: &[usize], strides: &[i64]) -> Result<Self> {
        let view = Strided::unbounded(shape, strides, 0)?;
        let (low, high) = view.touched();
        if low < 0 {
            return Err(Error::shape("strides of a meta tensor", strides, "strides of 0 or more"));
        }
        let storage = Storage::zeroed(&Device::meta(), byte_size(shape, high as usize, elem)?)?;
        Ok(Self { storage, elem, view })
    }

    /// The element type.
    pub fn elem(&self) -> Elem {
        self.elem
    }

    /// Shape, strides and offset.
    pub fn view(&self) -> &Strided {
        &self.view
    }

    /// The memory, shared with other views.
    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// The device that holds the elements.
    pub fn device(&self) -> &Device {
        self.storage.device()
    }

    /// Extent of each dimension.
    pub fn shape(&self) -> &[usize] {
        self.view.shape()
    }

    /// Stride of each dimension, in elements.
    pub fn strides(&self) -> &[i64] {
        self.view.strides()
    }

    /// Device address of the first element of the view, if it is on a GPU; see [`Storage::device_address`].
    pub fn device_address(&self) -> Option<u64> {
        let base = self.storage.device_address()?;
        Some(base + (self.view.offset() * self.elem.bytes()) as u64)
    }

    /// Whether the two may touch a common byte. False is certain.
    pub fn overlaps(&self, other: &Self) -> bool {
        let same = Arc::ptr_eq(&self.storage, &other.storage);
        if !same && (self.device() != other.device() || self.device().is_meta()) {
            return false;
        }
        let (size, other_size) = (self.elem.bytes(), other.elem.bytes());
        self.view.overlaps(self.storage.base(), size, &other.view, other.storage.base(), other_size)
    }

    /// The tensor with its element type as a Rust type.
    ///
    /// # Errors
    /// [`Error::ElementType`] when it is another type.
    pub fn typed<T: Element>(&self) -> Result<crate::DeviceTensor<T>> {
        crate::DeviceTensor::from_any(self.clone())
    }

    /// The same memory seen through another view.
    pub(crate) fn with_view(&self, view: Strided) -> Self {
        Self { storage: self.storage.clone(), elem: self.elem, view }
    }

    /// Reads all elements, in row-major order.
    pub(crate) fn read<T: Element>(&self) -> Result<Vec<T>> {
        if self.device().is_meta() {
            return Err(Error::NoData { what: "to_vec".to_owned() });
        }
        let mut out = vec![T::default(); self.view.numel()];
        self.with_host("to_vec", |host, view| {
            let mut rest = out.as_mut_slice();
            view.for_each_run(|start, stride, len| {
                let (run, after) = std::mem::take(&mut rest).split_at_mut(len);
                rest = after;
                host.load_run(start, stride, run)
            })
        })?;
        Ok(out)
    }

    /// Writes all elements, given in row-major order.
    pub(crate) fn write<T: Element>(&self, values: &[T]) -> Result<()> {
        if values.len() != self.view.numel() {
            let expected = format!("{} values for shape {:?}", self.view.numel(), self.shape());
            return Err(Error::shape("copy_from_slice", values.len(), expected));
        }
        self.storage.check_access("copy_from_slice", Access::Write)?;
        let scatter = |host: &CpuBuffer, view: &Strided| {
            let mut rest = values;
            view.for_each_run(|start, stride, len| {
                let (run, after) = rest.split_at(len);
                rest = after;
                host.store_run(start, stride, run)
            })
        };
        if !self.device().is_cuda() {
            return self.with_host("copy_from_slice", scatter);
        }
        let bytes = self.touched_bytes();
        if self.view.is_contiguous() {
            return self.storage.upload(&CpuBuffer::from_slice(values)?, bytes.start);
        }
        // What lies between the elements of the view must keep its value.
        let host = self.storage.download(bytes.clone())?;
        scatter(&host, &self.rebased(&bytes)?)?;
        self.storage.upload(&host, bytes.start)
    }

    /// Runs `work` on the elements in host memory: the CPU's own, or a copy of the range that the view touches.
    fn with_host(&self, what: &str, work: impl FnOnce(&CpuBuffer, &Strided) -> Result<()>) -> Result<()> {
        if let Some(buffer) = self.storage.cpu() {
            return work(buffer, &self.view);
        }
        if self.device().is_meta() {
            return Err(Error::NoData { what: what.to_owned() });
        }
        let bytes = self.touched_bytes();
        let host = self.storage.download(bytes.clone())?;
        work(&host, &self.rebased(&bytes)?)
    }

    /// The bytes of the storage from the first to the last one touched.
    pub(crate) fn touched_bytes(&self) -> Range<usize> {
        let (low, high) = self.view.touched();
        let size = self.elem.bytes();
        low as usize * size..high as usize * size
    }

    /// The view as it lies in a copy of the bytes `range`.
    fn rebased(&self, range: &Range<usize>) -> Result<Strided> {
        let offset = self.view.offset() - range.start / self.elem.bytes();
        Strided::unbounded(self.shape(), self.strides(), offset)
    }
}

/// Bytes of `numel` elements.
fn byte_size(shape: &[usize], numel: usize, elem: Elem) -> Result<usize> {
    let bytes = numel.checked_mul(elem.bytes()).filter(|&bytes| i64::try_from(bytes).is_ok());
    bytes.ok_or_else(|| Error::shape("shape", shape, "a size in bytes that fits 63 bits"))
}
