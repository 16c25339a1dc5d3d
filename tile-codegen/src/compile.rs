//! `compile`: from staged kernel to PTX text, a pure function.

use crate::config::Config;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::Kernel;
use crate::lower::{Slot, lower};
use crate::passes::allocate_shared::allocate_shared;
use crate::passes::assign_layouts::assign_layouts;
use crate::passes::choose_warps::choose_warps;
use crate::passes::insert_barriers::insert_barriers;
use crate::ptx;
use crate::target::Target;

/// A compiled kernel.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The name of the PTX entry.
    pub entry: String,
    /// PTX text.
    pub ptx: String,
    /// The tree that the text was printed from.
    pub module: ptx::Module,
    /// For each line of the text, the number of its source location in the kernel's table; 0 for none.
    pub locs: Vec<u32>,
    /// What the host passes, in order.
    pub slots: Vec<Slot>,
    /// Threads per block.
    pub threads: u32,
    /// Dynamic shared memory in bytes.
    pub shared_bytes: u32,
    /// The target.
    pub target: Target,
}

/// Compiles a verified kernel.
///
/// # Errors
/// If the kernel does not fit the target, with what it needs and what the target has.
pub fn compile(kernel: &Kernel, target: &Target, config: &Config) -> Result<Compiled, Diagnostics> {
    let num_warps = config.num_warps.unwrap_or_else(|| choose_warps(kernel));
    if !(1..=16).contains(&num_warps) || !num_warps.is_power_of_two() {
        return Err(one(Code::Target, format!("{num_warps} warps: a block has 1, 2, 4, 8 or 16")));
    }
    let mut laid_out = assign_layouts(kernel, num_warps)?;
    let shared = allocate_shared(&laid_out, target)?;
    insert_barriers(&mut laid_out, &shared);
    let (function, slots) = lower(&laid_out, &shared);
    let module = ptx::Module { target: target.sm, kernels: vec![function] };
    if let Err(faults) = ptx::check_module(&module) {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        return Err(one(
            Code::Structure,
            format!("the generated code of `{}` is malformed: {first}", kernel.name),
        ));
    }
    let text = ptx::print_module(&module);
    Ok(Compiled {
        entry: kernel.name.clone(),
        ptx: text.text,
        locs: text.locs,
        module,
        slots,
        threads: 32 * num_warps as u32,
        shared_bytes: shared.bytes,
        target: *target,
    })
}

fn one(code: Code, message: String) -> Diagnostics {
    let mut list = Diagnostics::default();
    list.push(Diagnostic::new(code, message));
    list
}
