//! Memory of the CPU device: zeroed, 64-byte aligned, every element accessed with relaxed atomics; updates of one step
//! are acquires and releases.
//!
//! Blocks of a kernel run on several threads and may race. Because every access is an atomic of the element's
//! size, a race gives an unspecified value of the ones written, never undefined behaviour.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use tile_codegen::ir::Elem;

use crate::element::Element;
use crate::error::{Error, Result};

/// Alignment of every buffer in bytes: a cache line, and enough for any vector load.
pub const ALIGNMENT: usize = 64;

/// Elements converted at a time between 16-bit floats and f32.
const CHUNK: usize = 256;

/// The unsigned integer that stores an element.
pub trait Word: Copy + Default + Into<u64> + sealed::Sealed {
    /// Relaxed atomic load.
    ///
    /// # Safety
    /// `ptr` is aligned, valid for the size of `Self`, and only accessed by atomics of this size.
    unsafe fn load(ptr: *mut Self) -> Self;
    /// Relaxed atomic store.
    ///
    /// # Safety
    /// As for [`Word::load`].
    unsafe fn store(ptr: *mut Self, value: Self);
    /// Replaces the value by `update(old)` in one step and returns the old one. It is an acquire and a release.
    ///
    /// # Safety
    /// As for [`Word::load`].
    unsafe fn update(ptr: *mut Self, update: impl Fn(Self) -> Self) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! word {
    ($word:ty, $atomic:ty) => {
        impl sealed::Sealed for $word {}
        impl Word for $word {
            #[inline(always)]
            unsafe fn load(ptr: *mut Self) -> Self {
                // SAFETY: the caller promises a valid, aligned pointer to memory that is only accessed atomically.
                unsafe { <$atomic>::from_ptr(ptr) }.load(Ordering::Relaxed)
            }
            #[inline(always)]
            unsafe fn store(ptr: *mut Self, value: Self) {
                // SAFETY: as in `load`.
                unsafe { <$atomic>::from_ptr(ptr) }.store(value, Ordering::Relaxed)
            }
            #[inline]
            unsafe fn update(ptr: *mut Self, update: impl Fn(Self) -> Self) -> Self {
                // SAFETY: as in `load`.
                let cell = unsafe { <$atomic>::from_ptr(ptr) };
                let mut old = cell.load(Ordering::Acquire);
                loop {
                    match cell.compare_exchange_weak(old, update(old), Ordering::AcqRel, Ordering::Acquire) {
                        Ok(old) => return old,
                        Err(now) => old = now,
                    }
                }
            }
        }
    };
}

word!(u8, AtomicU8);
word!(u16, AtomicU16);
word!(u32, AtomicU32);
word!(u64, AtomicU64);

/// Memory of the CPU device. All accesses take `&self`; see the module for what races mean.
///
/// Indices and strides count elements of the type that is accessed. One buffer holds elements of one size.
pub struct CpuBuffer {
    data: NonNull<u8>,
    bytes: usize,
    layout: Layout,
    /// For each byte whether it was written; `None` if all count as written.
    written: Option<Box<[AtomicU8]>>,
}

// SAFETY: the buffer owns its memory, and every access through `&self` is an atomic operation.
unsafe impl Send for CpuBuffer {}
// SAFETY: as above.
unsafe impl Sync for CpuBuffer {}

impl Drop for CpuBuffer {
    fn drop(&mut self) {
        // SAFETY: `data` came from `alloc_zeroed` with this layout and is freed once.
        unsafe { dealloc(self.data.as_ptr(), self.layout) }
    }
}

impl std::fmt::Debug for CpuBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CpuBuffer").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl CpuBuffer {
    /// A buffer of `bytes` zero bytes.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`].
    pub fn zeroed(bytes: usize) -> Result<Self> {
        let failed = || Error::OutOfHostMemory { bytes };
        // At least one line, so that the layout is never of size zero.
        let size = bytes.max(1).checked_next_multiple_of(ALIGNMENT).ok_or_else(failed)?;
        let layout = Layout::from_size_align(size, ALIGNMENT).map_err(|_| failed())?;
        // SAFETY: the layout has a size above zero.
        let data = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(failed)?;
        Ok(Self { data, bytes, layout, written: None })
    }

    /// A buffer of `bytes` zero bytes that notes which of them are written from now on.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`].
    pub fn unwritten(bytes: usize) -> Result<Self> {
        let mut buffer = Self::zeroed(bytes)?;
        buffer.written = Some((0..bytes).map(|_| AtomicU8::new(0)).collect());
        Ok(buffer)
    }

    /// For each byte whether it was written, if the buffer was made by [`CpuBuffer::unwritten`].
    pub fn written(&self) -> Option<Vec<bool>> {
        let written = self.written.as_ref()?;
        Some(written.iter().map(|byte| byte.load(Ordering::Relaxed) != 0).collect())
    }

    /// Says for each byte whether it counts as written; nothing for buffers that do not note it.
    pub(crate) fn set_written(&self, written: &[bool]) {
        for (byte, &is_written) in self.written.iter().flatten().zip(written) {
            byte.store(is_written.into(), Ordering::Relaxed);
        }
    }

    /// Notes that `len` elements of `size` bytes are written, of a run that was checked to lie inside.
    fn note_run(&self, size: usize, start: usize, stride: i64, len: usize) {
        let Some(written) = &self.written else { return };
        for i in 0..len {
            let at = nth(start, stride, i) * size;
            written[at..at + size].iter().for_each(|byte| byte.store(1, Ordering::Relaxed));
        }
    }

    /// A buffer that holds a copy of `values`.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`].
    pub fn from_slice<T: Element>(values: &[T]) -> Result<Self> {
        let buffer = Self::zeroed(size_of_val(values))?;
        // SAFETY: the new buffer has that many bytes, is not shared yet, and elements have no padding.
        unsafe {
            buffer.data.as_ptr().copy_from_nonoverlapping(values.as_ptr().cast(), size_of_val(values));
        }
        Ok(buffer)
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of whole elements of size `size` bytes.
    fn elements(&self, size: usize) -> usize {
        self.bytes / size
    }

    /// Address of the first byte, for telling whether two buffers overlap.
    pub fn address(&self) -> usize {
        self.data.as_ptr().addr()
    }

    /// The memory itself, for the driver to copy into.
    pub(crate) fn as_mut_ptr(&self) -> *mut u8 {
        self.data.as_ptr()
    }

    /// Reads `out.len()` elements at `start, start + stride, ...`; a stride of 0 repeats one element.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], before anything is read.
    #[inline]
    pub fn load_run<T: Element>(&self, start: usize, stride: i64, out: &mut [T]) -> Result<()> {
        let base = self.run::<T::Word>("a load", start, stride, out.len())?;
        for (i, value) in out.iter_mut().enumerate() {
            // SAFETY: `run` checked that every element of the run lies inside the buffer.
            *value = T::from_word(unsafe { T::Word::load(base.offset(i as isize * stride as isize)) });
        }
        Ok(())
    }

    /// Writes `values` to `start, start + stride, ...`.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], before anything is written.
    #[inline]
    pub fn store_run<T: Element>(&self, start: usize, stride: i64, values: &[T]) -> Result<()> {
        let base = self.run::<T::Word>("a store", start, stride, values.len())?;
        self.note_run(size_of::<T::Word>(), start, stride, values.len());
        for (i, value) in values.iter().enumerate() {
            // SAFETY: `run` checked that every element of the run lies inside the buffer.
            unsafe { T::Word::store(base.offset(i as isize * stride as isize), value.to_word()) };
        }
        Ok(())
    }

    /// Reads a run of f16, bf16 or f32 elements as f32 (exact).
    ///
    /// # Errors
    /// [`Error::OutOfBounds`]; [`Error::ElementType`] for other element types.
    pub fn load_f32(&self, elem: Elem, start: usize, stride: i64, out: &mut [f32]) -> Result<()> {
        match elem {
            Elem::F32 => self.load_run(start, stride, out),
            Elem::F16 => {
                self.load_half(start, stride, out, |half: &[f16], out| half.convert_to_f32_slice(out))
            }
            Elem::BF16 => self.load_half(start, stride, out, |half: &[bf16], out| {
                // bfloat16 is the upper half of an f32.
                for (out, half) in out.iter_mut().zip(half) {
                    *out = f32::from_bits(u32::from(half.to_bits()) << 16);
                }
            }),
            _ => Err(wrong_type("a load as f32", elem, "f32, f16 or bf16")),
        }
    }

    /// Writes f32 values to a run of f16, bf16 or f32 elements, rounding to nearest even.
    ///
    /// # Errors
    /// As [`CpuBuffer::load_f32`].
    pub fn store_f32(&self, elem: Elem, start: usize, stride: i64, values: &[f32]) -> Result<()> {
        match elem {
            Elem::F32 => self.store_run(start, stride, values),
            Elem::F16 => self.store_half(start, stride, values, |values, half: &mut [f16]| {
                half.convert_from_f32_slice(values)
            }),
            Elem::BF16 => self.store_half(start, stride, values, |values, half: &mut [bf16]| {
                half.convert_from_f32_slice(values)
            }),
            _ => Err(wrong_type("a store from f32", elem, "f32, f16 or bf16")),
        }
    }

    /// Reads a run of i32, i64, u32 or bool elements as i64 (exact; true is 1).
    ///
    /// # Errors
    /// [`Error::OutOfBounds`]; [`Error::ElementType`] for other element types.
    pub fn load_i64(&self, elem: Elem, start: usize, stride: i64, out: &mut [i64]) -> Result<()> {
        match elem {
            Elem::I64 => self.load_run(start, stride, out),
            Elem::I32 => self.load_as(start, stride, out, |value: i32| i64::from(value)),
            Elem::U32 => self.load_as(start, stride, out, |value: u32| i64::from(value)),
            Elem::Bool => self.load_as(start, stride, out, |value: bool| i64::from(value)),
            _ => Err(wrong_type("a load as i64", elem, "i32, i64, u32 or bool")),
        }
    }

    /// Writes i64 values to a run of i32, i64, u32 (low bits kept) or bool (not zero is true) elements.
    ///
    /// # Errors
    /// As [`CpuBuffer::load_i64`].
    pub fn store_i64(&self, elem: Elem, start: usize, stride: i64, values: &[i64]) -> Result<()> {
        match elem {
            Elem::I64 => self.store_run(start, stride, values),
            Elem::I32 => self.store_as(start, stride, values, |value| value as i32),
            Elem::U32 => self.store_as(start, stride, values, |value| value as u32),
            Elem::Bool => self.store_as(start, stride, values, |value| value != 0),
            _ => Err(wrong_type("a store from i64", elem, "i32, i64, u32 or bool")),
        }
    }

    /// Replaces element `index` by `update(old)` in one atomic step and returns the old value.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`].
    pub fn fetch_update<T: Element>(&self, index: usize, update: impl Fn(T) -> T) -> Result<T> {
        let place = self.run::<T::Word>("an atomic update", index, 0, 1)?;
        self.note_run(size_of::<T::Word>(), index, 0, 1);
        // SAFETY: `run` checked that the element lies inside the buffer.
        let old = unsafe { T::Word::update(place, |word| update(T::from_word(word)).to_word()) };
        Ok(T::from_word(old))
    }

    fn load_half<H: Element>(
        &self,
        start: usize,
        stride: i64,
        out: &mut [f32],
        convert: impl Fn(&[H], &mut [f32]),
    ) -> Result<()> {
        self.run::<H::Word>("a load", start, stride, out.len())?;
        let mut half = [H::default(); CHUNK];
        for (chunk, out) in out.chunks_mut(CHUNK).enumerate() {
            let half = &mut half[..out.len()];
            self.load_run(nth(start, stride, chunk * CHUNK), stride, half)?;
            convert(half, out);
        }
        Ok(())
    }

    fn store_half<H: Element>(
        &self,
        start: usize,
        stride: i64,
        values: &[f32],
        convert: impl Fn(&[f32], &mut [H]),
    ) -> Result<()> {
        self.run::<H::Word>("a store", start, stride, values.len())?;
        let mut half = [H::default(); CHUNK];
        for (chunk, values) in values.chunks(CHUNK).enumerate() {
            let half = &mut half[..values.len()];
            convert(values, half);
            self.store_run(nth(start, stride, chunk * CHUNK), stride, half)?;
        }
        Ok(())
    }

    fn load_as<T: Element>(
        &self,
        start: usize,
        stride: i64,
        out: &mut [i64],
        convert: impl Fn(T) -> i64,
    ) -> Result<()> {
        let base = self.run::<T::Word>("a load", start, stride, out.len())?;
        for (i, value) in out.iter_mut().enumerate() {
            // SAFETY: `run` checked that every element of the run lies inside the buffer.
            let word = unsafe { T::Word::load(base.offset(i as isize * stride as isize)) };
            *value = convert(T::from_word(word));
        }
        Ok(())
    }

    fn store_as<T: Element>(
        &self,
        start: usize,
        stride: i64,
        values: &[i64],
        convert: impl Fn(i64) -> T,
    ) -> Result<()> {
        let base = self.run::<T::Word>("a store", start, stride, values.len())?;
        self.note_run(size_of::<T::Word>(), start, stride, values.len());
        for (i, value) in values.iter().enumerate() {
            // SAFETY: `run` checked that every element of the run lies inside the buffer.
            unsafe { T::Word::store(base.offset(i as isize * stride as isize), convert(*value).to_word()) };
        }
        Ok(())
    }

    /// Pointer to element `start`, after checking that all `len` elements of the run are inside.
    #[inline]
    fn run<W: Word>(&self, what: &str, start: usize, stride: i64, len: usize) -> Result<*mut W> {
        let elements = self.elements(size_of::<W>());
        if len == 0 {
            return Ok(self.data.as_ptr().cast());
        }
        let last = start as i128 + i128::from(stride) * (len - 1) as i128;
        if start >= elements || last < 0 || last >= elements as i128 {
            let index = if start >= elements { start as i128 } else { last };
            return Err(Error::OutOfBounds { what: what.to_owned(), index, len: elements });
        }
        // SAFETY: `start` lies inside the allocation; the base is aligned to 64 bytes, so the element is aligned.
        Ok(unsafe { self.data.as_ptr().cast::<W>().add(start) })
    }
}

/// Element `i` of a run that was checked to lie inside its buffer.
fn nth(start: usize, stride: i64, i: usize) -> usize {
    (start as i64 + stride * i as i64) as usize
}

fn wrong_type(what: &str, found: Elem, expected: &str) -> Error {
    Error::ElementType { what: what.to_owned(), found: found.to_string(), expected: expected.to_owned() }
}
