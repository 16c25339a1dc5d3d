//! Text cases on the PTX executor: what a GPU runs and the CPU does not.

use half::{bf16, f16};
use tile_codegen::compile::Compiled;
use tile_codegen::ir::{Elem, Kernel};
use tile_codegen::simt::{Access, Arg, Memory, Program, Run};

use super::{Bits, Directives, Param, UNWRITTEN};

/// The bytes of a value.
fn bytes(elem: Elem, x: f64) -> Vec<u8> {
    match elem {
        Elem::F32 | Elem::TF32 => (x as f32).to_le_bytes().to_vec(),
        Elem::F16 => f16::from_f64(x).to_le_bytes().to_vec(),
        Elem::BF16 => bf16::from_f64(x).to_le_bytes().to_vec(),
        Elem::I32 => (x as i32).to_le_bytes().to_vec(),
        Elem::U32 => (x as u32).to_le_bytes().to_vec(),
        Elem::I64 => (x as i64).to_le_bytes().to_vec(),
        Elem::Bool => vec![u8::from(x != 0.0)],
    }
}

/// The values of memory.
fn bits(elem: Elem, bytes: &[u8]) -> Bits {
    let float = |x: f32| u64::from(x.to_bits());
    let one = |b: &[u8]| match elem {
        Elem::F32 | Elem::TF32 => float(f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
        Elem::F16 => float(f16::from_le_bytes([b[0], b[1]]).to_f32()),
        Elem::BF16 => float(bf16::from_le_bytes([b[0], b[1]]).to_f32()),
        Elem::I32 => i64::from(i32::from_le_bytes([b[0], b[1], b[2], b[3]])).cast_unsigned(),
        Elem::U32 => u64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])),
        Elem::I64 => u64::from_le_bytes(b.try_into().expect("8 bytes")),
        Elem::Bool => u64::from(b[0]),
    };
    bytes.chunks(elem.bytes()).map(one).collect()
}

impl Directives {
    /// The outputs of a compiled kernel on one schedule, in the order of their lines.
    pub(super) fn execute(
        &self,
        kernel: &Kernel,
        compiled: &Compiled,
        seed: u64,
    ) -> Result<Vec<Bits>, String> {
        let mut memory = Memory::new();
        let mut addresses: Vec<(&Param, u64)> = Vec::new();
        let mut args = Vec::new();
        for param in &kernel.params {
            let given = self.params.iter().find(|p| p.name == param.name);
            let given = given.ok_or_else(|| format!("the parameter `{}` has no line", param.name))?;
            let values = given.values.iter().map(|&x| if given.output { UNWRITTEN } else { x });
            let data: Vec<u8> = values.flat_map(|x| bytes(given.elem, x)).collect();
            args.push(match &given.shape {
                Some(shape) => {
                    let access = if given.output { Access::Write } else { Access::Read };
                    let address = memory.add(param.name.clone(), &data, access);
                    addresses.push((given, address));
                    Arg::row_major(address, &shape.iter().map(|&n| n as u64).collect::<Vec<_>>())
                }
                None => {
                    let mut word = [0; 8];
                    word[..data.len()].copy_from_slice(&data);
                    Arg::Scalar(u64::from_le_bytes(word))
                }
            });
        }
        let program = Program::of(compiled).map_err(|e| e.to_string())?;
        let run = Run::of(&program, compiled, &args, self.grid).map_err(|e| e.to_string())?;
        let outcome = Run { seed, ..run }.execute(&memory).map_err(|e| e.to_string())?;
        if let Some(report) = outcome.reports.first() {
            return Err(report.to_string());
        }
        let outputs = self.params.iter().filter(|p| p.output);
        let found = outputs.map(|param| {
            let (_, address) = addresses.iter().find(|(p, _)| p.name == param.name)?;
            Some(bits(param.elem, &memory.bytes(*address)?))
        });
        found.collect::<Option<_>>().ok_or_else(|| "an output is no parameter".to_string())
    }
}
