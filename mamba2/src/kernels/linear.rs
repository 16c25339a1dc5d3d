//! `linear`: a matrix product with weights as checkpoints store them.

use tile_runtime::prelude::*;

/// `y = x W^T + bias`, in f32 with one rounding.
///
/// | argument | shape |
/// |---|---|
/// | `x` | `[rows, inputs]` |
/// | `weight` | `[outputs, inputs]` |
/// | `bias` | `[outputs]`, or none |
/// | `y` | `[rows, outputs]` |
///
/// Grid: as many blocks as `y` has tiles. Blocks that run at the same time share operands in the cache: they go down `group`
/// rows of tiles before they go right.
#[tile_kernel]
pub fn linear<T: MmaOperand + Storable>(
    x: Tensor<T, 2>,
    weight: Tensor<T, 2>,
    bias: Option<Tensor<T, 1>>,
    y: TensorMut<T, 2>,
    block_rows: Const<usize>,
    block_outputs: Const<usize>,
    block_inputs: Const<usize>,
    group: Const<usize>,
) {
    let (rows, columns) = (cdiv(y.dim(0), block_rows), cdiv(y.dim(1), block_outputs));
    let first = bid(0) / (columns * group) * group;
    let height = minimum(rows - first, group);
    let rest = bid(0) % (columns * group);
    let (row, column) = (first + rest % height, rest / height);

    let mut sum = zeros::<f32>((block_rows, block_outputs));
    for k in 0..cdiv(x.dim(1), block_inputs) {
        let x = load(x, (row, k), (block_rows, block_inputs));
        let weight = load(weight, (column, k), (block_outputs, block_inputs));
        sum = mma(x, weight.transpose(), sum);
    }
    if let Some(bias) = bias {
        sum = sum + load(bias, (column,), (block_outputs,)).cast::<f32>();
    }
    store(y, (row, column), sum.cast::<T>());
}
