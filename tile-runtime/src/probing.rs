//! Launches PTX of the typed tree on buffers of bytes, on the PTX executor and on a GPU: for probing what instructions do.
//!
//! This is no way around the checks of [`Launch`](crate::Launch): nothing bounds what such a kernel accesses. A GPU therefore
//! runs it only after the executor has run it on the same bytes, with several schedules and without a report, but for those
//! that are known not to endanger anybody.

use std::ffi::c_void;

use tile_codegen::ptx::{Kernel, Module, ParamKind, Shared, print_module};
use tile_codegen::simt::{Access, Memory, Program, Report, ReportKind, Run, TensorMap};

use crate::buffer::{self, Use};
use crate::cuda;
use crate::cuda::{EncodedTensorMap, TensorMapSpec};
use crate::device::Device;
use crate::error::{Error, KernelError, Result};
use crate::tensor::DeviceTensor;

/// Schedules that the executor tries before a GPU runs a kernel.
const SEEDS: [u64; 2] = [0, 1];
/// Instructions of warps that it may take: a probe is small.
const BUDGET: u64 = 1 << 24;

/// A buffer of a [`Probing`].
#[derive(Clone, Debug)]
pub struct ProbeBuffer {
    /// For messages.
    pub name: &'static str,
    /// Its bytes before the launch.
    pub bytes: Vec<u8>,
    /// Whether the kernel writes to it, and the launch returns it.
    pub written: bool,
}

/// A parameter of a kernel that is probed.
#[derive(Clone, Debug)]
pub enum ProbeParam {
    /// The address of the buffer of this number: a pointer parameter.
    Buffer(usize),
    /// A tensor map on the buffer of this number, in whose description the address counts from the buffer's start: a parameter
    /// of 128 bytes at a multiple of 64.
    TensorMap {
        /// The buffer.
        buffer: usize,
        /// The description.
        map: TensorMap,
    },
}

/// A kernel with what it is launched on. Its shared memory is static.
#[derive(Clone, Debug)]
pub struct Probing<'a> {
    /// For messages.
    pub name: &'a str,
    /// The module; the kernel is its first.
    pub module: &'a Module,
    /// Blocks, along x.
    pub blocks: u32,
    /// The buffers.
    pub buffers: &'a [ProbeBuffer],
    /// One for each parameter of the kernel.
    pub params: &'a [ProbeParam],
    /// Whether it is a probe of what a store does between the end of its tensor and that of its buffer. The executor must
    /// report the tensor map then, and nothing else; else it must report nothing.
    pub writes_past_tensor: bool,
}

impl Probing<'_> {
    fn kernel(&self) -> Result<&Kernel> {
        let kernel = self.module.kernels.first().ok_or_else(|| self.refused(&"the module has no kernel"))?;
        if matches!(kernel.shared, Shared::Dynamic { .. }) {
            return Err(self.refused(&"its shared memory is dynamic, expected a fixed number of bytes"));
        }
        let fits = |(kind, param): (&ParamKind, &ProbeParam)| match param {
            ProbeParam::Buffer(buffer) => {
                matches!(kind, ParamKind::Pointer { .. }) && *buffer < self.buffers.len()
            }
            ProbeParam::TensorMap { buffer, .. } => {
                *kind == ParamKind::Bytes { size: 128, align: 64 } && *buffer < self.buffers.len()
            }
        };
        let kinds = kernel.params.iter().map(|param| &param.kind);
        if kernel.params.len() != self.params.len() || !kinds.zip(self.params).all(fits) {
            let found = (&kernel.params, self.params);
            return Err(self.refused(&format!("its parameters are not those of the launch: {found:?}")));
        }
        Ok(kernel)
    }

    fn refused(&self, fault: &dyn std::fmt::Display) -> Error {
        KernelError::plain(self.name, "probed", fault)
    }

    /// A map with the address that it has in memory.
    fn placed(map: &TensorMap, base: u64) -> TensorMap {
        TensorMap { address: base.wrapping_add(map.address), ..map.clone() }
    }

    /// Runs the kernel on the executor with a schedule; the bytes of the buffers that are written, in order.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel is malformed, the parameters do not fit, or the executor reports a fault.
    pub fn execute(&self, seed: u64) -> Result<Vec<Vec<u8>>> {
        let kernel = self.kernel()?;
        let program = Program::new(self.module, &kernel.name).map_err(|error| self.refused(&error))?;
        let mut memory = Memory::new();
        let place = |buffer: &ProbeBuffer| {
            let access = if buffer.written { Access::Write } else { Access::Read };
            memory.add(buffer.name, &buffer.bytes, access)
        };
        let bases: Vec<u64> = self.buffers.iter().map(place).collect();
        let bytes = |param: &ProbeParam| match param {
            ProbeParam::Buffer(buffer) => Ok(bases[*buffer].to_le_bytes().to_vec()),
            ProbeParam::TensorMap { buffer, map } => {
                Self::placed(map, bases[*buffer]).encode().map_err(|error| self.refused(&error))
            }
        };
        let params = self.params.iter().map(bytes).collect::<Result<Vec<_>>>()?;
        let run = Run { seed, budget: BUDGET, ..Run::new(&program, [self.blocks, 1, 1], params) };
        let outcome = run.execute(&memory).map_err(|error| self.refused(&error))?;
        self.check(seed, &outcome.reports)?;
        let written = self.buffers.iter().zip(&bases).filter(|(buffer, _)| buffer.written);
        Ok(written.map(|(_, &base)| memory.bytes(base).expect("a region of this memory")).collect())
    }

    fn check(&self, seed: u64, reports: &[Report]) -> Result<()> {
        let known = |report: &&Report| self.writes_past_tensor && report.kind == ReportKind::TensorMap;
        if let Some(report) = reports.iter().find(|report| !known(report)) {
            let count = reports.len();
            return Err(self.refused(&format!("{count} reports with seed {seed}, among them: {report:?}")));
        }
        if self.writes_past_tensor && reports.is_empty() {
            return Err(self.refused(&format!("no report with seed {seed}, expected writes behind a tensor")));
        }
        Ok(())
    }

    /// Runs the kernel on the executor, and then on a GPU; the bytes that the GPU left in the buffers that are written.
    ///
    /// # Errors
    /// As [`Probing::execute`], before the GPU does anything; those of the driver.
    pub fn run(&self, device: &Device) -> Result<Vec<Vec<u8>>> {
        for seed in SEEDS {
            self.execute(seed)?;
        }
        let kernel = self.kernel()?;
        let function = cuda::Module::load_ptx(device, &print_module(self.module).text, self.name)?
            .function(&kernel.name)?;
        let upload = |buffer: &ProbeBuffer| {
            let words = words(&buffer.bytes);
            DeviceTensor::from_slice(device, &[words.len()], &words)
        };
        let tensors = self.buffers.iter().map(upload).collect::<Result<Vec<_>>>()?;
        let address = |buffer: usize| tensors[buffer].as_any().device_address().expect("it is on a GPU");
        let value = |param: &ProbeParam| match param {
            ProbeParam::Buffer(buffer) => Ok(Value::Address(address(*buffer))),
            ProbeParam::TensorMap { buffer, map } => {
                let spec = TensorMapSpec::new(Self::placed(map, address(*buffer)));
                spec.encode(device).map(Value::Map)
            }
        };
        let mut values = self.params.iter().map(value).collect::<Result<Vec<_>>>()?;
        let uses: Vec<Use<'_>> =
            tensors.iter().zip(self.buffers).map(|(tensor, buffer)| used(tensor, buffer)).collect();
        let stream = device.default_stream();
        stream.submit(&uses, || {
            let mut pointers: Vec<*mut c_void> = values.iter_mut().map(Value::pointer).collect();
            // SAFETY: `kernel` has made sure that there is one value for each parameter, of its kind and size. The executor
            // has run this very kernel on the same bytes and reported no access outside of its buffers, which the uses name
            // (what lies outside of a tensor but in a buffer that is written has a report of another kind);
            // addresses of a kernel that is probed come from its parameters, its input and its threads' numbers alone.
            unsafe { function.launch(&stream, [self.blocks, 1, 1], kernel.reqntid, 0, &mut pointers) }
        })?;
        stream.synchronize()?;
        let written = tensors.iter().zip(self.buffers).filter(|(_, buffer)| buffer.written);
        let download = |(tensor, buffer): (&DeviceTensor<u32>, &ProbeBuffer)| {
            let bytes = tensor.to_vec()?.into_iter().flat_map(u32::to_le_bytes);
            Ok(bytes.take(buffer.bytes.len()).collect())
        };
        written.map(download).collect()
    }
}

/// A parameter as the driver reads it.
enum Value {
    Address(u64),
    Map(EncodedTensorMap),
}

impl Value {
    fn pointer(&mut self) -> *mut c_void {
        match self {
            Value::Address(address) => std::ptr::from_mut(address).cast(),
            Value::Map(map) => std::ptr::from_mut(map).cast(),
        }
    }
}

fn used<'a>(tensor: &'a DeviceTensor<u32>, buffer: &ProbeBuffer) -> Use<'a> {
    let access = if buffer.written { buffer::Access::Write } else { buffer::Access::Read };
    Use { storage: tensor.storage(), access }
}

/// Bytes as words, the last filled up with zeros; at least one.
fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |chunk: &[u8]| chunk.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
    let words: Vec<u32> = bytes.chunks(4).map(word).collect();
    if words.is_empty() { vec![0] } else { words }
}

#[cfg(test)]
mod tests {
    use tile_codegen::ptx::{Addr, FuncBuilder, Sm, Space, SpecialReg, Ty};

    use super::*;

    /// Every thread adds 1 to its word.
    fn module(threads: u32) -> Module {
        let mut f = FuncBuilder::new("add", threads);
        let [from, to] = ["from", "to"].map(|name| f.param(name, ParamKind::Pointer { align: 16 }));
        let [from, to] = [from, to].map(|param| f.ld_param(Ty::U64, param));
        let thread = f.special(SpecialReg::TidX);
        let offset = f.mul_wide_u32(thread, 4u32);
        let [from, to] = [from, to].map(|base| f.add_s64(base, offset).reg().expect("not a literal"));
        let word = f.ld(Space::Global, Ty::B32, Addr::reg(from, 0));
        let word = f.add_s32(word, 1u32);
        f.st(Space::Global, Ty::B32, Addr::reg(to, 0), &[word]);
        Module { target: Sm::SM_80, kernels: vec![f.finish()] }
    }

    fn buffers() -> Vec<ProbeBuffer> {
        let input = (0..32u32).flat_map(u32::to_le_bytes).collect();
        vec![
            ProbeBuffer { name: "from", bytes: input, written: false },
            ProbeBuffer { name: "to", bytes: vec![0; 128], written: true },
        ]
    }

    const PARAMS: [ProbeParam; 2] = [ProbeParam::Buffer(0), ProbeParam::Buffer(1)];

    fn add<'a>(module: &'a Module, buffers: &'a [ProbeBuffer]) -> Probing<'a> {
        Probing { name: "add", module, blocks: 1, buffers, params: &PARAMS, writes_past_tensor: false }
    }

    #[test]
    fn buffers_that_are_written_come_back() {
        let (module, buffers) = (module(32), buffers());
        let probing = add(&module, &buffers);
        let right: Vec<u8> = (1..33u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(probing.execute(1).expect("a clean kernel"), std::slice::from_ref(&right));
        match Device::cuda(0) {
            Ok(device) => assert_eq!(probing.run(&device).expect("a clean kernel"), [right]),
            Err(error) => println!("skipped: no device ({error})"),
        }
    }

    #[test]
    fn what_the_executor_reports_runs_nowhere() {
        let (module, buffers) = (module(64), buffers());
        let probing = add(&module, &buffers);
        let error = probing.run(&Device::cpu()).expect_err("threads 32.. are out of bounds").to_string();
        assert!(error.contains("OutOfBounds"), "{error}");
        let error =
            Probing { writes_past_tensor: true, ..probing.clone() }.execute(0).expect_err("as before");
        assert!(error.to_string().contains("OutOfBounds"), "{error}");
        let probing = Probing { params: &PARAMS[..1], ..probing };
        let error = probing.execute(0).expect_err("a parameter is missing").to_string();
        assert!(error.contains("parameters"), "{error}");
    }
}
