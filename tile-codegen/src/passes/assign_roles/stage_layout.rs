//! Where a computed tile lies in the stages of its channel: swizzled, in the order of axes that most of the products
//! that read it can take.

use super::partition::fault_at;
use crate::diag::Diagnostics;
use crate::ir::{Kernel, OpId, ValueId};
use crate::layout::{LayoutError, SharedLayout};
use crate::ops::mma::wide::{left, right};
use crate::ops::{OpKind, TileOp};

/// The place of a result of `id` in a stage.
pub(super) fn stage_layout(kernel: &Kernel, id: OpId, result: ValueId) -> Result<SharedLayout, Diagnostics> {
    let refused = |why: &dyn std::fmt::Display| {
        let name = kernel.ops[id].kind.name();
        fault_at(kernel, id, format!("the result of `{name}` cannot cross roles: {why}"))
    };
    let Some(tile) = kernel.ty(result).as_tile() else { return Err(refused(&"it is no tile")) };
    let (shape, bytes) = (&tile.shape, tile.elem.bytes());
    let rows: Vec<usize> = (0..shape.len()).rev().collect();
    if shape.iter().filter(|&&n| n > 1).count() < 2 {
        return SharedLayout::linear(shape, &rows, bytes).map_err(|e| refused(&e));
    }
    let mut orders = vec![rows];
    if let [_, _] = shape[..] {
        orders.push(vec![0, 1]);
    }
    let layouts: Result<Vec<SharedLayout>, LayoutError> =
        orders.iter().map(|order| SharedLayout::swizzled(shape, order, bytes)).collect();
    let layouts = layouts.map_err(|e| refused(&e))?;
    // The first of the best: rows follow each other unless that is worse.
    let suits = |layout: &SharedLayout| products(kernel, result, layout);
    let best = layouts.iter().map(suits).max().unwrap_or(0);
    let chosen = layouts.into_iter().find(|layout| suits(layout) == best);
    chosen.ok_or_else(|| refused(&"it has no place in shared memory"))
}

/// How many products can read a tile, or views of it, out of this place.
fn products(kernel: &Kernel, value: ValueId, layout: &SharedLayout) -> usize {
    let turned = |layout: &SharedLayout| layout.permute(&[1, 0]).ok();
    let mut count = 0;
    kernel.walk(|_, op| {
        let uses = op.operands.iter().enumerate().filter(|&(_, &v)| v == value);
        count += uses
            .map(|(at, _)| match &op.kind {
                OpKind::Mma(_) if layout.elem_bytes == 2 && layout.shape.len() == 2 => {
                    let turned = turned(layout);
                    let fits = match at {
                        0 => left(layout).is_some() || turned.is_some_and(|t| right(&t).is_some()),
                        1 => right(layout).is_some() || turned.is_some_and(|t| left(&t).is_some()),
                        _ => false,
                    };
                    usize::from(fits)
                }
                OpKind::Permute(permute) => {
                    layout.permute(&permute.axes).map_or(0, |view| products(kernel, op.results[0], &view))
                }
                OpKind::Reshape(reshape) => {
                    layout.reshape(&reshape.shape).map_or(0, |view| products(kernel, op.results[0], &view))
                }
                _ => 0,
            })
            .sum::<usize>();
    });
    count
}
