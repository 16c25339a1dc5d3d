//! The forward pass on the CPU in every element type and on any number of threads.

use mamba2::{
    Options,
    case::{Case, Dtype},
    inputs,
    problem::Shape,
    reference, resident,
    tolerance::{self, relative_l2},
};
use tile_runtime::Device;

fn shape(batch: usize, tokens: usize, heads: usize, head_dim: usize, state: usize, groups: usize) -> Shape {
    Shape { batch, tokens, groups, heads, head_dim, state }
}

#[test]
fn every_type_is_within_its_limit() {
    for dtype in [Dtype::F32, Dtype::F16, Dtype::BF16] {
        let case = inputs::generate(shape(2, 150, 4, 64, 64, 2), dtype, 7);
        let limits = tolerance::forward(dtype, None);
        let expected = reference::forward(&case.reference_inputs()).unwrap();
        for chunk in [Some(64), Some(128), None] {
            let out = resident::run(&Device::cpu(), &case, &Options { chunk, ..Options::default() }).unwrap();
            let y = relative_l2(&out.y, &expected.y);
            let state = relative_l2(&out.final_states, &expected.final_states);
            assert!(y <= limits.y && state <= limits.state, "{dtype}, {chunk:?}: y {y:e}, state {state:e}");
        }
    }
}

#[test]
fn the_result_does_not_depend_on_the_thread_count() {
    let size = shape(2, 100, 4, 64, 64, 2);
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    for dtype in [Dtype::F32, Dtype::BF16] {
        let case = inputs::generate(size, dtype, 15);
        let z = Some(case.x.iter().rev().copied().collect());
        let packed = Case { seq_idx: Some((0..200).map(|t| t / 33).collect()), z, ..case.clone() };
        let step = Case { step: true, ..case.clone() };
        for case in [case, packed, step] {
            let run = || resident::run(&Device::cpu(), &case, &Options::default()).unwrap();
            let one = pool(1).install(run);
            for threads in [2, 3, 16] {
                assert_eq!(pool(threads).install(run), one, "{dtype}, {threads} threads");
            }
        }
    }
}
