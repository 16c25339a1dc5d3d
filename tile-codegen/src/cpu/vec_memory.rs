//! Tensor memory in a vector, for tests and small tools. Every element is an atomic word, so that racing blocks see
//! some value that was written.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use half::{bf16, f16};

use super::memory::{Slice, SliceMut, TensorArg, TensorMemory};
use super::round;
use crate::ir::Elem;

/// The storage of one tensor. It panics on accesses outside, which only a fault of the executor can make.
#[derive(Debug)]
pub struct VecMemory {
    elem: Elem,
    words: Vec<AtomicU64>,
}

impl VecMemory {
    /// Storage of float elements, each rounded to `elem`.
    ///
    /// # Panics
    /// If `elem` is no float type.
    pub fn floats(elem: Elem, values: &[f32]) -> Self {
        assert!(elem.is_float(), "`{elem}` is no float type");
        let words = values.iter().map(|&x| AtomicU64::new(float_word(elem, round::value(elem, x)))).collect();
        Self { elem, words }
    }

    /// Storage of integers, each wrapped to `elem`; of bytes if `elem` is `Bool`.
    ///
    /// # Panics
    /// If `elem` is a float type.
    pub fn ints(elem: Elem, values: &[i64]) -> Self {
        assert!(!elem.is_float(), "`{elem}` is a float type");
        let wrap = |x: i64| match elem {
            Elem::I32 => i64::from(x as i32),
            Elem::U32 => i64::from(x as u32),
            Elem::Bool => i64::from(x as u8),
            Elem::I64 | Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 => x,
        };
        Self { elem, words: values.iter().map(|&x| AtomicU64::new(wrap(x) as u64)).collect() }
    }

    /// The elements as floats.
    pub fn to_floats(&self) -> Vec<f32> {
        self.words.iter().map(|w| word_float(self.elem, w.load(Relaxed))).collect()
    }

    /// The elements as integers.
    pub fn to_ints(&self) -> Vec<i64> {
        self.words.iter().map(|w| w.load(Relaxed) as i64).collect()
    }

    /// A row-major tensor of all elements.
    pub fn tensor(&self, shape: &[i64]) -> TensorArg<'_> {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        TensorArg { memory: self, offset: 0, shape: shape.to_vec(), strides }
    }

    fn at(&self, start: i64, stride: i64, step: usize) -> &AtomicU64 {
        &self.words[usize::try_from(start + stride * step as i64).expect("an element inside the storage")]
    }
}

fn float_word(elem: Elem, x: f32) -> u64 {
    match elem {
        Elem::F16 => u64::from(f16::from_f32(x).to_bits()),
        Elem::BF16 => u64::from(bf16::from_f32(x).to_bits()),
        Elem::F32 | Elem::TF32 | Elem::I32 | Elem::I64 | Elem::U32 | Elem::Bool => u64::from(x.to_bits()),
    }
}

fn word_float(elem: Elem, word: u64) -> f32 {
    match elem {
        Elem::F16 => f16::from_bits(word as u16).to_f32(),
        Elem::BF16 => bf16::from_bits(word as u16).to_f32(),
        Elem::F32 | Elem::TF32 | Elem::I32 | Elem::I64 | Elem::U32 | Elem::Bool => {
            f32::from_bits(word as u32)
        }
    }
}

impl TensorMemory for VecMemory {
    fn elem(&self) -> Elem {
        self.elem
    }

    fn read(&self, start: i64, stride: i64, out: SliceMut<'_>) {
        macro_rules! read {
            ($out:expr, $word:ident => $value:expr) => {
                $out.iter_mut().enumerate().for_each(|(step, out)| {
                    let $word = self.at(start, stride, step).load(Relaxed);
                    *out = $value;
                })
            };
        }
        match out {
            SliceMut::Float(out) => read!(out, word => word_float(self.elem, word)),
            SliceMut::I32(out) => read!(out, word => word as i32),
            SliceMut::I64(out) => read!(out, word => word as i64),
            SliceMut::U32(out) => read!(out, word => word as u32),
            SliceMut::Bool(out) => read!(out, word => word != 0),
        }
    }

    fn write(&self, start: i64, stride: i64, data: Slice<'_>) {
        macro_rules! write {
            ($data:expr, $x:ident => $word:expr) => {
                $data.iter().enumerate().for_each(|(step, &$x)| {
                    self.at(start, stride, step).store($word, Relaxed);
                })
            };
        }
        match data {
            Slice::Float(data) => write!(data, x => float_word(self.elem, x)),
            Slice::I32(data) => write!(data, x => i64::from(x) as u64),
            Slice::I64(data) => write!(data, x => x as u64),
            Slice::U32(data) => write!(data, x => u64::from(x)),
            Slice::Bool(data) => write!(data, x => u64::from(x)),
        }
    }

    fn update(&self, at: i64, change: &dyn Fn(u64) -> u64) -> u64 {
        let bits = |word: u64| if self.elem == Elem::I64 { word } else { u64::from(word as u32) };
        // Integers are kept widened.
        let word = |bits: u64| match self.elem {
            Elem::I32 => i64::from(bits as i32) as u64,
            Elem::I64 => bits,
            Elem::F32 | Elem::TF32 | Elem::F16 | Elem::BF16 | Elem::U32 | Elem::Bool => {
                u64::from(bits as u32)
            }
        };
        let update = |old| Some(word(change(bits(old))));
        let old = self.at(at, 0, 0).fetch_update(AcqRel, Acquire, update);
        bits(old.expect("the closure always returns a word"))
    }
}
