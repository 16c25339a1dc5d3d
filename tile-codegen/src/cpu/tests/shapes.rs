//! Operations that only move elements.

use super::{eval, f32s, i32s, list, noise};
use crate::cpu::TileValue;
use crate::ir::Elem;
use crate::layout::SharedLayout;
use crate::ops::Literal;
use crate::ops::arange::Arange;
use crate::ops::bid::Bid;
use crate::ops::broadcast_to::BroadcastTo;
use crate::ops::constant::Constant;
use crate::ops::convert_layout::ConvertLayout;
use crate::ops::eval::{Eval, EvalCx, Operand, Operands};
use crate::ops::extract::Extract;
use crate::ops::from_shared::FromShared;
use crate::ops::num_blocks::NumBlocks;
use crate::ops::permute::Permute;
use crate::ops::reshape::Reshape;
use crate::ops::to_shared::ToShared;

#[test]
fn rank_three_permutations_match_index_arithmetic() {
    let shape = [2, 4, 8];
    let values = noise(64, 1);
    for axes in [[0, 2, 1], [2, 0, 1], [1, 2, 0], [2, 1, 0], [1, 0, 2]] {
        let found = list::<f32>(&eval(Permute { axes: axes.to_vec() }, vec![f32s(&shape, &values)]));
        let new = axes.map(|a| shape[a]);
        let mut at = 0;
        for i in 0..new[0] {
            for j in 0..new[1] {
                for k in 0..new[2] {
                    let mut index = [0; 3];
                    axes.iter().zip([i, j, k]).for_each(|(&axis, n)| index[axis] = n);
                    assert_eq!(found[at], values[(index[0] * 4 + index[1]) * 8 + index[2]], "{axes:?}");
                    at += 1;
                }
            }
        }
    }
}

#[test]
fn large_transposes_go_through_blocks() {
    let values = noise(64 * 32, 2);
    let found = list::<f32>(&eval(Permute { axes: vec![1, 0] }, vec![f32s(&[64, 32], &values)]));
    for (at, x) in found.iter().enumerate() {
        assert_eq!(*x, values[(at % 64) * 32 + at / 64]);
    }
}

#[test]
fn reshape_keeps_row_major_order_of_any_view() {
    let x = i32s(&[2, 4], &[0, 1, 2, 3, 4, 5, 6, 7]);
    let reshape = |x: TileValue, shape: &[usize]| eval(Reshape { shape: shape.to_vec() }, vec![x]);
    assert_eq!(list::<i32>(&reshape(x.clone(), &[8])), [0, 1, 2, 3, 4, 5, 6, 7]);
    let turned = eval(Permute { axes: vec![1, 0] }, vec![x]);
    assert_eq!(list::<i32>(&reshape(turned.clone(), &[1, 4, 1, 2])), [0, 4, 1, 5, 2, 6, 3, 7]);
    assert_eq!(list::<i32>(&reshape(turned, &[2, 4])), [0, 4, 1, 5, 2, 6, 3, 7]);
    let repeated = eval(BroadcastTo { shape: vec![2, 2] }, vec![i32s(&[2, 1], &[1, 2])]);
    assert_eq!(list::<i32>(&reshape(repeated, &[4])), [1, 1, 2, 2]);
    assert_eq!(reshape(i32s(&[1, 1], &[9]), &[]).as_int(), Some(9));
}

#[test]
fn extract_counts_sub_tiles() {
    let x = i32s(&[4, 4], &(0..16).collect::<Vec<_>>());
    let part = eval(Extract { index: vec![1, 0], shape: vec![2, 2] }, vec![x.clone()]);
    assert_eq!(list::<i32>(&part), [8, 9, 12, 13]);
    let turned = eval(Permute { axes: vec![1, 0] }, vec![x]);
    let part = eval(Extract { index: vec![3, 1], shape: vec![1, 2] }, vec![turned]);
    assert_eq!(list::<i32>(&part), [11, 15]);
    // An extracted tile is negated alone, not the tile that it is a part of.
    let negated = eval(crate::ops::unary::Unary { op: crate::ops::unary::UnaryOp::Neg }, vec![part]);
    assert_eq!(list::<i32>(&negated), [-11, -15]);
}

#[test]
fn sources_of_values() {
    assert_eq!(list::<u32>(&eval(Arange { len: 4, elem: Elem::U32 }, vec![])), [0, 1, 2, 3]);
    assert_eq!(list::<i64>(&eval(Arange { len: 2, elem: Elem::I64 }, vec![])), [0, 1]);
    assert_eq!(eval(Bid { axis: 1 }, vec![]).as_int(), Some(2));
    assert_eq!(eval(NumBlocks { axis: 2 }, vec![]).as_int(), Some(6));
    let third = eval(Constant { value: Literal::float(1.0 / 3.0), elem: Elem::BF16 }, vec![]);
    assert_eq!(list::<f32>(&third), [0.333_984_38]);
    let all = eval(Constant { value: Literal::Bool(true), elem: Elem::Bool }, vec![]);
    assert_eq!(all.as_bool(), Some(true));
    let top = eval(Constant { value: Literal::Int(4_000_000_000), elem: Elem::U32 }, vec![]);
    assert_eq!(top.as_int(), Some(4_000_000_000));
    assert_eq!(list::<i32>(&eval(ConvertLayout, vec![i32s(&[2], &[3, 4])])), [3, 4]);
}

#[test]
fn shared_memory_changes_no_value() {
    let cx = EvalCx { block: [0; 3], grid: [1; 3] };
    let run = |op: &dyn Fn(&mut Operands<'_>) -> Option<TileValue>, x: TileValue| {
        op(&mut Operands::new([Operand::Tile(x)].into_iter().collect())).unwrap()
    };
    let layout = SharedLayout::linear(&[4, 4], &[0, 1], 4).unwrap();
    let x = i32s(&[4, 4], &(0..16).collect::<Vec<_>>());
    let shared = run(&|x| ToShared { layout: layout.clone() }.eval(cx, x), x);
    let all = FromShared { origin: vec![0, 0], shape: vec![4, 4] };
    assert_eq!(list::<i32>(&run(&|x| all.eval(cx, x), shared.clone())), (0..16).collect::<Vec<_>>());
    let part = FromShared { origin: vec![1, 2], shape: vec![2, 2] };
    assert_eq!(list::<i32>(&run(&|x| part.eval(cx, x), shared)), [6, 7, 10, 11]);
}
