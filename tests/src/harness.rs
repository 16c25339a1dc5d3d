//! Text cases of the tile IR: a kernel with its inputs and the outputs that it must give, in comments.
//!
//! ```text
//! // grid: 2, 1, 1
//! // in x: f32[4, 8] = iota          (0, 1, 2, ..)
//! // in n: i32 = 5                   (a scalar)
//! // out y: f32[4] = [1, 2.5, nan, -inf]
//! kernel @case(..) { stage = tile } { .. }
//! ```
//!
//! Every parameter has its line. Elements of an output that no block writes keep 99 (of `bool`, true). In a case of the
//! verifier, `// error: E0101` ends each line that has a fault, and nothing runs.

mod executed;

use tile_codegen::compile::compile_observed;
use tile_codegen::config::Config;
use tile_codegen::cpu::{Arg, Program, TileValue, VecMemory, run_grid};
use tile_codegen::ir::{Elem, Kernel, parse, parse_file, print, verify};
use tile_codegen::ops::OpKind;
use tile_codegen::target::Target;

/// What no block wrote.
const UNWRITTEN: f64 = 99.0;

/// One parameter of a case.
struct Param {
    name: String,
    elem: Elem,
    /// `None` for a scalar.
    shape: Option<Vec<i64>>,
    output: bool,
    values: Vec<f64>,
}

impl Param {
    /// What follows `// in ` or `// out `.
    fn parse(text: &str, output: bool) -> Result<Param, String> {
        let wrong = || format!("`{text}` is no parameter: write `x: f32[4, 8] = [..]`");
        let (name, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (ty, values) = rest.split_once('=').ok_or_else(wrong)?;
        let (elem, shape) = match ty.trim().split_once('[') {
            Some((elem, shape)) => {
                let shape = shape.trim_end_matches(']').split(',').map(|n| n.trim().parse());
                (elem, Some(shape.collect::<Result<Vec<i64>, _>>().map_err(|_| wrong())?))
            }
            None => (ty.trim(), None),
        };
        let elem = Elem::ALL.iter().copied().find(|e| e.to_string() == elem).ok_or_else(wrong)?;
        let count = shape.as_ref().map_or(1, |shape| shape.iter().product::<i64>()) as usize;
        let number = |text: &str| match text.trim() {
            "true" => Ok(1.0),
            "false" => Ok(0.0),
            text => text.parse::<f64>().map_err(|_| format!("`{text}` is no number")),
        };
        let values = match values.trim() {
            "iota" => (0..count).map(|i| i as f64).collect(),
            list => {
                let list = list.trim_start_matches('[').trim_end_matches(']');
                list.split(',').filter(|x| !x.trim().is_empty()).map(number).collect::<Result<Vec<_>, _>>()?
            }
        };
        if values.len() != count {
            return Err(format!("`{name}` has {} values, expected {count}", values.len()));
        }
        Ok(Param { name: name.trim().to_string(), elem, shape, output, values })
    }

    fn memory(&self) -> VecMemory {
        let unwritten = vec![UNWRITTEN; self.values.len()];
        let values = if self.output { &unwritten } else { &self.values };
        if self.elem.is_float() {
            VecMemory::floats(self.elem, &values.iter().map(|&x| x as f32).collect::<Vec<_>>())
        } else if self.elem == Elem::Bool {
            VecMemory::ints(self.elem, &values.iter().map(|&x| i64::from(x != 0.0)).collect::<Vec<_>>())
        } else {
            VecMemory::ints(self.elem, &values.iter().map(|&x| x as i64).collect::<Vec<_>>())
        }
    }

    fn scalar(&self) -> TileValue {
        let x = self.values[0];
        match self.elem {
            Elem::I32 => TileValue::scalar(self.elem, x as i32),
            Elem::I64 => TileValue::scalar(self.elem, x as i64),
            Elem::U32 => TileValue::scalar(self.elem, x as u32),
            Elem::Bool => TileValue::scalar(self.elem, x != 0.0),
            Elem::F32 | Elem::F16 | Elem::BF16 | Elem::TF32 => TileValue::scalar(self.elem, x as f32),
        }
    }
}

/// The bits of an output: of floats those of the f32 that holds them.
type Bits = Vec<u64>;

fn bits(memory: &VecMemory, elem: Elem) -> Bits {
    if elem.is_float() {
        memory.to_floats().into_iter().map(|x| x.to_bits().into()).collect()
    } else {
        memory.to_ints().into_iter().map(|x| x as u64).collect()
    }
}

/// A case: the parameters and the grid.
struct Directives {
    params: Vec<Param>,
    grid: [u32; 3],
}

impl Directives {
    fn parse(text: &str) -> Result<Self, String> {
        let mut found = Self { params: Vec::new(), grid: [1; 3] };
        for line in text.lines().filter_map(|line| line.strip_prefix("// ")) {
            if let Some(rest) = line.strip_prefix("in ") {
                found.params.push(Param::parse(rest, false)?);
            } else if let Some(rest) = line.strip_prefix("out ") {
                found.params.push(Param::parse(rest, true)?);
            } else if let Some(rest) = line.strip_prefix("grid:") {
                for (axis, n) in rest.split(',').enumerate() {
                    found.grid[axis] = n.trim().parse().map_err(|_| format!("`{rest}` is no grid"))?;
                }
            }
        }
        if !found.params.iter().any(|p| p.output) {
            return Err("the case says nothing of outputs: write `// out y: f32[4] = [..]`".into());
        }
        Ok(found)
    }

    /// The outputs of a kernel, in the order of their lines.
    fn run(&self, kernel: &Kernel) -> Result<Vec<Bits>, String> {
        let memories: Vec<VecMemory> = self.params.iter().map(Param::memory).collect();
        let mut args = Vec::new();
        for param in &kernel.params {
            let at = self.params.iter().position(|p| p.name == param.name);
            let at = at.ok_or_else(|| format!("the parameter `{}` has no line", param.name))?;
            args.push(match &self.params[at].shape {
                Some(shape) => Arg::Tensor(memories[at].tensor(shape)),
                None => Arg::Scalar(self.params[at].scalar()),
            });
        }
        let program = Program::new(kernel).map_err(|e| e.to_string())?;
        run_grid(&program, self.grid, &args).map_err(|e| e.to_string())?;
        let outputs = self.params.iter().zip(&memories).filter(|(param, _)| param.output);
        Ok(outputs.map(|(param, memory)| bits(memory, param.elem)).collect())
    }

    /// Compares outputs with what the case expects; NaN equals NaN.
    fn compare(&self, found: &[Bits]) -> Result<(), String> {
        for (param, found) in self.params.iter().filter(|p| p.output).zip(found) {
            let number = |bits: u64| {
                if param.elem.is_float() {
                    f64::from(f32::from_bits(bits as u32))
                } else {
                    bits as i64 as f64
                }
            };
            for (i, (&found, &expected)) in found.iter().zip(&param.values).enumerate() {
                let found = number(found);
                if found != expected && !(found.is_nan() && expected.is_nan()) {
                    return Err(format!("`{}`[{i}] is {found}, expected {expected}", param.name));
                }
            }
        }
        Ok(())
    }
}

/// Runs a case: text to kernel and back, verifier, execution against the expected outputs, and again after every pass,
/// bit for bit, for one and four warps, with and without rings. Kernels with rings run on the PTX executor instead.
///
/// # Errors
/// What is wrong, in words.
pub fn run_case(file: &str, text: &str) -> Result<(), String> {
    let directives = Directives::parse(text)?;
    let kernel = parse_file(file, text).map_err(|e| e.to_string())?;
    let printed = print(&kernel);
    let again = parse(&printed).map_err(|e| format!("the printed text is refused: {e}"))?;
    if print(&again) != printed {
        return Err("printed, parsed and printed again, the text differs".into());
    }
    verify(&kernel).map_err(|e| e.to_string())?;
    let first = directives.run(&kernel)?;
    directives.compare(&first)?;
    for warps in [1, 4] {
        for stages in [Some(1), None] {
            let config = Config { num_warps: Some(warps), stages, ..Config::default() };
            run_passes_of(&directives, &kernel, &first, &config)
                .map_err(|e| format!("{warps} warps, {stages:?} stages: {e}"))?;
        }
    }
    Ok(())
}

/// Schedules of the executor that a case with rings runs on.
const SEEDS: u64 = 4;

/// Compiles a case; the kernel after each pass gives the outputs of `first`, or, once it has rings, its PTX those expected.
fn run_passes_of(
    directives: &Directives,
    kernel: &Kernel,
    first: &[Bits],
    config: &Config,
) -> Result<(), String> {
    let mut after = Vec::new();
    let observer = &mut |pass, kernel: &Kernel| after.push((pass, kernel.clone()));
    let compiled = compile_observed(kernel, &Target::SM_80, config, observer).map_err(|e| e.to_string())?;
    let mut rings = false;
    for (pass, kernel) in after {
        kernel.walk(|_, op| rings |= matches!(op.kind, OpKind::CopyAsync(_)));
        if !rings {
            let found = directives.run(&kernel).map_err(|e| format!("after `{pass}`: {e}"))?;
            if found != first {
                directives.compare(&found).map_err(|e| format!("after `{pass}`: {e}"))?;
                return Err(format!("after `{pass}`, the outputs differ in a sign or a NaN"));
            }
        }
        let text = print(&kernel);
        let again = parse(&text).map_err(|e| format!("after `{pass}`, the text is refused: {e}"))?;
        if print(&again) != text {
            return Err(format!("after `{pass}`, printed, parsed and printed again, the text differs"));
        }
    }
    for seed in (0..SEEDS).filter(|_| rings) {
        let found = directives.execute(kernel, &compiled, seed).map_err(|e| format!("seed {seed}: {e}"))?;
        directives.compare(&found).map_err(|e| format!("seed {seed}: {e}"))?;
    }
    Ok(())
}

/// Checks that the parser or the verifier finds exactly the faults that the case's lines name.
///
/// # Errors
/// What is wrong, in words.
pub fn run_faulty(file: &str, text: &str) -> Result<(), String> {
    let marked = |(line, text): (usize, &str)| {
        Some((line as u32 + 1, text.split_once("// error: ")?.1.trim().to_string()))
    };
    let expected: Vec<(u32, String)> = text.lines().enumerate().filter_map(marked).collect();
    if expected.is_empty() {
        return Err("no line has `// error: E0101`".into());
    }
    let faults = match parse_file(file, text).and_then(|kernel| verify(&kernel)) {
        Ok(()) => return Err("the kernel is accepted".into()),
        Err(faults) => faults,
    };
    let mut found: Vec<(u32, String)> =
        faults.iter().map(|d| (d.loc.as_ref().map_or(0, |loc| loc.line), d.code.to_string())).collect();
    // One mistake may break two rules of one line.
    found.sort();
    found.dedup();
    if found == expected { Ok(()) } else { Err(format!("found {found:?}, expected {expected:?}:\n{faults}")) }
}
