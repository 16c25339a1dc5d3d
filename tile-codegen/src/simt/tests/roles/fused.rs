//! A small kernel of the shape of a fused state space scan: loads, scalars, a product that feeds others, and two heads
//! that carry their states through chained products.

use half::bf16;
use tile_macros::tile_fn;

use super::{Data, agrees, facts, is_load, makes, role, staged, store_number};
use crate::dsl::prelude::*;
use crate::ir::{Elem, Kernel, Op, OpId};
use crate::ops::OpKind;

/// One head's part of a chunk: what it gives out, and its next state.
#[tile_fn(crate = crate::simt::tests::roles::rt)]
fn head(
    (c, b, m): (Tile<bf16>, Tile<bf16>, Tile<bf16>),
    (scales, weights, last): (Tile<f32>, Tile<f32>, Scalar<f32>),
    x: Tile<bf16>,
    state: Tile<f32>,
) -> (Tile<f32>, Tile<f32>) {
    let before = mma(c, state.cast::<bf16>(), zeros::<f32>((64, 64)));
    let y = mma(m, x, before * scales.reshape((64, 1)));
    let weighted = (x.cast::<f32>() * weights.reshape((64, 1))).cast::<bf16>();
    (y, mma(b.transpose(), weighted, state * last))
}

/// Chunks of 64 tokens, states of 64 x 64, two heads.
#[tile_fn(crate = crate::simt::tests::roles::rt)]
fn scan(
    c: Tensor<bf16, 2>,
    b: Tensor<bf16, 2>,
    x: Tensor<bf16, 3>,
    dt: Tensor<f32, 1>,
    y: TensorMut<f32, 3>,
) {
    let mut first = zeros::<f32>((64, 64));
    let mut second = zeros::<f32>((64, 64));
    for i in 0..cdiv(c.dim(0), 64) {
        let (ct, bt) = (load(c, (i, 0), (64, 64)), load(b, (i, 0), (64, 64)));
        let (x0, x1) = (load(x, (i, 0, 0), (64, 1, 64)), load(x, (i, 1, 0), (64, 1, 64)));
        let d = load(dt, (i,), (64,)).abs();
        let steps = d * -0.25;
        let decay = steps.cumsum(0);
        let total = steps.sum(0).item();
        let weights = d * (total - decay).exp2();
        let scales = decay.exp2();
        let last = total.exp2();

        let (rows, columns) = (arange::<i32>(64).reshape((64, 1)), arange::<i32>(64).reshape((1, 64)));
        let between = (decay.reshape((64, 1)) - decay.reshape((1, 64))).exp2() * d.reshape((1, 64));
        let mask = where_(rows >= columns, between, 0.0);
        let m = (mma(ct, bt.transpose(), zeros::<f32>((64, 64))) * mask).cast::<bf16>();

        let (shared, scalars) = ((ct, bt, m), (scales, weights, last));
        let (y0, s0) = head(shared, scalars, x0.reshape((64, 64)), first);
        let (y1, s1) = head(shared, scalars, x1.reshape((64, 64)), second);
        first = s0;
        second = s1;
        store(y, (i, 0, 0), y0.reshape((64, 1, 64)));
        store(y, (i, 1, 0), y1.reshape((64, 1, 64)));
    }
}

const LOAD: usize = 0;
const SCALARS: usize = 1;
const PRODUCT: usize = 2;
const HEADS: usize = 3;

/// Vectors and scalars of floats belong to the scalars, the first narrowed product to the product.
fn owner(narrowed: bool) -> impl Fn(&Kernel, OpId, &Op) -> Option<usize> {
    move |kernel, id, op| {
        let mut casts = Vec::new();
        let mut products = Vec::new();
        kernel.walk(|id, op| {
            let narrow = matches!(op.kind, OpKind::Cast(_)) && makes(kernel, op, Elem::BF16, &[64, 64]);
            casts.extend(narrow.then_some(id));
            products.extend(matches!(op.kind, OpKind::Mma(_)).then_some(id));
        });
        let vector = makes(kernel, op, Elem::F32, &[64]) || makes(kernel, op, Elem::F32, &[]);
        match op.kind {
            _ if is_load(op) => Some(LOAD),
            OpKind::Constant(_) => None,
            OpKind::Store(_) => store_number(kernel, id).map(|number| HEADS + number),
            _ if vector => Some(SCALARS),
            _ if narrowed => casts.first().is_some_and(|&cast| cast == id).then_some(PRODUCT),
            _ => products.first().is_some_and(|&product| product == id).then_some(PRODUCT),
        }
    }
}

fn inputs(tokens: i64) -> Vec<Data> {
    vec![
        Data::noise(Elem::BF16, &[tokens, 64], 1),
        Data::noise(Elem::BF16, &[tokens, 64], 2),
        Data::noise(Elem::BF16, &[tokens, 2, 64], 3),
        Data::noise(Elem::F32, &[tokens], 4),
    ]
}

fn kernel() -> Kernel {
    staged(|p| {
        scan(
            p.tensor("c", facts(2, 2)),
            p.tensor("b", facts(2, 2)),
            p.tensor("x", facts(3, 2)),
            p.tensor("dt", facts(1, 4)),
            p.tensor_mut("y", facts(3, 4)),
        );
    })
}

#[test]
fn five_roles_carry_two_states() {
    // Load and scalars share a warpgroup; its 48 registers, 128 and twice 160 fit the 504 of four warpgroups.
    let roles = [
        role(1, 48, true),
        role(2, 48, false),
        role(4, 128, false),
        role(4, 160, false),
        role(4, 160, false),
    ];
    // The last chunk has 32 tokens.
    let tokens = 3 * 64 + 32;
    let compiled = agrees(&kernel(), &roles, 2, &owner(true), &inputs(tokens), &[tokens, 2, 64], 1e-2);
    assert_eq!(compiled.threads, 512);
    assert_eq!(compiled.ptx.matches("setmaxnreg").count(), 4, "one for each warpgroup");
}

#[test]
fn a_product_in_f32_crosses_roles() {
    // Both heads mask and narrow the product for themselves.
    let roles = [
        role(1, 56, true),
        role(1, 56, false),
        role(4, 128, false),
        role(4, 160, false),
        role(4, 160, false),
    ];
    agrees(&kernel(), &roles, 1, &owner(false), &inputs(128), &[128, 2, 64], 1e-2);
}
