//! Control flow of several roles: each takes the same path, by conditions that it computes or receives.

use tile_macros::tile_fn;

use super::{Data, Owner, agrees, divided, facts, is_load, makes, role, staged};
use crate::dsl::prelude::*;
use crate::ir::{Elem, Kernel, Op, OpId};
use crate::ops::OpKind;

/// Adds rows of tiles until their sum is large; skips those of negative sum.
#[tile_fn(crate = crate::simt::tests::roles::rt)]
fn until(x: Tensor<f32, 2>, out: TensorMut<f32, 1>) {
    let mut all = zeros::<f32>((64,));
    let mut total = 0.0;
    for i in 0..x.dim(0) {
        let row = load(x, (i, 0), (1, 64)).reshape((64,));
        let sum = row.sum(0).item();
        if sum < 0.0 {
            continue;
        }
        all += row * 2.0;
        total += sum;
        if total > 20.0 {
            break;
        }
    }
    store(out, (0,), all);
}

fn kernel() -> Kernel {
    staged(|p| until(p.tensor("x", facts(2, 4)), p.tensor_mut("out", facts(1, 4))))
}

/// Loads belong to role 0, the store to role 2; the scalar sums to role 1 if they cross.
fn owner(crosses: bool) -> impl Fn(&Kernel, OpId, &Op) -> Option<usize> {
    move |kernel, _, op| match op.kind {
        _ if is_load(op) => Some(0),
        OpKind::Store(_) => Some(2),
        OpKind::Reshape(_) if makes(kernel, op, Elem::F32, &[]) => crosses.then_some(1),
        _ => None,
    }
}

#[test]
fn a_condition_comes_through_a_channel() {
    let roles = [role(1, 0, true), role(1, 0, false), role(4, 0, false)];
    let input = || vec![Data::noise(Elem::F32, &[40, 64], 7)];
    for stages in [1, 2, 4] {
        agrees(&kernel(), &roles, stages, &owner(true), &input(), &[64], 1e-5);
    }
}

#[test]
fn a_condition_of_a_tile_that_one_thread_would_need_is_refused() {
    let roles = [role(1, 0, true), role(1, 0, false), role(4, 0, false)];
    let chosen = owner(false);
    let chosen: Owner<'_> = &chosen;
    let refusal = divided(&kernel(), &roles, 2, chosen).expect_err("refused");
    assert!(refusal.contains("role 0 is one thread, and needs `"), "{refusal}");
    assert!(refusal.contains("comes through a channel"), "{refusal}");
}

#[test]
fn every_role_of_warps_computes_a_condition_for_itself() {
    let roles = [role(2, 0, false), role(1, 0, false), role(4, 0, false)];
    let input = vec![Data::noise(Elem::F32, &[40, 64], 8)];
    agrees(&kernel(), &roles, 2, &owner(false), &input, &[64], 1e-5);
}
