//! A whole small kernel: vector addition with a partial last block.

use crate::cpu::{Arg, Program, VecMemory, run_grid};
use crate::ir::{Builder, Elem, LocId, ParamKind, TensorFacts, TensorType, Type};
use crate::ops::binary::{Binary, BinaryOp};
use crate::ops::{Literal, bid::Bid, load::Load, store::Store};

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
    let load = Load { shape: vec![16], pad: Literal::Int(0) };
    let tx = b.emit(load.clone().into(), vec![x, bid], loc)[0];
    let ty = b.emit(load.into(), vec![y, bid], loc)[0];
    let sum = b.emit(Binary { op: BinaryOp::Add }.into(), vec![tx, ty], loc)[0];
    b.emit(Store.into(), vec![sum, out, bid], loc);
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
