//! Partitions that cannot be: each is refused by name.

use half::bf16;
use tile_macros::tile_fn;

use super::{Data, Owner, divided, facts, is_load, on_cpu, on_ptx, role, staged};
use crate::compile::compile;
use crate::config::Config;
use crate::dsl::prelude::*;
use crate::ir::{Elem, Kernel, Op, OpId};
use crate::ops::OpKind;
use crate::passes::assign_roles::Role;
use crate::target::Target;

#[tile_fn(crate = crate::simt::tests::roles::rt)]
fn copy(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    store(out, (0, 0), load(x, (0, 0), (16, 32)) * 2.0);
}

#[tile_fn(crate = crate::simt::tests::roles::rt)]
fn twice(out: TensorMut<f32, 2>) {
    let x = load(out, (0, 0), (16, 32));
    store(out, (0, 0), x * 2.0);
}

/// Loads belong to role 0, stores to role 1.
fn usual(_: &Kernel, _: OpId, op: &Op) -> Option<usize> {
    match op.kind {
        OpKind::Store(_) => Some(1),
        _ => is_load(op).then_some(0),
    }
}

fn refusal(roles: &[Role], owner: Owner<'_>) -> String {
    let kernel = staged(|p| copy(p.tensor("x", facts(2, 4)), p.tensor_mut("out", facts(2, 4))));
    divided(&kernel, roles, 2, owner).expect_err("refused")
}

#[test]
fn roles_that_do_not_fit_a_block_are_refused() {
    let cases: [(&[Role], &str); 7] = [
        (&[], "0 roles: a block has 1 to 15"),
        (&[role(1, 0, true)], "given to role 1, and there are 1 roles"),
        (&[role(1, 0, true), role(3, 0, false)], "role 1 has 3 warps: a role has a power of two"),
        (&[role(16, 0, false), role(32, 0, false)], "the roles have 48 warps: a block has at most 32"),
        (
            &[role(1, 40, true), role(2, 48, false)],
            "roles 0 and 1 share a warpgroup, and ask for 40 and 48 registers",
        ),
        (&[role(4, 20, false), role(4, 240, false)], "role 0 asks for 20 registers"),
        (
            &[role(4, 40, false), role(4, 240, false), role(4, 240, false)],
            "the warpgroups ask for 520 registers for each of their threads together, and share 504",
        ),
    ];
    for (roles, expected) in cases {
        let found = refusal(roles, &usual);
        assert!(found.contains(expected), "{found}\nlacks\n{expected}");
    }
}

/// Where the way to the loads depends on a tile, one thread cannot load: the kernel is compiled whole.
#[tile_fn(crate = crate::simt::tests::roles::rt)]
fn until_large(x: Tensor<bf16, 2>, out: TensorMut<f32, 2>) {
    let mut sums = zeros::<f32>((64, 64));
    for i in 0..cdiv(x.dim(0), 64) {
        let x = load(x, (i, 0), (64, 64));
        sums = mma(x, x.transpose(), sums);
        if sums.max(ALL).item() > 40.0 {
            break;
        }
    }
    store(out, (0, 0), sums);
}

#[test]
fn a_kernel_that_one_thread_cannot_follow_stays_whole() {
    let kernel = staged(|p| until_large(p.tensor("x", facts(2, 2)), p.tensor_mut("out", facts(2, 4))));
    let compiled = compile(&kernel, &Target::SM_90A, &Config::default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(!compiled.ptx.contains("mbarrier"), "{}", compiled.ptx);
    let input = || vec![Data::noise(Elem::BF16, &[320, 64], 2)];
    let right = on_cpu(&kernel, &input(), &[64, 64], [1, 1, 1]);
    let found = on_ptx(&compiled, &input(), &[64, 64], [1, 1, 1]);
    for (&found, &right) in found.iter().zip(&right) {
        assert!((found - right).abs() <= 1e-4 * (1.0 + right.abs()), "{found} is not {right}");
    }
}

#[test]
fn a_store_needs_a_role() {
    let loads = |_: &Kernel, _: OpId, op: &Op| is_load(op).then_some(0);
    let found = refusal(&[role(1, 0, true), role(4, 0, false)], &loads);
    assert!(found.contains("a store has no role"), "{found}");
}

#[test]
fn one_thread_holds_no_tiles() {
    let stores = |_: &Kernel, _: OpId, op: &Op| match op.kind {
        OpKind::Store(_) => Some(0),
        _ => is_load(op).then_some(1),
    };
    let found = refusal(&[role(1, 0, true), role(4, 0, false)], &stores);
    assert!(found.contains("role 0 is one thread, and needs `"), "{found}");
}

#[test]
fn one_role_loads_what_it_stores() {
    let kernel = staged(|p| twice(p.tensor_mut("out", facts(2, 4))));
    let roles = [role(1, 0, false), role(4, 0, false)];
    let found = divided(&kernel, &roles, 2, &usual).expect_err("refused");
    assert!(found.contains("role 0 loads a tensor that role 1 stores to"), "{found}");
    let alone = |_: &Kernel, _: OpId, op: &Op| matches!(op.kind, OpKind::Store(_)).then_some(1);
    assert!(divided(&kernel, &roles, 2, &alone).is_ok());
}
