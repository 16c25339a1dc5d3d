//! The forward pass on a GPU gives the same bits in every run. It says "skipped: no device" where there is none.

use mamba2::Options;
use mamba2::case::Dtype;
use mamba2::inputs::generate;
use mamba2::problem::Shape;
use mamba2::resident::{HostFloat, Resident, Work, with_resident};
use tile_runtime::Device;

/// Runs that must agree.
const RUNS: usize = 50;

/// Ragged tokens, several groups; enough blocks that the order in which they run differs from run to run.
const SHAPES: [Shape; 2] = [
    Shape { batch: 3, tokens: 1000, groups: 2, heads: 24, head_dim: 64, state: 128 },
    Shape { batch: 2, tokens: 777, groups: 1, heads: 16, head_dim: 50, state: 20 },
];

/// Runs all passes over one problem.
struct Repeat;

impl Work for Repeat {
    /// The bits of y and of the final states after each run.
    type Out = Vec<(Vec<u32>, Vec<u32>)>;
    fn on<T: HostFloat, Dt: HostFloat>(self, resident: Resident<T, Dt>) -> mamba2::Result<Self::Out> {
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect();
        let run = |_| {
            let outputs = resident.forward(&Options::default())?;
            Ok((bits(outputs.y), bits(outputs.final_states)))
        };
        (0..RUNS).map(run).collect()
    }
}

#[test]
fn fifty_runs_give_the_same_bits() {
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => {
            println!("skipped: no device ({error})");
            return;
        }
    };
    for shape in SHAPES {
        let case = generate(shape, Dtype::BF16, 1);
        let all = with_resident(&device, &case, Repeat).expect("the device works");
        let first = &all[0];
        assert!(first.0.iter().any(|&bits| bits != 0), "{shape:?}: y is zero");
        for (run, other) in all.iter().enumerate() {
            assert!(other == first, "{shape:?}: run {run} differs from the first");
        }
    }
}
