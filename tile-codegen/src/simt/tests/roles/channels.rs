//! Channels: filled by stores, with several readers, of every element type, between roles of every number of warps.

use half::bf16;
use tile_macros::tile_fn;

use super::{Data, agrees, divided, facts, is_load, makes, on_ptx, role, staged, store_number};
use crate::dsl::prelude::*;
use crate::ir::{Elem, Kernel, Op, OpId, TensorFacts};
use crate::ops::OpKind;

#[tile_fn(crate = crate::simt::tests::roles::rt)]
fn doubled<T: Storable>(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    for i in 0..cdiv(x.dim(0), 16) {
        let scaled = (load(x, (i, 0), (16, 32)) * 8.0).cast::<T>();
        store(out, (i, 0), scaled.cast::<f32>() + 1.0);
    }
}

/// 8 x in `T`, plus 1, of 100 rows: the tile of `T` crosses from role 0 to role 1.
fn crosses<T: Storable>(elem: Elem, warps: [usize; 2], stages: usize, right: fn(f32) -> f32) {
    let kernel = staged(|p| doubled::<T>(p.tensor("x", facts(2, 4)), p.tensor_mut("out", facts(2, 4))));
    let owner = |kernel: &Kernel, id: OpId, op: &Op| match op.kind {
        OpKind::Store(_) => store_number(kernel, id).map(|_| 1),
        _ => makes(kernel, op, elem, &[16, 32]).then_some(0),
    };
    let roles = [role(warps[0], 0, false), role(warps[1], 0, false)];
    let compiled = divided(&kernel, &roles, stages, &owner).unwrap_or_else(|e| panic!("{e}"));
    let input = Data::noise(Elem::F32, &[100, 32], 9);
    let right: Vec<f32> = input.values.iter().map(|&x| right(8.0 * x) + 1.0).collect();
    assert_eq!(on_ptx(&compiled, &[input], &[100, 32], [1, 1, 1]), right, "{elem}");
}

#[test]
fn tiles_of_every_type_cross_roles() {
    crosses::<bf16>(Elem::BF16, [4, 4], 2, |x| bf16::from_f32(x).to_f32());
    crosses::<half::f16>(Elem::F16, [1, 2], 1, |x| half::f16::from_f32(x).to_f32());
    crosses::<i32>(Elem::I32, [2, 1], 3, f32::trunc);
    crosses::<i64>(Elem::I64, [1, 4], 2, f32::trunc);
    crosses::<bool>(Elem::Bool, [4, 1], 2, |x| if x != 0.0 { 1.0 } else { 0.0 });
}

#[tile_fn(crate = crate::simt::tests::roles::rt)]
fn two_readers(x: Tensor<bf16, 2>, out: TensorMut<f32, 3>) {
    let mut sums = zeros::<f32>((64, 64));
    for i in 0..cdiv(x.dim(0), 64) {
        let x = load(x, (i, 0), (64, 64));
        // One tile as the left and the right operand, in both orders of its axes.
        sums = mma(x, x.transpose(), mma(x.transpose(), x, sums));
        store(out, (i, 0, 0), (x.cast::<f32>() * 2.0).reshape((1, 64, 64)));
    }
    store(out, (cdiv(x.dim(0), 64), 0, 0), sums.reshape((1, 64, 64)));
}

#[test]
fn a_shared_tile_has_readers_in_several_roles() {
    let kernel = staged(|p| two_readers(p.tensor("x", facts(2, 2)), p.tensor_mut("out", facts(3, 4))));
    let owner = |kernel: &Kernel, id: OpId, op: &Op| match op.kind {
        _ if is_load(op) => Some(0),
        _ => store_number(kernel, id).map(|number| 1 + number),
    };
    let input = || vec![Data::noise(Elem::BF16, &[320, 64], 5)];
    // The loader, idle warps, two warps that copy; a warpgroup that multiplies.
    let roles = [role(1, 168, true), role(2, 168, false), role(4, 232, false)];
    let shape = [6, 64, 64];
    let kernel_of = |stages| divided(&kernel, &roles, stages, &owner).unwrap_or_else(|e| panic!("{e}"));
    for stages in [1, 3] {
        let compiled = kernel_of(stages);
        assert_eq!(compiled.threads, 256);
        let x = input();
        let value = |row: usize, column: usize| f64::from(x[0].values[row * 64 + column]);
        let found = on_ptx(&compiled, &x, &shape, [1, 1, 1]);
        let (copied, summed) = found.split_at(320 * 64);
        for (at, &found) in copied.iter().enumerate() {
            assert_eq!(f64::from(found), 2.0 * value(at / 64, at % 64));
        }
        for (at, &found) in summed.iter().enumerate() {
            let (i, j) = (at / 64, at % 64);
            let terms = (0..5usize).flat_map(|c| (0..64usize).map(move |k| (c, k)));
            let right: f64 = terms
                .map(|(c, k)| {
                    value(64 * c + i, k) * value(64 * c + j, k) + value(64 * c + k, i) * value(64 * c + k, j)
                })
                .sum();
            let found = f64::from(found);
            assert!((found - right).abs() < 1e-3, "{i}, {j}: {found} is not {right}");
        }
    }
}

#[tile_fn(crate = crate::simt::tests::roles::rt)]
fn sums_of_tiles(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    let mut sum = zeros::<f32>((16, 64));
    for i in 0..x.dim(0) / 16 {
        sum += load(x, (i, 0), (16, 64)) * 0.5;
    }
    store(out, (0, 0), sum + 1.0);
}

#[test]
fn results_of_a_loop_cross_roles() {
    let kernel = staged(|p| sums_of_tiles(p.tensor("x", facts(2, 4)), p.tensor_mut("out", facts(2, 4))));
    let owner = |_: &Kernel, _: OpId, op: &Op| match op.kind {
        OpKind::Store(_) => Some(2),
        OpKind::For(_) => Some(1),
        _ if is_load(op) => Some(0),
        _ => None,
    };
    let roles = [role(1, 0, true), role(2, 0, false), role(1, 0, false)];
    let input = Data::noise(Elem::F32, &[80, 64], 6);
    let compiled = agrees(&kernel, &roles, 2, &owner, &[input], &[16, 64], 1e-6);
    // Warp 1 is idle, since two warps start at an even one.
    assert_eq!(compiled.threads, 160);
    assert!(!compiled.ptx.contains("setmaxnreg"));
}

#[tile_fn(crate = crate::simt::tests::roles::rt)]
fn relayed(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    for i in 0..cdiv(x.dim(0), 32) {
        store(out, (i, 0), load(x, (i, 0), (32, 64)) * 3.0);
    }
}

#[test]
fn a_role_stores_out_of_its_channel_by_bulk_copies() {
    let whole = TensorFacts { extent_align: vec![1, 4], ..facts(2, 4) };
    let kernel = staged(|p| relayed(p.tensor("x", facts(2, 4)), p.tensor_mut("out", whole)));
    let owner = |kernel: &Kernel, _: OpId, op: &Op| match op.kind {
        OpKind::Store(_) => Some(2),
        _ if is_load(op) => Some(0),
        _ => makes(kernel, op, Elem::F32, &[32, 64]).then_some(1),
    };
    let roles = [role(1, 0, true), role(1, 0, false), role(2, 0, false)];
    let input = Data::noise(Elem::F32, &[200, 64], 3);
    let right: Vec<f32> = input.values.iter().map(|&x| 3.0 * x).collect();
    for stages in [1, 2] {
        let compiled = divided(&kernel, &roles, stages, &owner).unwrap_or_else(|e| panic!("{e}"));
        assert!(compiled.ptx.contains("cp.async.bulk.tensor.2d.global.shared"), "{}", compiled.ptx);
        let input = || Data::noise(Elem::F32, &[200, 64], 3);
        assert_eq!(on_ptx(&compiled, &[input()], &[200, 64], [1, 1, 1]), right);
    }
}
