//! Generated inputs: the distribution that the published comparisons of this kernel use, from a seed.

use rand::{Rng, SeedableRng, rngs::StdRng};
use rand_distr::StandardNormal;
use rayon::prelude::*;

use crate::{
    case::{Case, Dtype, Skip},
    problem::Shape,
};

/// Values of one random stream; a fixed number, so that the values do not depend on the thread count.
const STREAM_LEN: usize = 1 << 16;

/// Inputs of `shape` from `seed`: `x`, `b`, `c` normal and rounded to `dtype`; `dt = softplus(normal - 4)`,
/// `a = -exp(uniform(0, 1))` and the skip weight a head normal, in f32. The same on every machine and thread count.
pub fn generate(shape: Shape, dtype: Dtype, seed: u64) -> Case {
    let rounded = |rng: &mut StdRng| dtype.round(rng.sample(StandardNormal));
    Case {
        shape,
        dtype,
        dt_dtype: Dtype::F32,
        step: false,
        chunk: None,
        x: fill(shape.x_len(), seed, 0, rounded),
        dt: fill(shape.dt_len(), seed, 1, |rng| {
            let raw: f32 = rng.sample(StandardNormal);
            (raw - 4.0).exp().ln_1p()
        }),
        a: fill(shape.heads, seed, 2, |rng| -rng.random::<f32>().exp()),
        b: fill(shape.b_len(), seed, 3, rounded),
        c: fill(shape.b_len(), seed, 4, rounded),
        d: Some(Skip::PerHead(fill(shape.heads, seed, 5, |rng| rng.sample(StandardNormal)))),
        z: None,
        dt_bias: None,
        dt_softplus: false,
        dt_limit: (0.0, f64::INFINITY),
        initial_states: None,
        seq_idx: None,
        cu_seqlens: None,
    }
}

fn fill(len: usize, seed: u64, tensor: u64, value: impl Fn(&mut StdRng) -> f32 + Sync) -> Vec<f32> {
    let mut values = vec![0.0; len];
    values.par_chunks_mut(STREAM_LEN).enumerate().for_each(|(stream, values)| {
        let mut key = [0u8; 32];
        for (part, number) in key.chunks_mut(8).zip([seed, tensor, stream as u64, 0]) {
            part.copy_from_slice(&number.to_le_bytes());
        }
        let mut rng = StdRng::from_seed(key);
        values.iter_mut().for_each(|v| *v = value(&mut rng));
    });
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { batch: 2, tokens: 900, groups: 1, heads: 4, head_dim: 32, state: 16 };

    fn moments(values: &[f32]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        let variance = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
        (mean, variance)
    }

    #[test]
    fn the_distribution_is_the_stated_one() {
        let case = generate(SHAPE, Dtype::BF16, 3);
        let (mean, variance) = moments(&case.x);
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
        assert!(case.x.iter().all(|&v| Dtype::BF16.round(v) == v));
        // The median of softplus(normal - 4) is softplus(-4) = 0.018150.
        let mut dt = case.dt.clone();
        dt.sort_by(f32::total_cmp);
        assert!(dt[0] > 0.0 && (dt[dt.len() / 2] - 0.01815).abs() < 0.001, "{}", dt[dt.len() / 2]);
        assert!(case.a.iter().all(|&a| (-std::f32::consts::E..=-1.0).contains(&a)));
    }

    #[test]
    fn a_seed_gives_the_same_values_on_any_thread_count() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let one = pool.install(|| generate(SHAPE, Dtype::F32, 7));
        assert_eq!(one, generate(SHAPE, Dtype::F32, 7));
        assert_ne!(one.x, generate(SHAPE, Dtype::F32, 8).x);
        assert_ne!(one.b, one.c);
        assert_ne!(one.x[..STREAM_LEN], one.x[STREAM_LEN..2 * STREAM_LEN]);
    }
}
