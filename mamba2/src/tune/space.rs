//! The plans that are tried: chunk lengths, and for each of the two large kernels its block sizes, occupancy and warps.

use tile_runtime::Target;
use tile_runtime::tune::{Point, Space};

use crate::plan::{Plan, tile};
use crate::problem::Shape;

/// Powers of two from `least` to `most`, both of them such.
fn powers(least: usize, most: usize) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(least as u64), |size| Some(size * 2))
        .take_while(move |&size| size <= most as u64)
}

/// Chunk lengths to try, the default first; the one that is asked for alone.
pub(super) fn chunks(default: &Plan, asked: Option<usize>, shape: Shape, gpu: bool) -> Vec<usize> {
    // A chunk longer than the sequence would only be padding.
    let most = if shape.tokens > 256 { 256 } else { shape.tokens.next_power_of_two().max(16) };
    let least = if gpu { 64 } else { 32 }.min(most);
    let others = powers(least, most).map(|chunk| chunk as usize).filter(|&chunk| chunk != default.chunk);
    std::iter::once(default.chunk).chain(others.filter(|_| asked.is_none())).collect()
}

/// The plans of one kernel, of which `plan` is the default, as the values that this kernel depends on.
pub(super) fn kernel_space(
    kernel: &str,
    plan: &Plan,
    shape: Shape,
    target: Option<Target>,
) -> Space<'static> {
    // The CPU has neither warps nor occupancy.
    let gpu = target.is_some();
    let blocks = |most: u64| if gpu { (1..=most).collect() } else { vec![1] };
    let warps = if gpu { vec![0, 4, 8] } else { vec![0] };
    // Stages where there is a loop whose loads can be staged, and the way without bulk copies where there is one with them.
    let looped = gpu && (kernel == "fwd_pass_state" || plan.chunk / plan.out_tokens.max(1) > 2);
    let stages = if looped { vec![0, 2, 3] } else { vec![0] };
    let plain = if target.is_some_and(|target| target.warpgroups) { vec![0, 1] } else { vec![0] };
    let sizes = |least: usize, most: usize| powers(least.min(most), most).collect::<Vec<u64>>();
    let (head_dim, state) = (tile(shape.head_dim, 128), tile(shape.state, 256));
    let least_tokens = if gpu { 64 } else { 32 };
    let axes = match kernel {
        "fwd_pass_state" => [
            ("state_tokens", sizes(least_tokens, plan.chunk.min(128))),
            ("state_head_dim", sizes(32, head_dim)),
            ("state_state", sizes(32, state.min(128))),
            ("state_occupancy", blocks(2)),
            ("state_warps", warps),
            ("state_stages", stages),
            ("state_plain", plain),
        ],
        _ => [
            ("out_tokens", sizes(32, plan.chunk.min(128))),
            ("out_head_dim", sizes(32, head_dim)),
            ("out_state", sizes(least_tokens, state)),
            ("out_occupancy", blocks(3)),
            ("out_warps", warps),
            ("out_stages", stages),
            ("out_plain", plain),
        ],
    };
    let default = axes.iter().fold(Point::new(), |point, (name, _)| point.with(name, plan.value(name)));
    let all = axes.into_iter().fold(Space::new(), |space, (name, values)| space.axis(name, values));
    // Blocks without bulk copies are tried with the compiler's stages and warps alone, which keeps the space small.
    let [warps, stages, plain] = match kernel {
        "fwd_pass_state" => ["state_warps", "state_stages", "state_plain"],
        _ => ["out_warps", "out_stages", "out_plain"],
    };
    let chosen = |point: &Point, name: &str| point.get(name) == Some(0);
    all.first(default).rule(move |point| match chosen(point, plain) {
        false if !chosen(point, warps) || !chosen(point, stages) => {
            Err("blocks without bulk copies take the compiler's warps and stages".to_owned())
        }
        _ => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::named;

    #[test]
    fn chunks_start_with_the_default_and_stop_at_the_sequence() {
        let seed = named("seed").unwrap();
        let plan = |shape| Plan::new::<f32>(shape, None, None).unwrap();
        assert_eq!(chunks(&plan(seed), None, seed, true), [128, 64, 256]);
        assert_eq!(chunks(&plan(seed), Some(128), seed, true), [128]);
        let short = Shape { tokens: 70, ..seed };
        assert_eq!(chunks(&plan(short), None, short, false), [128, 32, 64]);
        let empty = Shape { tokens: 0, ..seed };
        assert_eq!(chunks(&plan(empty), None, empty, true), [16]);
    }

    #[test]
    fn every_point_is_a_plan() {
        for (name, shape) in crate::problem::NAMED {
            for target in [None, Some(Target::SM_80), Some(Target::SM_90A)] {
                let plan = Plan::new::<f32>(shape, None, target).unwrap();
                for kernel in crate::tuned::TUNED {
                    let points = kernel_space(kernel, &plan, shape, target).points();
                    assert_eq!(plan.at(&points[0]), Ok(plan), "{name}: the default is first");
                    assert!(points.len() > 5 && points.iter().all(|point| plan.at(point).is_ok()), "{name}");
                }
            }
        }
    }
}
