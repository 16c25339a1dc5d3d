//! Which compiled kernels fit a GPU, by its threads and shared memory.

use tile_runtime::Compiled;
use tile_runtime::cuda::Limits;
use tile_runtime::prelude::*;
use tile_runtime::tune::fits;

#[tile_kernel]
fn copy(x: Tensor<f32, 1>, y: TensorMut<f32, 1>) {
    store(y, (bid(0),), load(x, (bid(0),), (1024,)));
}

#[test]
fn each_limit_has_its_reason() {
    let x = DeviceTensor::meta(&[4096]).expect("a small tensor");
    let mut y = DeviceTensor::meta(&[4096]).expect("a small tensor");
    let config = Config { num_warps: Some(8), ..Config::default() };
    let compiled = copy(&x, &mut y).config(config).compile(&Target::SM_90A).expect("it compiles");
    let compiled = Compiled { shared_bytes: 100 << 10, ..(*compiled).clone() };
    assert_eq!(compiled.threads, 256);
    let limits = Limits {
        compute_capability: (9, 0),
        multiprocessors: 132,
        max_shared_bytes_per_block: 227 << 10,
        max_shared_bytes_per_multiprocessor: 228 << 10,
        l2_bytes: 50 << 20,
    };
    let with = |blocks| Config { occupancy: Some(blocks), ..Config::default() };
    let reason = |compiled: &Compiled, blocks, limits| fits(compiled, &with(blocks), limits);
    assert_eq!(reason(&compiled, 2, Some(limits)), Ok(()));
    let text = reason(&compiled, 3, Some(limits)).expect_err("too much shared memory");
    assert_eq!(text, "310272 bytes of shared memory for 3 blocks, of 233472 a multiprocessor");
    let text = reason(&compiled, 9, Some(limits)).expect_err("too many threads");
    assert_eq!(text, "9 blocks of 256 threads, of 2048 threads a multiprocessor");
    let small = Limits { compute_capability: (8, 9), ..limits };
    let text = reason(&compiled, 8, Some(small)).expect_err("too many threads there");
    assert_eq!(text, "8 blocks of 256 threads, of 1536 threads a multiprocessor");
    let wide = Compiled { threads: 1024, shared_bytes: 0, ..compiled.clone() };
    assert_eq!(reason(&wide, 2, Some(limits)), Ok(()));
    let large = Compiled { shared_bytes: 228 << 10, ..compiled.clone() };
    let text = reason(&large, 1, None).expect_err("too much for the target");
    assert_eq!(text, "233472 bytes of shared memory, of 232448 for a block");
}
