//! Tests of the driver and of the passes on staged kernels.

mod canonicalize;

use super::{Changed, Pass, PassCx, run_list};
use crate::config::Config;
use crate::diag::{Code, Diagnostics};
use crate::ir::{Kernel, parse, print};
use crate::target::Target;

fn cx() -> PassCx<'static> {
    const CONFIG: Config = Config { num_warps: None, occupancy: None };
    PassCx { target: &Target::SM_80, config: &CONFIG }
}

/// Forgets the first operation, whatever uses it.
fn forget_first(kernel: &mut Kernel, _: &PassCx<'_>) -> Result<Changed, Diagnostics> {
    kernel.regions[kernel.body].ops.remove(0);
    Ok(Changed::Yes)
}

#[test]
fn a_pass_that_breaks_the_kernel_is_an_error_that_names_it() {
    let text = "kernel @k() { stage = tile } {\n  %0 = bid { axis = 0 } : i32\n  %1 = neg %0 : i32\n}\n";
    let mut kernel = parse(text).expect("well formed");
    let pass = Pass { id: "forget_first", contract: "none", run: forget_first };
    let mut seen = Vec::new();
    let faults = run_list(&[pass], &mut kernel, &cx(), &mut |id, _| seen.push(id)).expect_err("refused");
    let fault = faults.iter().next().expect("a fault");
    assert_eq!(fault.code, Code::Structure);
    assert!(fault.message.starts_with("the pass `forget_first` broke the kernel: `neg`"), "{fault}");
    assert!(seen.is_empty());
}

#[test]
fn the_observer_sees_the_kernel_after_each_pass() {
    let mut kernel =
        parse("kernel @k() { stage = tile } {\n  %0 = bid { axis = 0 } : i32\n}\n").expect("well formed");
    let mut seen = Vec::new();
    super::run_passes(&mut kernel, &cx(), &mut |id, kernel| seen.push((id, print(kernel)))).expect("passes");
    assert_eq!(seen[0], ("canonicalize", "kernel @k() { stage = tile } {\n}\n".to_string()));
    assert_eq!(seen.len(), super::PASSES.len());
}
