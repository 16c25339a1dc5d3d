//! Options of the forward pass and decode step on the PTX executor, for both targets: no report, and each element within the
//! errors that its roundings may have.

use mamba2::case::{Case, Dtype, Skip};
use mamba2::inputs::generate;
use mamba2::problem::Shape;
use mamba2::resident::run;
use mamba2::{Options, StateType};
use tile_runtime::codegen::simt::Class;
use tile_runtime::{Device, ExecutorOptions, Target};
use tile_tests::ssd::bench::full;
use tile_tests::ssd::bound;

/// Schedules of every launch.
const SEEDS: u64 = 2;
/// A chunk and a ragged one; warpgroups multiply on Hopper.
const SIZE: Shape = Shape { batch: 1, tokens: 70, groups: 1, heads: 2, head_dim: 64, state: 64 };

fn check(case: &Case, chunk: usize, state_type: StateType) {
    for target in [Target::SM_80, Target::SM_90A] {
        let options = ExecutorOptions { seeds: (0..SEEDS).collect(), ..ExecutorOptions::default() };
        let executor = Device::ptx_executor_with(&target, options);
        let options = Options { chunk: Some(chunk), state_type, ..Options::default() };
        let found = run(&executor, case, &options).unwrap_or_else(|error| panic!("{}: {error}", target.name));
        if let Some(fault) = bound::fault(case, chunk, &found) {
            panic!("{}: {fault}", target.name);
        }
    }
}

#[test]
fn gate_skip_a_channel_and_initial_states_in_bf16() {
    check(&full(SIZE, Dtype::BF16, 81), 64, StateType::AsX);
}

#[test]
fn steps_in_f16_and_states_in_f32() {
    let mut case = full(Shape { heads: 1, ..SIZE }, Dtype::F16, 82);
    case.dt_dtype = Dtype::F16;
    case.dt.iter_mut().for_each(|dt| *dt = Dtype::F16.round(*dt));
    case.d = Some(Skip::PerHead(vec![0.75]));
    check(&case, 64, StateType::F32);
}

#[test]
fn sequences_by_offsets_with_initial_states() {
    let size = Shape { heads: 1, tokens: 130, ..SIZE };
    let offsets = vec![0, 20, 20, 63, 65, 130];
    let states = generate(
        Shape { batch: 1, tokens: 5, heads: 1, head_dim: 64 * 64, state: 1, groups: 1 },
        Dtype::F32,
        83,
    );
    let case =
        Case { cu_seqlens: Some(offsets), initial_states: Some(states.x), ..full(size, Dtype::BF16, 83) };
    check(&case, 64, StateType::AsX);
}

#[test]
fn sequences_by_an_index_in_f32() {
    let size = Shape { batch: 2, heads: 1, tokens: 40, head_dim: 24, state: 20, groups: 1 };
    let index = (0..80).map(|t| t / 17).collect();
    check(&Case { seq_idx: Some(index), ..full(size, Dtype::F32, 84) }, 16, StateType::AsX);
}

#[test]
fn decode_steps() {
    let size = Shape { batch: 2, tokens: 2, ..SIZE };
    for dtype in [Dtype::BF16, Dtype::F32] {
        check(&Case { step: true, ..full(size, dtype, 85) }, 64, StateType::AsX);
    }
}

/// Devices of two kinds in one process: each launch gets code for its own, whichever came first.
#[test]
fn each_device_runs_code_of_its_own() {
    let case = full(Shape { heads: 1, ..SIZE }, Dtype::BF16, 86);
    let devices = [Target::SM_90A, Target::SM_80].map(|target| Device::ptx_executor(&target));
    for device in [&devices[1], &devices[0], &devices[1]] {
        let found =
            run(device, &case, &Options { chunk: Some(64), ..Options::default() }).expect("no reports");
        assert_eq!(bound::fault(&case, 64, &found), None, "{device}");
    }
    // An instruction of a warpgroup does the work of many: 64 x 64 x 16 a warpgroup, and 16 x 8 x 16 a warp.
    let work = |device: &Device| {
        let counts = device.executor_counts().expect("an executor");
        counts.matrix_flops / counts.of(Class::Matrix)
    };
    assert_eq!(work(&devices[1]), 2 * 16 * 8 * 16);
    assert!(work(&devices[0]) >= 2 * work(&devices[1]), "{}", work(&devices[0]));
}
