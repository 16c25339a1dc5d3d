//! Shows CPU memory to the executor of tile IR as the storage of one tensor.

use tile_codegen::cpu::memory::{Slice, SliceMut, TensorMemory};
use tile_codegen::ir::Elem;

use crate::cpu_buffer::CpuBuffer;
use crate::error::Result;

/// A CPU buffer that holds elements of one type.
#[derive(Debug, Clone, Copy)]
pub struct CpuMemory<'a> {
    buffer: &'a CpuBuffer,
    elem: Elem,
}

impl<'a> CpuMemory<'a> {
    /// `buffer` as memory of elements of type `elem`.
    pub fn new(buffer: &'a CpuBuffer, elem: Elem) -> Self {
        Self { buffer, elem }
    }
}

impl TensorMemory for CpuMemory<'_> {
    fn elem(&self) -> Elem {
        self.elem
    }

    fn read(&self, start: i64, stride: i64, out: SliceMut<'_>) {
        let start = start as usize;
        inside(match out {
            SliceMut::Float(out) => self.buffer.load_f32(self.elem, start, stride, out),
            SliceMut::I32(out) => self.buffer.load_run(start, stride, out),
            SliceMut::I64(out) => self.buffer.load_run(start, stride, out),
            SliceMut::U32(out) => self.buffer.load_run(start, stride, out),
            SliceMut::Bool(out) => self.buffer.load_run(start, stride, out),
        });
    }

    fn write(&self, start: i64, stride: i64, data: Slice<'_>) {
        let start = start as usize;
        inside(match data {
            Slice::Float(values) => self.buffer.store_f32(self.elem, start, stride, values),
            Slice::I32(values) => self.buffer.store_run(start, stride, values),
            Slice::I64(values) => self.buffer.store_run(start, stride, values),
            Slice::U32(values) => self.buffer.store_run(start, stride, values),
            Slice::Bool(values) => self.buffer.store_run(start, stride, values),
        });
    }

    fn update(&self, at: i64, change: &dyn Fn(u64) -> u64) -> u64 {
        let at = at as usize;
        let old = match self.elem.bytes() {
            8 => self.buffer.fetch_update(at, |old: i64| change(old as u64) as i64).map(|old| old as u64),
            _ => self.buffer.fetch_update(at, |old: u32| change(old.into()) as u32).map(u64::from),
        };
        old.expect("the executor names only elements of the tensor, of 4 or 8 bytes")
    }
}

/// Views are checked against their storage when they are made, and the executor keeps to the view.
fn inside(access: Result<()>) {
    access.expect("the executor names only elements of the tensor, in the tensor's element type");
}
