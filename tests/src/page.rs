//! A kernel of our own: the sums of the rows of a matrix.

use tile_runtime::prelude::*;

/// `sums[i]` is the sum of row i of `x`; 8 rows a block, and `width` is a power of two that holds a row.
#[tile_kernel]
pub fn row_sums(x: Tensor<f32, 2>, sums: TensorMut<f32, 1>, width: Const<usize>) {
    store(sums, (bid(0),), load(x, (bid(0), 0), (8, width)).sum(1));
}
