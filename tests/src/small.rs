//! The small kernels whose PTX is kept as snapshots, and the shape of the large ones.

use mamba2::problem::Shape;
use tile_runtime::prelude::*;

/// The shape that the article measures: batch 4, 16384 tokens, 8 heads of 64, state 128.
pub const SEED: Shape = Shape { batch: 4, tokens: 16384, groups: 1, heads: 8, head_dim: 64, state: 128 };

/// `out = x + y`, 1024 elements a block.
#[tile_kernel]
pub fn add(x: Tensor<f32, 1>, y: Tensor<f32, 1>, out: TensorMut<f32, 1>) {
    store(out, (bid(0),), load(x, (bid(0),), (1024,)) + load(y, (bid(0),), (1024,)));
}

/// The softmax of rows of at most 1024 elements, 4 a block.
#[tile_kernel]
pub fn softmax(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    let t = load_with(x, (bid(0), 0), (4, 1024), f32::NEG_INFINITY);
    let e = exp(t - t.max_keepdims(1));
    store(out, (bid(0), 0), e / e.sum_keepdims(1));
}

/// Running sums of rows of at most 512 elements, 4 a block.
#[tile_kernel]
pub fn running_sum(x: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    store(out, (bid(0), 0), load(x, (bid(0), 0), (4, 512)).cumsum(1));
}

/// `out = x y`, 64 x 64 elements a block: x, then y, along the grid.
#[tile_kernel]
pub fn product(x: Tensor<bf16, 2>, y: Tensor<bf16, 2>, out: TensorMut<f32, 2>) {
    let mut acc = zeros::<f32>((64, 64));
    for k in 0..cdiv(x.dim(1), 64) {
        acc = mma(load(x, (bid(1), k), (64, 64)), load(y, (k, bid(0)), (64, 64)), acc);
    }
    store(out, (bid(1), bid(0)), acc);
}

/// The transpose, 64 x 64 elements a block.
#[tile_kernel]
pub fn transpose_tiles(x: Tensor<bf16, 2>, out: TensorMut<bf16, 2>) {
    store(out, (bid(0), bid(1)), load(x, (bid(1), bid(0)), (64, 64)).transpose());
}

/// The largest element of rows of at most 64, and of -1.5; 16 a block.
#[tile_kernel]
pub fn padded(x: Tensor<f16, 2>, out: TensorMut<f16, 1>) {
    store(out, (bid(0),), load_with(x, (bid(0), 0), (16, 64), -1.5).max(1));
}
