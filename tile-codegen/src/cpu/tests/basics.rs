//! Whole small kernels: vector addition with a partial last block, blocks on several threads.

use crate::cpu::{Arg, Program, VecMemory, run_grid};
use crate::ir::{Builder, Elem, LocId, ParamKind, TensorFacts, TensorType, Type};
use crate::ops::binary::{Binary, BinaryOp};
use crate::ops::load::{Hints, Load};
use crate::ops::mma::Mma;
use crate::ops::permute::Permute;
use crate::ops::unary::{Unary, UnaryOp};
use crate::ops::window::Steps;
use crate::ops::{Literal, bid::Bid, store::Store};

#[test]
fn adds_vectors() {
    let mut b = Builder::new("add");
    let mut tensor = |name: &str, mutable| {
        let ty = Type::Tensor(TensorType { elem: Elem::F32, rank: 1, mutable });
        b.kernel.add_param(name, ty, ParamKind::Tensor(TensorFacts::contiguous(1, 4)))
    };
    let (x, y, out) = (tensor("x", false), tensor("y", false), tensor("out", true));
    let loc = LocId::default();
    let bid = b.emit(Bid { axis: 0 }.into(), vec![], loc)[0];
    let load = Load { shape: vec![16], pad: Literal::Int(0), hints: Hints::new(), steps: Steps::Tiles };
    let tx = b.emit(load.clone().into(), vec![x, bid], loc)[0];
    let ty = b.emit(load.into(), vec![y, bid], loc)[0];
    let sum = b.emit(Binary { op: BinaryOp::Add }.into(), vec![tx, ty], loc)[0];
    b.emit(Store::default().into(), vec![sum, out, bid], loc);
    assert!(b.diagnostics.is_empty());

    let values: Vec<f32> = (0..37).map(|i| i as f32).collect();
    let x = VecMemory::floats(Elem::F32, &values);
    let y = VecMemory::floats(Elem::F32, &[0.5; 37]);
    let out = VecMemory::floats(Elem::F32, &[-1.0; 40]);
    let program = Program::new(&b.kernel).unwrap();
    let args = [x.tensor(&[37]), y.tensor(&[37]), out.tensor(&[37])].map(Arg::Tensor);
    run_grid(&program, [3, 1, 1], &args).unwrap();
    let expected: Vec<f32> = (0..40).map(|i| if i < 37 { i as f32 + 0.5 } else { -1.0 }).collect();
    assert_eq!(out.to_floats(), expected);
}

/// `out = exp(x xᵀ) x` for each tile of 32 rows.
fn product_kernel() -> Builder {
    let mut b = Builder::new("product");
    let loc = LocId::default();
    let mut tensor = |name: &str, mutable| {
        let ty = Type::Tensor(TensorType { elem: Elem::F32, rank: 2, mutable });
        b.kernel.add_param(name, ty, ParamKind::Tensor(TensorFacts::contiguous(2, 4)))
    };
    let (x, out) = (tensor("x", false), tensor("out", true));
    let (row, column) =
        (b.emit(Bid { axis: 0 }.into(), vec![], loc)[0], b.emit(Bid { axis: 1 }.into(), vec![], loc)[0]);
    let load = Load { shape: vec![32, 32], pad: Literal::Int(0), hints: Hints::new(), steps: Steps::Tiles };
    let tile = b.emit(load.into(), vec![x, row, column], loc)[0];
    let turned = b.emit(Permute { axes: vec![1, 0] }.into(), vec![tile], loc)[0];
    let square = b.emit(Mma.into(), vec![tile, turned, tile], loc)[0];
    let square = b.emit(Unary { op: UnaryOp::Exp }.into(), vec![square], loc)[0];
    let result = b.emit(Mma.into(), vec![square, tile, turned], loc)[0];
    b.emit(Store::default().into(), vec![result, out, row, column], loc);
    assert!(b.diagnostics.is_empty());
    b
}

#[test]
fn threads_and_the_order_of_blocks_change_no_bit() {
    let kernel = product_kernel().kernel;
    let program = Program::new(&kernel).unwrap();
    let x = VecMemory::floats(Elem::F32, &super::noise(128 * 96, 11));
    let run = |order: &(dyn Fn(&[Arg<'_>]) + Sync)| {
        let out = VecMemory::floats(Elem::F32, &[0.0; 128 * 96]);
        order(&[x.tensor(&[128, 96]), out.tensor(&[128, 96])].map(Arg::Tensor));
        out.to_floats().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
    };
    let grid = [4, 3, 1];
    let forward = run(&|args| run_grid(&program, grid, args).unwrap());
    let backward = run(&|args| (0..12).rev().for_each(|block| program.run_block(args, grid, block).unwrap()));
    let threads = run(&|args| {
        std::thread::scope(|scope| {
            for first in 0..4 {
                let program = &program;
                scope.spawn(move || {
                    (first..12).step_by(4).for_each(|block| program.run_block(args, grid, block).unwrap());
                });
            }
        });
    });
    assert!(forward.iter().all(|&x| x != 0));
    assert_eq!(forward, backward);
    assert_eq!(forward, threads);
}
