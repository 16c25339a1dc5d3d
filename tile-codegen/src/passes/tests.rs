//! Tests of the driver and of the passes on staged kernels.

mod canonicalize;

use super::{Changed, Pass, PassCx, run_list};
use crate::config::Config;
use crate::diag::{Code, Diagnostics};
use crate::ir::{Kernel, parse, print};
use crate::target::Target;

fn cx() -> PassCx<'static> {
    const CONFIG: Config = Config { num_warps: None, occupancy: None, stages: None, allow_tma: None };
    PassCx::new(&Target::SM_80, &CONFIG)
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

/// The first fault of the passes on a copy of one tile of `elements`.
fn refusal(elements: usize, num_warps: usize, occupancy: Option<u32>) -> Option<(Code, String)> {
    let facts = "{ unit_axis = 0, align = 16, stride_align = [4], extent_align = [4], small = true }";
    let text = format!(
        "kernel @k(%x: tensor<f32, 1> {facts}, %y: tensor_mut<f32, 1> {facts}) {{ stage = tile }} {{
  %0 = bid {{ axis = 0 }} : i32
  %1 = load %x, %0 {{ shape = [{elements}], pad = 0.0 }} : {elements}xf32
  store %1, %y, %0
}}
"
    );
    let mut kernel = parse(&text).unwrap_or_else(|faults| panic!("{faults}"));
    let config = Config { num_warps: Some(num_warps), occupancy, ..Config::default() };
    let cx = PassCx::new(&Target::SM_80, &config);
    let faults = super::run_passes(&mut kernel, &cx, &mut |_, _| ()).err()?;
    faults.iter().next().map(|fault| (fault.code, fault.message.clone()))
}

#[test]
fn numbers_of_warps_and_blocks_that_there_cannot_be_are_refused() {
    for warps in [0, 3, 32, usize::MAX] {
        let (code, message) = refusal(64, warps, None).expect("no such number of warps");
        assert_eq!((code, message.contains("1, 2, 4, 8 or 16")), (Code::Target, true), "{message}");
    }
    for occupancy in [0, 33, u32::MAX] {
        let (code, message) = refusal(64, 1, Some(occupancy)).expect("no such number of blocks");
        assert_eq!((code, message.contains("1 to 32 blocks")), (Code::Target, true), "{message}");
    }
    for (warps, occupancy) in [(1, None), (1, Some(1)), (4, Some(32)), (16, Some(2))] {
        assert_eq!(refusal(64, warps, occupancy), None);
    }
}

#[test]
fn tiles_larger_than_the_memory_of_their_threads_are_refused() {
    // 512 KiB of local memory a thread are 2^17 values of 4 bytes.
    for warps in [1, 4, 16] {
        assert_eq!(refusal((32 * warps) << 17, warps, None), None);
        let (code, message) = refusal((32 * warps) << 18, warps, None).expect("too large");
        assert_eq!((code, message.contains("at most 131072 fit")), (Code::Target, true), "{message}");
    }
}
