//! Builds a probe: a kernel whose every thread takes its element of each column and gives one of each form.

use tile_codegen::ptx::{
    Addr, FuncBuilder, IntOp, Module, Operand, ParamKind, Reg, RegClass, Shared, Sm, Space, SpecialReg, Ty,
    need,
};

use tile_codegen::simt::TensorMap;

use super::{Compare, ENTRY, Form, Probe, Side};

/// Threads in a block of probes that work element by element.
pub(super) const THREADS: u32 = 64;

/// A probe under construction.
pub(super) struct Builder {
    name: String,
    threads: u32,
    count: usize,
    columns: Vec<Vec<u64>>,
    extra: Vec<u8>,
    forms: Vec<Form>,
    maps: Vec<(Side, TensorMap)>,
    output: usize,
    /// The kernel's body so far.
    pub(super) f: FuncBuilder,
    /// The thread's element of each column.
    pub(super) x: Vec<Reg>,
    /// The thread's number in the grid.
    pub(super) index: Reg,
    input_base: Reg,
    output_base: Reg,
}

impl Builder {
    /// A probe of `threads` threads a block that takes one element of each column a thread. Columns are of equal length;
    /// they are repeated up to a whole number of blocks.
    pub(super) fn new(name: impl Into<String>, threads: u32, columns: &[(Ty, Vec<u64>)]) -> Builder {
        let length = columns.first().map_or(1, |(_, values)| values.len());
        let count = length.next_multiple_of(threads as usize);
        let mut f = FuncBuilder::new(ENTRY, threads);
        let input = f.param("input", ParamKind::Pointer { align: 16 });
        let output = f.param("output", ParamKind::Pointer { align: 16 });
        let input_base = f.ld_param(Ty::U64, input);
        let output_base = f.ld_param(Ty::U64, output);
        let (block, thread) = (f.special(SpecialReg::CtaIdX), f.special(SpecialReg::TidX));
        let index = f.mad_lo_s32(block, threads, thread).reg().expect("not a literal");
        let at = f.mul_wide_u32(index, 8u32);
        let at = f.add_s64(input_base, at).reg().expect("not a literal");
        let mut x = Vec::new();
        let mut all = Vec::new();
        for (c, (ty, values)) in columns.iter().enumerate() {
            assert_eq!(values.len(), length, "columns of equal length");
            let addr = Addr::reg(at, (c * count * 8) as i64);
            x.push(f.ld(Space::Global, ty.class().declared(), addr));
            all.push(values.iter().copied().cycle().take(count).collect());
        }
        Builder {
            name: name.into(),
            threads,
            count,
            columns: all,
            extra: Vec::new(),
            forms: Vec::new(),
            maps: Vec::new(),
            output: 0,
            f,
            x,
            index,
            input_base,
            output_base,
        }
    }

    /// A probe that works element by element.
    pub(super) fn elements(name: impl Into<String>, columns: &[(Ty, Vec<u64>)]) -> Builder {
        Builder::new(name, THREADS, columns)
    }

    /// Gives the kernel `bytes` bytes of shared memory.
    pub(super) fn shared(&mut self, bytes: u32) {
        self.f.kernel_mut().shared = Shared::Static { bytes, align: 128 };
    }

    /// Appends bytes to the input, behind the columns, and returns a register with their address (a multiple of 16).
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Reg {
        let at = self.data(bytes);
        self.f.add_s64(self.input_base, at as i64).reg().expect("not a literal")
    }

    /// Appends bytes to the input, behind the columns, and returns how far from its start they are (a multiple of 16).
    pub(super) fn data(&mut self, bytes: &[u8]) -> usize {
        let at = self.columns.len() * self.count * 8 + self.extra.len();
        let pad = at.next_multiple_of(16) - at;
        self.extra.resize(self.extra.len() + pad, 0);
        self.extra.extend_from_slice(bytes);
        at + pad
    }

    /// A tensor map as a parameter, and its generic address. Its own address counts from the start of the input or output.
    pub(super) fn map(&mut self, side: Side, map: TensorMap) -> Reg {
        let name = format!("map{}", self.maps.len());
        self.maps.push((side, map));
        let param = self.f.param(name, ParamKind::Bytes { size: 128, align: 64 });
        self.f.param_generic_addr(param)
    }

    /// Regions of the output for at least this many bytes, one after the other; how far they are from its start.
    pub(super) fn area(&mut self, name: &str, bytes: usize) -> usize {
        let each = self.count * 4;
        let first = self.output.next_multiple_of(16);
        for i in 0..bytes.div_ceil(each) {
            self.region(format!("{name}, words {}..", i * self.count), Ty::B32, Compare::Bits);
        }
        first
    }

    /// The address of the output's byte `at`.
    pub(super) fn output_at(&mut self, at: usize) -> Reg {
        self.f.add_s64(self.output_base, at as i64).reg().expect("not a literal")
    }

    /// `base + index * stride`, for 64-bit addresses.
    pub(super) fn element(&mut self, base: Reg, index: Reg, stride: u32) -> Reg {
        let at = self.f.mul_wide_u32(index, stride);
        self.f.add_s64(base, at).reg().expect("not a literal")
    }

    /// A new region of the output that the kernel writes itself: the address of the thread's element.
    pub(super) fn cell(&mut self, name: impl Into<String>, ty: Ty, compare: Compare) -> Reg {
        let offset = self.region(name.into(), ty, compare);
        let base = self.f.add_s64(self.output_base, offset as i64).reg().expect("not a literal");
        self.element(base, self.index, ty.bytes())
    }

    /// The address of a new region that all threads share.
    pub(super) fn common(&mut self, name: impl Into<String>, ty: Ty, compare: Compare) -> Reg {
        let offset = self.region(name.into(), ty, compare);
        self.f.add_s64(self.output_base, offset as i64).reg().expect("not a literal")
    }

    fn region(&mut self, name: String, ty: Ty, compare: Compare) -> usize {
        let offset = self.output.next_multiple_of(16);
        self.output = offset + self.count * ty.bytes() as usize;
        self.forms.push(Form { name, ty, offset, compare });
        offset
    }

    /// A form whose results must be the same bits. Predicates become 0 and 1.
    pub(super) fn out(&mut self, name: impl Into<String>, value: impl Into<Operand>) {
        self.out_as(name, value, Compare::Bits);
    }

    /// A form with its own comparison.
    pub(super) fn out_as(&mut self, name: impl Into<String>, value: impl Into<Operand>, compare: Compare) {
        let mut value = value.into();
        let mut ty = value.reg().map_or(Ty::B32, |reg| reg.class.declared());
        if let Some(pred) = value.reg().filter(|reg| reg.class == RegClass::Pred) {
            (value, ty) = (self.f.selp(Ty::B32, 1u32, 0u32, pred), Ty::B32);
        }
        let cell = self.cell(name, ty, compare);
        self.f.st(Space::Global, ty, Addr::reg(cell, 0), &[value]);
    }

    /// A 32-bit value modulo a power of two.
    pub(super) fn low(&mut self, value: Reg, power: u32) -> Reg {
        self.f.int(IntOp::And, Ty::B32, value, power - 1).reg().expect("not a literal")
    }

    /// The probe. Its target is the lowest that has all its instructions.
    pub(super) fn finish(self) -> Probe {
        let kernel = self.f.finish();
        let hopper = kernel.lines.iter().any(|line| need(&line.inst).sm > 80);
        let target = if hopper { Sm::SM_90A } else { Sm::SM_80 };
        let columns = self.columns.iter().flatten().flat_map(|value| value.to_le_bytes());
        let input = columns.chain(self.extra).collect();
        Probe {
            name: self.name,
            module: Module { target, kernels: vec![kernel] },
            blocks: self.count as u32 / self.threads,
            count: self.count,
            columns: self.columns,
            input,
            output: self.output,
            forms: self.forms,
            maps: self.maps,
            writes_past_tensor: false,
        }
    }
}
