//! `compile`: from staged kernel to PTX text, a pure function.

use crate::config::Config;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::explain::{Explanation, Reason, explain};
use crate::ir::Kernel;
use crate::lower::channels::{MapPlan, maps};
use crate::lower::{Slot, lower};
use crate::ops::OpKind;
use crate::passes::allocate_shared::{allocate_shared, plan_shared};
use crate::passes::assign_roles::{FEWEST, Partition, STAGES};
use crate::passes::{PassCx, run_passes, run_with_roles};
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
    /// The tensor maps among the slots.
    pub maps: Vec<MapPlan>,
    /// Threads per block.
    pub threads: u32,
    /// Dynamic shared memory in bytes.
    pub shared_bytes: u32,
    /// The target.
    pub target: Target,
    /// Which path each load, product and store took, and why no faster one.
    pub explanation: Explanation,
}

/// Compiles a verified kernel.
///
/// # Errors
/// If the kernel does not fit the target, with what it needs and what the target has.
pub fn compile(kernel: &Kernel, target: &Target, config: &Config) -> Result<Compiled, Diagnostics> {
    compile_observed(kernel, target, config, &mut |_, _| {})
}

/// Compiles, and shows the kernel after each pass to `observer`, with the pass's id. A kernel whose channels do not fit shared
/// memory is compiled again, with fewer stages or without channels; the observer then sees those passes too.
///
/// # Errors
/// As [`compile`].
pub fn compile_observed(
    kernel: &Kernel,
    target: &Target,
    config: &Config,
    observer: &mut dyn FnMut(&'static str, &Kernel),
) -> Result<Compiled, Diagnostics> {
    let free = config.stages.is_none();
    let (mut config, mut no_channels) = (*config, None);
    loop {
        let mut laid_out = kernel.clone();
        let cx = PassCx { target, config: &config, no_channels };
        let compiled =
            run_passes(&mut laid_out, &cx, observer).and_then(|()| lowered(&laid_out, target, &config));
        let Err(faults) = compiled else { return compiled };
        match smaller(&laid_out, &cx, free, &faults) {
            Some(Smaller::Stages(stages)) => config.stages = Some(stages),
            Some(Smaller::NoChannels(reason)) => no_channels = Some(reason),
            None => return Err(faults),
        }
    }
}

/// What makes a kernel smaller.
enum Smaller {
    /// Channels of so many stages.
    Stages(usize),
    /// No channels.
    NoChannels(Reason),
}

/// What to try where the channels of a kernel do not fit: fewer stages if their number was `free` to choose, then none.
fn smaller(laid_out: &Kernel, cx: &PassCx<'_>, free: bool, faults: &Diagnostics) -> Option<Smaller> {
    faults.iter().find(|fault| fault.code == Code::SharedMemory)?;
    let plan = plan_shared(laid_out);
    let most = plan.channels.values().map(|channel| channel.stages as usize).max()?;
    let stages = cx.config.stages.unwrap_or(STAGES).min(most);
    Some(match free && stages > FEWEST {
        true => Smaller::Stages(stages - 1),
        false => Smaller::NoChannels(Reason::NoRoom { bytes: plan.bytes, most: cx.target.max_shared_bytes }),
    })
}

/// Compiles with roles that the caller chooses: `partition` sees the kernel as canonicalised, with its number of warps,
/// and says which of its operations belong to which role.
///
/// # Errors
/// As [`compile`], and if the kernel cannot be divided so, with the operation that stands in the way.
pub fn compile_with_roles(
    kernel: &Kernel,
    target: &Target,
    config: &Config,
    partition: &dyn Fn(&Kernel) -> Partition,
    observer: &mut dyn FnMut(&'static str, &Kernel),
) -> Result<Compiled, Diagnostics> {
    let mut laid_out = kernel.clone();
    run_with_roles(&mut laid_out, &PassCx::new(target, config), partition, observer)?;
    lowered(&laid_out, target, config)
}

/// Lowers a kernel that has been through the passes.
fn lowered(laid_out: &Kernel, target: &Target, config: &Config) -> Result<Compiled, Diagnostics> {
    let shared = allocate_shared(laid_out, target)?;
    let (mut function, slots) = lower(laid_out, &shared, target, config.occupancy.unwrap_or(1) as usize);
    function.min_ctas = config.occupancy.or(one_is_enough(laid_out).then_some(1));
    let explanation = explain(laid_out, target, &shared, &function);
    let module = ptx::Module { target: target.sm, kernels: vec![function] };
    if let Err(faults) = ptx::check_module(&module) {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        let message = format!("the generated code of `{}` is malformed: {first}", laid_out.name);
        return Err(Diagnostic::new(Code::Structure, message).into());
    }
    let text = ptx::print_module(&module);
    Ok(Compiled {
        entry: laid_out.name.clone(),
        ptx: text.text,
        locs: text.locs,
        threads: module.kernels[0].reqntid,
        module,
        slots,
        maps: maps(laid_out),
        shared_bytes: shared.bytes,
        target: *target,
        explanation,
    })
}

/// Whether the assembler is told that one block on a multiprocessor will do: where warpgroups exchange registers it needs to
/// know, and where tiles come through rings it is shared memory that decides how many there are.
fn one_is_enough(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.walk(|_, op| {
        found |= match &op.kind {
            OpKind::Roles(roles) => roles.registers.iter().any(|&r| r > 0),
            OpKind::CopyAsync(_) => true,
            _ => false,
        };
    });
    found
}
