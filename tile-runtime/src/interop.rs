//! Tensors over `cudarc` slices, without a copy: owned, shared, or borrowed for a lifetime.
//!
//! Work queued earlier on a slice's own stream is waited for. After each use here, the slice's stream waits in
//! turn, so that its owner may go on using or dropping it there in the ordinary way.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut};

use crate::buffer::Storage;
use crate::cuda::CudaBuffer;
use crate::device::{Device, Kind};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::strided::Strided;
use crate::tensor::DeviceTensor;
use crate::tensor_any::AnyTensor;

/// A tensor that reads a `cudarc` slice for the lifetime of the borrow. Views of it are borrowed as long.
///
/// It cannot be turned into a [`DeviceTensor`] without a copy, and graphs refuse it, since both could outlive the
/// slice; share an `Arc` with [`DeviceTensor::from_shared_cuda_slice`] where that is needed.
pub struct BorrowedTensor<'a, T> {
    tensor: DeviceTensor<T>,
    slice: PhantomData<&'a CudaSlice<T>>,
}

/// A tensor that reads and writes a `cudarc` slice for the lifetime of the borrow; see [`BorrowedTensor`].
pub struct BorrowedTensorMut<'a, T> {
    tensor: DeviceTensor<T>,
    slice: &'a mut CudaSlice<T>,
}

impl<T: Element> DeviceTensor<T> {
    /// A contiguous tensor that owns a `cudarc` slice. The slice is dropped with the last view of the tensor.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one element of the slice for each of `shape`; [`Error::Unsupported`] for a
    /// slice that was not allocated in its GPU's primary context.
    pub fn from_cuda_slice(mut slice: CudaSlice<T>, shape: &[usize]) -> Result<Self> {
        let device = device_of(&slice, shape)?;
        let address = address_mut(&mut slice, &device)?;
        let (bytes, stream) = (slice.num_bytes(), slice.stream().clone());
        wrap(&device, shape, address, bytes, stream, true, Some(Box::new(slice)))
    }

    /// A contiguous read-only tensor over a shared `cudarc` slice, which it keeps alive.
    ///
    /// # Errors
    /// As [`DeviceTensor::from_cuda_slice`].
    pub fn from_shared_cuda_slice(slice: Arc<CudaSlice<T>>, shape: &[usize]) -> Result<Self> {
        let device = device_of(&slice, shape)?;
        let address = address(&slice, &device)?;
        let (bytes, stream) = (slice.num_bytes(), slice.stream().clone());
        wrap(&device, shape, address, bytes, stream, false, Some(Box::new(slice)))
    }

    /// A contiguous read-only tensor that borrows a `cudarc` slice.
    ///
    /// # Errors
    /// As [`DeviceTensor::from_cuda_slice`].
    pub fn borrow_cuda_slice<'a>(slice: &'a CudaSlice<T>, shape: &[usize]) -> Result<BorrowedTensor<'a, T>> {
        let device = device_of(slice, shape)?;
        let address = address(slice, &device)?;
        let tensor = wrap(&device, shape, address, slice.num_bytes(), slice.stream().clone(), false, None)?;
        Ok(BorrowedTensor { tensor, slice: PhantomData })
    }

    /// A contiguous tensor that borrows a `cudarc` slice for reading and writing.
    ///
    /// # Errors
    /// As [`DeviceTensor::from_cuda_slice`].
    pub fn borrow_cuda_slice_mut<'a>(
        slice: &'a mut CudaSlice<T>,
        shape: &[usize],
    ) -> Result<BorrowedTensorMut<'a, T>> {
        let device = device_of(slice, shape)?;
        let address = address_mut(slice, &device)?;
        let tensor = wrap(&device, shape, address, slice.num_bytes(), slice.stream().clone(), true, None)?;
        Ok(BorrowedTensorMut { tensor, slice })
    }
}

impl<'a, T: Element> BorrowedTensor<'a, T> {
    /// The tensor, as kernels take it.
    ///
    /// # Safety
    /// Neither a clone nor a view of it may outlive the borrow of the slice, and no graph may capture a use of it.
    pub unsafe fn as_tensor(&self) -> &DeviceTensor<T> {
        &self.tensor
    }

    /// Extent of each dimension.
    pub fn shape(&self) -> &[usize] {
        self.tensor.shape()
    }

    /// Stride of each dimension in elements.
    pub fn strides(&self) -> &[i64] {
        self.tensor.strides()
    }

    /// The device of the slice.
    pub fn device(&self) -> &Device {
        self.tensor.device()
    }

    /// All elements in row-major order; see [`DeviceTensor::to_vec`].
    ///
    /// # Errors
    /// A fault of work queued earlier.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.tensor.to_vec()
    }

    /// See [`DeviceTensor::slice`].
    ///
    /// # Errors
    /// As there.
    pub fn slice(&self, axis: usize, range: Range<usize>) -> Result<Self> {
        self.tensor.slice(axis, range).map(Self::wrap)
    }

    /// See [`DeviceTensor::select`].
    ///
    /// # Errors
    /// As there.
    pub fn select(&self, axis: usize, index: usize) -> Result<Self> {
        self.tensor.select(axis, index).map(Self::wrap)
    }

    /// See [`DeviceTensor::permute`].
    ///
    /// # Errors
    /// As there.
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        self.tensor.permute(axes).map(Self::wrap)
    }

    /// See [`DeviceTensor::reshape`].
    ///
    /// # Errors
    /// As there.
    pub fn reshape(&self, shape: &[usize]) -> Result<Self> {
        self.tensor.reshape(shape).map(Self::wrap)
    }

    /// See [`DeviceTensor::broadcast_to`].
    ///
    /// # Errors
    /// As there.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Self> {
        self.tensor.broadcast_to(shape).map(Self::wrap)
    }

    /// See [`DeviceTensor::with_strides`].
    ///
    /// # Errors
    /// As there.
    pub fn with_strides(&self, shape: &[usize], strides: &[i64], offset: usize) -> Result<Self> {
        self.tensor.with_strides(shape, strides, offset).map(Self::wrap)
    }

    fn wrap(tensor: DeviceTensor<T>) -> Self {
        Self { tensor, slice: PhantomData }
    }
}

impl<T: Element> BorrowedTensorMut<'_, T> {
    /// The tensor, as kernels take it.
    ///
    /// # Safety
    /// Neither a clone nor a view of it may outlive the borrow of the slice, and no graph may capture a use of it.
    pub unsafe fn as_tensor_mut(&mut self) -> &mut DeviceTensor<T> {
        &mut self.tensor
    }

    /// The tensor for reading, as long as this borrow is not used otherwise.
    pub fn as_borrowed(&self) -> BorrowedTensor<'_, T> {
        BorrowedTensor::wrap(self.tensor.clone())
    }

    /// See [`DeviceTensor::copy_from_slice`].
    ///
    /// # Errors
    /// As there.
    pub fn copy_from_slice(&mut self, values: &[T]) -> Result<()> {
        self.tensor.copy_from_slice(values)
    }

    /// See [`DeviceTensor::fill`].
    ///
    /// # Errors
    /// As there.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.tensor.fill(value)
    }
}

impl<T> Drop for BorrowedTensorMut<'_, T> {
    fn drop(&mut self) {
        // The slice's stream waits for every use already. Recording a write there makes `cudarc` tell its other
        // streams about it.
        let stream = self.slice.stream().clone();
        let (_, recorded_on_drop) = self.slice.device_ptr_mut(&stream);
        drop(recorded_on_drop);
    }
}

/// The device of a slice, after checking its length and context.
fn device_of<T: Element>(slice: &CudaSlice<T>, shape: &[usize]) -> Result<Device> {
    let numel = Strided::contiguous(shape)?.numel();
    if numel != slice.len() {
        let found = format!("a slice of {} elements", slice.len());
        let expected = format!("{numel} elements for shape {shape:?}");
        return Err(Error::Shape { what: "a tensor over a cudarc slice".into(), found, expected });
    }
    let device = Device::cuda(slice.ordinal())?;
    let ours = device.require_cuda("a tensor over a cudarc slice")?.context.cu_ctx();
    if slice.context().cu_ctx() != ours {
        return Err(Error::Unsupported {
            what: "a cudarc slice of a context that is not its GPU's primary one".to_owned(),
            instead: "allocate it through CudaContext::new(ordinal)".to_owned(),
        });
    }
    Ok(device)
}

/// The stream that waits for the slice's earlier uses.
fn home_stream(device: &Device) -> Result<Arc<CudaStream>> {
    match device.inner() {
        Kind::Cuda(cuda) => {
            cuda.bind()?;
            Ok(cuda.default_queue.raw().clone())
        }
        Kind::Cpu | Kind::Meta | Kind::Executor(_) => {
            Err(Error::NoData { what: "a tensor over a cudarc slice".to_owned() })
        }
    }
}

fn address<T>(slice: &CudaSlice<T>, device: &Device) -> Result<u64> {
    let stream = home_stream(device)?;
    let (address, _recorded_on_drop) = slice.device_ptr(&stream);
    Ok(address)
}

fn address_mut<T>(slice: &mut CudaSlice<T>, device: &Device) -> Result<u64> {
    let stream = home_stream(device)?;
    let (address, _recorded_on_drop) = slice.device_ptr_mut(&stream);
    Ok(address)
}

fn wrap<T: Element>(
    device: &Device,
    shape: &[usize],
    address: u64,
    bytes: usize,
    stream: Arc<CudaStream>,
    writable: bool,
    keep: Option<Box<dyn std::any::Any + Send + Sync>>,
) -> Result<DeviceTensor<T>> {
    let cuda = device.require_cuda("a tensor over a cudarc slice")?;
    let buffer = CudaBuffer::foreign(cuda, address, bytes, stream, writable, keep)?;
    let storage = Storage::from_cuda(device, buffer);
    Ok(DeviceTensor::wrap(AnyTensor::new(storage, T::TYPE, Strided::contiguous(shape)?)?))
}
