//! Products of warpgroups out of compiled kernels: batches, tf32, either way round; against f64 on every schedule.

use super::compiled::{Tensor, on_cpu, on_ptx, staged};
use crate::compile::compile;
use crate::config::Config;
use crate::dsl::Params;
use crate::dsl::prelude::*;
use crate::ir::{Elem, TensorFacts};
use crate::target::Target;

/// Facts of a tensor that bulk tensor copies can address.
fn aligned(rank: usize, bytes: usize) -> TensorFacts {
    TensorFacts {
        align: 16,
        stride_align: vec![16; rank],
        extent_align: vec![16; rank],
        ..TensorFacts::contiguous(rank, bytes)
    }
}

/// `[batch, m, k] @ [batch, k, n]` in f64.
fn product(a: &Tensor, b: &Tensor, [batch, m, n, k]: [usize; 4]) -> Vec<f64> {
    let mut out = vec![0.0; batch * m * n];
    for (at, sum) in out.iter_mut().enumerate() {
        let (plane, row, col) = (at / (m * n), at / n % m, at % n);
        for depth in 0..k {
            let (x, y) = (a.values[(plane * m + row) * k + depth], b.values[(plane * k + depth) * n + col]);
            *sum += f64::from(x) * f64::from(y);
        }
    }
    out
}

/// Runs `body` on bf16 (or f32) noise for so many warps, and asserts the product, and how many `wgmma` there are.
fn agree(
    sizes: [usize; 4],
    elem: Elem,
    warps: usize,
    wgmma: usize,
    tolerance: f64,
    body: impl FnOnce(&mut Params),
) {
    let [batch, m, n, k] = sizes;
    let shape = |rows: usize, cols: usize| [batch as i64, rows as i64, cols as i64];
    let inputs = [Tensor::noise(elem, &shape(m, k), 1), Tensor::noise(elem, &shape(k, n), 2)];
    let kernel = staged(body);
    let config = Config { num_warps: Some(warps), ..Config::default() };
    let compiled = compile(&kernel, &Target::SM_90A, &config).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(compiled.ptx.matches("wgmma.mma_async").count(), wgmma, "{}", compiled.ptx);
    let (out, right) = (shape(m, n), product(&inputs[0], &inputs[1], sizes));
    for values in [on_cpu(&kernel, &inputs, &out, [1; 3]), on_ptx(&compiled, &inputs, &out, [1; 3])] {
        for (at, (&found, &right)) in values.iter().zip(&right).enumerate() {
            let error = (f64::from(found) - right).abs();
            assert!(error <= tolerance, "element {at}: {found}, expected {right}");
        }
    }
}

fn batched(p: &mut Params, [batch, m, n, k]: [usize; 4], computed: [bool; 2]) {
    let a = p.tensor::<bf16, 3>("a", aligned(3, 2));
    let b = p.tensor::<bf16, 3>("b", aligned(3, 2));
    let out = p.tensor_mut::<f32, 3>("out", aligned(3, 4));
    let (mut a, mut b) = (load(a, (0, 0, 0), (batch, m, k)), load(b, (0, 0, 0), (batch, k, n)));
    if computed[0] {
        a = maximum(a.cast::<f32>(), -8.0).cast::<bf16>();
    }
    if computed[1] {
        b = maximum(b.cast::<f32>(), -8.0).cast::<bf16>();
    }
    store(out, (0, 0, 0), mma(a, b, zeros::<f32>((batch, m, n))));
}

/// Sums of k products of numbers in -1..1, each exact in f32 before it is added: rounding of k additions.
const BF16: f64 = 2e-5;

#[test]
fn a_batch_is_split_over_warpgroups() {
    for (warps, wgmma) in [(4, 2 * 4), (8, 4)] {
        let sizes = [2, 64, 32, 64];
        agree(sizes, Elem::BF16, warps, wgmma, BF16, |p| batched(p, sizes, [false, false]));
    }
}

#[test]
fn a_batch_and_rows_are_split_over_four_warpgroups() {
    let sizes = [2, 128, 16, 32];
    agree(sizes, Elem::BF16, 16, 2, BF16, |p| batched(p, sizes, [false, false]));
}

#[test]
fn a_computed_operand_of_a_batch_stays_in_registers_on_either_side() {
    let sizes = [2, 64, 64, 32];
    for computed in [[true, false], [false, true]] {
        agree(sizes, Elem::BF16, 8, 2, BF16, |p| batched(p, sizes, computed));
    }
}

#[test]
fn tf32_is_staged_along_k() {
    let sizes = [1, 64, 32, 32];
    // Operands are rounded to 10 bits: half an ulp of each factor, 32 products.
    agree(sizes, Elem::F32, 4, 4, 32.0 * 2.0 * f64::powi(2.0, -11), |p| {
        let a = p.tensor::<f32, 3>("a", aligned(3, 4));
        let b = p.tensor::<f32, 3>("b", aligned(3, 4));
        let out = p.tensor_mut::<f32, 3>("out", aligned(3, 4));
        let a = load(a, (0, 0, 0), (1, 64, 32)).reshape((64, 32)).cast::<tf32>();
        let b = load(b, (0, 0, 0), (1, 32, 32)).reshape((32, 32)).cast::<tf32>();
        store(out, (0, 0, 0), mma(a, b, zeros::<f32>((64, 32))).reshape((1, 64, 32)));
    });
}
