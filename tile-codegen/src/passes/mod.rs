//! The passes over tile IR, and the driver that runs them with the verifier after each.

pub mod accumulators;
pub mod allocate_shared;

use crate::config::Config;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::explain::Reason;
use crate::ir::{Kernel, verify};
use crate::target::Target;

/// Whether a pass changed the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Changed {
    /// It did.
    Yes,
    /// The kernel is as before.
    No,
}

/// What passes know besides the kernel.
#[derive(Clone, Copy, Debug)]
pub struct PassCx<'a> {
    /// The GPU architecture.
    pub target: &'a Target,
    /// Choices of tuning.
    pub config: &'a Config,
    /// Why tiles may not come through channels, if that has been found out: there is no room for them.
    pub no_channels: Option<Reason>,
}

impl<'a> PassCx<'a> {
    /// What is known before anything has been tried.
    pub const fn new(target: &'a Target, config: &'a Config) -> Self {
        Self { target, config, no_channels: None }
    }
}

/// A pass over a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name, which is that of its file, its dump and its snapshots.
    pub id: &'static str,
    /// What it requires and ensures, in one line.
    pub contract: &'static str,
    /// Changes the kernel; an error is a fault of the user's kernel, as a limit of the target that it exceeds.
    pub run: fn(&mut Kernel, &PassCx<'_>) -> Result<Changed, Diagnostics>,
}

/// Declares the passes that take a kernel from staging to lowering, in the order in which they run.
macro_rules! passes {
    ($($id:ident: $contract:literal;)*) => {
        $(pub mod $id;)*

        /// The passes, in order. `allocate_shared` is an analysis that the last one and lowering share.
        pub const PASSES: &[Pass] =
            &[$(Pass { id: stringify!($id), contract: $contract, run: $id::run },)*];
    };
}

passes! {
    canonicalize: "constants folded, equal operations merged, unused ones removed, decided branches taken; idempotent";
    choose_warps: "the kernel has its number of warps, from the configuration or from its tiles";
    assign_roles: "where warpgroups multiply out of shared memory, tiles come through channels, filled by a role of its own or at the start";
    pipeline_loads: "in loops around a product, tiles of later iterations are on their way, in shared stages or in registers";
    assign_layouts: "every tile has one layout; differences are explicit exchanges; the stage is LaidOut";
    insert_waits: "a wait stands before what needs a product of a warpgroup to be complete; stages are released";
    insert_barriers: "a barrier stands between any two accesses of the same shared bytes of which one is a write";
}

/// Runs [`PASSES`] over a kernel and calls `observer` after each, also where it changed nothing.
///
/// # Errors
/// If the kernel breaks a rule of the verifier, or a pass refuses it. A pass that breaks the kernel is an error too, of
/// [`Code::Structure`], which names the pass.
pub fn run_passes(
    kernel: &mut Kernel,
    cx: &PassCx<'_>,
    observer: &mut dyn FnMut(&'static str, &Kernel),
) -> Result<(), Diagnostics> {
    run_list(PASSES, kernel, cx, observer)
}

/// Runs [`PASSES`] with roles that the caller chooses: `partition` sees the kernel as `assign_roles` does, whose place it
/// takes.
///
/// # Errors
/// As for [`run_passes`], and if the kernel cannot be divided so.
pub fn run_with_roles(
    kernel: &mut Kernel,
    cx: &PassCx<'_>,
    partition: &dyn Fn(&Kernel) -> assign_roles::Partition,
    observer: &mut dyn FnMut(&'static str, &Kernel),
) -> Result<(), Diagnostics> {
    let place = PASSES.iter().position(|pass| pass.id == "assign_roles").expect("it is among the passes");
    run_list(&PASSES[..place], kernel, cx, observer)?;
    let chosen = partition(kernel);
    assign_roles::split(kernel, &chosen)?;
    verify(kernel).map_err(|faults| internal(PASSES[place].id, &faults))?;
    observer(PASSES[place].id, kernel);
    run_list(&PASSES[place + 1..], kernel, cx, observer)
}

/// Runs a list of passes, as [`run_passes`] does.
///
/// # Errors
/// As for [`run_passes`].
pub fn run_list(
    passes: &[Pass],
    kernel: &mut Kernel,
    cx: &PassCx<'_>,
    observer: &mut dyn FnMut(&'static str, &Kernel),
) -> Result<(), Diagnostics> {
    verify(kernel)?;
    for pass in passes {
        (pass.run)(kernel, cx)?;
        verify(kernel).map_err(|faults| internal(pass.id, &faults))?;
        observer(pass.id, kernel);
    }
    Ok(())
}

/// The verifier's faults after a pass, as faults of that pass.
fn internal(pass: &str, faults: &Diagnostics) -> Diagnostics {
    let mut out = Diagnostics::default();
    for fault in faults.iter() {
        let message = format!("the pass `{pass}` broke the kernel: {}", fault.message);
        out.push(Diagnostic { code: Code::Structure, message, ..fault.clone() });
    }
    out
}

#[cfg(test)]
mod tests;
