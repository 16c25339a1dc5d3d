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

/// A causal convolution of 4 taps along the tokens, 64 tokens and 32 channels a block: `[batch, tokens, channels]`; weights
/// `[4, channels]`.
#[tile_kernel]
pub fn four_taps(x: Tensor<bf16, 3>, weights: Tensor<f32, 2>, out: TensorMut<bf16, 3>) {
    let (channel, token, batch) = (bid(0), bid(1) * 64, bid(2));
    let mut acc = zeros::<f32>((1, 64, 32));
    for tap in unroll(0..4) {
        let window = load_at(x, (batch, token + tap - 3, channel * 32), (1, 64, 32));
        let weight = load(weights, (tap, channel), (1, 32)).expand_dims(0);
        acc = acc + window.cast::<f32>() * weight;
    }
    store_at(out, (batch, token, channel * 32), acc.cast::<bf16>());
}

/// Rows of a table into rows of a pool, 16 a block; pairs of which one is no row are left out.
#[tile_kernel]
pub fn move_rows(table: Tensor<f32, 2>, from: Tensor<i32, 1>, to: Tensor<i32, 1>, pool: TensorMut<f32, 2>) {
    let column = arange::<i32>(64).expand_dims(0);
    let from = load_with(from, (bid(0),), (16,), -1).expand_dims(1);
    let to = load_with(to, (bid(0),), (16,), -1).expand_dims(1);
    let rows = gather(table, (from, column));
    scatter_masked(pool, (to, column), rows, from >= 0);
}

/// How often each number occurs, 1024 elements a block.
#[tile_kernel]
pub fn histogram(x: Tensor<i32, 1>, counts: TensorMut<i32, 1>) {
    let relaxed = Atomically::new().order(MemoryOrder::Relaxed);
    atomic_add_with(counts, (load_with(x, (bid(0),), (1024,), -1),), 1, relaxed);
}

/// The elements above 0, in any order, and their number; 256 elements a block.
#[tile_kernel]
pub fn compact(x: Tensor<f32, 1>, out: TensorMut<f32, 1>, count: TensorMut<i32, 1>) {
    let t = load(x, (bid(0),), (256,));
    let keep = t > 0.0;
    let relaxed = Atomically::new().order(MemoryOrder::Relaxed);
    let place = atomic_add_with(count, (0,), 1, relaxed.mask(keep));
    scatter_masked(out, (place,), t, keep);
}

/// The sum of all elements, 1024 a block: the block that comes last adds up what the others have left.
#[tile_kernel]
pub fn total(x: Tensor<f32, 1>, parts: TensorMut<f32, 1>, done: TensorMut<i32, 1>, out: TensorMut<f32, 1>) {
    store(parts, (bid(0),), load(x, (bid(0),), (1024,)).sum(0).item());
    let before = atomic_add(done, (0,), 1).item();
    if before + 1 == num_blocks(0) {
        store(out, (0,), load(parts, (0,), (256,)).sum(0).item());
    }
}

/// The largest element of rows of at most 64, and of -1.5; 16 a block.
#[tile_kernel]
pub fn padded(x: Tensor<f16, 2>, out: TensorMut<f16, 1>) {
    store(out, (bid(0),), load_with(x, (bid(0), 0), (16, 64), -1.5).max(1));
}
